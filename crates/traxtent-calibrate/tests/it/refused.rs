//! Traces that cannot be used, and calibrations that are stopped.

use std::sync::atomic::{AtomicU32, Ordering};

use traxtent_calibrate::{CalibrateError, CalibrationObserver, MeasuredTrace, Options, calibrate};
use traxtent_model::profile::builtin;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Span};
use traxtent_workload::{ReplayPace, TraceRecord};

fn refusal(records: usize, measured: bool, lbn: u64, held_out: f64) -> CalibrateError {
    failure(records, measured, lbn, held_out, &())
}

fn failure(
    records: usize,
    measured: bool,
    lbn: u64,
    held_out: f64,
    observer: &dyn CalibrationObserver,
) -> CalibrateError {
    let record = TraceRecord {
        arrival: None,
        pause: Some(Span::from_ms(1.0)),
        completed: None,
        measured: measured.then_some(Span::from_ms(5.0)),
        device: 0,
        request: Request::read(Lbn(lbn), 8),
    };
    let trace = MeasuredTrace::new(vec![record; records], ReplayPace::SemiClosed);
    let options = Options {
        held_out,
        keep: Vec::new(),
        source: "a trace".to_owned(),
    };
    let start = builtin("atlas10k").unwrap();
    calibrate(&start, &[trace], &options, observer).unwrap_err()
}

/// Is a trace refused that has no measured times, too few of them in one part, or requests beyond
/// the end of the drive?
#[test]
fn useless_traces_are_refused() {
    assert!(matches!(
        refusal(0, true, 0, 0.5),
        CalibrateError::NotMeasured
    ));
    assert!(matches!(
        refusal(1000, false, 0, 0.5),
        CalibrateError::NotMeasured
    ));
    let short = refusal(1000, true, 0, 0.1);
    assert_eq!(
        short.to_string(),
        "900 measured requests are fitted and 100 are held out; at least 200 are needed in each part"
    );
    let beyond = refusal(1000, true, 1 << 40, 0.5);
    assert!(matches!(beyond, CalibrateError::Simulate(_)), "{beyond}");
}

/// An observer that stops the calibration once, after it has been asked this many times.
struct Patience(AtomicU32);

impl CalibrationObserver for Patience {
    fn stop(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

/// Does a calibration stop in the middle of any replay, even if the observer says so only once?
#[test]
fn calibrations_can_be_stopped() {
    for asked in [0, 1, 7, 100, 500] {
        let patience = Patience(AtomicU32::new(asked));
        let error = failure(1000, true, 0, 0.5, &patience);
        assert!(matches!(error, CalibrateError::Stopped), "{asked}: {error}");
        // Each thread may ask once more.
        let more = 0_u32.wrapping_sub(patience.0.into_inner());
        assert!(more <= 64, "{asked}: {more}");
    }
}
