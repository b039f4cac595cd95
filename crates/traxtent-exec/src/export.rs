//! What a server offers: a drive or a volume, under one set of calls.

use std::time::Duration;

use crate::copies::{self, CopiesServer};
use crate::serve::{BlockSizes, Key, ServeError, Server, Settings};
use crate::volume::{LEAST_RATE, MEMBER_TIMEOUT, MEMBER_TIMEOUTS, SYNC_RATE, VolumeServer};

/// The key that names a member of a volume; it may be given several times.
pub const VOLUME_KEY: &str = "volume";

/// The key for the seconds after which a member that does not answer fails, beside [`VOLUME_KEY`].
pub const MEMBER_TIMEOUT_KEY: &str = "member-timeout";

/// The key for the rate of the initial sync, beside [`VOLUME_KEY`]: bytes a second of each member, or `off`.
pub const SYNC_RATE_KEY: &str = "sync-rate";

/// A drive or a volume that is served.
#[derive(Debug)]
pub enum Export {
    /// A modelled drive.
    Drive(Box<Server>),
    /// A volume on its members.
    Volume(Box<VolumeServer>),
    /// A volume with copies around the track, on its device.
    Copies(Box<CopiesServer>),
}

impl Export {
    /// Opens what keys and values name.
    ///
    /// # Errors
    /// Keys that name neither, or what cannot be opened.
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
                    return Err(ServeError::TwiceOfVolume { key });
                }
                continue;
            }
            if key == SYNC_RATE_KEY {
                if rate.replace(sync_rate(path)?).is_some() {
                    let key = SYNC_RATE_KEY;
                    return Err(ServeError::TwiceOfVolume { key });
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
                return Err(ServeError::NotOfVolume { key });
            } else if control.replace(path).is_some() {
                return Err(ServeError::Twice { key: Key::Control });
            }
        }
        if let [path] = &members[..]
            && copies::is_one(path)?
        {
            let control = control.map(|_| Key::Control.name());
            let other = timeout.map(|_| MEMBER_TIMEOUT_KEY);
            let other = other.or(rate.map(|_| SYNC_RATE_KEY));
            if let Some(key) = control.or(other) {
                return Err(ServeError::NotOfCopies { key });
            }
            return Ok(Export::Copies(Box::new(CopiesServer::open(path)?)));
        }
        let mut server = VolumeServer::open_within(
            &members,
            control.as_deref(),
            timeout.unwrap_or(MEMBER_TIMEOUT),
        )?;
        server.set_sync_rate(rate.unwrap_or(Some(SYNC_RATE)));
        Ok(Export::Volume(Box::new(server)))
    }

    /// Starts the threads that it needs.
    ///
    /// # Errors
    /// Of [`Server::start`] and [`VolumeServer::start`].
    pub fn start(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.start(),
            Export::Volume(server) => server.start(),
            Export::Copies(server) => server.start(),
        }
    }

    /// Stops in order.
    ///
    /// # Errors
    /// Of [`Server::stop`], [`VolumeServer::stop`] and [`CopiesServer::stop`].
    pub fn stop(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.stop(),
            Export::Volume(server) => Ok(server.stop()?),
            Export::Copies(server) => Ok(server.stop()?),
        }
    }

    /// Watches the end of the server, from when it was told to end; see [`VolumeServer::end_in_time`]. Others end by themselves.
    pub fn end_in_time(&self) {
        if let Export::Volume(server) = self {
            server.end_in_time();
        }
    }

    /// Writes the receipt so far, where there is one.
    ///
    /// # Errors
    /// Of [`Server::write_receipt`].
    pub fn write_receipt(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.write_receipt(),
            Export::Volume(_) | Export::Copies(_) => Ok(()),
        }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Export::Drive(server) => server.bytes(),
            Export::Volume(server) => server.bytes(),
            Export::Copies(server) => server.bytes(),
        }
    }

    /// The sizes that a client should know.
    pub fn block_sizes(&self) -> BlockSizes {
        match self {
            Export::Drive(server) => server.block_sizes(),
            Export::Volume(server) => server.block_sizes(),
            Export::Copies(server) => server.block_sizes(),
        }
    }

    /// Reads from byte `offset` on.
    ///
    /// # Errors
    /// What the drive or the volume reports.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.read(buffer, offset),
            Export::Volume(server) => Ok(server.read(buffer, offset)?),
            Export::Copies(server) => Ok(server.read(buffer, offset)?),
        }
    }

    /// Writes from byte `offset` on; with `fua` it is durable when this returns.
    ///
    /// # Errors
    /// As of [`Export::read`].
    pub fn write(&self, bytes: &[u8], offset: u64, fua: bool) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.write(bytes, offset, fua),
            Export::Volume(server) => Ok(server.write(bytes, offset, fua)?),
            Export::Copies(server) => Ok(server.write(bytes, offset, fua)?),
        }
    }

    /// Makes `count` bytes from `offset` on zero.
    ///
    /// # Errors
    /// As of [`Export::read`].
    pub fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.zero(offset, count, fua),
            Export::Volume(server) => Ok(server.zero(offset, count, fua)?),
            Export::Copies(server) => Ok(server.zero(offset, count, fua)?),
        }
    }

    /// Tells that nobody needs `count` bytes from `offset` on any more. Volumes without copies keep them.
    ///
    /// # Errors
    /// As of [`Export::read`].
    pub fn trim(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.trim(offset, count, fua),
            Export::Volume(_) => Ok(()),
            // What the table says of it is durable at once.
            Export::Copies(server) => Ok(server.trim(offset, count)?),
        }
    }

    /// Whether a trim does anything: plain volumes keep what they have, so they offer none.
    pub fn can_trim(&self) -> bool {
        match self {
            Export::Drive(_) | Export::Copies(_) => true,
            Export::Volume(_) => false,
        }
    }

    /// Makes all durable that was written before.
    ///
    /// # Errors
    /// As of [`Export::read`].
    pub fn flush(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.flush(),
            Export::Volume(server) => Ok(server.flush()?),
            Export::Copies(server) => Ok(server.flush()?),
        }
    }
}

/// The rate of the initial sync that a text names; none if it is off.
///
/// # Errors
/// If it is neither `off` nor a number of bytes a second, or below the least.
pub fn sync_rate(text: &str) -> Result<Option<u64>, ServeError> {
    if text == "off" {
        return Ok(None);
    }
    let rate = text.parse().ok().filter(|rate| *rate >= LEAST_RATE);
    rate.map(Some).ok_or_else(|| ServeError::SyncRate {
        value: text.to_owned(),
    })
}

/// The member time-out that a text names.
///
/// # Errors
/// If it is not a whole number of seconds, or out of bounds.
pub fn member_timeout(text: &str) -> Result<Duration, ServeError> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| MEMBER_TIMEOUTS.contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| ServeError::MemberTimeout {
            value: text.to_owned(),
        })
}
