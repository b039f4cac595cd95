//! Calibrates a drive as a newcomer would.
use std::sync::Arc;

use traxtent_calibrate::{MeasuredTrace, calibrate};
use traxtent_model::geometry::Geometry;
use traxtent_model::mechanics::SeekCurve;
use traxtent_model::profile::{Profile, SeekSpec};
use traxtent_workload::TraceReader;

fn load(name: &str) -> Profile {
    let file = format!("/work/shared/data/disksim/{name}");
    let text = std::fs::read(&file).unwrap();
    let sources = |path: &str| std::fs::read(path).map_err(|error| error.to_string());
    let system = traxtent_disksim::load_system(&file, &text, None, &sources).unwrap();
    system.disks[0].profile.clone()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, other) = (&args[0], &args[1]);
    let drive = load(&format!("{name}.parv"));
    let geometry = Arc::new(Geometry::build(&drive.geometry).unwrap());
    let mut start = load(&format!("{other}.parv"));
    let mean = |p: &Profile, cylinders| {
        SeekCurve::new(&p.mechanics.as_ref().unwrap().seek, cylinders)
            .mean()
            .as_ms()
    };
    let cylinders = geometry.cylinders();
    let single = |p: &Profile, c| {
        SeekCurve::new(&p.mechanics.as_ref().unwrap().seek, c)
            .time(1)
            .as_ms()
    };
    let full = |p: &Profile, c: u32| {
        SeekCurve::new(&p.mechanics.as_ref().unwrap().seek, c)
            .time(c)
            .as_ms()
    };
    let average = mean(&drive, cylinders);
    start.geometry = drive.geometry.clone();
    {
        let oc = Geometry::build(&load(&format!("{other}.parv")).geometry)
            .unwrap()
            .cylinders();
        let o = load(&format!("{other}.parv"));
        let scale = average / mean(&o, oc);
        let m = start.mechanics.as_mut().unwrap();
        m.rpm = drive.mechanics.as_ref().unwrap().rpm;
        m.seek = SeekSpec::ThreePointCurve {
            single_ms: single(&o, oc) * scale,
            average_ms: average,
            full_ms: full(&o, oc) * scale,
        };
    }
    start.name = drive.name.clone();
    if args.get(2).is_some_and(|a| a == "own") {
        start = drive.clone();
    }
    let file = std::fs::File::open(format!("/work/shared/data/disksim/{name}.trace")).unwrap();
    let records: Vec<_> = TraceReader::new(
        traxtent_workload::TraceFormat::DiskSimValidate,
        std::io::BufReader::new(file),
        traxtent_workload::TraceOptions::default(),
    )
    .map(Result::unwrap)
    .collect();
    let trace = MeasuredTrace::new(records);
    let begun = std::time::Instant::now();
    let found = calibrate(&start, &[trace], 0.5, "x", &mut |_| ()).unwrap();
    for one in &found.settings {
        println!("  {} {} -> {}", one.key, one.start, one.value);
    }
    for one in &found.figures {
        println!(
            "  {} {:.3} -> {:.3} +- {:.3} {}",
            one.name, one.start_ms, one.value_ms, one.plus_minus_ms, one.is_determined
        );
    }
    for (what, half) in [
        ("before 1", &found.fitted_before),
        ("before 2", &found.held_out_before),
        ("after 1", &found.fitted_after),
        ("after 2", &found.held_out_after),
    ] {
        println!(
            "{name} {what}: demerit {:.3} noise {:.3} disagree {} of {} = {:.2} %",
            half.demerit_ms,
            half.noise_p95_ms,
            half.disagreements,
            half.reads,
            100.0 * half.disagreement()
        );
    }
    println!("{:.1} s", begun.elapsed().as_secs_f64());
}
