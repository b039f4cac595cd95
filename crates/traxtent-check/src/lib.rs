//! Is every layer of a storage stack aligned, what does it cost if not, and what is to be typed?
//!
//! Sources: paper A (4 KB sectors), and the formats' own specifications. Nothing here writes to what it looks at.

pub mod measure;
pub mod price;
