//! The responses of a drive to SCSI commands other than reads and writes.

use serde::{Deserialize, Serialize};

/// The identification of a drive, and the information about its layout that it discloses.
///
/// The table is optional. A profile without it describes a drive that discloses everything, reports
/// the profile's name as its model, and takes the translation time that papers T and Q indicate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScsiSpec {
    /// The time to translate one address, or to read a defect list, in milliseconds.
    pub translate_ms: f64,
    /// Whether the drive translates addresses (diagnostic page 40h).
    pub translates: bool,
    /// Whether the drive returns its defect lists.
    pub defect_lists: bool,
    /// The effect on sectors that a host discards (UNMAP; TRIM in ATA).
    pub unmap: Unmap,
    /// The manufacturer, up to 8 characters.
    pub vendor: String,
    /// The model, up to 16 characters. If empty, the profile's name.
    pub product: String,
    /// The version of the firmware, up to 4 characters.
    pub revision: String,
    /// The serial number, up to 32 characters. If empty, the drive has none.
    pub serial: String,
}

/// The effect on sectors that a host discards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unmap {
    /// None: their data stays. This is the behaviour of drives with conventional recording, which
    /// usually do not implement the command.
    #[default]
    Ignored,
    /// They are subsequently read as zeros.
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
    /// Returns whether all values are the defaults, so that the table can be omitted.
    pub(super) fn is_default(&self) -> bool {
        *self == ScsiSpec::default()
    }

    /// Returns the model that the drive reports, in at most 16 characters. `profile` is the
    /// profile's name.
    pub fn product_of(&self, profile: &str) -> String {
        let name = if self.product.is_empty() {
            profile
        } else {
            &self.product
        };
        name.chars().take(16).collect()
    }
}
