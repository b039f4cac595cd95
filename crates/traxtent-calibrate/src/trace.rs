//! A measured trace, and its replay on a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use traxtent_model::drive::{Drive, ServedBy};
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::Profile;
use traxtent_sim::agreement::ReplayedRequest;
use traxtent_sim::{Host, simulate};
use traxtent_units::request::Op;
use traxtent_units::{Rng, Span};
use traxtent_workload::{Replay, ReplayPace, TraceRecord};

use crate::{CalibrateError, CalibrationObserver};

/// The number of requests that a replay completes between two checks of the stop signal.
const STOP_CHECK_REQUESTS: u64 = 1 << 12;

/// Tells replays to stop once the observer requests it. All later replays then stop at their
/// beginning. A search skips candidates whose replay fails, so it ends too.
pub(crate) struct StopSignal<'a> {
    observer: &'a dyn CalibrationObserver,
    is_stopped: AtomicBool,
}

impl StopSignal<'_> {
    pub(crate) fn new(observer: &dyn CalibrationObserver) -> StopSignal<'_> {
        StopSignal {
            observer,
            is_stopped: AtomicBool::new(false),
        }
    }

    fn is_requested(&self) -> bool {
        if !self.is_stopped.load(Ordering::Relaxed) && self.observer.stop() {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// A measured trace of one drive, in memory.
#[derive(Clone, Debug)]
pub struct MeasuredTrace {
    records: Vec<TraceRecord>,
    pace: ReplayPace,
}

impl MeasuredTrace {
    /// Creates a trace from its records in order of arrival, and the rule that determines when the
    /// model receives each of them. With [`ReplayPace::SemiClosed`], missing pauses are computed
    /// from the arrival of a record and the end of the one before it. Flushes and records without a
    /// measured time are replayed, but not compared.
    pub fn new(mut records: Vec<TraceRecord>, pace: ReplayPace) -> MeasuredTrace {
        if pace == ReplayPace::SemiClosed {
            for index in 1..records.len() {
                let next = records[index].arrival;
                let record = &mut records[index - 1];
                if let (None, Some(arrival), Some(next)) = (record.pause, record.arrival, next) {
                    let end = record.end().unwrap_or(arrival);
                    record.pause = Some(next.saturating_since(end));
                }
            }
        }
        MeasuredTrace { records, pace }
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records.
    pub fn records(&self) -> &[TraceRecord] {
        &self.records
    }

    /// Replays the first `count` records on a drive at rest. Returns those that have measured
    /// times, except flushes, in order of arrival. With random numbers, the platter is at another
    /// angle for every request: every recorded pause becomes longer by up to a revolution. If
    /// requests are issued at their recorded arrival times, all arrivals are later by the same part
    /// of a revolution, so that the queues stay the same.
    ///
    /// # Errors
    /// Returns an error if the drive cannot serve the trace, or if the observer stops the
    /// calibration.
    pub(crate) fn replay(
        &self,
        profile: &Profile,
        geometry: &Arc<Geometry>,
        count: usize,
        angles: Option<&mut Rng>,
        stop: &StopSignal<'_>,
    ) -> Result<Vec<Replayed>, CalibrateError> {
        if stop.is_requested() {
            return Err(CalibrateError::Stopped);
        }
        let records = &self.records[..count];
        let delays: Vec<Span> = match angles {
            Some(rng) => {
                let delay = || Span::from_ms(profile.revolution_ms() * rng.fraction());
                std::iter::repeat_with(delay).take(count).collect()
            }
            None => vec![Span::ZERO; count],
        };
        let later = match (self.pace, delays.first()) {
            (ReplayPace::Recorded { speed }, Some(delay)) => Span::from_ms(delay.as_ms() * speed),
            _ => Span::ZERO,
        };
        let drive = Drive::with_geometry(Arc::new(profile.clone()), Arc::clone(geometry));
        let mut host = Host::new(vec![drive]);
        let delayed = records
            .iter()
            .zip(delays)
            .map(|(record, delay)| TraceRecord {
                pause: record.pause.map(|pause| pause + delay),
                arrival: record.arrival.map(|arrival| arrival + later),
                ..*record
            });
        let mut source = Replay::new(delayed.map(Ok), self.pace);
        let mut found: Vec<Option<Replayed>> = vec![None; count];
        let (mut requests, mut is_stopped) = (0_u64, false);
        simulate(&mut host, &mut source, |outcome| {
            let index = outcome.arrival.tag as usize;
            let request = &outcome.completion.request;
            let measured = outcome.arrival.measured;
            if let Some(measured) = measured.filter(|_| request.op != Op::Flush) {
                let before = index.checked_sub(1).map(|before| records[before].request);
                let parts = outcome.breakdown();
                found[index] = Some(Replayed {
                    index,
                    is_read: request.op != Op::Write,
                    follows_read: before.is_none_or(|before| before.op != Op::Write),
                    is_sequential: before.is_some_and(|before| {
                        before.lbn.0 + u64::from(before.sectors) == request.lbn.0
                    }),
                    sectors: request.sectors,
                    served: outcome.completion.served,
                    has_seek: parts.seek > Span::ZERO,
                    rotation_ms: parts.rotation.as_ms(),
                    simulated_ms: outcome.response().as_ms(),
                    measured_ms: measured.as_ms(),
                });
            }
            requests += 1;
            is_stopped |= requests.is_multiple_of(STOP_CHECK_REQUESTS) && stop.is_requested();
            !is_stopped
        })?;
        if is_stopped {
            return Err(CalibrateError::Stopped);
        }
        Ok(found.into_iter().flatten().collect())
    }
}

/// A request of a trace, as measured and as replayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replayed {
    /// Its position in the trace.
    pub(crate) index: usize,
    pub(crate) is_read: bool,
    /// Whether the previous request was not a write. True for the first request.
    pub(crate) follows_read: bool,
    /// Whether it begins where the previous request ended.
    pub(crate) is_sequential: bool,
    pub(crate) sectors: u32,
    pub(crate) served: ServedBy,
    pub(crate) has_seek: bool,
    pub(crate) rotation_ms: f64,
    pub(crate) simulated_ms: f64,
    pub(crate) measured_ms: f64,
}

impl Replayed {
    /// Whether the model served the request from its buffer.
    pub(crate) fn is_hit(&self) -> bool {
        self.served == ServedBy::Buffer
    }

    /// The simulated response time without its rotational latency.
    pub(crate) fn without_rotation_ms(&self) -> f64 {
        self.simulated_ms - self.rotation_ms
    }
}

impl From<Replayed> for ReplayedRequest {
    fn from(one: Replayed) -> ReplayedRequest {
        ReplayedRequest {
            is_read: one.is_read,
            sectors: one.sectors,
            served: one.served,
            simulated_ms: one.simulated_ms,
            rotation_ms: one.rotation_ms,
            measured_ms: one.measured_ms,
            seek_cylinders: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traxtent_model::profile::builtin;
    use traxtent_units::request::Request;
    use traxtent_units::{Lbn, SimTime};

    /// Do random numbers change the angles, whether the trace is replayed with pauses or at the
    /// recorded arrival times?
    #[test]
    fn random_numbers_change_the_angles() {
        let profile = builtin("atlas10k").unwrap();
        let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
        let mut rng = Rng::new(7);
        let records = (0..100_u64).map(|index| TraceRecord {
            arrival: Some(SimTime::ZERO + Span::from_ms(20.0 * index as f64)),
            pause: None,
            completed: None,
            measured: Some(Span::from_ms(5.0)),
            device: 0,
            request: Request::read(Lbn(rng.below(geometry.capacity().0 - 8)), 8),
        });
        let records: Vec<TraceRecord> = records.collect();
        let stop = StopSignal::new(&());
        for pace in [
            ReplayPace::SemiClosed,
            ReplayPace::Recorded { speed: 1.0 },
            ReplayPace::Recorded { speed: 0.5 },
        ] {
            let trace = MeasuredTrace::new(records.clone(), pace);
            let rotations = |angles: Option<&mut Rng>| -> Vec<f64> {
                let replayed = trace.replay(&profile, &geometry, records.len(), angles, &stop);
                replayed
                    .unwrap()
                    .iter()
                    .map(|one| one.rotation_ms)
                    .collect()
            };
            let plain = rotations(None);
            let mut rng = Rng::new(1);
            let (one, other) = (rotations(Some(&mut rng)), rotations(Some(&mut rng)));
            assert!(plain != one && one != other, "{pace:?}");
        }
    }
}
