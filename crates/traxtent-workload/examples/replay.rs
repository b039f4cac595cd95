//! When does a replay at the recorded pace send the requests of a trace, and when does one that is
//! as fast as possible?
//!
//! `cargo run -p traxtent-workload --example replay`

use traxtent_units::Span;
use traxtent_workload::{
    NextStep, Replay, ReplayPace, RequestSource, TraceError, TraceFormat, TraceOptions, TraceReader,
};

/// Three requests in the SPC format: ASU, LBA, bytes, opcode, seconds.
const TRACE: &str = "0,1000,4096,r,0.000\n0,8000,4096,w,0.010\n0,1008,4096,r,0.011\n";

fn main() -> Result<(), TraceError> {
    for pace in [
        ReplayPace::Recorded { speed: 1.0 },
        ReplayPace::Closed { outstanding: 1 },
    ] {
        println!("{pace:?}:");
        let records = TraceReader::new(TraceFormat::Spc, TRACE.as_bytes(), TraceOptions::default());
        let mut source = Replay::new(records, pace);
        while let NextStep::At(now) = source.due()? {
            if let Some(arrival) = source.take(now) {
                let request = arrival.request;
                println!("  {:5.1} ms  {} {}", now.as_ms(), request.op, request.lbn);
                // A drive that takes 2 ms for each request.
                source.complete(arrival.tag, now + Span::from_ms(2.0));
            }
        }
    }
    Ok(())
}
