//! What a server offers: a drive or a volume, under one set of calls.

use crate::copies::{self, CopiesServer};
use crate::serve::{BlockSizes, Key, ServeError, Server, Settings};
use crate::volume::VolumeServer;

/// The key that names a member of a volume; it may be given several times.
pub const VOLUME_KEY: &str = "volume";

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
        let (mut members, mut control) = (Vec::new(), None);
        for (key, path) in pairs {
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
            if control.is_some() {
                let key = Key::Control.name().to_owned();
                return Err(ServeError::NotOfVolume { key });
            }
            return Ok(Export::Copies(Box::new(CopiesServer::open(path)?)));
        }
        let server = VolumeServer::open(&members, control.as_deref())?;
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
