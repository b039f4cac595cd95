//! The search for tracks, with a checkpoint.

use std::ops::ControlFlow;
use std::time::Instant;

use traxtent_map::{MapBuilder, MapFile, MapSource, ProbeCost, lbn_ranges};
use traxtent_probe::{
    Algorithm, Extraction, Found, Identity, ObservedTarget, ProbeError, Region, Target,
    TargetError, TargetObserver, TargetOperation, Verify, extract, remapped_lbns,
};
use traxtent_server::remaining_time::time_left;
use traxtent_units::{Lbn, Sectors, SimTime, Span};

use super::Args;
use super::check::BUSY_MACHINE;
use super::checkpoint::{Checkpoint, resume_with};
use super::estimate::FirstTracks;
use super::meter::{ProbeMeter, cpu_seconds};
use crate::failure::{Failure, Result, note, warn};
use crate::progress::Progress;

/// The parameters of a search, and the results of an earlier part.
pub(super) struct ProbePlan {
    name: String,
    identity: Identity,
    method: MapSource,
    algorithm: Algorithm,
    /// The requested region.
    whole: Region,
    /// The remaining region.
    left: Region,
    tracks: MapBuilder,
    /// The checkpoint from which the search continues.
    before: Option<MapFile>,
    checkpoint: Checkpoint,
}

/// A completed search.
pub(super) struct ProbeResult {
    pub(super) file: MapFile,
    pub(super) checkpoint: Checkpoint,
    pub(super) cpu_s: f64,
    pub(super) resumed: bool,
    /// Whether the file lists all remapped LBNs.
    pub(super) moved_known: bool,
    /// The number of boundaries that are possibly wrong.
    pub(super) doubtful: u64,
    /// The number of predicted boundaries that are untested although tracks are irregular.
    pub(super) untested: u64,
}

impl ProbePlan {
    /// Creates the plan from the options, and reads the checkpoint.
    pub(super) fn new(
        args: &Args,
        name: &str,
        identity: &Identity,
        algorithm: Algorithm,
    ) -> Result<ProbePlan> {
        let mut whole = Region::whole(identity.capacity);
        if let Some(region) = &args.region {
            if region.end > whole.end {
                return Err(Failure::input(format!(
                    "--region {}..{}: {} ends before LBN {}",
                    region.start, region.end, name, whole.end
                )));
            }
            whole = Region {
                first: region.start,
                end: region.end,
                aligned: region.start == Lbn(0),
            };
        }
        let method = MapSource::Probe(algorithm, args.verify.unwrap_or(Verify::Sample));
        let mut checkpoint = Checkpoint::new(args, name);
        let (mut tracks, mut left, mut before) = (MapBuilder::default(), whole, None);
        if args.resume {
            let file = checkpoint.read()?;
            (tracks, left) = file
                .resume(identity, method, whole)
                .map_err(|mismatch| Failure::at(checkpoint.path().display(), mismatch))?;
            before = Some(file);
        } else {
            checkpoint.refuse_existing()?;
        }
        Ok(ProbePlan {
            name: name.to_owned(),
            identity: identity.clone(),
            method,
            algorithm,
            whole,
            left,
            tracks,
            before,
            checkpoint,
        })
    }

    /// Returns the results so far; `None` if they contain no track.
    fn file(&self, complete: bool, cost: ProbeCost, found: Extraction) -> Option<MapFile> {
        let (tracks, confidence) = self.tracks.clone().finish()?;
        let region = (self.whole != Region::whole(self.identity.capacity)).then_some(self.whole);
        let mut file = MapFile {
            identity: self.identity.clone(),
            method: self.method,
            complete,
            region,
            cost,
            tracks,
            confidence,
            unreadable: lbn_ranges(found.unreadable),
            remapped: lbn_ranges(found.remapped),
            notes: found.notes,
        };
        if let Some(before) = &self.before {
            file.cost.reads += before.cost.reads;
            file.cost.translations += before.cost.translations;
            file.cost.drive_time = Span(file.cost.drive_time.0 + before.cost.drive_time.0);
            for (ours, theirs) in [
                (&mut file.unreadable, &before.unreadable),
                (&mut file.remapped, &before.remapped),
            ] {
                *ours = lbn_ranges(
                    theirs
                        .iter()
                        .chain(&*ours)
                        .flat_map(|r| (r.start.0..r.end.0).map(Lbn)),
                );
            }
            let new = std::mem::take(&mut file.notes);
            let old = before.notes.iter().cloned();
            file.notes = old.chain(new).collect();
            file.notes.dedup();
        }
        Some(file)
    }
}

/// An observer that shows the number of requests as progress, even before the first track is known.
struct ShownRequests<'a> {
    meter: &'a ProbeMeter,
    progress: &'a Progress,
}

impl TargetObserver for ShownRequests<'_> {
    fn after(&mut self, _: TargetOperation, _: SimTime, _: Option<&TargetError>) {
        let requests = || format!("{} requests", self.meter.operations());
        self.progress.tell(requests);
    }
}

/// Runs the search. If it is interrupted or the drive fails after the first track was found, a
/// checkpoint remains.
pub(super) fn run(
    mut plan: ProbePlan,
    target: &mut dyn Target,
    meter: &ProbeMeter,
) -> Result<ProbeResult> {
    let MapSource::Probe(_, verify) = plan.method else {
        unreachable!("a plan is for a probe");
    };
    let (algorithm, left) = (plan.algorithm, plan.left);
    let mut store_failure = None;
    let result = {
        let progress = Progress::new("LBNs", Some(left.end.0 - left.first.0));
        let plan = &mut plan;
        let mut first_tracks = FirstTracks::new(left.end.0 - left.first.0);
        let began = Instant::now();
        let mut sink = |found: Found| match store_track(plan, found, meter) {
            Ok(()) if meter.stopped() => ControlFlow::Break(()),
            Ok(()) => {
                progress.add(u64::from(found.sectors));
                let estimate = first_tracks.add(found.sectors, began.elapsed(), meter.operations());
                // A scan searches many places at once. Until these searches meet, it passes on only
                // the tracks of the first place, which say nothing about the rest.
                if let Some(estimate) = estimate.filter(|_| algorithm != Algorithm::Scan) {
                    let left = time_left(estimate.time);
                    let about = if left.starts_with("less") {
                        ""
                    } else {
                        "about "
                    };
                    note(format!(
                        "{}: about {} more requests; {about}{left}",
                        plan.name, estimate.requests
                    ));
                }
                ControlFlow::Continue(())
            }
            Err(failure) => {
                store_failure = Some(failure);
                ControlFlow::Break(())
            }
        };
        let shown = ShownRequests {
            meter,
            progress: &progress,
        };
        let mut watched = ObservedTarget::new(meter.watch(&mut *target), shown);
        if left.first < left.end {
            extract(algorithm, &mut watched, left, verify, &mut sink)
        } else {
            Ok(Extraction::default())
        }
    };
    // An error does not affect the result: the drive does not support the setting, or is gone.
    let _ = target.switch_caching(true);
    if let Some(failure) = store_failure {
        return Err(failure);
    }
    match result {
        Ok(mut found) => {
            if let Some(before) = &plan.before {
                // The checkpoint does not contain the LBNs that the earlier part found to be
                // remapped.
                let whole = remapped_lbns(&mut meter.watch(&mut *target), plan.whole);
                let whole =
                    whole.map_err(|error| Failure::Io(format!("{}: {error}", plan.name)))?;
                found.remapped_complete = whole.is_some();
                found.remapped.extend(whole.into_iter().flatten());
                if found.untested_irregular > 0 {
                    let [_, sampled, _] = before.confidence.counts();
                    found.untested_irregular += sampled;
                }
            }
            let (moved_known, doubtful) = (found.remapped_complete, found.doubtful());
            let untested = found.untested_irregular;
            let none = || Failure::Io(format!("{}: no track begins in the region", plan.name));
            Ok(ProbeResult {
                file: plan.file(true, meter.cost(), found).ok_or_else(none)?,
                resumed: plan.before.is_some(),
                checkpoint: plan.checkpoint,
                cpu_s: cpu_seconds(),
                moved_known,
                doubtful,
                untested,
            })
        }
        Err(error) => Err(early_end(plan, meter, &error)),
    }
}

/// Stores a track, and writes a checkpoint when one is due.
fn store_track(plan: &mut ProbePlan, found: Found, meter: &ProbeMeter) -> Result<()> {
    // Timing does not measure beyond the region, so it cannot determine whether a track ends with
    // the region.
    let end = found.first_lbn + Sectors(u64::from(found.sectors));
    let drive_end = Lbn(plan.identity.capacity.0);
    if !plan.algorithm.translates() && end == plan.whole.end && end < drive_end {
        return Ok(());
    }
    plan.tracks
        .push(found)
        .map_err(|error| Failure::Io(format!("{}: {error}", plan.name)))?;
    if plan.checkpoint.due() {
        save(plan, meter)?;
    }
    Ok(())
}

/// Writes the checkpoint; returns false if there is nothing to store.
fn save(plan: &mut ProbePlan, meter: &ProbeMeter) -> Result<bool> {
    let found = Extraction {
        unreadable: meter.unreadable(),
        ..Extraction::default()
    };
    match plan.file(false, meter.cost(), found) {
        Some(file) => plan.checkpoint.write(&file).map(|()| true),
        None => Ok(false),
    }
}

/// Returns the failure of a search that ended early. Writes its checkpoint, unless the drive does
/// not rotate or does not support a request.
fn early_end(mut plan: ProbePlan, meter: &ProbeMeter, error: &ProbeError) -> Failure {
    let name = &plan.name;
    let why = match error {
        _ if meter.stopped() => format!("{name}: stopped"),
        ProbeError::NotRotating(_) => {
            return Failure::Finding(format!("{name}: {error}; {BUSY_MACHINE}"));
        }
        ProbeError::Target(TargetError::Unsupported(_)) => {
            return Failure::Io(format!("{name}: {error}"));
        }
        _ => format!("{name}: {error}"),
    };
    match save(&mut plan, meter) {
        Ok(true) => {
            let at = plan.tracks.end().unwrap_or_default();
            meter.early_end(format!(
                "{why} at LBN {at} of {}; to continue: {}",
                plan.whole.end,
                resume_with()
            ))
        }
        Ok(false) => meter.early_end(format!("{why} before the first track was found")),
        Err(failure) => {
            warn(format!("{why}; the results so far are lost"));
            failure
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use clap::{Args as _, Command, FromArgMatches};
    use traxtent_map::TrackMap;
    use traxtent_model::geometry::Geometry;
    use traxtent_model::profile;
    use traxtent_probe::{Confirm, Verify};
    use traxtent_scsi::Faults;
    use traxtent_sim::SimTarget;

    use super::*;
    use traxtent_run::read_map;

    const DRIVE: &str = "hp-c2247";

    fn geometry() -> Arc<Geometry> {
        let profile = profile::builtin(DRIVE).unwrap();
        Arc::new(Geometry::build(&profile.geometry).unwrap())
    }

    fn plan(checkpoint: &Path, resume: bool, faults: Faults) -> Result<(ProbePlan, SimTarget)> {
        let command = Args::augment_args(Command::new("probe"));
        let checkpoint = checkpoint.to_str().unwrap();
        let mut words = vec![
            "probe",
            DRIVE,
            "--algorithm",
            "walk",
            "--checkpoint",
            checkpoint,
        ];
        words.extend(resume.then_some("--resume"));
        let args = Args::from_arg_matches(&command.get_matches_from(words)).unwrap();
        let profile = Arc::new(profile::builtin(DRIVE).unwrap());
        let target = SimTarget::new(profile, geometry()).with_faults(faults);
        let plan = ProbePlan::new(&args, DRIVE, target.identity(), Algorithm::Walk)?;
        Ok((plan, target))
    }

    fn probe(checkpoint: &Path, resume: bool, faults: Faults) -> Result<ProbeResult> {
        let (plan, mut target) = plan(checkpoint, resume, faults)?;
        let meter = ProbeMeter::start(&target)?;
        run(plan, &mut target, &meter)
    }

    /// Are results kept when the drive disconnects repeatedly? Is the final map the same as that of
    /// an uninterrupted search, with the cost of all parts?
    #[test]
    fn a_drive_that_disconnects() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        let gone = |after| Faults {
            unresponsive_after: Some(after),
            ..Faults::default()
        };
        let Err(Failure::Io(line)) = probe(&path, false, gone(20_000)) else {
            panic!("the drive is gone");
        };
        assert!(line.contains("the drive is gone:"), "{line}");
        assert!(line.contains("--resume"), "{line}");
        let first = read_map(&path).unwrap().unwrap();
        assert!(!first.complete && first.tracks.len() > 5000);
        // Nearly all requests to the drive are translations.
        assert!((19_990..=20_001).contains(&first.cost.translations));

        let Err(Failure::Input(line)) = probe(&path, false, Faults::default()) else {
            panic!("a checkpoint is not overwritten");
        };
        assert!(line.contains("a probe was stopped here"), "{line}");

        let Err(Failure::Io(_)) = probe(&path, true, gone(10_000)) else {
            panic!("the drive has gone again");
        };
        let second = read_map(&path).unwrap().unwrap();
        assert!(second.tracks.len() > first.tracks.len());
        assert!((29_980..=30_002).contains(&second.cost.translations));

        let done = probe(&path, true, Faults::default()).unwrap();
        assert!(done.file.complete && done.resumed);
        assert_eq!(
            done.file.tracks,
            TrackMap::from_sizes(geometry().track_sizes())
        );
        assert!(done.file.cost.translations > 50_000);
        assert!(done.file.cost.drive_time > second.cost.drive_time);
    }

    /// Is a checkpoint written only once it is due, and does it include the first track?
    #[test]
    fn checkpoint_of_the_first_track() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        let (mut plan, target) = plan(&path, false, Faults::default()).unwrap();
        let meter = ProbeMeter::start(&target).unwrap();
        let geometry = geometry();
        let mut tracks = geometry.track_sizes();
        let mut first_lbn = Lbn(0);
        let mut next = |plan: &mut ProbePlan| {
            let sectors = tracks.next().unwrap();
            let found = Found {
                first_lbn,
                sectors,
                confirm: Confirm::Tested,
            };
            first_lbn += Sectors(u64::from(sectors));
            store_track(plan, found, &meter).unwrap();
        };
        next(&mut plan);
        assert!(!path.exists(), "it is not due");
        plan.checkpoint.be_due();
        next(&mut plan);
        assert_eq!(read_map(&path).unwrap().unwrap().tracks.len(), 2);
    }

    /// On the drive's clock, is the estimate made within the first quarter of a search? Is the
    /// total within a factor of 1.25 of the actual one if all tracks take equally long, and within
    /// a factor of two if most tracks are predicted?
    #[test]
    fn estimate_of_a_slow_drive() {
        for (algorithm, factor) in [(Algorithm::Walk, 1.25), (Algorithm::Angle, 2.0)] {
            let (plan, mut target) = plan(Path::new("unused"), false, Faults::default()).unwrap();
            let meter = ProbeMeter::start(&target).unwrap();
            let mut first_tracks = FirstTracks::new(plan.left.end.0);
            let mut estimate = None;
            let elapsed = || Duration::from_secs_f64(meter.cost().drive_time.as_ms() / 1e3);
            let mut sink = |found: Found| {
                let (now, requests) = (elapsed(), meter.operations());
                let made = first_tracks.add(found.sectors, now, requests);
                estimate = estimate.or(made.map(|made| (now, requests, made)));
                ControlFlow::Continue(())
            };
            let mut watched = meter.watch(&mut target);
            extract(
                algorithm,
                &mut watched,
                plan.left,
                Verify::Sample,
                &mut sink,
            )
            .unwrap();
            let (now, requests, made) = estimate.expect("an estimate");
            let all = elapsed();
            assert!(now < all / 4, "{algorithm:?}: {now:?} of {all:?}");
            for share in [
                (now + made.time).as_secs_f64() / all.as_secs_f64(),
                (requests + made.requests) as f64 / meter.operations() as f64,
            ] {
                assert!(
                    share < factor && share > 1.0 / factor,
                    "{algorithm:?}: {share}"
                );
            }
        }
    }

    /// Is nothing written if nothing was found?
    #[test]
    fn nothing_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        let faults = Faults {
            unresponsive_after: Some(0),
            ..Faults::default()
        };
        let Err(Failure::Io(line)) = probe(&path, false, faults) else {
            panic!("the drive is gone");
        };
        assert!(line.contains("before the first track was found"), "{line}");
        assert!(!path.exists());
    }
}
