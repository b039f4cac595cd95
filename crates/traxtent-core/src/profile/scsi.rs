//! How a drive answers SCSI commands other than reads and writes.

use serde::{Deserialize, Serialize};

/// What a drive says of itself, and what of its inside it tells.
///
/// The table is optional: a profile without it means a drive that tells all, of no particular
/// name, at the speed that papers T and Q come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScsiSpec {
    /// Time of one translation of an address, and of reading a defect list, in milliseconds.
    pub translate_ms: f64,
    /// Whether the drive translates addresses (diagnostic page 40h).
    pub translates: bool,
    /// Whether the drive hands out its defect lists.
    pub defect_lists: bool,
    /// What becomes of sectors that a host gives up (UNMAP; TRIM in ATA).
    pub unmap: Unmap,
    /// The manufacturer; up to 8 characters.
    pub vendor: String,
    /// The model, up to 16 characters; the profile's name where it is empty.
    pub product: String,
    /// The version of the firmware; up to 4 characters.
    pub revision: String,
    /// The serial number, up to 32 characters; a drive without one where it is empty.
    pub serial: String,
}

/// What a drive does with sectors that its host gives up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unmap {
    /// Nothing: they hold what they held. So drives with conventional recording, which as a rule
    /// do not know the command.
    #[default]
    Ignored,
    /// They read as zeros from then on.
    Zeroes,
}

impl Default for ScsiSpec {
    fn default() -> ScsiSpec {
        ScsiSpec {
            translate_ms: 2.0,
            translates: true,
            defect_lists: true,
            unmap: Unmap::Ignored,
            vendor: "TRAXTENT".to_owned(),
            product: String::new(),
            revision: String::new(),
            serial: String::new(),
        }
    }
}

impl ScsiSpec {
    /// Whether the table says nothing that a profile without it would not.
    pub(super) fn is_default(&self) -> bool {
        *self == ScsiSpec::default()
    }

    /// The model's name as the drive gives it, in a profile of the given name.
    pub fn product_of(&self, profile: &str) -> String {
        let name = if self.product.is_empty() {
            profile
        } else {
            &self.product
        };
        name.chars().take(16).collect()
    }
}
