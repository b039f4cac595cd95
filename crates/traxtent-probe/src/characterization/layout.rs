//! The cylinder and surface of each track.
//!
//! LBNs are assigned to a drive's tracks in a repeating pattern: head by head in a cylinder, or
//! pass by pass over a group of cylinders, with a fixed step from one repetition to the next. The
//! pattern is learned from the places of a few tracks, followed in doubling jumps as long as its
//! predictions hold, and learned again where it fails (like the size of a track in paper T, section
//! 4.1.2). Not detected: a change of the pattern between two jumps that has no effect at the second
//! jump and does not show in the sizes of tracks.

/// The position of a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackPosition {
    pub(super) cylinder: i32,
    pub(super) surface: i32,
}

impl TrackPosition {
    fn minus(self, other: TrackPosition) -> TrackPosition {
        TrackPosition {
            cylinder: self.cylinder - other.cylinder,
            surface: self.surface - other.surface,
        }
    }

    fn plus(self, step: TrackPosition, times: i64) -> TrackPosition {
        let scaled = |a: i32, b: i32| (i64::from(a) + i64::from(b) * times) as i32;
        TrackPosition {
            cylinder: scaled(self.cylinder, step.cylinder),
            surface: scaled(self.surface, step.surface),
        }
    }
}

/// Consecutive tracks with a constant step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConstantSteps {
    /// The position of the first track, in the first repetition.
    pub(super) at: TrackPosition,
    pub(super) step: TrackPosition,
    pub(super) tracks: usize,
}

/// A repeating section: tracks in a pattern that repeats. The last repetition may be incomplete.
/// Tracks without a repetition form a section too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepeatingSection {
    pub(super) first: usize,
    pub(super) tracks: usize,
    pub(super) runs: Vec<ConstantSteps>,
    /// The number of cylinders from one repetition to the next, or 0 if the runs do not repeat.
    pub(super) advance: i32,
}

impl RepeatingSection {
    /// The number of tracks of a repetition.
    pub(super) fn period(&self) -> usize {
        self.runs.iter().map(|run| run.tracks).sum()
    }

    /// Returns the position of the section's track number `index`. The track need not exist.
    pub(super) fn spot(&self, index: usize) -> TrackPosition {
        let (times, mut rest) = (index / self.period(), index % self.period());
        for run in &self.runs {
            if rest < run.tracks {
                let spot = run.at.plus(run.step, rest as i64);
                return spot.plus(
                    TrackPosition {
                        cylinder: self.advance,
                        surface: 0,
                    },
                    times as i64,
                );
            }
            rest -= run.tracks;
        }
        unreachable!("a remainder is smaller than its divisor")
    }

    /// Returns the track at a position, as its number in the section.
    pub(super) fn index(&self, spot: TrackPosition) -> Option<usize> {
        let period = self.period();
        let mut before = 0;
        for run in &self.runs {
            if run.step.cylinder == 0 && self.advance == 0 && run.at.cylinder != spot.cylinder {
                before += run.tracks;
                continue;
            }
            // If the step changes the cylinder, there is a candidate for each repetition whose run
            // may reach that cylinder. Otherwise there is at most one.
            for k in candidates(run, spot, self.advance) {
                let here = run.at.plus(run.step, k as i64);
                let distance = spot.cylinder - here.cylinder;
                let times = if self.advance == 0 {
                    0
                } else {
                    distance / self.advance
                };
                if k < run.tracks
                    && here.surface == spot.surface
                    && times >= 0
                    && distance == times * self.advance
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

/// Returns the indices in a run of the tracks that may be at a position in some repetition.
fn candidates(run: &ConstantSteps, spot: TrackPosition, advance: i32) -> Vec<usize> {
    if run.step.surface != 0 {
        let k = (spot.surface - run.at.surface) / run.step.surface;
        return usize::try_from(k).into_iter().collect();
    }
    if run.step.cylinder == 0 {
        return vec![0];
    }
    let distance = spot.cylinder - run.at.cylinder;
    let width = run.tracks as i32 * run.step.cylinder.abs();
    let times = if advance == 0 {
        0
    } else {
        distance.div_euclid(advance)
    };
    let reach = if advance == 0 {
        0
    } else {
        width / advance.abs().max(1) + 1
    };
    (-reach..=reach)
        .filter_map(|offset| {
            usize::try_from((distance - (times + offset) * advance) / run.step.cylinder).ok()
        })
        .collect()
}

/// The positions of all tracks of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrackLayout {
    pub(super) sections: Vec<RepeatingSection>,
    pub(super) surfaces: u16,
    pub(super) cylinders: u32,
}

impl TrackLayout {
    pub(super) fn new(sections: Vec<RepeatingSection>) -> TrackLayout {
        let mut layout = TrackLayout {
            sections,
            surfaces: 1,
            cylinders: 1,
        };
        for section in &layout.sections {
            let mut at = 0;
            let period = section.period();
            let end = section.spot(section.tracks - 1);
            layout.surfaces = layout.surfaces.max(end.surface as u16 + 1);
            layout.cylinders = layout.cylinders.max(end.cylinder as u32 + 1);
            // The ends of the runs in the first and in the last repetition bound all others.
            for run in &section.runs {
                for k in [at, at + run.tracks - 1] {
                    let last = if k < section.tracks {
                        (section.tracks - 1 - k) / period
                    } else {
                        continue;
                    };
                    for index in [k, last * period + k] {
                        let spot = section.spot(index);
                        layout.surfaces = layout.surfaces.max(spot.surface as u16 + 1);
                        layout.cylinders = layout.cylinders.max(spot.cylinder as u32 + 1);
                    }
                }
                at += run.tracks;
            }
        }
        layout
    }

    /// Returns the position of a track.
    pub(super) fn spot(&self, track: usize) -> TrackPosition {
        let after = self
            .sections
            .partition_point(|section| section.first <= track);
        let section = &self.sections[after - 1];
        section.spot(track - section.first)
    }

    /// Returns the track at a position.
    pub(super) fn track(&self, spot: TrackPosition) -> Option<usize> {
        self.sections
            .iter()
            .find_map(|section| Some(section.first + section.index(spot)?))
    }
}

/// A function that returns the position of a track.
type Places<'a, E> = dyn FnMut(usize) -> Result<TrackPosition, E> + 'a;

/// Learns the layout of `tracks` tracks from a function that returns the position of one. The
/// pattern is always tested at the tracks `test_points`, which are in ascending order.
pub(super) fn learn<E>(
    tracks: usize,
    test_points: &[usize],
    place: &mut Places<'_, E>,
) -> Result<TrackLayout, E> {
    let mut sections = Vec::new();
    let mut first = 0;
    while first < tracks {
        let section = learn_section(first, tracks, test_points, place)?;
        first = section.first + section.tracks;
        sections.push(section);
    }
    Ok(TrackLayout::new(sections))
}

/// The number of runs without a repetition after which none is expected.
const RUNS_MAX: usize = 160;

fn learn_section<E>(
    first: usize,
    tracks: usize,
    test_points: &[usize],
    place: &mut Places<'_, E>,
) -> Result<RepeatingSection, E> {
    let mut runs: Vec<ConstantSteps> = Vec::new();
    let mut next = first;
    while next < tracks && runs.len() < RUNS_MAX {
        let run = learn_run(next, tracks, test_points, place)?;
        next += run.tracks;
        runs.push(run);
        if let Some((skip, run_count)) = repetition(&runs, next == tracks) {
            let before: usize = runs[..skip].iter().map(|run| run.tracks).sum();
            let first = first + before;
            let advance = runs[skip + run_count].at.minus(runs[skip].at).cylinder;
            let repeated_runs = runs[skip..skip + run_count].to_vec();
            let mut found = RepeatingSection {
                first,
                tracks: tracks - first,
                runs: repeated_runs,
                advance,
            };
            found.tracks = count_predicted(first, found.tracks, test_points, place, &mut |k| {
                found.spot(k)
            })?;
            // A few runs may be alike by chance, so two whole repetitions must be as predicted.
            if found.tracks >= 2 * found.period() {
                if skip == 0 {
                    return Ok(found);
                }
                runs.truncate(skip);
                break;
            }
        }
    }
    let track_count = runs.iter().map(|run| run.tracks).sum();
    Ok(RepeatingSection {
        first,
        tracks: track_count,
        runs,
        advance: 0,
    })
}

/// Returns the run of tracks that starts at `first` and has a constant step.
fn learn_run<E>(
    first: usize,
    tracks: usize,
    test_points: &[usize],
    place: &mut Places<'_, E>,
) -> Result<ConstantSteps, E> {
    let at = place(first)?;
    if first + 1 == tracks {
        return Ok(ConstantSteps {
            at,
            step: TrackPosition::default(),
            tracks: 1,
        });
    }
    let step = place(first + 1)?.minus(at);
    // The step of a run changes either the surface or the cylinder.
    if (step.cylinder != 0) == (step.surface != 0) {
        return Ok(ConstantSteps {
            at,
            step: TrackPosition::default(),
            tracks: 1,
        });
    }
    let count = count_predicted(first, tracks - first, test_points, place, &mut |k| {
        at.plus(step, k as i64)
    })?;
    Ok(ConstantSteps {
        at,
        step,
        tracks: count,
    })
}

/// Returns how many consecutive tracks from `first` on are at their predicted positions, at most
/// `max`.
fn count_predicted<E>(
    first: usize,
    max: usize,
    test_points: &[usize],
    place: &mut Places<'_, E>,
    predicted: &mut dyn FnMut(usize) -> TrackPosition,
) -> Result<usize, E> {
    // Tests a track and the one before it, because a single track may lie on the axis of a mirrored
    // pattern.
    let mut is_predicted = |k: usize, good: usize| -> Result<bool, E> {
        Ok(place(first + k)? == predicted(k)
            && (k <= good + 1 || place(first + k - 1)? == predicted(k - 1)))
    };
    let mut test_points = test_points
        [test_points.partition_point(|&test_point| test_point <= first)..]
        .iter()
        .map(|test_point| test_point - first)
        .peekable();
    let mut good = 0;
    let mut jump = 1;
    let mut bad = loop {
        if good + 1 == max {
            return Ok(max);
        }
        while test_points
            .next_if(|&test_point| test_point <= good)
            .is_some()
        {}
        let next = (good + jump)
            .min(max - 1)
            .min(test_points.peek().copied().unwrap_or(max));
        if is_predicted(next, good)? {
            good = next;
            jump = (2 * jump).min(max);
        } else {
            break next;
        }
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if is_predicted(middle, good)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    // The track before `bad` is `good`, so `bad` itself is not where it was predicted.
    Ok(bad)
}

/// Finds a repetition: returns the number of runs before it, and the number of runs in it. The
/// repeated runs begin on the same surface. `ended` means that the last run is the drive's last.
fn repetition(runs: &[ConstantSteps], ended: bool) -> Option<(usize, usize)> {
    for skip in 0..runs.len() {
        let rest = &runs[skip..];
        for count in 1..rest.len() {
            let advance = rest[count].at.minus(rest[0].at);
            let repeats =
                rest.iter()
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
            if advance.surface == 0 && advance.cylinder != 0 && repeats {
                return Some((skip, count));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use traxtent_model::geometry::{Geometry, GeometrySpec, Order, PerSurface, ZoneSpec};

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

    /// For all six orders, with narrow last groups and gaps between zones: is every track found at
    /// its position, and from its position, with few requests?
    ///
    /// Repeated requests for a track count once.
    #[test]
    fn all_orders_are_learned() {
        for order in Order::ALL {
            for surfaces in [1, 2, 3, 6] {
                let geometry =
                    Geometry::build(&spec(order, surfaces, &[(0, 199), (203, 340), (341, 488)]))
                        .unwrap();
                let tracks = geometry.track_count() as usize;
                // The zones' first tracks. A map of a drive shows them as changes of track size.
                let starts = geometry
                    .zones()
                    .iter()
                    .map(|zone| geometry.track_of(zone.first_lbn));
                let test_points: Vec<usize> = starts
                    .flat_map(|track| {
                        let first = track.unwrap().index as usize;
                        [first, first + 2]
                    })
                    .collect();
                let mut requested = std::collections::BTreeSet::new();
                let truth = |index: usize| {
                    let track = geometry.track(index as u64).unwrap();
                    TrackPosition {
                        cylinder: track.cylinder.0 as i32,
                        surface: track.surface.0.into(),
                    }
                };
                let layout = learn::<Infallible>(tracks, &test_points, &mut |index| {
                    requested.insert(index);
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
                assert!(
                    requested.len() < 1000,
                    "{order:?} {surfaces}: {} tracks requested",
                    requested.len()
                );
            }
        }
    }
}
