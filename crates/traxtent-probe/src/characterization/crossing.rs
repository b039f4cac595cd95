//! Track crossings: whether a read that continues to the next track loses a revolution there.
//!
//! Manufacturers choose a skew as the smallest number of sectors that covers the movement. So a
//! skew and a movement that are both accurate to a hundredth of a millisecond may still contradict
//! each other, at a cost of one revolution per track. If a crossing was made in time on the drive,
//! it must be made in time with the fitted profile.

use super::seek::KnownDrive;
use super::stopwatch::Stopwatch;
use crate::ProbeError;
use traxtent_units::Lbn;
use traxtent_units::request::Op;
use traxtent_units::turns::fraction;

/// A move from the end of a track to the beginning of the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crossing {
    pub(super) cylinders: u32,
    /// Whether the heads are switched.
    pub(super) head_switch: bool,
    /// The angle between the end of the last sector and the beginning of the next one, in
    /// milliseconds.
    pub(super) gap_ms: f64,
    /// Whether the move was made without losing a revolution.
    pub(super) caught: bool,
}

/// The number of readings of a crossing, the majority of which counts.
const READINGS: i32 = 3;
/// The time from a request for the last sector to the arrival of that sector under the head, in
/// revolutions. It is enough for any command overhead.
const LEAD_TURNS: f64 = 0.5;
/// The smallest delay at which a crossing counts as having lost a revolution, in revolutions:
/// half of the loss.
const LOST_TURNS: f64 = 0.5;

/// Tests one crossing of each kind in each patch, by requests for `sectors` sectors on each side.
/// `by` is the kind of request, and whether it has FUA set. Returns the crossings at the first step
/// of each run and at the step that leaves it.
pub(super) fn crossings(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    by: (Op, bool),
    sectors: u32,
) -> Result<Vec<Crossing>, ProbeError> {
    let mut found = Vec::new();
    for patch in &known.angles.patches {
        let section = &known.layout.sections[patch.section];
        let mut kinds: Vec<((u32, bool), bool)> = Vec::new();
        let period = section.period();
        let mut begin = 0;
        let mut starts = Vec::new();
        for run in &section.runs {
            // The first step of a run, and the step that leaves the run.
            starts.extend([begin, begin + run.tracks - 1]);
            begin += run.tracks;
        }
        starts.dedup();
        // The second repetition is used, because slots are most often skipped before the first
        // repetition.
        let shift = if patch.tracks > 2 * period { period } else { 0 };
        for start in starts {
            let track = patch.first + shift + start;
            if track + 1 >= patch.first + patch.tracks {
                continue;
            }
            let (from, to) = (known.layout.spot(track), known.layout.spot(track + 1));
            let kind = (
                from.cylinder.abs_diff(to.cylinder),
                from.surface != to.surface,
            );
            let gap = gap(known, watch.period, track);
            let caught = match kinds.iter().find(|(other, _)| *other == kind) {
                Some(&(_, caught)) => caught,
                None => {
                    let caught = caught(watch, known, (track, gap), by, sectors)?;
                    kinds.push((kind, caught));
                    caught
                }
            };
            found.push(Crossing {
                cylinders: kind.0,
                head_switch: kind.1,
                gap_ms: gap,
                caught,
            });
        }
    }
    Ok(found)
}

/// The angle between the end of a track and the beginning of the next, in milliseconds.
fn gap(known: &KnownDrive<'_>, period: f64, track: usize) -> f64 {
    let (start, slots) = known.angles.start(known.layout, track);
    let end = start + known.tracks[track].sectors.0 as f64 / f64::from(slots);
    fraction(known.angles.start(known.layout, track + 1).0 - end) * period
}

/// Returns whether a request for the end of a track and the beginning of the next is served without
/// losing a revolution.
fn caught(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    (track, gap): (usize, f64),
    by: (Op, bool),
    sectors: u32,
) -> Result<bool, ProbeError> {
    let (start, slots) = known.angles.start(known.layout, track);
    let end = fraction(start + known.tracks[track].sectors.0 as f64 / f64::from(slots));
    let next = known.tracks[track + 1].first_lbn;
    let last = Lbn(next.0 - u64::from(sectors));
    let mut votes = 0;
    for _ in 0..READINGS {
        watch.refresh()?;
        watch.media(last, 1)?;
        let lead = LEAD_TURNS * watch.period;
        let due = watch.next(watch.now() + lead + watch.period, end);
        watch.wait_until(due - lead);
        let timing = watch.media_by(last, 2 * sectors, by)?;
        let late = (timing.completed - due - gap) / watch.period;
        votes += i32::from(late < LOST_TURNS);
    }
    Ok(2 * votes > READINGS)
}

/// Returns the longest head switch, and the longest step to the next cylinder, for which the
/// crossings made in time are still made in time, in milliseconds.
pub(super) fn bounds(crossings: &[Crossing]) -> (f64, f64) {
    // More than the rounding of the model, and too little to be measured.
    const MARGIN_MS: f64 = 1e-5;
    let least = |wanted: &dyn Fn(&Crossing) -> bool| {
        crossings
            .iter()
            .filter(|crossing| crossing.caught && wanted(crossing))
            .fold(f64::INFINITY, |least, crossing| {
                least.min(crossing.gap_ms - MARGIN_MS)
            })
    };
    (
        least(&|crossing| crossing.head_switch),
        least(&|crossing| crossing.cylinders == 1),
    )
}
