//! Is every layer of a storage stack aligned, what does it cost if not, and what is to be typed?
//!
//! Sources: paper A (4 KB sectors), and the formats' own specifications. Nothing here writes to what it looks at.
//!
//! ```text
//! source: bytes at offsets ─▶ layers: one parser a format ─▶ examine: a stack ─▶ rules: findings ─▶ report
//!                 sysfs: what the kernel says of devices ──────▲        ▲
//!                 drive: what is stated, quirks ───────────────┘    collect: a stack in a file
//! ```

pub mod collect;
pub mod drive;
pub mod examine;
pub mod files;
pub mod finding;
pub mod layers;
pub mod measure;
pub mod plan;
pub mod price;
pub mod quirks;
pub mod report;
pub mod rules;
pub mod source;
pub mod stack;
mod stripes;
pub mod sysfs;
pub mod target;

pub use finding::{Finding, Mend, Price, Rule, Severity};
pub use source::{Source, SourceError};
pub use stack::{Kind, Layer, LayerId, Place, Stack};

use rules::Tracks;
use traxtent_core::profile::Profile;

/// What is wrong with a stack, worst first, what mends it and what it costs.
///
/// `ignored` rules say nothing. `tracks` are those of the drive that everything lives on, and `profile` is that drive.
pub fn judge(
    stack: &Stack,
    tracks: Option<&Tracks<'_>>,
    profile: Option<&Profile>,
    ignored: &[Rule],
) -> Vec<Finding> {
    let mut findings = rules::check(stack, tracks);
    findings.retain(|finding| !ignored.contains(&finding.rule));
    let mut prices = price::Prices::on(profile);
    for finding in &mut findings {
        finding.mend = plan::mend::mend(finding, stack);
        match prices.of(finding, stack) {
            Ok(price) => finding.price = Some(price),
            Err(why) => finding.unpriced = Some(why),
        }
    }
    findings
}
