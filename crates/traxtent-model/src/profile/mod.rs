//! The description of a drive: every value that the model needs, and its origin.
//!
//! A profile is TOML text. Its values are written as in a data sheet. The table `[provenance]`
//! names the origin of each value. The entry with the longest dotted path that covers a value
//! applies. A value without an entry is assumed. Two entries:
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
mod host;
mod mechanics;
mod nearest;
mod provenance;
mod scheduler;
pub mod schema;
mod scsi;
mod text;

use figures::values;

pub use builtin::builtin;

pub use error::ProfileError;
pub use firmware::*;
pub use host::HostSpec;
pub use mechanics::*;
pub use nearest::nearest_name;
pub use provenance::{Origin, OriginKind, Provenance};
pub use scheduler::Scheduler;
pub use scsi::{ScsiSpec, Unmap};

use crate::geometry::GeometrySpec;
use serde::{Deserialize, Serialize};

/// Version of the profile format that this release reads and writes.
pub const FORMAT: u32 = 1;

/// The name of a profile that states none.
const UNNAMED: &str = "unnamed";

fn current_format() -> u32 {
    FORMAT
}

/// All values that the model uses for a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format: [`FORMAT`].
    #[serde(default = "current_format")]
    pub format: u32,
    /// The drive's name in results: letters, digits, `-` and `_`.
    #[serde(default)]
    pub name: String,
    /// Vendor and model.
    #[serde(default)]
    pub model: String,
    /// Year of introduction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub year: Option<u16>,
    /// Notes for the reader.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Sizes of logical and physical sectors.
    #[serde(default)]
    pub sector: SectorSpec,
    /// Spindle, arm and heads. A drive without them needs no time for accesses to its media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanics: Option<MechanicsSpec>,
    /// Command overheads.
    #[serde(default)]
    pub overheads: OverheadSpec,
    /// Zero-latency access.
    #[serde(default)]
    pub access: AccessSpec,
    /// Queue and scheduler.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The queue of the host in front of the drive. Without this table, the host passes requests on
    /// in order of arrival, up to the depth of the drive's queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSpec>,
    /// Buffer.
    #[serde(default)]
    pub cache: CacheSpec,
    /// Host interface.
    #[serde(default)]
    pub bus: BusSpec,
    /// The identification of the drive, and other SCSI responses.
    #[serde(default, skip_serializing_if = "ScsiSpec::is_default")]
    pub scsi: ScsiSpec,
    /// The origin of each value.
    #[serde(default)]
    pub provenance: Provenance,
    /// The layout of the sectors.
    pub geometry: GeometrySpec,
}

/// Sizes of a drive's sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SectorSpec {
    /// Bytes of the unit that an LBN counts: 512 or 4096.
    pub logical_bytes: u32,
    /// Bytes of the unit on the media: 512 or 4096, and not less than the logical sector.
    pub physical_bytes: u32,
    /// The lowest LBN at which a physical sector begins (READ CAPACITY(16); 7 on drives with a
    /// jumper that shifts the numbering).
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
    /// The number of logical sectors per physical sector: 1 for native drives, 8 for 512e.
    pub fn ratio(&self) -> u32 {
        self.physical_bytes / self.logical_bytes
    }
}

impl Profile {
    /// Parses and checks a profile. Values without an origin become assumed.
    ///
    /// # Errors
    /// Returns an error with its line if the text is not TOML, has an unknown key or lacks a
    /// required one, or if a value has the wrong type or is an unknown word. Returns an error with
    /// its dotted path if a value is out of bounds, or if an entry of `[provenance]` is invalid.
    /// Also returns an error if the layout is impossible.
    pub fn from_toml(text: &str) -> Result<Profile, ProfileError> {
        Profile::from_toml_named(text, UNNAMED)
    }

    /// Parses and checks a profile, which is called `name` unless the text names it.
    ///
    /// # Errors
    /// Same as [`Profile::from_toml`].
    pub fn from_toml_named(text: &str, name: &str) -> Result<Profile, ProfileError> {
        let mut profile: Profile =
            toml::from_str(text).map_err(|e| ProfileError::syntax(text, &e))?;
        if profile.name.is_empty() {
            profile.name = name.to_owned();
        }
        if profile.model.is_empty() {
            profile.model.clone_from(&profile.name);
        }
        check::figures(&profile)?;
        let paths = values(&profile);
        profile.provenance.assume_missing(&paths, text);
        profile.provenance.check(&paths)?;
        Ok(profile)
    }

    /// Returns the profile as TOML that [`Profile::from_toml`] can read.
    pub fn to_toml(&self) -> String {
        figures::text(self)
    }

    /// Checks every value against its bounds, and the origins.
    ///
    /// # Errors
    /// Returns the first problem found: a value that is out of bounds, an impossible layout, a
    /// value without an origin, or an invalid entry of `[provenance]`.
    pub fn check(&self) -> Result<(), ProfileError> {
        check::figures(self)?;
        self.provenance.check(&values(self))
    }

    /// Returns the milliseconds of one revolution, or 0 for a drive without mechanics.
    pub fn revolution_ms(&self) -> f64 {
        self.mechanics.as_ref().map_or(0.0, |m| 60_000.0 / m.rpm)
    }
}
