//! `--check`: whether the boundaries of an old map are still where they were.
//!
//! A drive that translates is asked for the places on both sides of each boundary of the sample; else
//! runs of tracks here and there are searched anew by timing.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::json;
use traxtent_core::geometry::Place;
use traxtent_core::probe::{
    Algorithm, Found, Identity, ProbeError, Prober, Region, Target, Verify,
};
use traxtent_core::trackmap::{Cost, MapFile, MappedTrack, Method};
use traxtent_core::units::Lbn;
use traxtent_core::workload::Rng;

use super::meter::Meter;
use crate::failure::{Failure, Result};
use crate::map::read_map;
use crate::output;
use crate::progress::Progress;

/// How many boundaries are asked for by translation.
const TRANSLATED: u64 = 1000;

/// How many runs of tracks are searched by timing, and how long each is.
const RUNS: u64 = 8;
const RUN: usize = 64;

/// What a check comes to.
pub(super) struct Report {
    map: String,
    how: &'static str,
    tested: u64,
    boundaries: u64,
    cost: Cost,
    moved: Option<Moved>,
}

/// A boundary that is not where the map has it.
struct Moved {
    /// Where the map has it.
    lbn: Lbn,
    says: String,
}

/// Tests a random sample of the boundaries of a map.
pub(super) fn check(
    target: &mut dyn Target,
    meter: &Meter,
    path: &Path,
    seed: u64,
) -> Result<Report> {
    let file = read_map(path)?
        .ok_or_else(|| Failure::at(path.display(), "is neither a map file nor a list of tracks"))?;
    let identity = target.identity().clone();
    belongs(&file, &identity).map_err(|problem| Failure::at(path.display(), problem))?;
    let mut watched = meter.watch(&mut *target);
    let mut rng = Rng::new(seed);
    let translates = watched.translate(Lbn(0)).is_ok();
    let (how, asked) = if translates {
        ("translation", by_translation(&mut watched, &file, &mut rng))
    } else {
        ("timing", by_timing(&mut watched, &file, &mut rng))
    };
    let _ = target.switch_caching(true);
    let (tested, moved) = asked.map_err(|error| match error {
        _ if meter.stopped() => Failure::Io("stopped".to_owned()),
        ProbeError::NotRotating(_) => Failure::Finding(error.to_string()),
        _ => Failure::Io(error.to_string()),
    })?;
    Ok(Report {
        map: path.display().to_string(),
        how,
        tested,
        boundaries: file.tracks.len() as u64 - 1,
        cost: meter.cost(),
        moved,
    })
}

/// A list of tracks does not say whose it is.
fn belongs(file: &MapFile, identity: &Identity) -> Result<(), String> {
    if file.method != Method::List {
        return file
            .is_of(identity)
            .map_err(|mismatch| mismatch.to_string());
    }
    if file.tracks.end().0 > identity.capacity.0 {
        return Err(format!(
            "ends at LBN {}, the drive at LBN {}",
            file.tracks.end(),
            identity.capacity.0
        ));
    }
    Ok(())
}

type Tested = std::result::Result<(u64, Option<Moved>), ProbeError>;

/// Asks where the first and last LBN of a track are, and the first of the next.
fn by_translation(target: &mut dyn Target, file: &MapFile, rng: &mut Rng) -> Tested {
    let boundaries = file.tracks.len() as u64 - 1;
    let sample = sample(boundaries, TRANSLATED, rng);
    let progress = Progress::new("boundaries", Some(sample.len() as u64));
    for (tested, &index) in (0..).zip(&sample) {
        let pair = (file.tracks.track(index), file.tracks.track(index + 1));
        let (Some(track), Some(next)) = pair else {
            unreachable!("the sample is of the map's boundaries");
        };
        if let Some(says) = moved(target, track, next)? {
            let lbn = next.first_lbn;
            return Ok((tested + 1, Some(Moved { lbn, says })));
        }
        progress.add(1);
    }
    Ok((sample.len() as u64, None))
}

/// What the drive says where a boundary is no longer as it was.
fn moved(
    target: &mut dyn Target,
    track: MappedTrack,
    next: MappedTrack,
) -> std::result::Result<Option<String>, ProbeError> {
    let mut track_at = |lbn: Lbn| -> std::result::Result<_, ProbeError> {
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
    // One of them may be kept elsewhere; their neighbours hardly are too.
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

/// Searches runs of tracks anew.
fn by_timing(target: &mut dyn Target, file: &MapFile, rng: &mut Rng) -> Tested {
    let tracks = file.tracks.len();
    let run = RUN.min(tracks);
    let starts = sample((tracks - run) as u64 + 1, RUNS, rng);
    let progress = Progress::new("boundaries", Some((starts.len() * run) as u64));
    let mut prober = Prober::start(Algorithm::Angle, target)?;
    let mut tested = 0;
    for start in starts {
        let expected = (start..start + run).map_while(|index| file.tracks.track(index));
        let expected: Vec<MappedTrack> = expected.collect();
        let (Some(first), Some(last)) = (expected.first(), expected.last()) else {
            continue;
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
            tested += 1;
            progress.add(1);
            if u64::from(found.sectors) != track.sectors.0 {
                moved = Some(Moved {
                    lbn: track.end(),
                    says: format!(
                        "the track from LBN {} ends at LBN {}",
                        found.first_lbn,
                        found.first_lbn.0 + u64::from(found.sectors)
                    ),
                });
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        match prober.extract(region, Verify::Full, &mut sink) {
            Ok(_) | Err(ProbeError::Stopped) => {}
            Err(ProbeError::Baffled { lbn, problem }) => {
                return Ok((tested, Some(Moved { lbn, says: problem })));
            }
            Err(error) => return Err(error),
        }
        if moved.is_some() {
            return Ok((tested, moved));
        }
    }
    Ok((tested, None))
}

/// Different numbers below a limit, ascending: all, or about so many at random.
fn sample(below: u64, count: u64, rng: &mut Rng) -> Vec<usize> {
    if below <= count {
        return (0..below as usize).collect();
    }
    let mut sample: Vec<usize> = (0..count).map(|_| rng.below(below) as usize).collect();
    sample.sort_unstable();
    sample.dedup();
    sample
}

impl Report {
    /// Prints the result; a boundary that has moved is exit status 1.
    pub(super) fn print(&self, json: bool) -> Result<()> {
        let drive_time_s = self.cost.drive_time.as_ms() / 1000.0;
        if json {
            output::json(&json!({
                "map": self.map,
                "by": self.how,
                "boundaries": self.boundaries,
                "tested": self.tested,
                "reads": self.cost.reads,
                "translations": self.cost.translations,
                "drive_time_s": drive_time_s,
                "moved": self.moved.as_ref().map(|moved| json!({
                    "lbn": moved.lbn.0,
                    "says": moved.says,
                })),
            }))?;
        } else if self.moved.is_none() {
            let mut out = output::stdout();
            writeln!(
                out,
                "{}: {} of {} boundaries tested by {}, none has moved ({drive_time_s:.1} s of the drive's time)",
                self.map, self.tested, self.boundaries, self.how
            )?;
            output::finish(out)?;
        }
        match &self.moved {
            None => Ok(()),
            Some(moved) => Err(Failure::Finding(format!(
                "{}: the boundary at LBN {} has moved: {}",
                self.map, moved.lbn, moved.says
            ))),
        }
    }
}
