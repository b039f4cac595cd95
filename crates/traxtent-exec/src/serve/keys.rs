//! What a served drive is told, as `key=value`.

use std::fmt;
use std::path::{Path, PathBuf};

use traxtent_core::profile::{self, Profile};

use super::clock::Speed;
use super::error::ServeError;

/// The keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// The drive.
    Drive,
    /// Where its data are.
    File,
    /// How fast its time passes.
    Speed,
    /// What is random in its faults.
    Seed,
    /// Its faults.
    Scenario,
    /// The request log.
    Log,
    /// The receipt.
    Receipt,
    /// The control socket.
    Control,
    /// Whether what transport takes is taken off.
    Transport,
}

impl Key {
    /// All keys.
    pub const ALL: [Key; 9] = [
        Key::Drive,
        Key::File,
        Key::Speed,
        Key::Seed,
        Key::Scenario,
        Key::Log,
        Key::Receipt,
        Key::Control,
        Key::Transport,
    ];

    /// How the key is written.
    pub fn name(self) -> &'static str {
        match self {
            Key::Drive => "drive",
            Key::File => "file",
            Key::Speed => "speed",
            Key::Seed => "seed",
            Key::Scenario => "scenario",
            Key::Log => "log",
            Key::Receipt => "receipt",
            Key::Control => "control",
            Key::Transport => "transport",
        }
    }

    /// What its value is, in a line.
    pub fn help(self) -> &'static str {
        match self {
            Key::Drive => "a built-in drive's name, or a profile's file (with / or . in its name)",
            Key::File => "the file with the drive's data; without it they are in memory",
            Key::Speed => "how many times as fast as real, from 0.001 to 1000",
            Key::Seed => "a whole number, for what is random in faults",
            Key::Scenario => "a file with a fault a line",
            Key::Log => "a file for a row a request; packed if it ends in .gz or .zst",
            Key::Receipt => "a file for the receipt, written at the end and on SIGUSR1",
            Key::Control => "a socket to be made, on which faults are ordered",
            Key::Transport => {
                "what clients' sockets take, taken off each request: measured, or off"
            }
        }
    }

    /// The names of all keys.
    pub(super) fn names() -> String {
        Key::ALL.map(Key::name).join(", ")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is to be served, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The drive as it was named.
    pub drive: String,
    /// The drive.
    pub profile: Profile,
    /// Where its data are; in memory without it.
    pub file: Option<PathBuf>,
    /// How fast its time passes.
    pub speed: Speed,
    /// What is random in faults; the scenario's, or 1, without it.
    pub seed: Option<u64>,
    /// Faults, a line each.
    pub scenario: Option<PathBuf>,
    /// Where the request log goes.
    pub log: Option<PathBuf>,
    /// Where the receipt goes.
    pub receipt: Option<PathBuf>,
    /// Where the control socket is made.
    pub control: Option<PathBuf>,
    /// Whether the time that sockets take between a client and this process is taken off, as measured at the
    /// start. Not for callers within this process.
    pub take_off_transport: bool,
}

impl Settings {
    /// A drive in memory, at real speed.
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
            take_off_transport: false,
        }
    }

    /// Reads keys and their values.
    ///
    /// # Errors
    /// The first key that is unknown, doubled or missing, or whose value is none; a profile that cannot be read.
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
        settings.take_off_transport = match get(Key::Transport) {
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

/// The profile of a built-in drive, or in a file: a name without `/` or `.` is a built-in drive.
fn load(drive: &str) -> Result<Profile, ServeError> {
    if !drive.contains(['/', '.']) {
        return profile::builtin(drive).ok_or_else(|| {
            let names: Vec<&str> = profile::builtin::names().collect();
            let problem = format!(
                "no built-in drive has that name; there are {}",
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

/// A path that holds also where the server changes its folder.
fn absolute(key: Key, value: &str) -> Result<PathBuf, ServeError> {
    std::path::absolute(value).map_err(|_| wrong(key, value, "expected the name of a file"))
}

fn wrong(key: Key, value: &str, problem: &str) -> ServeError {
    ServeError::Value {
        key,
        value: value.to_owned(),
        problem: problem.to_owned(),
    }
}
