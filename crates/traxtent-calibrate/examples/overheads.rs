//! Finds the command overheads of a simulated drive from its response times alone.

use traxtent_calibrate::{MeasuredTrace, Options, calibrate};
use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_sim::{Host, simulate};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Rng, Span};
use traxtent_workload::{Replay, ReplayPace, TraceRecord};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = builtin("atlas10k").ok_or("no such drive")?;
    let truth = start.with_value("overheads.read_miss_after_read_ms", "0.8")?;

    // A recording of the drive: 3,000 random reads, with a pause of 5 ms after each.
    let mut rng = Rng::new(1);
    let drive = Drive::new(&truth)?;
    let capacity = drive.geometry().capacity().0;
    let read = |rng: &mut Rng| TraceRecord {
        arrival: None,
        pause: Some(Span::from_ms(5.0)),
        completed: None,
        measured: None,
        device: 0,
        request: Request::read(Lbn(rng.below(capacity - 8)), 8),
    };
    let mut records: Vec<TraceRecord> = (0..3000).map(|_| read(&mut rng)).collect();
    let issued = records.clone().into_iter().map(Ok);
    let mut source = Replay::new(issued, ReplayPace::SemiClosed);
    simulate(&mut Host::new(vec![drive]), &mut source, |outcome| {
        records[outcome.arrival.tag as usize].measured = Some(outcome.response());
        true
    })?;

    let options = Options {
        held_out: 0.5,
        keep: ["access", "bus", "cache", "mechanics"]
            .map(str::to_owned)
            .into(),
        source: "a simulated trace".to_owned(),
    };
    let trace = MeasuredTrace::new(records, ReplayPace::SemiClosed);
    let found = calibrate(&start, &[trace], &options, &())?;
    for one in found.figures.iter().filter(|one| one.is_determined) {
        println!(
            "{}: {:.3} -> {:.3} ± {:.3} ms",
            one.name, one.start_ms, one.value_ms, one.plus_minus_ms
        );
    }
    Ok(())
}
