//! On which cylinder and surface each track lies.
//!
//! A drive's tracks take LBNs in a pattern that repeats: head by head in a cylinder, or pass by
//! pass over a group of cylinders, with a fixed step from one repetition to the next. The pattern
//! is learned from the places of a few tracks, followed in doubling jumps for as long as it
//! predicts, and learned anew where it fails (as paper T, section 4.1.2, follows a track's size).

/// Where a track lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) cylinder: i32,
    pub(super) surface: i32,
}

impl Spot {
    fn minus(self, other: Spot) -> Spot {
        Spot {
            cylinder: self.cylinder - other.cylinder,
            surface: self.surface - other.surface,
        }
    }

    fn plus(self, step: Spot, times: i64) -> Spot {
        let scaled = |a: i32, b: i32| (i64::from(a) + i64::from(b) * times) as i32;
        Spot {
            cylinder: scaled(self.cylinder, step.cylinder),
            surface: scaled(self.surface, step.surface),
        }
    }
}

/// Tracks in a row with a constant step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Where the first lies, in the first repetition.
    pub(super) at: Spot,
    pub(super) step: Spot,
    pub(super) tracks: usize,
}

/// Tracks in a pattern that repeats, the last repetition perhaps in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) first: usize,
    pub(super) tracks: usize,
    pub(super) runs: Vec<Run>,
    /// Cylinders from a repetition to the next.
    pub(super) advance: i32,
}

impl Stretch {
    /// Tracks of a repetition.
    pub(super) fn period(&self) -> usize {
        self.runs.iter().map(|run| run.tracks).sum()
    }

    /// The place of the stretch's track number `index`, or where it would be.
    pub(super) fn spot(&self, index: usize) -> Spot {
        let (times, mut rest) = (index / self.period(), index % self.period());
        for run in &self.runs {
            if rest < run.tracks {
                let spot = run.at.plus(run.step, rest as i64);
                return spot.plus(
                    Spot {
                        cylinder: self.advance,
                        surface: 0,
                    },
                    times as i64,
                );
            }
            rest -= run.tracks;
        }
        unreachable!("the rest of a division is smaller than the divisor")
    }

    /// The track at a place, by its number in the stretch.
    pub(super) fn index(&self, spot: Spot) -> Option<usize> {
        let period = self.period();
        let mut before = 0;
        for run in &self.runs {
            if run.step.cylinder == 0 && self.advance == 0 && run.at.cylinder != spot.cylinder {
                before += run.tracks;
                continue;
            }
            // Which track of the run it can be decides which repetition it is, or the other way about.
            for k in candidates(run, spot, self.advance) {
                let here = run.at.plus(run.step, k as i64);
                let apart = spot.cylinder - here.cylinder;
                let times = if self.advance == 0 {
                    0
                } else {
                    apart / self.advance
                };
                if k < run.tracks
                    && here.surface == spot.surface
                    && times >= 0
                    && apart == times * self.advance
                {
                    let index = times as usize * period + before + k;
                    if index < self.tracks {
                        return Some(index);
                    }
                }
            }
            before += run.tracks;
        }
        None
    }
}

/// The tracks of a run that may lie at a place in some repetition.
fn candidates(run: &Run, spot: Spot, advance: i32) -> Vec<usize> {
    if run.step.surface != 0 {
        let k = (spot.surface - run.at.surface) / run.step.surface;
        return usize::try_from(k).into_iter().collect();
    }
    if run.step.cylinder == 0 {
        return vec![0];
    }
    let apart = spot.cylinder - run.at.cylinder;
    let width = run.tracks as i32 * run.step.cylinder.abs();
    let times = if advance == 0 {
        0
    } else {
        apart.div_euclid(advance)
    };
    let reach = if advance == 0 {
        0
    } else {
        width / advance.abs().max(1) + 1
    };
    (-reach..=reach)
        .filter_map(|near| {
            usize::try_from((apart - (times + near) * advance) / run.step.cylinder).ok()
        })
        .collect()
}

/// Where all tracks of a drive lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) stretches: Vec<Stretch>,
    pub(super) surfaces: u16,
    pub(super) cylinders: u32,
}

impl Layout {
    pub(super) fn new(stretches: Vec<Stretch>) -> Layout {
        let mut layout = Layout {
            stretches,
            surfaces: 1,
            cylinders: 1,
        };
        for stretch in &layout.stretches {
            let mut at = 0;
            let period = stretch.period();
            let end = stretch.spot(stretch.tracks - 1);
            layout.surfaces = layout.surfaces.max(end.surface as u16 + 1);
            layout.cylinders = layout.cylinders.max(end.cylinder as u32 + 1);
            // The corners of the first and of the last repetitions bound all others.
            for run in &stretch.runs {
                for k in [at, at + run.tracks - 1] {
                    let last = if k < stretch.tracks {
                        (stretch.tracks - 1 - k) / period
                    } else {
                        continue;
                    };
                    for index in [k, last * period + k] {
                        let spot = stretch.spot(index);
                        layout.surfaces = layout.surfaces.max(spot.surface as u16 + 1);
                        layout.cylinders = layout.cylinders.max(spot.cylinder as u32 + 1);
                    }
                }
                at += run.tracks;
            }
        }
        layout
    }

    /// The place of a track.
    pub(super) fn spot(&self, track: usize) -> Spot {
        let after = self
            .stretches
            .partition_point(|stretch| stretch.first <= track);
        let stretch = &self.stretches[after - 1];
        stretch.spot(track - stretch.first)
    }

    /// The track at a place.
    pub(super) fn track(&self, spot: Spot) -> Option<usize> {
        self.stretches
            .iter()
            .find_map(|stretch| Some(stretch.first + stretch.index(spot)?))
    }
}

/// A function that tells where a track lies.
type Places<'a, E> = dyn FnMut(usize) -> Result<Spot, E> + 'a;

/// Learns the layout of `tracks` tracks from a function that tells where one lies. `doubts` are
/// tracks, ascending, at which the pattern may change unseen: it is tested at each of them.
pub(super) fn learn<E>(
    tracks: usize,
    doubts: &[usize],
    place: &mut Places<'_, E>,
) -> Result<Layout, E> {
    let mut stretches = Vec::new();
    let mut first = 0;
    while first < tracks {
        let more = stretch(first, tracks, doubts, place)?;
        first = more.first + more.tracks;
        stretches.push(more);
    }
    Ok(Layout::new(stretches))
}

/// More runs than this without a repetition, and there is none.
const RUNS_MAX: usize = 160;

fn stretch<E>(
    first: usize,
    tracks: usize,
    doubts: &[usize],
    place: &mut Places<'_, E>,
) -> Result<Stretch, E> {
    let mut runs: Vec<Run> = Vec::new();
    let mut next = first;
    while next < tracks && runs.len() < RUNS_MAX {
        let run = run(next, tracks, doubts, place)?;
        next += run.tracks;
        runs.push(run);
        if let Some((skip, count)) = repetition(&runs, next == tracks) {
            let before: usize = runs[..skip].iter().map(|run| run.tracks).sum();
            let first = first + before;
            let advance = runs[skip + count].at.minus(runs[skip].at).cylinder;
            let again = runs[skip..skip + count].to_vec();
            let mut found = Stretch {
                first,
                tracks: tracks - first,
                runs: again,
                advance,
            };
            found.tracks = holds(first, found.tracks, doubts, place, &mut |k| found.spot(k))?;
            // What begins alike may go on otherwise: a repetition has come twice at least.
            if found.tracks >= 2 * found.period() {
                if skip == 0 {
                    return Ok(found);
                }
                runs.truncate(skip);
                break;
            }
        }
    }
    let count = runs.iter().map(|run| run.tracks).sum();
    Ok(Stretch {
        first,
        tracks: count,
        runs,
        advance: 0,
    })
}

/// The tracks from `first` on that lie at constant steps.
fn run<E>(
    first: usize,
    tracks: usize,
    doubts: &[usize],
    place: &mut Places<'_, E>,
) -> Result<Run, E> {
    let at = place(first)?;
    if first + 1 == tracks {
        return Ok(Run {
            at,
            step: Spot::default(),
            tracks: 1,
        });
    }
    let step = place(first + 1)?.minus(at);
    // A change of both is no step along a surface or a cylinder.
    if (step.cylinder != 0) == (step.surface != 0) {
        return Ok(Run {
            at,
            step: Spot::default(),
            tracks: 1,
        });
    }
    let count = holds(first, tracks - first, doubts, place, &mut |k| {
        at.plus(step, k as i64)
    })?;
    Ok(Run {
        at,
        step,
        tracks: count,
    })
}

/// How many tracks from `first` on, of at most `most`, lie where they are predicted to.
fn holds<E>(
    first: usize,
    most: usize,
    doubts: &[usize],
    place: &mut Places<'_, E>,
    predicted: &mut dyn FnMut(usize) -> Spot,
) -> Result<usize, E> {
    // A track and the one before it: a single one may lie on the axis of a mirrored pattern.
    let mut right = |k: usize, good: usize| -> Result<bool, E> {
        Ok(place(first + k)? == predicted(k)
            && (k <= good + 1 || place(first + k - 1)? == predicted(k - 1)))
    };
    let mut doubts = doubts[doubts.partition_point(|&doubt| doubt <= first)..]
        .iter()
        .map(|doubt| doubt - first)
        .peekable();
    let mut good = 0;
    let mut jump = 1;
    let mut bad = loop {
        if good + 1 == most {
            return Ok(most);
        }
        while doubts.next_if(|&doubt| doubt <= good).is_some() {}
        let next = (good + jump)
            .min(most - 1)
            .min(doubts.peek().copied().unwrap_or(most));
        if right(next, good)? {
            good = next;
            jump = (2 * jump).min(most);
        } else {
            break next;
        }
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if right(middle, good)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    // The last that failed may have failed for the track before it, which was found to be right.
    Ok(bad)
}

/// The first runs that are no part of a repetition, and how many runs make one: the runs after them
/// begin again on the same surface. `ended` says that the last run is the drive's last.
fn repetition(runs: &[Run], ended: bool) -> Option<(usize, usize)> {
    for skip in 0..runs.len() {
        let rest = &runs[skip..];
        for count in 1..rest.len() {
            let advance = rest[count].at.minus(rest[0].at);
            let again = rest
                .iter()
                .zip(&rest[count..])
                .enumerate()
                .all(|(k, (before, after))| {
                    let moved = after.at.minus(before.at);
                    let last = count + k + 1 == rest.len();
                    moved == advance
                        && (after.step == before.step || (last && after.tracks == 1))
                        && (after.tracks == before.tracks
                            || (last && ended && after.tracks <= before.tracks))
                });
            if advance.surface == 0 && advance.cylinder != 0 && again {
                return Some((skip, count));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, GeometrySpec, Order, PerSurface, ZoneSpec};
    use std::convert::Infallible;

    fn spec(order: Order, surfaces: u16, zones: &[(u32, u32)]) -> GeometrySpec {
        GeometrySpec {
            surfaces,
            cylinders: 500,
            order,
            width_tracks: (!order.is_head_first()).then_some(7),
            zones: zones
                .iter()
                .map(|&(first_cylinder, last_cylinder)| ZoneSpec {
                    first_cylinder,
                    last_cylinder,
                    sectors_per_track: PerSurface::Same(20),
                    ..ZoneSpec::default()
                })
                .collect(),
            ..GeometrySpec::default()
        }
    }

    /// Is every track of all six orders, with narrow last groups and gaps between zones, found where
    /// it is, and from its place, with few questions?
    #[test]
    fn all_orders_are_learned() {
        for order in Order::ALL {
            for surfaces in [1, 2, 3, 6] {
                let geometry =
                    Geometry::build(&spec(order, surfaces, &[(0, 199), (203, 340), (341, 488)]))
                        .unwrap();
                let tracks = geometry.track_count() as usize;
                let mut asked = 0;
                let truth = |index: usize| {
                    let track = geometry.track(index as u64).unwrap();
                    Spot {
                        cylinder: track.cylinder.0 as i32,
                        surface: track.surface.0.into(),
                    }
                };
                let layout = learn::<Infallible>(tracks, &[], &mut |index| {
                    asked += 1;
                    Ok(truth(index))
                })
                .unwrap();
                for index in 0..tracks {
                    assert_eq!(
                        layout.spot(index),
                        truth(index),
                        "{order:?} {surfaces} {index}"
                    );
                    assert_eq!(
                        layout.track(truth(index)),
                        Some(index),
                        "{order:?} {surfaces}"
                    );
                }
                assert_eq!((layout.surfaces, layout.cylinders), (surfaces, 489));
                assert!(asked < 1000, "{order:?} {surfaces}: {asked} questions");
            }
        }
    }
}
