//! The queue of the host in front of a drive, for simulations.

use super::Scheduler;
use serde::{Deserialize, Serialize};

/// The order in which the host sends requests to the drive, and the limit on outstanding ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// The order of requests. It cannot be by position, because a host does not know where the
    /// heads are.
    pub scheduler: Scheduler,
    /// Whether the host sends the drive one request at a time, regardless of the depth of the
    /// drive's queue.
    pub one_at_a_time: bool,
}
