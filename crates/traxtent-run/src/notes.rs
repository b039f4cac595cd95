//! Notes about settings that have no effect, queues that are shorter than the workload, skews that
//! are too short, cylinders without a zone, and drives that are not used.

use traxtent_model::geometry::{Geometry, Track, ZoneInfo};
use traxtent_model::mechanics::{HeadPosition, Mechanics};
use traxtent_model::profile::Scheduler;
use traxtent_units::{Count, Lbn};
use traxtent_workload::{ArrivalModel, ReplayPace};

use crate::run::{Case, SimulationRun};
use crate::target::NamedDrive;
use crate::workload::Workload;

/// Returns notes about settings that have no effect, about workloads with more outstanding requests
/// than the drive's queue holds, about skews that changed mechanics make too short, about cylinders
/// without a zone, and about drives that the workload does not use. Each note occurs once.
pub fn case_notes(cases: &[Case]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for group in cases.chunk_by(|a, b| a.drive == b.drive) {
        let idle = idle_setting(group).map(str::to_owned);
        let queue = idle.or_else(|| short_queue(group));
        let found = [
            queue,
            short_skew(group),
            empty_cylinders(group),
            idle_drives(group),
        ];
        for note in found.into_iter().flatten() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

const ONE_AT_A_TIME: &str = "queue.depth and queue.scheduler have no effect: the host sends each drive one request at a \
     time (DiskSim: \"Use queueing in subsystem\" = 0); add --set host.one_at_a_time=false";
const DEPTH_OF_ONE: &str =
    "queue.scheduler has no effect: queue.depth is 1; set queue.depth, or host.scheduler";
const ONE_OUTSTANDING: &str =
    "queue.scheduler has no effect: the workload has one request outstanding at a time";

/// Returns the note about settings of the drives' queues that have no effect, because no queue ever
/// holds several requests in any of the cases.
fn idle_setting(cases: &[Case]) -> Option<&'static str> {
    let sets = |key: &str| cases[0].set.iter().any(|(known, _)| known == key);
    let drives = || {
        let runs = cases.iter().flat_map(|case| &case.runs);
        runs.flat_map(|run| &run.machine.drives)
    };
    let scheduler = sets("queue.scheduler");
    let queue = drives().any(|drive| drive.profile.queue.depth > 1);
    let one_at_a_time = |drive: &NamedDrive| {
        let host = drive.profile.host;
        host.is_some_and(|host| host.one_at_a_time)
    };
    if (scheduler || sets("queue.depth") && queue) && drives().all(one_at_a_time) {
        return Some(ONE_AT_A_TIME);
    }
    if scheduler && !queue {
        return Some(DEPTH_OF_ONE);
    }
    let mut runs = cases.iter().flat_map(|case| &case.runs);
    (scheduler && runs.all(has_one_outstanding)).then_some(ONE_OUTSTANDING)
}

/// Returns the note about a drive whose queue is shorter than the number of outstanding requests,
/// of the case with the most. There is none if the queue's depth is varied, or if the host also
/// orders the requests or sends one at a time.
fn short_queue(cases: &[Case]) -> Option<String> {
    let depth = |case: &Case| case.runs[0].machine.drives[0].profile.queue.depth;
    if cases.iter().any(|case| depth(case) != depth(&cases[0])) {
        return None;
    }
    let (most, machine) = cases
        .iter()
        .filter_map(|case| Some((fixed_outstanding(&case.runs[0])?, &case.runs[0].machine)))
        .max_by_key(|(outstanding, _)| *outstanding)?;
    let drive = &machine.drives[0];
    let depth = drive.profile.queue.depth;
    let host_is_plain = drive
        .profile
        .host
        .is_none_or(|host| host.scheduler == Scheduler::Fcfs && !host.one_at_a_time);
    (most > depth && host_is_plain && machine.arrays().is_empty()).then(|| {
        format!(
            "{}: {most} requests are outstanding, but queue.depth is {depth}: the others wait in \
             the host, in order of arrival, so that more than {depth} do not increase the \
             throughput; for a longer queue, add --set queue.depth={most}",
            drive.name
        )
    })
}

/// The number of track changes that [`short_skew`] examines at the beginning of each zone.
const CHANGES_PER_ZONE: u64 = 64;
/// The share of track changes that are too short in [`short_skew`]. Defects and spare sectors can
/// shorten a few.
const SHORT_SHARE: f64 = 0.5;

/// Returns the note about a drive that loses a revolution at most track changes, because its heads
/// take longer than the skew between tracks. A drive whose read-ahead begins where the heads arrive
/// loses less.
fn short_skew(cases: &[Case]) -> Option<String> {
    let runs = cases.iter().flat_map(|case| &case.runs);
    let mut drives = runs
        .flat_map(|run| &run.machine.drives)
        .filter(|drive| !drive.profile.cache.read_ahead.on_arrival);
    drives.find_map(|drive| {
        let mechanics = drive.profile.mechanics.as_ref()?;
        let mechanics = Mechanics::new(mechanics, drive.geometry.cylinders());
        let zones = drive.geometry.zones().iter();
        let changes = zones.flat_map(|zone| track_changes(&drive.geometry, zone));
        let (mut total, mut short) = (0, 0);
        for (track, next) in changes {
            total += 1;
            short += u32::from(loses_revolution(&drive.geometry, &mechanics, &track, &next));
        }
        // A tree states the angle of each track.
        let remedy = match drive.profile.geometry.tree {
            None => "; lengthen track_skew and cylinder_skew of the zones",
            Some(_) => "",
        };
        (f64::from(short) > f64::from(total) * SHORT_SHARE).then(|| {
            format!(
                "{}: sequential requests lose a revolution at most track changes, because the \
                 heads take longer than the skew{remedy}",
                drive.name
            )
        })
    })
}

/// Iterates over pairs of consecutive tracks at the beginning of a zone.
fn track_changes(geometry: &Geometry, zone: &ZoneInfo) -> impl Iterator<Item = (Track, Track)> {
    let first = geometry
        .track_of(zone.first_lbn)
        .map_or(0, |track| track.index);
    let pairs = (first..first + CHANGES_PER_ZONE)
        .map_while(|index| Some((geometry.track(index)?, geometry.track(index + 1)?)));
    pairs.take_while(|(_, next)| next.end_lbn() <= zone.end_lbn)
}

/// Returns whether the first sector of a track passes before the heads arrive from the end of
/// another.
fn loses_revolution(
    geometry: &Geometry,
    mechanics: &Mechanics,
    track: &Track,
    next: &Track,
) -> bool {
    let last = geometry.piece(Lbn(track.end_lbn().0 - 1), 1);
    let first = geometry.piece(next.first_lbn, 1);
    let end = mechanics.edge(&last.track, last.first_slot + 1);
    let begin = mechanics.edge(&first.track, first.first_slot);
    let gap = (begin.0 + mechanics.revolution().0 - end.0) % mechanics.revolution().0;
    let (from, to) = (HeadPosition::from(track), HeadPosition::from(next));
    mechanics.reposition(from, to, false).total().0 > gap
}

/// Returns the note about a drive with cylinders after its last zone. The import of DiskSim's files
/// reports them itself.
fn empty_cylinders(cases: &[Case]) -> Option<String> {
    let machines = cases.iter().flat_map(|case| &case.runs);
    let machines = machines.map(|run| &run.machine);
    let mut drives = machines
        .filter(|machine| machine.system.is_none())
        .flat_map(|machine| &machine.drives);
    drives.find_map(|drive| {
        let spec = &drive.profile.geometry;
        let end = spec.zones.iter().map(|zone| zone.last_cylinder + 1).max()?;
        (end < spec.cylinders).then(|| {
            format!(
                "{}: geometry.cylinders is {}, but the zones end at cylinder {}: those after it \
                 hold no sectors; raise last_cylinder of the last zone",
                drive.name,
                spec.cylinders,
                end - 1
            )
        })
    })
}

/// Returns the number of outstanding requests of a closed synthetic workload.
fn fixed_outstanding(run: &SimulationRun) -> Option<u32> {
    match &run.workload {
        Workload::Drawn(spec) => match spec.pace {
            ArrivalModel::Closed { outstanding, .. } => Some(outstanding),
            ArrivalModel::Open { .. } => None,
        },
        Workload::Synthio(_) | Workload::Trace(_) | Workload::Supplied(_) => None,
    }
}

/// Returns whether a run certainly never has several requests outstanding. Returns false for a
/// trace at its default pace, since that depends on the file.
fn has_one_outstanding(run: &SimulationRun) -> bool {
    match &run.workload {
        Workload::Drawn(spec) => {
            matches!(spec.pace, ArrivalModel::Closed { outstanding: 1, .. })
        }
        Workload::Synthio(_) | Workload::Supplied(_) => false,
        Workload::Trace(_) => matches!(
            run.trace.pace,
            Some(ReplayPace::SemiClosed | ReplayPace::Closed { outstanding: 1 })
        ),
    }
}

/// Returns the note about drives that a workload in this project's grammar does not use: its
/// requests are for device 0.
fn idle_drives(cases: &[Case]) -> Option<String> {
    let run = &cases[0].runs[0];
    let Workload::Drawn(_) = run.workload else {
        return None;
    };
    let machine = &run.machine;
    let arrays = machine.arrays();
    let (first, count, remedy) = match arrays {
        [] => (
            &machine.drives[0].name,
            Count(machine.drives.len() as u64, "drive"),
            "; append # and the name of another to use that",
        ),
        [first, ..] => (&first.name, Count(arrays.len() as u64, "array"), ""),
    };
    (count.0 > 1).then(|| {
        format!(
            "{}: the workload uses only {first}, the first of {count}{remedy}",
            machine.target
        )
    })
}
