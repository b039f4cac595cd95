//! Checking whether the boundaries of an old map are still correct.
//!
//! On a drive that translates, LBNs on both sides of each boundary in a random sample are
//! translated. On other drives, randomly chosen runs of tracks are searched again by timing.

use std::ops::ControlFlow;

use super::algorithm::Prober;
use super::extraction::ProbeError;
use super::target::Target;
use traxtent_map::{Algorithm, Found, Region, Verify};
use traxtent_map::{MappedTrack, TrackMap};
use traxtent_model::geometry::Place;
use traxtent_units::Lbn;
use traxtent_units::Rng;

/// The number of searches of a run of tracks that must find a difference. A boundary that is really
/// elsewhere is found there by each. Delays of the host, such as other requests of a file system in
/// use, differ.
const SEARCHES_MAX: u32 = 3;

/// The amount of a map that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckSample {
    /// The largest number of boundaries checked by translation.
    pub translated: u64,
    /// The largest number of runs of tracks searched by timing.
    pub runs: u64,
    /// The number of tracks in each run.
    pub tracks: usize,
}

/// The result of checking a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapCheck {
    /// The method used: translation or timing.
    pub by: &'static str,
    /// The number of boundaries checked.
    pub tested: u64,
    /// The first boundary whose position differs from the map.
    pub moved: Option<MovedBoundary>,
}

/// A boundary whose position on the drive differs from the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedBoundary {
    /// The position of the boundary in the map, or the LBN at which the drive's responses do not
    /// fit any track.
    pub lbn: Lbn,
    /// The contradicting observation on the drive.
    pub says: String,
}

/// Tests a random sample of the boundaries of a map. `progress` receives the number of boundaries
/// tested and the size of the sample. Caching may remain switched off afterwards, as after
/// [`qualify`](super::qualify()).
///
/// # Errors
/// Returns an error if the drive can neither translate nor be timed, or if it fails.
pub fn check_map(
    target: &mut dyn Target,
    map: &TrackMap,
    sample: CheckSample,
    rng: &mut Rng,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<MapCheck, ProbeError> {
    let translates = target.translate(Lbn(0)).is_ok();
    let (by, (tested, moved)) = if translates {
        let result = by_translation(target, map, sample.translated, rng, progress)?;
        ("translation", result)
    } else {
        ("timing", by_timing(target, map, sample, rng, progress)?)
    };
    Ok(MapCheck { by, tested, moved })
}

type Tested = Result<(u64, Option<MovedBoundary>), ProbeError>;

/// Checks a random sample of boundaries. For each of them, translates the first and the last LBN of
/// the track before it, and the first LBN of the track after it.
fn by_translation(
    target: &mut dyn Target,
    map: &TrackMap,
    count: u64,
    rng: &mut Rng,
    progress: &mut dyn FnMut(u64, u64),
) -> Tested {
    let boundaries = map.len() as u64 - 1;
    let sample = drawn(boundaries, count, rng);
    for (tested, &index) in (0..).zip(&sample) {
        let pair = (map.track(index), map.track(index + 1));
        let (Some(track), Some(next)) = pair else {
            unreachable!("a sampled boundary is in the map");
        };
        if let Some(says) = moved(target, track, next)? {
            let lbn = next.first_lbn;
            return Ok((tested + 1, Some(MovedBoundary { lbn, says })));
        }
        progress(tested + 1, sample.len() as u64);
    }
    Ok((sample.len() as u64, None))
}

/// Returns the contradicting observation if a boundary has moved.
fn moved(
    target: &mut dyn Target,
    track: MappedTrack,
    next: MappedTrack,
) -> Result<Option<String>, ProbeError> {
    let mut track_at = |lbn: Lbn| -> Result<_, ProbeError> {
        let Place {
            cylinder, surface, ..
        } = target.translate(lbn)?;
        Ok((cylinder, surface))
    };
    let (first, end) = (track.first_lbn, next.first_lbn);
    let last = Lbn(end.0 - 1);
    let place = track_at(last)?;
    if track_at(end)? == place {
        let (cylinder, surface) = place;
        return Ok(Some(format!(
            "LBNs {last} and {end} are both on cylinder {cylinder}, surface {}",
            surface.0
        )));
    }
    if track_at(first)? == place {
        return Ok(None);
    }
    // One of these LBNs may be remapped. Their neighbours are unlikely to be remapped too.
    let inner = [
        Lbn(first.0 + 1).min(last),
        Lbn(last.0.saturating_sub(1)).max(first),
    ];
    let [from, to] = [track_at(inner[0])?, track_at(inner[1])?];
    if from == to && (from != place || inner[0] != inner[1]) {
        return Ok(None);
    }
    Ok(Some(format!(
        "LBNs {first} and {last} are no longer on one track"
    )))
}

/// Searches random runs of tracks again, up to the first difference from the map. A difference
/// counts only if each of [`SEARCHES_MAX`] searches finds one, because a delay of the host looks
/// like one.
fn by_timing(
    target: &mut dyn Target,
    map: &TrackMap,
    sample: CheckSample,
    rng: &mut Rng,
    progress: &mut dyn FnMut(u64, u64),
) -> Tested {
    let tracks = map.len();
    let run = sample.tracks.min(tracks);
    let starts = drawn((tracks - run) as u64 + 1, sample.runs, rng);
    let all = (starts.len() * run) as u64;
    let mut prober = Prober::start(Algorithm::Angle, target)?;
    // Progress does not go back if a run is searched again.
    let (mut tested, mut reported) = (0, 0);
    for start in starts {
        let expected = (start..start + run).map_while(|index| map.track(index));
        let expected: Vec<MappedTrack> = expected.collect();
        let (mut found, mut moved) = (0, None);
        for _ in 0..SEARCHES_MAX {
            found = 0;
            let mut count = || {
                found += 1;
                if tested + found > reported {
                    reported = tested + found;
                    progress(reported, all);
                }
            };
            moved = search_again(&mut prober, &expected, &mut count)?;
            if moved.is_none() {
                break;
            }
        }
        tested += found;
        if moved.is_some() {
            return Ok((tested, moved));
        }
    }
    Ok((tested, None))
}

/// Searches a run of tracks of a map again. Returns the first difference from the map. Calls
/// `count` for each track found.
fn search_again(
    prober: &mut Prober<'_>,
    expected: &[MappedTrack],
    count: &mut dyn FnMut(),
) -> Result<Option<MovedBoundary>, ProbeError> {
    let (Some(first), Some(last)) = (expected.first(), expected.last()) else {
        return Ok(None);
    };
    let region = Region {
        first: first.first_lbn,
        end: last.end(),
        aligned: true,
    };
    let mut wanted = expected.iter();
    let mut moved = None;
    let mut sink = |found: Found| {
        let Some(track) = wanted.next() else {
            return ControlFlow::Break(());
        };
        count();
        if u64::from(found.sectors) != track.sectors.0 {
            moved = Some(MovedBoundary {
                lbn: track.end(),
                says: format!(
                    "the track from LBN {} ends before LBN {}",
                    found.first_lbn,
                    found.first_lbn.0 + u64::from(found.sectors)
                ),
            });
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    match prober.extract(region, Verify::Full, &mut sink) {
        Ok(_) | Err(ProbeError::Stopped) => Ok(moved),
        Err(ProbeError::Inconsistent { lbn, problem }) => {
            Ok(Some(MovedBoundary { lbn, says: problem }))
        }
        Err(error) => Err(error),
    }
}

/// Returns distinct numbers less than `below` in ascending order: all of them, or at most `count`
/// random ones.
fn drawn(below: u64, count: u64, rng: &mut Rng) -> Vec<usize> {
    if below <= count {
        return (0..below as usize).collect();
    }
    let mut sample: Vec<usize> = (0..count).map(|_| rng.below(below) as usize).collect();
    sample.sort_unstable();
    sample.dedup();
    sample
}
