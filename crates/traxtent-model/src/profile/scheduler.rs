//! The scheduling policies of queues, with their names and meanings.
//!
//! [`Schedule`](crate::drive::Schedule) carries them out. To add one, add the variant and its word
//! here, and its choice there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A disk scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// First come, first served.
    #[default]
    Fcfs,
    /// Shortest seek time first: the LBN nearest to the end of the last request.
    Sstf,
    /// Up and down over the LBNs, reversing at the last request in each direction.
    Look,
    /// Upward over the LBNs, then back to the lowest request.
    CLook,
    /// Shortest positioning time first: seek and rotation.
    Sptf,
    /// Shortest positioning time first, minus a bonus for age that prevents starvation. Each
    /// millisecond of waiting offsets `weight` milliseconds of positioning.
    AgedSptf {
        /// Milliseconds of positioning offset per millisecond of waiting.
        weight: f64,
    },
}

/// The policies that a host can use, as words with meanings. They need only addresses and times of
/// arrival.
pub const HOST_SCHEDULERS: &[(&str, &str)] = SCHEDULERS.split_at(SCHEDULERS.len() - 1).0;

/// The policies that are a single word. The last one takes rotation into account.
pub const SCHEDULERS: &[(&str, &str)] = &[
    ("fcfs", "first come, first served"),
    ("sstf", "shortest seek time first"),
    ("look", "up and down over the LBNs"),
    (
        "c-look",
        "upward over the LBNs, then back to the lowest request",
    ),
    ("sptf", "shortest positioning time first"),
];

/// The meaning of `aged-sptf`, and of its weight.
pub const AGED_SPTF: &str = "`sptf`, but each millisecond of waiting offsets `weight` milliseconds of positioning; DiskSim's parameter is in thousandths, so its 6 is 0.006";

/// The bounds of the weight of `aged-sptf`, in milliseconds of positioning per millisecond of
/// waiting.
pub const WEIGHT: (f64, f64) = (0.0, 1_000.0);

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheduler::Fcfs => "fcfs",
            Scheduler::Sstf => "sstf",
            Scheduler::Look => "look",
            Scheduler::CLook => "c-look",
            Scheduler::Sptf => "sptf",
            Scheduler::AgedSptf { weight } => return write!(f, "aged-sptf with weight {weight}"),
        })
    }
}

impl Scheduler {
    /// Returns the policies that are a single word.
    pub fn plain() -> impl Iterator<Item = Scheduler> {
        SCHEDULERS.iter().map(|(word, _)| {
            let word = toml::Value::String((*word).to_owned());
            word.try_into().expect("each word is a policy")
        })
    }

    /// Returns whether the policy takes rotation into account.
    pub fn is_positional(self) -> bool {
        matches!(self, Scheduler::Sptf | Scheduler::AgedSptf { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is each policy written as its word, and do the words for a host leave out the policies that
    /// take rotation into account?
    #[test]
    fn words_name_their_policies() {
        for (policy, (word, _)) in Scheduler::plain().zip(SCHEDULERS) {
            assert_eq!(policy.to_string(), *word);
            let for_host = HOST_SCHEDULERS.iter().any(|(known, _)| known == word);
            assert_eq!(for_host, !policy.is_positional(), "{word}");
        }
    }
}
