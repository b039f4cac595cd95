//! Stores measured numbers and figures in a directory, so that an interrupted run resumes where it
//! stopped.
//!
//! An entry records the build of the program that made it and a checksum of the experiment's text.
//! If either differs, the experiment is measured again. Entries are written atomically, and begin
//! with the checksum of the rest.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use traxtent_lab::Figure;

use crate::experiment::Experiment;

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    build: String,
}

/// The error of a directory or file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct StoreError {
    /// The path.
    pub path: PathBuf,
    /// The cause.
    pub error: io::Error,
}

/// The inputs that determine a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    build: String,
    experiment: String,
    /// The checksum of the experiment's text.
    text_crc32: u32,
    drive: String,
    seed: u64,
    quick: bool,
    picture: bool,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: Key,
    result: Stored,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stored {
    /// The numbers of a measurement.
    Numbers(Vec<f64>),
    /// A figure.
    Picture(Figure),
}

impl Store {
    /// Opens the directory for results of this build of the program, and creates it if necessary.
    ///
    /// # Errors
    /// Returns an error if it cannot be created or written to.
    pub fn open(folder: &Path, build: &str) -> Result<Store, StoreError> {
        let at = |error| StoreError {
            path: folder.to_owned(),
            error,
        };
        fs::create_dir_all(folder).map_err(at)?;
        NamedTempFile::new_in(folder).map_err(at)?;
        Ok(Store {
            folder: folder.to_owned(),
            build: build.to_owned(),
        })
    }

    /// The directory for recordings of measurements, which are valid for any build of the program.
    pub(crate) fn recordings(&self) -> PathBuf {
        self.folder.join("recordings")
    }

    /// Returns the key of a result.
    pub(crate) fn key(
        &self,
        experiment: &Experiment,
        (drive, seed, quick): (&str, u64, bool),
        picture: bool,
    ) -> Key {
        Key {
            build: self.build.clone(),
            experiment: experiment.number.clone(),
            text_crc32: crc32fast::hash(experiment.text.as_bytes()),
            drive: drive.to_owned(),
            seed,
            quick,
            picture,
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        let quick = if key.quick { "-quick" } else { "" };
        let picture = if key.picture { "-picture" } else { "" };
        let Key {
            experiment,
            drive,
            seed,
            ..
        } = key;
        let name = format!("{experiment}-{drive}-{seed}{quick}{picture}.toml");
        self.folder.join(name)
    }

    /// Returns the stored result with exactly this key, if there is one.
    pub(crate) fn load(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        let path = self.path(key);
        match fs::read_to_string(&path) {
            // A file that cannot be parsed counts as missing.
            Ok(text) => Ok(entry(&text)
                .filter(|entry| entry.key == *key)
                .map(|entry| entry.result)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(StoreError { path, error }),
        }
    }

    /// Stores a result.
    pub(crate) fn save(&self, key: &Key, result: &Stored) -> Result<(), StoreError> {
        let path = self.path(key);
        let entry = Entry {
            key: key.clone(),
            result: result.clone(),
        };
        let text = toml::to_string(&entry).expect("an entry can be serialized");
        let text = format!("{}\n{text}", checksum(&text));
        let write = || -> io::Result<()> {
            let mut file = NamedTempFile::new_in(&self.folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_data()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| StoreError {
            path: path.clone(),
            error,
        })
    }
}

/// Returns the first line of an entry, with the checksum of `text`.
fn checksum(text: &str) -> String {
    format!("# crc32 {:08x}", crc32fast::hash(text.as_bytes()))
}

/// Parses the entry in a file, if its checksum is correct.
fn entry(text: &str) -> Option<Entry> {
    let (first, rest) = text.split_once('\n')?;
    (first == checksum(rest)).then(|| toml::from_str(rest).ok())?
}
