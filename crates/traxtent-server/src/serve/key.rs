//! The keys of the settings of a served drive.

use std::fmt;

/// The keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// The drive.
    Drive,
    /// The file with the drive's data.
    File,
    /// The speed of simulated time.
    Speed,
    /// The seed of random faults.
    Seed,
    /// Its faults.
    Scenario,
    /// The request log.
    Log,
    /// The receipt.
    Receipt,
    /// The control socket.
    Control,
    /// Whether the transport time is subtracted.
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

    /// Returns the key's name.
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

    /// Returns a one-line description of the key's value.
    pub fn help(self) -> &'static str {
        match self {
            Key::Drive => {
                "a built-in drive's name, or a profile file (its name must contain / or .)"
            }
            Key::File => "the file with the drive's data; without it, data is kept in memory",
            Key::Speed => "the speed relative to real time, from 0.001 to 1000",
            Key::Seed => "the seed of random faults, an integer",
            Key::Scenario => "a file of faults",
            Key::Log => "a file with one row per request; compressed if it ends in .gz or .zst",
            Key::Receipt => "a file for the receipt, written at the end and on SIGUSR1",
            Key::Control => "the control socket to create, which takes orders for faults",
            Key::Transport => {
                "subtract the time of the clients' sockets from each request: measured, or off"
            }
        }
    }

    /// Returns the names of all keys.
    pub(super) fn names() -> String {
        Key::ALL.map(Key::name).join(", ")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
