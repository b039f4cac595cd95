//! The settings of a served drive, given as `key=value`.

use std::path::{Path, PathBuf};

use traxtent_model::profile::{self, Profile};

use super::clock::Speed;
use super::error::ServeError;
use super::key::Key;

/// The settings of a served drive.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The drive as it was named.
    pub drive: String,
    /// The drive's profile.
    pub profile: Profile,
    /// The file with the drive's data; `None` keeps them in memory.
    pub file: Option<PathBuf>,
    /// The speed of simulated time.
    pub speed: Speed,
    /// The seed of random faults. If it is absent, the scenario's seed applies, or else 1.
    pub seed: Option<u64>,
    /// A file of faults, one per line.
    pub scenario: Option<PathBuf>,
    /// The file for the request log.
    pub log: Option<PathBuf>,
    /// The file for the receipt.
    pub receipt: Option<PathBuf>,
    /// The path at which the control socket is created.
    pub control: Option<PathBuf>,
    /// Whether to subtract the time that sockets take between a client and this process, as
    /// measured at the start. It does not apply to callers within this process.
    pub subtract_transport: bool,
}

impl Settings {
    /// Returns settings for a drive in memory, at real speed.
    pub fn of(drive: &str, profile: Profile) -> Settings {
        Settings {
            drive: drive.to_owned(),
            profile,
            file: None,
            speed: Speed::REAL,
            seed: None,
            scenario: None,
            log: None,
            receipt: None,
            control: None,
            subtract_transport: false,
        }
    }

    /// Reads keys and their values.
    ///
    /// # Errors
    /// Returns an error for the first key that is unknown, repeated or missing, or whose value is
    /// invalid. Returns an error if the profile cannot be read.
    pub fn read<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings, ServeError> {
        let mut values = [None; Key::ALL.len()];
        for (name, value) in pairs {
            let index = Key::ALL.iter().position(|key| key.name() == name);
            let index = index.ok_or_else(|| ServeError::UnknownKey {
                key: name.to_owned(),
            })?;
            if values[index].replace(value).is_some() {
                let key = Key::ALL[index];
                return Err(ServeError::Twice { key });
            }
        }
        let get = |key: Key| values[key as usize];
        let path = |key: Key| get(key).map(|value| absolute(key, value)).transpose();
        let drive = get(Key::Drive).ok_or(ServeError::Missing { key: Key::Drive })?;
        let mut settings = Settings::of(drive, load(drive)?);
        settings.file = path(Key::File)?;
        settings.scenario = path(Key::Scenario)?;
        settings.log = path(Key::Log)?;
        settings.receipt = path(Key::Receipt)?;
        settings.control = path(Key::Control)?;
        settings.subtract_transport = match get(Key::Transport) {
            None | Some("measured") => true,
            Some("off") => false,
            Some(text) => return Err(wrong(Key::Transport, text, "expected measured or off")),
        };
        if let Some(text) = get(Key::Speed) {
            settings.speed = text
                .parse()
                .map_err(|problem| wrong(Key::Speed, text, problem))?;
        }
        if let Some(text) = get(Key::Seed) {
            let seed = text.parse();
            settings.seed = Some(
                seed.map_err(|_| wrong(Key::Seed, text, "expected a whole number below 2^64"))?,
            );
        }
        Ok(settings)
    }
}

/// Loads the profile of a built-in drive, or from a file. A name without `/` or `.` is a built-in
/// drive.
fn load(drive: &str) -> Result<Profile, ServeError> {
    if !drive.contains(['/', '.']) {
        return profile::builtin(drive).ok_or_else(|| {
            let names: Vec<&str> = profile::builtin::names().collect();
            let problem = format!(
                "no such built-in drive; the built-in drives are {}",
                names.join(", ")
            );
            wrong(Key::Drive, drive, &problem)
        });
    }
    let path = Path::new(drive);
    let text = std::fs::read_to_string(path)
        .map_err(|error| ServeError::file(Key::Drive, path, "read", error))?;
    Profile::from_toml(&text).map_err(|error| ServeError::Profile {
        path: path.to_owned(),
        error,
    })
}

/// Returns a path that remains valid if the server changes its working directory.
fn absolute(key: Key, value: &str) -> Result<PathBuf, ServeError> {
    std::path::absolute(value).map_err(|_| wrong(key, value, "expected a file name"))
}

fn wrong(key: Key, value: &str, problem: &str) -> ServeError {
    ServeError::Value {
        key,
        value: value.to_owned(),
        problem: problem.to_owned(),
    }
}
