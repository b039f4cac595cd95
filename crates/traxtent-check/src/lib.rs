//! Is every layer of a storage stack aligned, what does it cost if not, and what is to be typed?
//!
//! Sources: paper A (4 KB sectors), and the formats' own specifications. Nothing here writes to what it looks at.
//!
//! ```text
//! source: bytes at offsets ─▶ layers: one parser a format ─▶ stack: layers and where they lie ─▶ rules: findings ─▶ report
//!                 sysfs: what the kernel says of devices ──────────▲
//! ```

pub mod examine;
pub mod finding;
pub mod layers;
pub mod plan;
pub mod source;
pub mod stack;
mod stripes;
pub mod sysfs;

pub use finding::{Finding, Mend, Price, Rule, Severity};
pub use source::{Source, SourceError};
pub use stack::{Kind, Layer, LayerId, Place, Stack};
