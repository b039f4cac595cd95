//! A drive as data: every figure that the model needs, and where it comes from.
//!
//! A profile is TOML text. Its figures stand as a data sheet would print them; a table
//! `[provenance]` names the origin of each, by the longest dotted path that covers it:
//!
//! ```toml
//! [provenance]
//! "mechanics.rpm" = "published: Traxtents (FAST 2002), Table 1"
//! "cache" = "assumed: typical of its time"
//! ```

pub mod builtin;
mod check;
mod error;
mod figures;
mod firmware;
mod mechanics;
mod provenance;
mod scsi;

use figures::figures;

pub use builtin::builtin;

pub use error::ProfileError;
pub use firmware::*;
pub use mechanics::*;
pub use provenance::{Origin, Provenance, Standing};
pub use scsi::{ScsiSpec, Unmap};

use crate::geometry::GeometrySpec;
use serde::{Deserialize, Serialize};

/// Version of the profile format that this release reads and writes.
pub const FORMAT: u32 = 1;

/// Everything the model knows of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format: [`FORMAT`].
    pub format: u32,
    /// The name by which the drive is called on the command line.
    pub name: String,
    /// Vendor and model.
    pub model: String,
    /// Year of introduction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub year: Option<u16>,
    /// Whatever a reader should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Sizes of logical and physical sectors.
    #[serde(default)]
    pub sector: SectorSpec,
    /// Spindle, arm and heads; a drive without them takes no time for any access to its media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanics: Option<MechanicsSpec>,
    /// Command overheads.
    #[serde(default)]
    pub overheads: OverheadSpec,
    /// Zero-latency access.
    #[serde(default)]
    pub access: AccessSpec,
    /// Queue and scheduler.
    pub queue: QueueSpec,
    /// Buffer.
    pub cache: CacheSpec,
    /// Host interface.
    pub bus: BusSpec,
    /// What the drive tells of itself.
    #[serde(default, skip_serializing_if = "ScsiSpec::is_default")]
    pub scsi: ScsiSpec,
    /// Where each figure comes from.
    pub provenance: Provenance,
    /// Where each sector lies.
    pub geometry: GeometrySpec,
}

/// Sizes of a drive's sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectorSpec {
    /// Bytes of the unit that an LBN counts: 512 or 4096.
    pub logical_bytes: u32,
    /// Bytes of the unit on the media: 512 or 4096, at least the logical one.
    pub physical_bytes: u32,
    /// The lowest LBN that begins a physical sector (READ CAPACITY(16); 7 on drives whose jumper shifts the numbering).
    #[serde(default)]
    pub lowest_aligned_lbn: u32,
}

impl Default for SectorSpec {
    fn default() -> Self {
        SectorSpec {
            logical_bytes: 512,
            physical_bytes: 512,
            lowest_aligned_lbn: 0,
        }
    }
}

impl SectorSpec {
    /// Logical sectors in a physical one: 1 for native drives, 8 for 512e.
    pub fn ratio(&self) -> u32 {
        self.physical_bytes / self.logical_bytes
    }
}

impl Profile {
    /// Reads and checks a profile.
    ///
    /// # Errors
    /// Names the line, the key, the value and the bound that is not kept.
    pub fn from_toml(text: &str) -> Result<Profile, ProfileError> {
        let profile: Profile = toml::from_str(text).map_err(|e| ProfileError::syntax(text, &e))?;
        profile.check()?;
        Ok(profile)
    }

    /// The profile as TOML, which [`Profile::from_toml`] reads back.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a checked profile has no value that TOML cannot hold")
    }

    /// Checks every figure against its bounds.
    ///
    /// # Errors
    /// The first figure out of bounds, by its dotted path.
    pub fn check(&self) -> Result<(), ProfileError> {
        check::profile(self)
    }

    /// Milliseconds of one revolution; 0 for a drive without mechanics.
    pub fn revolution_ms(&self) -> f64 {
        self.mechanics.as_ref().map_or(0.0, |m| 60_000.0 / m.rpm)
    }
}
