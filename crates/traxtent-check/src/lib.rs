//! Checks whether every layer of a storage stack is aligned, estimates the cost of misalignment,
//! and gives the commands that fix it.
//!
//! Sources: paper A (4 KB sectors), and the specifications of the formats.
//!
//! ```text
//! source: bytes ─▶ layers: one parser per format ─▶ examine: a stack ─▶ rules: findings ─▶ report
//!     sysfs: the kernel's view of devices ─────────────▲              ▲
//!     drive: stated facts, quirks ─────────────────────┘          collect: a stack in a file
//! ```
//!
//! [`target::examine_targets`] examines the stack on files and devices, and [`examine::examine`]
//! the stack on any [`Source`]. [`findings`] returns its problems. [`plan`] generates the commands
//! for a new stack, and [`measure`] finds sizes by timing.
//!
//! # Invariants
//! Nothing here opens a device or image for writing. A parser is a pure function of a source. A
//! misalignment is reported once, for the lowest layer that has it.

pub mod collect;
pub mod content;
pub mod cost;
pub mod drive;
pub mod examine;
pub mod files;
pub mod finding;
pub mod layers;
pub mod measure;
pub mod plan;
pub mod quirks;
pub mod report;
pub mod rules;
pub mod source;
pub mod stack;
mod stripes;
pub mod sysfs;
pub mod target;

pub use finding::{Finding, FindingCost, Fix, Rule, Severity};
pub use source::{Source, SourceError};
pub use stack::{ByteRange, Kind, Layer, LayerId, Stack};

use traxtent_model::profile::Profile;

use report::ReportRow;
use rules::TrackCheck;

/// Returns the problems of a stack, worst first, each with its fix and its cost.
///
/// Findings of the `ignored` rules are omitted. `tracks` and `profile` describe the drive that
/// holds the whole stack.
pub fn findings(
    stack: &Stack,
    tracks: Option<&TrackCheck<'_>>,
    profile: Option<&Profile>,
    ignored: &[Rule],
) -> Vec<ReportRow> {
    let mut costs = cost::FindingCosts::for_profile(profile);
    let mut findings = rules::check(stack, tracks);
    // Damage that the caller ignores still makes commands dangerous.
    let damages: Vec<(LayerId, &str)> = findings
        .iter()
        .filter(|finding| finding.rule.is_damage())
        .map(|finding| (finding.layer, finding.rule.id()))
        .collect();
    findings.retain(|finding| !ignored.contains(&finding.rule));
    let mut rows: Vec<ReportRow> = findings
        .iter()
        .map(|finding| ReportRow {
            fix: plan::fix::fix(finding, stack, &findings, tracks.map(|tracks| tracks.drive)),
            cost: costs.cost_of(finding, stack),
            finding: finding.clone(),
        })
        .collect();
    plan::fix::keep_first_commands(&mut rows, &damages, stack);
    plan::fix::keep_first_of_array(&mut rows, stack);
    rows
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
