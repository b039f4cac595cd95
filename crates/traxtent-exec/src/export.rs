//! What a server offers: a drive or a volume, under one set of calls.

use std::path::PathBuf;

use crate::serve::{BlockSizes, ServeError, Server, Settings};
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
        if let Some((key, _)) = pairs.iter().find(|(key, _)| *key != VOLUME_KEY) {
            return Err(ServeError::NotOfVolume {
                key: (*key).to_owned(),
            });
        }
        let paths = pairs.iter().map(|(_, path)| std::path::absolute(path));
        let paths: Result<Vec<PathBuf>, _> = paths.collect();
        let paths = paths.map_err(|error| ServeError::Data {
            what: "find",
            error,
        })?;
        Ok(Export::Volume(Box::new(VolumeServer::open(&paths, false)?)))
    }

    /// Starts the threads that it needs.
    ///
    /// # Errors
    /// Of [`Server::start`].
    pub fn start(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.start(),
            Export::Volume(_) => Ok(()),
        }
    }

    /// Stops in order.
    ///
    /// # Errors
    /// Of [`Server::stop`] and [`VolumeServer::stop`].
    pub fn stop(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.stop(),
            Export::Volume(server) => Ok(server.stop()?),
        }
    }

    /// Writes the receipt so far, where there is one.
    ///
    /// # Errors
    /// Of [`Server::write_receipt`].
    pub fn write_receipt(&self) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.write_receipt(),
            Export::Volume(_) => Ok(()),
        }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Export::Drive(server) => server.bytes(),
            Export::Volume(server) => server.bytes(),
        }
    }

    /// The sizes that a client should know.
    pub fn block_sizes(&self) -> BlockSizes {
        match self {
            Export::Drive(server) => server.block_sizes(),
            Export::Volume(server) => server.block_sizes(),
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
        }
    }

    /// Tells that nobody needs `count` bytes from `offset` on any more. Volumes keep them.
    ///
    /// # Errors
    /// As of [`Export::read`].
    pub fn trim(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServeError> {
        match self {
            Export::Drive(server) => server.trim(offset, count, fua),
            Export::Volume(_) => Ok(()),
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
        }
    }
}
