//! What a drive makes of its own skews: whether a read that goes on to the next track loses a
//! revolution there.
//!
//! Makers choose a skew as the fewest sectors that cover the move, so a skew and a move that are both
//! right to a hundredth of a millisecond may still contradict each other, at the price of a revolution
//! a track. What the drive was seen to catch, its twin must catch.

use super::figure::fraction;
use super::seek::Known;
use super::stopwatch::Stopwatch;
use crate::probe::ProbeError;
use crate::request::Op;
use crate::units::Lbn;

/// A move from the end of a track to the beginning of the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crossing {
    pub(super) cylinders: u32,
    pub(super) heads: bool,
    /// From the last sector's end to the first one's beginning, by the angles, in milliseconds.
    pub(super) gap: f64,
    /// Whether it was made in the first revolution.
    pub(super) caught: bool,
}

/// Looks at one crossing of each kind in each patch, by requests for so many sectors on either side, and
/// tells those of all tracks of its pattern.
pub(super) fn crossings(
    watch: &mut Stopwatch<'_>,
    known: &Known<'_>,
    by: (Op, bool),
    sectors: u32,
) -> Result<Vec<Crossing>, ProbeError> {
    let mut found = Vec::new();
    for patch in &known.angles.patches {
        let stretch = &known.layout.stretches[patch.stretch];
        let mut kinds: Vec<((u32, bool), bool)> = Vec::new();
        let period = stretch.period();
        let mut begin = 0;
        let mut starts = Vec::new();
        for run in &stretch.runs {
            // The first step of a run, and the one that leaves it.
            starts.extend([begin, begin + run.tracks - 1]);
            begin += run.tracks;
        }
        starts.dedup();
        // The second repetition, as what was left out before the first is most often there.
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
                heads: kind.1,
                gap,
                caught,
            });
        }
    }
    Ok(found)
}

/// From the end of a track to the beginning of the next, by their angles.
fn gap(known: &Known<'_>, period: f64, track: usize) -> f64 {
    let (start, slots) = known.angles.start(known.layout, track);
    let end = start + known.tracks[track].sectors.0 as f64 / f64::from(slots);
    fraction(known.angles.start(known.layout, track + 1).0 - end) * period
}

/// Whether a read of the last sector of a track and the first of the next takes no more than the gap
/// between them.
fn caught(
    watch: &mut Stopwatch<'_>,
    known: &Known<'_>,
    (track, gap): (usize, f64),
    by: (Op, bool),
    sectors: u32,
) -> Result<bool, ProbeError> {
    let (start, slots) = known.angles.start(known.layout, track);
    let end = fraction(start + known.tracks[track].sectors.0 as f64 / f64::from(slots));
    let next = known.tracks[track + 1].first_lbn;
    let last = Lbn(next.0 - u64::from(sectors));
    let mut votes = 0;
    for _ in 0..3 {
        watch.refresh()?;
        watch.media(last, 1)?;
        // Sent in time for the last sector, whatever the command takes.
        let lead = 0.5 * watch.period;
        let due = watch.next(watch.now() + lead + watch.period, end);
        watch.wait_until(due - lead);
        let answer = watch.media_by(last, 2 * sectors, by)?;
        let late = (answer.completed - due - gap) / watch.period;
        votes += i32::from(late < 0.5);
    }
    Ok(votes >= 2)
}

/// The longest head switch, and the longest step to the next cylinder, that catch what was caught.
pub(super) fn bounds(crossings: &[Crossing]) -> (f64, f64) {
    // Less than what the drive's model can tell apart, more than what it rounds.
    const MARGIN: f64 = 1e-5;
    let least = |wanted: &dyn Fn(&Crossing) -> bool| {
        crossings
            .iter()
            .filter(|crossing| crossing.caught && wanted(crossing))
            .fold(f64::INFINITY, |least, crossing| {
                least.min(crossing.gap - MARGIN)
            })
    };
    (
        least(&|crossing| crossing.heads),
        least(&|crossing| crossing.cylinders == 1),
    )
}
