//! Tests of maps, by `--check` or before files are moved: whether boundaries have moved.
//!
//! If the drive supports translation, the LBNs on both sides of each sampled boundary are
//! translated to locations. Otherwise, runs of tracks in several places are searched again by
//! timing.

use std::io::Write;
use std::path::Path;

use serde_json::json;
use traxtent_map::{MapFile, ProbeCost};
use traxtent_probe::{CheckSample, Identity, MapCheck, ProbeError, Target};
use traxtent_units::{Count, Rng};

use super::device::Writes;
use super::meter::ProbeMeter;
use crate::failure::{Failure, Result};
use crate::output;
use crate::progress::Progress;
use traxtent_run::read_map;

/// The size of the sample of `--check`.
const SAMPLE: CheckSample = CheckSample {
    translated: 1000,
    runs: 8,
    tracks: 64,
};

/// The size of the sample before files are moved. The test takes 43 to 55 s on a drive of
/// 10,000 rpm through a loop device on an idle machine, and minutes on a busy one.
const SHORT_SAMPLE: CheckSample = CheckSample {
    translated: 200,
    runs: 4,
    tracks: 32,
};

/// Tests a small sample of the boundaries of a map on a device. Fails if the map does not fit the
/// device, if a boundary has moved, or if the device cannot be timed.
///
/// `is_model` is that of [`mismatch`].
pub(crate) fn verify_map(node: &Path, name: &str, map: &MapFile, is_model: bool) -> Result<()> {
    let mut target = super::device::open_device(node, Writes::None)?;
    let meter = ProbeMeter::start(&target)?;
    belongs(map, target.identity(), is_model).map_err(|problem| Failure::at(name, problem))?;
    let mut watched = meter.watch(&mut target);
    let mut bar = None;
    let mut progress = |_, total| {
        bar.get_or_insert_with(|| Progress::new("boundaries of the map tested", Some(total)))
            .add(1);
    };
    let result = traxtent_probe::check_map(
        &mut watched,
        &map.tracks,
        SHORT_SAMPLE,
        &mut Rng::new(1),
        &mut progress,
    );
    let _ = target.switch_caching(true);
    let remedy = "probe the drive again, or use --trust-map if the map is right";
    let checked = result.map_err(|error| match error {
        _ if meter.stopped() => meter.early_end("stopped".to_owned()),
        ProbeError::NotRotating(_) => Failure::Finding(format!(
            "{}: the map cannot be tested: {error}; {BUSY_MACHINE}; use --trust-map if the map is right",
            node.display()
        )),
        _ => Failure::Io(format!("{}: {error}", node.display())),
    })?;
    match checked.moved {
        None => Ok(()),
        Some(moved) => Err(Failure::Finding(format!(
            "{name} is not the map of {}: at LBN {}: {}; {remedy}",
            node.display(),
            moved.lbn,
            moved.says
        ))),
    }
}

/// Returns how a map contradicts the identity of a device. Nothing is timed. Returns `None` if
/// nothing contradicts, or if the device cannot be identified.
///
/// If `is_model`, the map comes from a model of a whole drive, so that only the size is compared.
pub(crate) fn mismatch(node: &Path, map: &MapFile, is_model: bool) -> Option<String> {
    let device = traxtent_io::device::open(node).ok()?;
    belongs(map, device.identity(), is_model).err()
}

/// Checks that a map does not contradict the identity of a drive.
fn belongs(map: &MapFile, drive: &Identity, is_model: bool) -> Result<(), String> {
    if is_model {
        return has_size(map, drive);
    }
    let checked = map.check_device(drive);
    checked.map_err(|problem| problem.to_string())
}

/// Checks that a model has the size of the drive.
fn has_size(map: &MapFile, drive: &Identity) -> Result<(), String> {
    let size = |identity: &Identity| (identity.capacity.0, identity.logical_bytes);
    let (model, drive) = (size(&map.identity), size(drive));
    if model == drive {
        return Ok(());
    }
    let text = |(lbns, bytes): (u64, u32)| format!("{} of {bytes} bytes", Count(lbns, "LBN"));
    Err(format!(
        "has {}, but the drive has {}",
        text(model),
        text(drive)
    ))
}

/// The advice for a map that timing could not test.
pub(super) const BUSY_MACHINE: &str = "on a busy machine, noise from other programs hides the rotation: stop them, or run this command under `chrt --fifo 20`";

/// The result of a check.
pub(super) struct Report {
    map: String,
    checked: MapCheck,
    boundaries: u64,
    cost: ProbeCost,
}

/// Tests a random sample of the boundaries of a map.
pub(super) fn check(
    target: &mut dyn Target,
    meter: &ProbeMeter,
    path: &Path,
    seed: u64,
) -> Result<Report> {
    let file = read_map(path)?
        .ok_or_else(|| Failure::at(path.display(), "is neither a map file nor a list of tracks"))?;
    let identity = target.identity().clone();
    let belongs = file.check_device(&identity);
    belongs.map_err(|problem| Failure::at(path.display(), problem))?;
    let mut watched = meter.watch(&mut *target);
    let mut bar = None;
    let mut progress = |_, total| {
        bar.get_or_insert_with(|| Progress::new("boundaries", Some(total)))
            .add(1);
    };
    let mut rng = Rng::new(seed);
    let result =
        traxtent_probe::check_map(&mut watched, &file.tracks, SAMPLE, &mut rng, &mut progress);
    let _ = target.switch_caching(true);
    let checked = result.map_err(|error| match error {
        _ if meter.stopped() => meter.early_end("stopped".to_owned()),
        ProbeError::NotRotating(why) => Failure::Finding(untestable(path, &why)),
        _ => Failure::Io(error.to_string()),
    })?;
    Ok(Report {
        map: path.display().to_string(),
        checked,
        boundaries: file.tracks.len() as u64 - 1,
        cost: meter.cost(),
    })
}

/// Returns the message for a map that the drive's timing could not test.
fn untestable(map: &Path, why: &str) -> String {
    format!(
        "{}: the map cannot be tested, because the timing shows no rotation: {why}; {BUSY_MACHINE}",
        map.display()
    )
}

impl Report {
    /// Prints the result. If a boundary has moved, the exit status is 1.
    pub(super) fn print(&self, json: bool) -> Result<()> {
        let drive_time_s = self.cost.drive_time.as_ms() / 1000.0;
        if json {
            output::json(&json!({
                "map": self.map,
                "by": self.checked.by,
                "boundaries": self.boundaries,
                "tested": self.checked.tested,
                "reads": self.cost.reads,
                "translations": self.cost.translations,
                "drive_time_s": drive_time_s,
                "moved": self.checked.moved.as_ref().map(|moved| json!({
                    "lbn": moved.lbn.0,
                    "says": moved.says,
                })),
            }))?;
        } else if self.checked.moved.is_none() {
            let mut out = output::stdout();
            writeln!(
                out,
                "{}: {} of {} boundaries tested by {}, none has moved ({drive_time_s:.1} s of the drive's time)",
                self.map, self.checked.tested, self.boundaries, self.checked.by
            )?;
            output::finish(out)?;
        }
        match &self.checked.moved {
            None => Ok(()),
            Some(moved) => Err(Failure::Finding(format!(
                "{}: the boundary at LBN {} has moved: {}",
                self.map, moved.lbn, moved.says
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Does the message about a map that cannot be tested blame noise and give the remedy, without
    /// claiming that the drive does not rotate?
    #[test]
    fn noise_is_named() {
        let says = super::untestable(Path::new("a.map"), "angle: 3 of 5 rounds agree");
        for word in ["a.map: ", "noise", "timing", "`chrt --fifo 20`", "3 of 5"] {
            assert!(says.contains(word), "{says}");
        }
        assert!(!says.contains("not a rotating disk"), "{says}");
    }
}
