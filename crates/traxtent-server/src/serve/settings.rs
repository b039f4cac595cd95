//! The settings of a served drive.

use std::path::PathBuf;

use traxtent_model::profile::Profile;

use super::clock::Speed;

/// The settings of a served drive.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The drive's name as the user gave it.
    pub drive: String,
    /// The drive's profile.
    pub profile: Profile,
    /// The file with the drive's data; `None` keeps it in memory.
    pub file: Option<PathBuf>,
    /// The maximum memory in bytes for the data without a file; `None` for half of the memory that
    /// is available when the server is opened.
    pub memory_bytes_max: Option<u64>,
    /// Whether the file is only opened for reading. It must then exist, and writes fail.
    pub read_only: bool,
    /// The speed of simulated time.
    pub speed: Speed,
    /// The seed for power cuts that specify none. The default is the scenario's seed, or
    /// 1 without a scenario.
    pub seed: Option<u64>,
    /// The scenario: a TOML file with the faults and their times.
    pub scenario: Option<PathBuf>,
    /// The file for the request log.
    pub log: Option<PathBuf>,
    /// The file for the receipt.
    pub receipt: Option<PathBuf>,
    /// The path at which the control socket is created.
    pub control: Option<PathBuf>,
    /// Whether to subtract the time that requests and responses spend in sockets between a client
    /// and this process, as measured at the start. Use false for callers within this process.
    pub subtract_transport: bool,
}

impl Settings {
    /// Returns settings for a drive in memory, in real time, without any output files.
    pub fn of(drive: &str, profile: Profile) -> Settings {
        Settings {
            drive: drive.to_owned(),
            profile,
            file: None,
            memory_bytes_max: None,
            read_only: false,
            speed: Speed::REAL,
            seed: None,
            scenario: None,
            log: None,
            receipt: None,
            control: None,
            subtract_transport: false,
        }
    }
}
