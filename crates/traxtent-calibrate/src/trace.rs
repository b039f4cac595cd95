//! A measured trace, and its replay on a model.

use std::sync::Arc;

use traxtent_model::drive::{Drive, ServedBy};
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::Profile;
use traxtent_sim::{Host, SimulateError, simulate};
use traxtent_units::request::Op;
use traxtent_units::{Rng, Span};
use traxtent_workload::{Replay, ReplayPace, TraceRecord};

/// A measured trace of one drive, in memory.
#[derive(Clone, Debug)]
pub struct MeasuredTrace {
    records: Vec<TraceRecord>,
    pace: ReplayPace,
}

impl MeasuredTrace {
    /// Creates a trace from its records in order of arrival, and the rule that determines when the
    /// model receives each of them. Records without a measured time are replayed, but not compared.
    pub fn new(mut records: Vec<TraceRecord>, pace: ReplayPace) -> MeasuredTrace {
        if pace == ReplayPace::SemiClosed {
            for index in 1..records.len() {
                let next = records[index].arrival;
                let record = &mut records[index - 1];
                if let (None, Some(arrival), Some(next)) = (record.pause, record.arrival, next) {
                    let gap = next.saturating_since(arrival);
                    let measured = record.measured.unwrap_or_default();
                    record.pause = Some(gap.saturating_sub(measured));
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
    /// times, in order of arrival. With random numbers, every recorded pause becomes longer by up
    /// to a revolution, so that the platter is at another angle for every request.
    pub(crate) fn replay(
        &self,
        profile: &Profile,
        geometry: &Arc<Geometry>,
        count: usize,
        angles: Option<&mut Rng>,
    ) -> Result<Vec<Replayed>, SimulateError> {
        let records = &self.records[..count];
        let delays: Vec<Span> = match angles {
            Some(rng) => {
                let delay = || Span::from_ms(profile.revolution_ms() * rng.fraction());
                std::iter::repeat_with(delay).take(count).collect()
            }
            None => vec![Span::ZERO; count],
        };
        let drive = Drive::with_geometry(Arc::new(profile.clone()), Arc::clone(geometry));
        let mut host = Host::new(vec![drive]);
        let delayed = records
            .iter()
            .zip(delays)
            .map(|(record, delay)| TraceRecord {
                pause: record.pause.map(|pause| pause + delay),
                ..*record
            });
        let mut source = Replay::new(delayed.map(Ok), self.pace);
        let mut found: Vec<Option<Replayed>> = vec![None; count];
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
            true
        })?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// A request of a trace, as measured and as replayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replayed {
    /// Its position in the trace.
    pub(crate) index: usize,
    pub(crate) is_read: bool,
    /// Whether the previous request was a read. The first request counts as one that follows a
    /// read.
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
