//! Random drives for blind probes: each is made from a seed and compared with the result of a
//! probe.
//!
//! [`random_drive`] makes a small drive of any order, sparing scheme and zoning, with the traps
//! that probes of real drives have encountered (H. Wong's measurements; [`HardProperty`] lists
//! them). A probe sees only requests and responses. The result is compared with the drive's own
//! layout afterwards.
//!
//! Left out are drives that no probe can recover. If two parts of a track are so far apart, on both
//! sides, that a head could change tracks in between, timing cannot distinguish them from two
//! tracks, nor two tracks with such gaps from one. A track of a single sector looks like a remapped
//! sector. If the first or last sector of a track were remapped to the track across that boundary,
//! even translations would show it as belonging there.

mod compare;
mod defects;
mod dice;
mod firmware;
mod layout;
mod listed;
mod run;
mod skews;
mod survey;
mod trap;

use std::sync::Arc;

use traxtent_model::geometry::{Geometry, GeometrySpec};
use traxtent_model::profile::Profile;
use traxtent_scsi::Faults;
use traxtent_sim::SimTarget;
use traxtent_units::Lbn;
use traxtent_units::request::Op;

pub use compare::{Differences, RemapTolerance, compare};
use dice::SeededRng;
use layout::Size;
pub use run::{Outcome, ProbeResult, Trial, compare_with_layout, probe, run, run_trial};
use skews::Skews;
use survey::LayoutSurvey;
pub use trap::HardProperty;

/// A drive made from a seed.
#[derive(Clone, Debug)]
pub struct RandomDrive {
    /// The seed that it was made from.
    pub seed: u64,
    /// Its profile.
    pub profile: Arc<Profile>,
    /// Its layout, with which a probe's result is compared.
    pub geometry: Arc<Geometry>,
    /// Whether the drive supports VERIFY. If not, a probe can use only reads.
    pub verifies: bool,
    /// The traps that the drive has.
    pub traps: Vec<HardProperty>,
}

impl RandomDrive {
    /// Returns the drive as a probe sees it.
    pub fn target(&self) -> SimTarget {
        self.target_for(u64::MAX)
    }

    /// Returns the drive like [`RandomDrive::target`], but it stops responding after `requests`
    /// requests, so that every probe ends.
    pub fn target_for(&self, requests: u64) -> SimTarget {
        let unsupported = if self.verifies {
            vec![]
        } else {
            vec![Op::Verify]
        };
        let faults = Faults {
            unsupported,
            unresponsive_after: Some(requests),
            ..Faults::default()
        };
        SimTarget::new(Arc::clone(&self.profile), Arc::clone(&self.geometry)).with_faults(faults)
    }

    /// Returns the remapped LBNs, ascending.
    pub fn remapped_lbns(&self) -> Vec<Lbn> {
        LayoutSurvey::of(&self.geometry).remapped
    }

    /// Lists the tracks around an LBN with their defects, one line each, to show what a probe met
    /// there.
    pub fn around(&self, lbn: Lbn) -> String {
        LayoutSurvey::of(&self.geometry).around(lbn)
    }
}

/// Returns the drive of a seed: 300 to 4,000 tracks of 40 to 1,200 slots, 1 to 10 surfaces.
pub fn random_drive(seed: u64) -> RandomDrive {
    Layouts::Any.drive(seed)
}

/// The kinds of layouts that are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layouts {
    /// Any order, sparing scheme and zoning; one in eight is irregular. See [`random_drive`].
    #[default]
    Any,
    /// Irregular layouts, similar to DiskSim's layouts g2 and g4 of measured drives: tracks that
    /// begin at slots other than the first, tracks that defects split, tiny zones, tracks of many
    /// sizes.
    Irregular,
}

impl Layouts {
    /// All kinds of layouts.
    pub const ALL: [Layouts; 2] = [Layouts::Any, Layouts::Irregular];

    /// The name of the kind on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Layouts::Any => "any",
            Layouts::Irregular => "irregular",
        }
    }

    /// Returns the drive of a seed.
    pub fn drive(self, seed: u64) -> RandomDrive {
        // A draw that gives no valid drive, or one that no probe can recover, is repeated with a
        // different seed.
        (0..)
            .find_map(|retry: u64| draw(self, seed, retry.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .expect("most draws give a drive")
    }
}

fn draw(layouts: Layouts, seed: u64, salt: u64) -> Option<RandomDrive> {
    let dice = &mut SeededRng::new(seed ^ salt);
    let mut sector = firmware::sector(dice);
    let ratio = sector.ratio();
    let size = Size::draw(dice, ratio);
    let mechanics = firmware::mechanics(dice, size.cylinders);
    let skews = Skews::draw(dice, &mechanics, size.cylinders);
    let spec = match layouts {
        Layouts::Any => layout(dice, size, &skews)?,
        Layouts::Irregular => listed(dice, size, &skews)?,
    };
    let geometry = Geometry::build(&spec).ok()?;
    let survey = LayoutSurvey::of(&geometry);
    let small = (300..4_001).contains(&survey.tracks.len());
    if !small || !survey.can_be_timed(&geometry, skews.times(), ratio) {
        return None;
    }
    let shift = spec.zones.first().map_or(0, |zone| zone.reserved_sectors) as u32 % ratio;
    sector.lowest_aligned_lbn = (ratio - shift) % ratio;
    let most_slots = survey.tracks.iter().map(|track| track.slots).max()?;
    let name = match layouts {
        Layouts::Any => format!("random-{seed}"),
        Layouts::Irregular => format!("irregular-{seed}"),
    };
    let profile = firmware::profile(dice, name, sector, mechanics, spec, most_slots);
    profile.check().ok()?;
    let verifies = dice.chance(0.8);
    Some(RandomDrive {
        seed,
        traps: trap::traps_of(&profile, &survey, verifies),
        profile: Arc::new(profile),
        geometry: Arc::new(geometry),
        verifies,
    })
}

/// Draws a random layout with its defects.
fn layout(dice: &mut SeededRng, size: Size, skews: &Skews) -> Option<GeometrySpec> {
    let mut spec = if dice.chance(0.12) {
        layout::irregular(dice, size, skews)
    } else {
        layout::zoned(dice, size, skews)
    };
    defects::slip(dice, &mut spec, size.ratio).ok()?;
    defects::cut(dice, &mut spec, size.ratio).ok()?;
    defects::remap(dice, &mut spec, size.ratio).ok()?;
    Some(spec)
}

/// Draws an irregular layout with some remapped sectors.
fn listed(dice: &mut SeededRng, size: Size, skews: &Skews) -> Option<GeometrySpec> {
    let mut spec = if dice.chance(0.5) {
        listed::mapped(dice, size, skews)
    } else {
        listed::indexed(dice, size, skews)
    };
    defects::cut(dice, &mut spec, size.ratio).ok()?;
    defects::remap(dice, &mut spec, size.ratio).ok()?;
    Some(spec)
}
