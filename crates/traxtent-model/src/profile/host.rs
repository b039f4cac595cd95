//! The queue of the host in front of a drive, for simulations.

use super::Scheduler;
use serde::{Deserialize, Serialize};

/// The order and number in which the host passes requests on to the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// The order. A host does not know where the heads are, so it cannot be by position.
    pub scheduler: Scheduler,
    /// Whether the host sends the drive one request at a time, whatever the depth of its queue.
    pub one_at_a_time: bool,
}
