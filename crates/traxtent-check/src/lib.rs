//! Is every layer of a storage stack aligned, what does it cost if not, and what is to be typed?
//!
//! Sources: paper A (4 KB sectors), and the formats' own specifications. Nothing here writes to what it looks at.
//!
//! ```text
//! source: bytes at offsets ─▶ layers: one parser a format ─▶ examine: a stack ─▶ rules: findings ─▶ report
//!                 sysfs: what the kernel says of devices ──────▲        ▲
//!                 drive: what is stated, quirks ───────────────┘    collect: a stack in a file
//! ```

pub mod drive;
pub mod examine;
pub mod finding;
pub mod layers;
pub mod quirks;
pub mod rules;
pub mod source;
pub mod stack;
mod stripes;
pub mod sysfs;

pub use finding::{Finding, Mend, Price, Rule, Severity};
pub use source::{Source, SourceError};
pub use stack::{Kind, Layer, LayerId, Place, Stack};
