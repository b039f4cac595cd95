//! Faults of a modelled drive, and its compliance with commands.

use traxtent_units::Lbn;
use traxtent_units::request::Op;

/// The faults of a drive.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The LBNs that can be neither read nor written, in ascending order.
    pub unreadable: Vec<Lbn>,
    /// The kinds of request that the drive does not support.
    pub unsupported: Vec<Op>,
    /// The number of requests, translations and reads of defect lists after which the drive stops
    /// responding.
    pub unresponsive_after: Option<u64>,
    /// The drive's response to VERIFY.
    pub verify: Compliance,
    /// The drive's response to a request with force unit access.
    pub fua: Compliance,
    /// The drive's response to a command that changes its caching.
    pub cache_control: Compliance,
}

/// A drive's response to a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compliance {
    /// The drive obeys.
    #[default]
    Obeys,
    /// The drive refuses the command.
    Refuses,
    /// The drive accepts the command and ignores it. Paper Q suspects that its drive prefetched
    /// although the host had disabled this (section 2.3), and some bridges ignore VERIFY.
    Ignores,
}
