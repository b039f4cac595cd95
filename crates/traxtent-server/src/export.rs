//! A server's exports: a drive, a volume, or a volume with replicas, behind one set of methods.

use std::time::Duration;

use traxtent_units::byte_size::parse_byte_size;

use crate::copies::{self, ReplicaVolumeServer};
use crate::serve::{BlockSizes, Key, ServeError, Server, Settings};
use crate::volume::{MEMBER_TIMEOUT, MEMBER_TIMEOUTS, RATE_MIN, SYNC_RATE, VolumeServer};

/// The key that names a member of a volume. It may be repeated.
pub const VOLUME_KEY: &str = "volume";

/// The key for the seconds after which a member that does not respond is failed; used with
/// [`VOLUME_KEY`].
pub const MEMBER_TIMEOUT_KEY: &str = "member-timeout";

/// The key for the rate of the initial sync, in bytes per second for each member, or `off`; used
/// with [`VOLUME_KEY`].
pub const SYNC_RATE_KEY: &str = "sync-rate";

/// A drive or a volume that is served.
#[derive(Debug)]
pub enum Export {
    /// A modelled drive.
    Drive(Box<Server>),
    /// A volume on its members.
    Volume(Box<VolumeServer>),
    /// A volume with replicas around the track, on its device.
    ReplicaVolume(Box<ReplicaVolumeServer>),
}

impl Export {
    /// Opens the export that the keys and values describe.
    ///
    /// # Errors
    /// Returns an error if the keys describe no export, or if it cannot be opened.
    pub fn open<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Export, ServeError> {
        let pairs: Vec<(&str, &str)> = pairs.into_iter().collect();
        if pairs.iter().all(|(key, _)| *key != VOLUME_KEY) {
            let server = Settings::read(pairs).and_then(Server::open)?;
            return Ok(Export::Drive(Box::new(server)));
        }
        let (mut members, mut control, mut timeout, mut rate) = (Vec::new(), None, None, None);
        for (key, path) in pairs {
            if key == MEMBER_TIMEOUT_KEY {
                if timeout.replace(member_timeout(path)?).is_some() {
                    let key = MEMBER_TIMEOUT_KEY;
                    return Err(ServeError::VolumeKeyTwice { key });
                }
                continue;
            }
            if key == SYNC_RATE_KEY {
                if rate.replace(sync_rate(path)?).is_some() {
                    let key = SYNC_RATE_KEY;
                    return Err(ServeError::VolumeKeyTwice { key });
                }
                continue;
            }
            let path = std::path::absolute(path).map_err(|error| ServeError::Data {
                what: "find",
                error,
            })?;
            if key == VOLUME_KEY {
                members.push(path);
            } else if key != Key::Control.name() {
                let key = key.to_owned();
                return Err(ServeError::KeyWithVolume { key });
            } else if control.replace(path).is_some() {
                return Err(ServeError::Twice { key: Key::Control });
            }
        }
        if let [path] = &members[..]
            && copies::holds_replica_volume(path)?
        {
            let control = control.map(|_| Key::Control.name());
            let other = timeout.map(|_| MEMBER_TIMEOUT_KEY);
            let other = other.or(rate.map(|_| SYNC_RATE_KEY));
            if let Some(key) = control.or(other) {
                return Err(ServeError::KeyWithReplicas { key });
            }
            return Ok(Export::ReplicaVolume(Box::new(ReplicaVolumeServer::open(
                path,
            )?)));
        }
        let mut server = VolumeServer::open_within(
            &members,
            control.as_deref(),
            timeout.unwrap_or(MEMBER_TIMEOUT),
        )?;
        server.set_sync_rate(rate.unwrap_or(Some(SYNC_RATE)));
        Ok(Export::Volume(Box::new(server)))
    }

    /// Starts the threads that the export needs.
    ///
    /// # Errors
    /// Returns the errors of [`Server::start`] and [`VolumeServer::start`].
    pub fn start(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.start(),
            Export::Volume(server) => server.start(),
            Export::ReplicaVolume(server) => server.start(),
        }
    }

    /// Shuts the export down cleanly.
    ///
    /// # Errors
    /// Returns the errors of [`Server::stop`], [`VolumeServer::stop`] and
    /// [`ReplicaVolumeServer::stop`].
    pub fn stop(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.stop(),
            Export::Volume(server) => Ok(server.stop()?),
            Export::ReplicaVolume(server) => Ok(server.stop()?),
        }
    }

    /// Limits the time that the server takes to shut down; see [`VolumeServer::end_in_time`]. Other
    /// exports need no limit.
    pub fn limit_shutdown(&self) {
        if let Export::Volume(server) = self {
            server.end_in_time();
        }
    }

    /// Writes the receipt so far, if the export keeps one.
    ///
    /// # Errors
    /// Returns the errors of [`Server::write_receipt`].
    pub fn write_receipt(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.write_receipt(),
            Export::Volume(_) | Export::ReplicaVolume(_) => Ok(()),
        }
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Export::Drive(server) => server.bytes(),
            Export::Volume(server) => server.bytes(),
            Export::ReplicaVolume(server) => server.bytes(),
        }
    }

    /// Returns the block sizes to advertise to a client.
    pub fn block_sizes(&self) -> BlockSizes {
        match self {
            Export::Drive(server) => server.block_sizes(),
            Export::Volume(server) => server.block_sizes(),
            Export::ReplicaVolume(server) => server.block_sizes(),
        }
    }

    /// Reads from byte `offset` on.
    ///
    /// # Errors
    /// Returns the error that the drive or the volume reports.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.read(buffer, offset),
            Export::Volume(server) => Ok(server.read(buffer, offset)?),
            Export::ReplicaVolume(server) => Ok(server.read(buffer, offset)?),
        }
    }

    /// Writes from byte `offset` on. With `fua`, the data is durable when this returns.
    ///
    /// # Errors
    /// Returns the same errors as [`Export::read`].
    pub fn write(&self, bytes: &[u8], offset: u64, fua: bool) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.write(bytes, offset, fua),
            Export::Volume(server) => Ok(server.write(bytes, offset, fua)?),
            Export::ReplicaVolume(server) => Ok(server.write(bytes, offset, fua)?),
        }
    }

    /// Zeroes `count` bytes from `offset` on.
    ///
    /// # Errors
    /// Returns the same errors as [`Export::read`].
    pub fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.zero(offset, count, fua),
            Export::Volume(server) => Ok(server.zero(offset, count, fua)?),
            Export::ReplicaVolume(server) => Ok(server.zero(offset, count, fua)?),
        }
    }

    /// Declares `count` bytes from `offset` on unused. Volumes without replicas keep the data.
    ///
    /// # Errors
    /// Returns the same errors as [`Export::read`].
    pub fn trim(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.trim(offset, count, fua),
            Export::Volume(_) => Ok(()),
            // The table entries that record a trim are durable at once.
            Export::ReplicaVolume(server) => Ok(server.trim(offset, count)?),
        }
    }

    /// Returns whether trim has an effect. Volumes without replicas keep all data and do not
    /// advertise it.
    pub fn can_trim(&self) -> bool {
        match self {
            Export::Drive(_) | Export::ReplicaVolume(_) => true,
            Export::Volume(_) => false,
        }
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Returns the same errors as [`Export::read`].
    pub fn flush(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.flush(),
            Export::Volume(server) => Ok(server.flush()?),
            Export::ReplicaVolume(server) => Ok(server.flush()?),
        }
    }
}

/// Parses the rate of the initial sync; `None` means off.
///
/// # Errors
/// Returns an error if the text is neither `off` nor a size in bytes (per second), or if the rate
/// is below the minimum.
pub fn sync_rate(text: &str) -> Result<Option<u64>, ServeError> {
    if text == "off" {
        return Ok(None);
    }
    let rate = parse_byte_size(text).ok().filter(|rate| *rate >= RATE_MIN);
    rate.map(Some).ok_or_else(|| ServeError::SyncRate {
        value: text.to_owned(),
    })
}

/// Parses a member time-out.
///
/// # Errors
/// Returns an error if the text is not a whole number of seconds, or is out of bounds.
pub fn member_timeout(text: &str) -> Result<Duration, ServeError> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| MEMBER_TIMEOUTS.contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| ServeError::MemberTimeout {
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
