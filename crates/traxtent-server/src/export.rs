//! Opening what is served, a drive, a volume, or a volume with replicas, from keys and values.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use traxtent_units::byte_size::parse_byte_size;

use crate::copies::{self, ReplicaVolumeIoError, ReplicaVolumeServer};
use crate::serve::{DriveServer, Key, ServeError, Settings};
use crate::service::BlockService;
use crate::volume::{
    MEMBER_TIMEOUT, MEMBER_TIMEOUTS, RATE_MIN, SYNC_RATE, VolumeIoError, VolumeServer,
};

/// The key that names a member of a volume. It may be repeated.
pub const VOLUME_KEY: &str = "volume";

/// The key for the seconds after which a member that does not respond is failed; used with
/// [`VOLUME_KEY`].
pub const MEMBER_TIMEOUT_KEY: &str = "member-timeout";

/// The key for the rate of the initial sync, in bytes per second for each member, or `off`; used
/// with [`VOLUME_KEY`].
pub const SYNC_RATE_KEY: &str = "sync-rate";

/// The reason why an export cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A drive that cannot be served.
    #[error(transparent)]
    Drive(#[from] ServeError),
    /// A volume that cannot be opened.
    #[error(transparent)]
    Volume(#[from] VolumeIoError),
    /// A volume with replicas that cannot be opened.
    #[error(transparent)]
    Replicas(#[from] ReplicaVolumeIoError),
    /// A drive's key that is combined with a volume's.
    #[error(
        "{key}= cannot be combined with volume=; only control=, member-timeout= and sync-rate= can"
    )]
    KeyWithVolume {
        /// The key.
        key: String,
    },
    /// A key that volumes with replicas do not have.
    #[error("{key}= cannot be used with a volume with replicas; remove it")]
    KeyWithReplicas {
        /// The key.
        key: &'static str,
    },
    /// A key that is given twice.
    #[error("{key}= is given twice")]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// A path that cannot be made absolute.
    #[error("{key}={path}: {error}")]
    Path {
        /// The key.
        key: String,
        /// The path as given.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// An invalid rate of the initial sync.
    #[error(
        "sync-rate={value}: expected off, or bytes per second, such as 50M, of at least {RATE_MIN}"
    )]
    SyncRate {
        /// The value as given.
        value: String,
    },
    /// An invalid member time-out.
    #[error(
        "member-timeout={value}: expected whole seconds from {} to {}",
        MEMBER_TIMEOUTS.start(),
        MEMBER_TIMEOUTS.end()
    )]
    MemberTimeout {
        /// The value as given.
        value: String,
    },
}

/// Opens the drive or the volume that the keys and values describe. No thread is started yet.
///
/// # Errors
/// Returns an error if the keys describe no export, or if it cannot be opened.
pub fn open<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Box<dyn BlockService>, ExportError> {
    let pairs: Vec<(&str, &str)> = pairs.into_iter().collect();
    if pairs.iter().all(|(key, _)| *key != VOLUME_KEY) {
        let server = Settings::read(pairs).and_then(DriveServer::open)?;
        return Ok(Box::new(server));
    }
    let keys = VolumeKeys::read(&pairs)?;
    if let [path] = &keys.members[..]
        && copies::holds_replica_volume(path)?
    {
        if let Some(key) = keys.other_key() {
            return Err(ExportError::KeyWithReplicas { key });
        }
        return Ok(Box::new(ReplicaVolumeServer::open(path)?));
    }
    let mut server = VolumeServer::open_within(
        &keys.members,
        keys.control.as_deref(),
        keys.timeout.unwrap_or(MEMBER_TIMEOUT),
    )?;
    server.set_sync_rate(keys.rate.unwrap_or(Some(SYNC_RATE)));
    Ok(Box::new(server))
}

/// The keys of a volume and their values.
#[derive(Default)]
struct VolumeKeys {
    members: Vec<PathBuf>,
    control: Option<PathBuf>,
    timeout: Option<Duration>,
    /// The rate of the initial sync; `Some(None)` if it is off.
    rate: Option<Option<u64>>,
}

impl VolumeKeys {
    fn read(pairs: &[(&str, &str)]) -> Result<VolumeKeys, ExportError> {
        let mut keys = VolumeKeys::default();
        for (key, value) in pairs {
            let absolute = || {
                std::path::absolute(value).map_err(|error| ExportError::Path {
                    key: (*key).to_owned(),
                    path: (*value).to_owned(),
                    error,
                })
            };
            match *key {
                VOLUME_KEY => keys.members.push(absolute()?),
                MEMBER_TIMEOUT_KEY => {
                    set(
                        &mut keys.timeout,
                        member_timeout(value)?,
                        MEMBER_TIMEOUT_KEY,
                    )?;
                }
                SYNC_RATE_KEY => set(&mut keys.rate, sync_rate(value)?, SYNC_RATE_KEY)?,
                key if key == Key::Control.name() => {
                    set(&mut keys.control, absolute()?, Key::Control.name())?;
                }
                key => {
                    let key = key.to_owned();
                    return Err(ExportError::KeyWithVolume { key });
                }
            }
        }
        Ok(keys)
    }

    /// Returns a key that was given besides the members.
    fn other_key(&self) -> Option<&'static str> {
        let control = self.control.as_ref().map(|_| Key::Control.name());
        let timeout = self.timeout.map(|_| MEMBER_TIMEOUT_KEY);
        control.or(timeout).or(self.rate.map(|_| SYNC_RATE_KEY))
    }
}

/// Sets a value that may be given once.
fn set<T>(value: &mut Option<T>, given: T, key: &'static str) -> Result<(), ExportError> {
    match value.replace(given) {
        None => Ok(()),
        Some(_) => Err(ExportError::Twice { key }),
    }
}

/// Parses the rate of the initial sync; `None` means off.
///
/// # Errors
/// Returns an error if the text is neither `off` nor a size in bytes (per second), or if the rate
/// is below the minimum.
pub fn sync_rate(text: &str) -> Result<Option<u64>, ExportError> {
    if text == "off" {
        return Ok(None);
    }
    let rate = parse_byte_size(text).ok().filter(|rate| *rate >= RATE_MIN);
    rate.map(Some).ok_or_else(|| ExportError::SyncRate {
        value: text.to_owned(),
    })
}

/// Parses a member time-out.
///
/// # Errors
/// Returns an error if the text is not a whole number of seconds, or is out of bounds.
pub fn member_timeout(text: &str) -> Result<Duration, ExportError> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| MEMBER_TIMEOUTS.contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| ExportError::MemberTimeout {
            value: text.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the rate a size with or without a suffix, or off?
    #[test]
    fn sync_rates() {
        for (text, rate) in [
            ("off", None),
            ("65536", Some(65_536)),
            ("64KiB", Some(65_536)),
            ("50M", Some(50 << 20)),
        ] {
            assert_eq!(sync_rate(text).ok(), Some(rate), "{text}");
        }
        for text in ["63K", "64", "50X", "on"] {
            let error = sync_rate(text).expect_err(text).to_string();
            assert!(error.contains("of at least 65536"), "{error}");
        }
    }
}
