//! Records in order of arrival, from a file in order of completion.
//!
//! A log that writes each request when it completes is not in order of arrival. Up to
//! [`RECORDS_HELD_MAX`] records are held, and returned in order of arrival; records with the same
//! arrival keep the order of the file.

use std::collections::BTreeMap;

use super::TraceRecord;
use super::error::{TraceError, TracePosition, TraceProblem};
use super::fields::TIME_MAX_PS;
use super::lines::TraceInput;
use traxtent_units::{SimTime, Span};

/// The maximum number of records held. Fewer requests of a disk are outstanding at once; the limit
/// bounds the memory used.
pub(super) const RECORDS_HELD_MAX: usize = 16_384;

/// The first arrival above which times count from the first record: one hour. Such times are times
/// of day, or count from the start of the system, and the drive would idle until then.
const OWN_ORIGIN_MAX_PS: i128 = 3_600_000_000_000_000;

#[derive(Default)]
pub(super) struct Reorder {
    held: BTreeMap<(i128, u64), (TraceRecord, TracePosition)>,
    pushed: u64,
    /// The time from which arrivals count, once the first record has been returned.
    origin_ps: Option<i128>,
    /// The time by which the record returned last precedes the first one; 0 if it does not.
    pub(super) early: Span,
}

impl Reorder {
    /// Adds a record that arrived at `at_ps`, counted from any origin.
    pub(super) fn push(&mut self, at_ps: i128, record: TraceRecord, place: TracePosition) {
        self.held.insert((at_ps, self.pushed), (record, place));
        self.pushed += 1;
    }

    /// Returns whether a record must be returned before the next one is added.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= RECORDS_HELD_MAX
    }

    /// Returns the record that arrived first, with its arrival set. The position of `lines` becomes
    /// that of the record.
    pub(super) fn pop<R: std::io::BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        let Some(((at_ps, _), (mut record, place))) = self.held.pop_first() else {
            return Ok(None);
        };
        lines.set_position(place);
        let first = at_ps;
        let origin = *self.origin_ps.get_or_insert(match first {
            0..=OWN_ORIGIN_MAX_PS => 0,
            _ => first,
        });
        let since = at_ps - origin;
        if since > i128::from(TIME_MAX_PS) {
            return Err(TraceError::At {
                format: lines.format(),
                place,
                problem: TraceProblem::Malformed {
                    expected: format!(
                        "the request arrives {} s after the first one; expected at most {} s",
                        since / 1_000_000_000_000,
                        TIME_MAX_PS / 1_000_000_000_000
                    ),
                },
            });
        }
        let early = (-since).clamp(0, i128::from(TIME_MAX_PS));
        self.early = Span(early as u64);
        record.arrival = Some(SimTime(since.max(0) as u64));
        Ok(Some(record))
    }
}
