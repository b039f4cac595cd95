//! How a drive answers SCSI commands that touch no data.

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
    /// The manufacturer; up to 8 characters.
    pub vendor: String,
    /// The model, up to 16 characters; the profile's name where it is empty.
    pub product: String,
    /// The version of the firmware; up to 4 characters.
    pub revision: String,
    /// The serial number, up to 32 characters; a drive without one where it is empty.
    pub serial: String,
}

impl Default for ScsiSpec {
    fn default() -> ScsiSpec {
        ScsiSpec {
            translate_ms: 2.0,
            translates: true,
            defect_lists: true,
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
