//! Calibration of the drives that were measured for DiskSim, as a newcomer would do it: the layout,
//! the speed of rotation and the average seek time are those of the drive, and everything else is
//! that of another drive of the same years.

use testkit::{shared_data, skip};
use traxtent_calibrate::{MeasuredTrace, Options, calibrate};
use traxtent_model::geometry::Geometry;
use traxtent_model::mechanics::SeekCurve;
use traxtent_model::profile::{OriginKind, Profile, Provenance, SeekSpec};
use traxtent_workload::{ReplayPace, TraceFormat, TraceOptions, TraceReader};

/// The drives, the other drives, and the 95th percentile of the noise in the second halves of the
/// traces, in milliseconds.
const DRIVES: [(&str, &str, f64); 7] = [
    ("atlas10k", "ibm18es", 0.204),
    ("atlas_III", "barracuda", 0.204),
    ("barracuda", "cheetah4LP", 0.283),
    ("cheetah4LP", "barracuda", 0.183),
    ("ibm18es", "atlas_III", 0.216),
    ("hp_c2247a", "hp_c3323a", 0.306),
    ("hp_c3323a", "hp_c2247a", 0.334),
];

fn load(name: &str) -> Option<Profile> {
    let file = shared_data(&format!("disksim/{name}.parv"))?;
    let text = std::fs::read(&file).unwrap();
    let sources = |path: &str| std::fs::read(path).map_err(|error| error.to_string());
    let system = traxtent_disksim::load_system(&file.to_string_lossy(), &text, None, &sources);
    Some(system.unwrap().disks[0].profile.clone())
}

/// Returns the other drive with the layout, the speed of rotation and the average seek time of the
/// drive. Its seeks over one cylinder and over the full stroke are scaled like the average.
fn newcomer(drive: &Profile, other: &Profile) -> Profile {
    let curve = |profile: &Profile| {
        let cylinders = Geometry::build(&profile.geometry).unwrap().cylinders();
        SeekCurve::new(&profile.mechanics.as_ref().unwrap().seek, cylinders)
    };
    let (own, others) = (curve(drive), curve(other));
    let average_ms = own.mean().as_ms();
    let scale = average_ms / others.mean().as_ms();
    let mut start = other.clone();
    start.geometry = drive.geometry.clone();
    start.provenance = Provenance::uniform(OriginKind::Assumed, "as on another drive");
    let mechanics = start.mechanics.as_mut().unwrap();
    mechanics.rpm = drive.mechanics.as_ref().unwrap().rpm;
    mechanics.seek = SeekSpec::ThreePointCurve {
        single_ms: others.time(1).as_ms() * scale,
        average_ms,
        full_ms: others.time(others.stroke()).as_ms() * scale,
    };
    start
}

/// Fits the first half of each trace. Does the second half agree better than before, and within the
/// noise on at least five of the seven drives? Outside a soak, only the first drive is calibrated.
#[test]
fn second_halves_agree() {
    let (drives, least) = match testkit::repeats(1) {
        1 => (1, 1),
        _ => (DRIVES.len(), 5),
    };
    let mut within_noise = 0;
    eprintln!("drive        start      demerit   noise      disagree");
    for (name, other, noise_ms) in DRIVES.into_iter().take(drives) {
        let (Some(drive), Some(other_drive)) = (load(name), load(other)) else {
            skip!("shared/data/disksim is missing");
        };
        let trace = shared_data(&format!("disksim/{name}.trace")).unwrap();
        let trace = std::io::BufReader::new(std::fs::File::open(trace).unwrap());
        let options = TraceOptions::default();
        let records = TraceReader::new(TraceFormat::DiskSimValidate, trace, options);
        let records = records.collect::<Result<Vec<_>, _>>().unwrap();
        let trace = MeasuredTrace::new(records, ReplayPace::SemiClosed);
        let options = Options {
            held_out: 0.5,
            keep: Vec::new(),
            source: format!("the first half of {name}.trace"),
        };
        let start = newcomer(&drive, &other_drive);
        let found = calibrate(&start, &[trace], &options, &()).unwrap();
        let (before, after) = (&found.held_out_before, &found.held_out_after);
        eprintln!(
            "{name:<11} {other:<10} {:.3} -> {:.3} ms, noise {noise_ms:.3} ms, hits {:.2} -> {:.2} %",
            before.demerit_ms,
            after.demerit_ms,
            100.0 * before.disagreement(),
            100.0 * after.disagreement()
        );
        assert!(found.is_improvement(), "{name}");
        within_noise += u32::from(after.demerit_ms <= noise_ms);
    }
    assert!(within_noise >= least, "{within_noise} of {drives}");
}
