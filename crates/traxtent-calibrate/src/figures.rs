//! The times in a profile that can be fitted, each with the expected size of its correction to the
//! starting profile.

use traxtent_model::mechanics::SeekCurve;
use traxtent_model::profile::{OverheadSpec, Profile, SeekSpec};
use traxtent_units::Count;

use crate::{SEEK_KEY, WRITE_SECTOR_KEY};

/// A time that can be fitted. Its correction is added to the profile's value.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// The key in the profile; for the seek curve, the key followed by the distance.
    pub(crate) name: String,
    /// The standard deviation of the correction if nothing is known of the drive, in milliseconds.
    pub(crate) prior_ms: f64,
    /// The change of the value, in its own unit, per millisecond of correction.
    pub(crate) scale: f64,
    /// Whether the next figure is the seek time of the next distance. Both are then corrected by
    /// similar shares.
    pub(crate) has_neighbour: bool,
    place: Place,
}

type OverheadPlace = fn(&mut OverheadSpec) -> &mut f64;

#[derive(Clone, Copy, Debug)]
enum Place {
    Overhead(OverheadPlace),
    HeadSwitch,
    WriteSettle,
    WriteSector,
    /// The seek time at a distance; the correction decreases to 0 at the neighbouring distances.
    Seek {
        left: u32,
        at: u32,
        right: u32,
    },
}

/// The overheads of drives of the same years differ by about this much. (In DiskSim's parameters of
/// eight drives of the 1990s, the overheads of accesses to the media lie between 0 and 3.3 ms.)
const OVERHEAD_PRIOR_MS: f64 = 1.0;

/// The head switch times of drives of the same years differ by about this share.
const HEAD_SWITCH_PRIOR_SHARE: f64 = 0.3;

/// The settling times of writes of drives of the same years differ by about this much.
const WRITE_SETTLE_PRIOR_MS: f64 = 0.3;

/// Seek times of drives with the same average seek time differ by about this share.
const SEEK_PRIOR_SHARE: f64 = 0.3;

/// The smallest standard deviation that is assumed for the correction of a seek time or of the head
/// switch time.
const SWITCH_PRIOR_LEAST_MS: f64 = 0.1;

/// Bus times differ by about this much per sector.
const SECTOR_PRIOR_MS: f64 = 0.1;

/// The correction of the bus time is stated for a transfer of this many sectors, so that it is
/// comparable to the other corrections.
const SECTORS: f64 = 16.0;

/// The factor between the distances at which the seek curve is corrected.
const SEEK_STEP: f64 = 3.0;

/// The number of steps of the table that replaces a formula for the seek curve. The distances of
/// [`SEEK_STEP`] are added to it.
const CURVE_STEPS: f64 = 40.0;

impl Figure {
    /// Whether it is a time of the seek curve.
    pub(crate) fn is_seek(&self) -> bool {
        matches!(self.place, Place::Seek { .. })
    }

    /// Returns true for an overhead of read hits, false for one of write hits, and `None` for any
    /// other figure.
    pub(crate) fn hits_of_reads(&self) -> Option<bool> {
        let name = self.name.strip_prefix("overheads.")?;
        let is_of = |op| name.starts_with(op);
        (is_of("read_hit") || is_of("write_hit")).then(|| is_of("read"))
    }

    /// The key in the profile.
    pub(crate) fn key(&self) -> &str {
        if self.is_seek() { SEEK_KEY } else { &self.name }
    }

    /// The value in a profile.
    pub(crate) fn value(&self, profile: &Profile) -> f64 {
        let mechanics = profile.mechanics.as_ref();
        match self.place {
            Place::Overhead(place) => *place(&mut { profile.overheads }),
            Place::HeadSwitch => mechanics.map_or(0.0, |of| of.head_switch_ms),
            Place::WriteSettle => mechanics.map_or(0.0, |of| of.write_settle_ms),
            Place::WriteSector => profile.bus.write_sector_ms,
            Place::Seek { at, .. } => match mechanics.map(|of| &of.seek) {
                Some(SeekSpec::Table { read, .. }) => read
                    .iter()
                    .find(|(distance, _)| *distance == at)
                    .map_or(0.0, |&(_, ms)| ms),
                _ => 0.0,
            },
        }
    }

    /// Adds a correction in milliseconds. A time is not reduced below 0, except the write settling
    /// time, which may be negative.
    pub(crate) fn add(&self, profile: &mut Profile, ms: f64) {
        let add = |value: &mut f64, ms: f64| *value = (*value + ms).max(0.0);
        match (self.place, &mut profile.mechanics) {
            (Place::Overhead(place), _) => add(place(&mut profile.overheads), ms),
            (Place::WriteSector, _) => add(&mut profile.bus.write_sector_ms, ms * self.scale),
            (Place::HeadSwitch, Some(of)) => add(&mut of.head_switch_ms, ms),
            (Place::WriteSettle, Some(of)) => of.write_settle_ms += ms,
            (Place::Seek { left, at, right }, Some(of)) => {
                if let SeekSpec::Table { read, write } = &mut of.seek {
                    for (distance, value) in read.iter_mut().chain(write.iter_mut().flatten()) {
                        add(value, ms * share_at(*distance, left, at, right));
                    }
                }
            }
            (_, None) => {}
        }
    }
}

/// Returns the share of the correction for `at` that applies at `distance`: 1 at `at`, 0 at `left`
/// and `right` and beyond, and linear in the logarithm of the distance in between. On a side where
/// `at` is its own neighbour, the share is 1.
fn share_at(distance: u32, left: u32, at: u32, right: u32) -> f64 {
    let log = |number: u32| f64::from(number.max(1)).ln();
    let neighbour = if distance < at { left } else { right };
    if distance == at || neighbour == at {
        return 1.0;
    }
    ((log(distance) - log(neighbour)) / (log(at) - log(neighbour))).max(0.0)
}

/// Returns the figures of a profile that can be fitted. If writes complete in the buffer
/// (`has_fast_writes`), their time on the bus is not among them, because it is fitted separately,
/// from write hits. The seek curve becomes a table with points at the distances where it is
/// corrected.
pub(crate) fn figures(profile: &mut Profile, cylinders: u32, has_fast_writes: bool) -> Vec<Figure> {
    let mut found = Vec::new();
    let mut add = |name: &str, prior_ms: f64, place| {
        found.push(Figure {
            name: name.to_owned(),
            prior_ms,
            scale: 1.0,
            has_neighbour: false,
            place,
        });
    };
    let overheads: [(&'static str, OverheadPlace); 8] = [
        ("overheads.read_hit_after_read_ms", |of| {
            &mut of.read_hit_after_read_ms
        }),
        ("overheads.read_hit_after_write_ms", |of| {
            &mut of.read_hit_after_write_ms
        }),
        ("overheads.read_miss_after_read_ms", |of| {
            &mut of.read_miss_after_read_ms
        }),
        ("overheads.read_miss_after_write_ms", |of| {
            &mut of.read_miss_after_write_ms
        }),
        ("overheads.write_hit_after_read_ms", |of| {
            &mut of.write_hit_after_read_ms
        }),
        ("overheads.write_hit_after_write_ms", |of| {
            &mut of.write_hit_after_write_ms
        }),
        ("overheads.write_miss_after_read_ms", |of| {
            &mut of.write_miss_after_read_ms
        }),
        ("overheads.write_miss_after_write_ms", |of| {
            &mut of.write_miss_after_write_ms
        }),
    ];
    for (name, place) in overheads {
        add(name, OVERHEAD_PRIOR_MS, Place::Overhead(place));
    }
    if let Some(mechanics) = &profile.mechanics {
        let share = HEAD_SWITCH_PRIOR_SHARE * mechanics.head_switch_ms;
        let prior_ms = share.max(SWITCH_PRIOR_LEAST_MS);
        add("mechanics.head_switch_ms", prior_ms, Place::HeadSwitch);
        let prior_ms = WRITE_SETTLE_PRIOR_MS;
        add("mechanics.write_settle_ms", prior_ms, Place::WriteSettle);
    }
    if !has_fast_writes {
        found.push(Figure {
            name: WRITE_SECTOR_KEY.to_owned(),
            prior_ms: SECTORS * SECTOR_PRIOR_MS,
            scale: 1.0 / SECTORS,
            has_neighbour: false,
            place: Place::WriteSector,
        });
    }
    if let Some(mechanics) = &mut profile.mechanics {
        let (seek, times) = seek_figures(&mechanics.seek, cylinders);
        mechanics.seek = seek;
        found.extend(times);
    }
    found
}

/// Returns a seek curve as a table, and its figures.
fn seek_figures(spec: &SeekSpec, cylinders: u32) -> (SeekSpec, Vec<Figure>) {
    let stroke = cylinders.saturating_sub(1).max(1);
    let nodes = distances(stroke, SEEK_STEP);
    let curve = SeekCurve::new(spec, cylinders);
    let time = |distance| curve.time(distance).as_ms();
    let (points, write) = match spec {
        SeekSpec::Table { read, write } => (
            read.iter().map(|(distance, _)| *distance).collect(),
            write.clone(),
        ),
        _ => (
            distances(stroke, f64::from(stroke).powf(1.0 / CURVE_STEPS)),
            None,
        ),
    };
    let mut points: Vec<u32> = points.into_iter().chain(nodes.iter().copied()).collect();
    points.retain(|distance| (1..=stroke).contains(distance));
    points.sort_unstable();
    points.dedup();
    let read = points
        .iter()
        .map(|&distance| (distance, time(distance)))
        .collect();
    let figures = nodes.iter().enumerate().map(|(index, &at)| Figure {
        name: format!("{SEEK_KEY} over {}", Count(u64::from(at), "cylinder")),
        prior_ms: (time(at) * SEEK_PRIOR_SHARE).max(SWITCH_PRIOR_LEAST_MS),
        scale: 1.0,
        has_neighbour: index + 1 < nodes.len(),
        place: Place::Seek {
            left: nodes[index.saturating_sub(1)],
            at,
            right: nodes[(index + 1).min(nodes.len() - 1)],
        },
    });
    (SeekSpec::Table { read, write }, figures.collect())
}

/// Returns distances from 1 to the stroke, each about `factor` times the one before.
fn distances(stroke: u32, factor: f64) -> Vec<u32> {
    let steps = (f64::from(stroke).ln() / factor.max(1.01).ln())
        .round()
        .max(1.0);
    let mut found: Vec<u32> = (0..=steps as u32)
        .map(|step| f64::from(stroke).powf(f64::from(step) / steps).round() as u32)
        .collect();
    found.dedup();
    found
}
