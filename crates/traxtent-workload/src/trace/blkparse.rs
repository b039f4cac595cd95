//! The default text output of blkparse(1).
//!
//! A line holds the device as major,minor; processor; sequence number; seconds; process; action;
//! RWBS; then, for requests, `sector + sectors` of 512 bytes, and `[process name]`. Lines whose
//! action is the chosen event are requests. Completions (`C`) give their measured times. If the
//! event is the dispatch, a requeued request (`R`) is withdrawn until it is dispatched again.
//! Messages, merges and other actions are skipped, as are discards and requests that only carry a
//! command to the drive. The summary after the events ends the trace.
//!
//! RWBS, as the kernel writes it: a leading F requests a flush first, then comes R, W, D (discard)
//! or N, and a later F forces unit access. A flush before a write becomes a request of its own.
//! Time counts from the first record.
//!
//! Completions: a completion belongs to the oldest request of its device and direction for the same
//! sectors. If there is none, it covers a part of a request, or, for queue events, several requests
//! that were merged; a request is complete once all its sectors are. A flush completes in order,
//! and all queued flushes complete together. Requests are returned in the order of the file, each
//! once its completion has been read, or without a measured time if the completion is more than
//! [`RECORDS_HELD_MAX`] requests later, failed, or absent.

use std::collections::{BTreeSet, VecDeque};
use std::io::BufRead;

use super::error::{TraceError, TracePosition};
use super::fields::{PS_PER_S, TIME_MAX_PS};
use super::lines::{Line, TraceInput};
use super::reorder::RECORDS_HELD_MAX;
use super::{BlkparseEvent, TraceRecord};
use traxtent_units::request::{Op, Request};
use traxtent_units::{SimTime, Span};

/// The number of bits of the minor number. Major and minor number are combined as in Linux: 12 and
/// 20 bits.
const MINOR_BITS: u32 = 20;

/// The maximum number of queued requests that one completion covers. The kernel merges fewer,
/// because it limits the segments of a request.
const MERGED_MAX: usize = 1024;

pub(super) struct Blkparse {
    sector_bytes: u32,
    action: &'static str,
    origin: Option<u64>,
    /// The time by which the record returned last precedes the first one; 0 if it does not.
    pub(super) before_origin: Span,
    ended: bool,
    outstanding: Outstanding,
}

impl Blkparse {
    pub(super) fn new(sector_bytes: u32, event: BlkparseEvent) -> Blkparse {
        let action = match event {
            BlkparseEvent::Dispatch => "D",
            BlkparseEvent::Queue => "Q",
        };
        Blkparse {
            sector_bytes,
            action,
            origin: None,
            before_origin: Span::ZERO,
            ended: false,
            outstanding: Outstanding {
                queued: event == BlkparseEvent::Queue,
                ..Outstanding::default()
            },
        }
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        loop {
            if let Some(held) = self.outstanding.pop(self.ended) {
                lines.set_position(held.place);
                self.before_origin = held.before_origin;
                return Ok(Some(held.record));
            }
            if self.ended {
                return Ok(None);
            }
            match lines.next_line()? {
                Some(line) if !is_summary(&line) => self.event(&line)?,
                _ => self.ended = true,
            }
        }
    }

    fn event(&mut self, line: &Line<'_>) -> Result<(), TraceError> {
        let event = Event::parse(line)?;
        match event.action {
            action if action == self.action => self.arrival(line, &event)?,
            "C" => match event.access() {
                // An error is the last word, in brackets; see blkparse_fmt.c.
                access if event.rest.ends_with("[0]") => {
                    self.outstanding.complete(&event, access, Some(event.ps));
                }
                access => self.outstanding.complete(&event, access, None),
            },
            "R" if self.action == "D" => {
                self.outstanding.withdraw(&event, event.access());
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the requests of an arrival.
    fn arrival(&mut self, line: &Line<'_>, event: &Event<'_>) -> Result<(), TraceError> {
        let access = event.access();
        let mut words = event.rest.split_ascii_whitespace();
        let range = match (words.next(), words.next(), words.next()) {
            (Some(sector), Some("+"), Some(sectors)) => Some((sector, sectors)),
            // A bare flush has only the process name; a command for the drive has its bytes in
            // parentheses.
            (Some(name), ..) if name.starts_with('[') => None,
            (Some(_), Some(bytes), _) if bytes.starts_with('(') => None,
            _ if access.op.is_none() => None,
            _ => {
                return Err(line.field("range", event.rest, "expected SECTOR + SECTORS"));
            }
        };
        let request = match (access.op, range) {
            (Some(op), Some((sector, sectors))) => {
                let sector = line.whole("sector", sector, i64::MAX as u64)?;
                let sectors = line.whole("sectors", sectors, u64::from(u32::MAX))?;
                if sectors == 0 && access.flush {
                    None
                } else if sectors == 0 {
                    return Err(line.empty("sectors"));
                } else {
                    let offset = u128::from(sector) * 512;
                    let mut request = line.bytes(op, offset, sectors * 512, self.sector_bytes)?;
                    request.fua = access.fua;
                    Some((request, sector, sectors))
                }
            }
            _ => None,
        };
        if !access.flush && request.is_none() {
            return Ok(());
        }
        // The origin is the first record's time, not the first line's.
        let origin = *self.origin.get_or_insert(event.ps);
        let held = |request| Held {
            record: TraceRecord {
                arrival: Some(SimTime(event.ps.saturating_sub(origin))),
                pause: None,
                completed: None,
                measured: None,
                device: event.device,
                request,
            },
            place: line.place,
            before_origin: Span(origin.saturating_sub(event.ps)),
            ps: event.ps,
            state: HeldState::Done,
        };
        if access.flush {
            let alone = request.is_none();
            self.outstanding.flush(held(Request::flush()), alone);
        }
        if let Some((request, sector, sectors)) = request {
            let key = (event.device, access.op == Some(Op::Write), sector);
            self.outstanding.push(held(request), key, sectors);
        }
        Ok(())
    }
}

/// Returns whether the line begins blkparse's summary.
pub(super) fn is_summary(line: &Line<'_>) -> bool {
    line.text.starts_with("CPU") || line.text.starts_with("Total (")
}

/// A request whose completion has not been read, or that waits for an earlier one.
struct Held {
    record: TraceRecord,
    place: TracePosition,
    before_origin: Span,
    /// The time of the event in the trace.
    ps: u64,
    state: HeldState,
}

enum HeldState {
    /// A flush without a transfer.
    Flushing,
    /// Some sectors of a transfer are not complete.
    Transferring {
        key: Key,
        sectors: u64,
        incomplete: u64,
    },
    Done,
    /// Requeued; it will be dispatched again.
    Withdrawn,
}

/// Device, whether it is a write, and first sector.
type Key = (u32, bool, u64);

/// The requests held, in the order of the file.
#[derive(Default)]
struct Outstanding {
    held: VecDeque<Held>,
    /// Whether the requests are queue events.
    queued: bool,
    /// The number of the first request held.
    first: u64,
    /// The transfers that are not complete, with their numbers.
    transfers: BTreeSet<(Key, u64)>,
    /// The flushes that are not complete: device and number.
    flushes: BTreeSet<(u32, u64)>,
    /// The largest transfer so far, in sectors.
    sectors_max: u64,
}

impl Outstanding {
    fn push(&mut self, mut held: Held, key: Key, sectors: u64) {
        let number = self.first + self.held.len() as u64;
        self.transfers.insert((key, number));
        self.sectors_max = self.sectors_max.max(sectors);
        held.state = HeldState::Transferring {
            key,
            sectors,
            incomplete: sectors,
        };
        self.held.push_back(held);
    }

    /// Adds a flush. One that precedes a write in the same request has no completion of its own.
    fn flush(&mut self, mut held: Held, alone: bool) {
        if alone {
            let number = self.first + self.held.len() as u64;
            self.flushes.insert((held.record.device, number));
            held.state = HeldState::Flushing;
        }
        self.held.push_back(held);
    }

    /// Returns the first request if its completion is known, or need not be waited for.
    fn pop(&mut self, ended: bool) -> Option<Held> {
        loop {
            let waits = !ended && self.held.len() <= RECORDS_HELD_MAX;
            match self.held.front()?.state {
                HeldState::Flushing | HeldState::Transferring { .. } if waits => return None,
                _ => {}
            }
            let held = self.held.pop_front()?;
            match held.state {
                HeldState::Transferring { key, .. } => {
                    self.transfers.remove(&(key, self.first));
                }
                HeldState::Flushing => {
                    self.flushes.remove(&(held.record.device, self.first));
                }
                HeldState::Done | HeldState::Withdrawn => {}
            }
            self.first += 1;
            if !matches!(held.state, HeldState::Withdrawn) {
                return Some(held);
            }
        }
    }

    fn at(&mut self, number: u64) -> &mut Held {
        &mut self.held[(number - self.first) as usize]
    }

    /// Records a completion at `ps`; `None` if the request failed.
    fn complete(&mut self, event: &Event<'_>, access: Access, ps: Option<u64>) {
        let Some((key, sectors)) = event.transfer(access) else {
            if access.flush {
                self.complete_flush(event.device, ps);
            }
            return;
        };
        if let Some(number) = self.find(key, sectors) {
            self.finish(number, ps);
            return;
        }
        // A part of a request, or several that were merged.
        let (device, write, start) = key;
        let end = start.saturating_add(sectors);
        let from = start.saturating_sub(self.sectors_max);
        let touched: Vec<(Key, u64)> = self
            .transfers
            .range(((device, write, from), 0)..((device, write, end), 0))
            .take(MERGED_MAX)
            .copied()
            .collect();
        for ((.., first), number) in touched {
            let HeldState::Transferring {
                sectors,
                incomplete,
                ..
            } = &mut self.at(number).state
            else {
                continue;
            };
            let overlap = (first + *sectors).min(end).saturating_sub(first.max(start));
            *incomplete = incomplete.saturating_sub(overlap);
            if *incomplete == 0 {
                self.finish(number, ps);
            }
        }
    }

    fn complete_flush(&mut self, device: u32, ps: Option<u64>) {
        let of_device = (device, 0)..=(device, u64::MAX);
        // The kernel sends one flush to the drive for all that are in the queue.
        let most = if self.queued { usize::MAX } else { 1 };
        let flushes = self.flushes.range(of_device).take(most);
        let numbers: Vec<u64> = flushes.map(|&(_, number)| number).collect();
        for number in numbers {
            self.finish(number, ps);
        }
    }

    /// Returns the oldest transfer of these sectors that is not complete.
    fn find(&self, key: Key, sectors: u64) -> Option<u64> {
        let mut same = self.transfers.range((key, 0)..=(key, u64::MAX));
        same.find_map(
            |&(_, number)| match self.held[(number - self.first) as usize].state {
                HeldState::Transferring { sectors: its, .. } if its == sectors => Some(number),
                _ => None,
            },
        )
    }

    fn finish(&mut self, number: u64, ps: Option<u64>) {
        let held = &mut self.held[(number - self.first) as usize];
        held.record.measured = ps.map(|ps| Span(ps.saturating_sub(held.ps)));
        match std::mem::replace(&mut held.state, HeldState::Done) {
            HeldState::Transferring { key, .. } => {
                self.transfers.remove(&(key, number));
            }
            HeldState::Flushing => {
                self.flushes.remove(&(held.record.device, number));
            }
            HeldState::Done | HeldState::Withdrawn => {}
        }
    }

    /// Withdraws a request that was requeued.
    fn withdraw(&mut self, event: &Event<'_>, access: Access) {
        let found = event.transfer(access);
        if let Some(number) = found.and_then(|(key, sectors)| self.find(key, sectors)) {
            self.finish(number, None);
            self.at(number).state = HeldState::Withdrawn;
        }
    }
}

/// The meaning of RWBS.
#[derive(Clone, Copy)]
struct Access {
    flush: bool,
    op: Option<Op>,
    fua: bool,
}

/// The fields that every line has.
pub(super) struct Event<'a> {
    device: u32,
    ps: u64,
    action: &'a str,
    rwbs: &'a str,
    rest: &'a str,
}

impl<'a> Event<'a> {
    pub(super) fn parse(line: &Line<'a>) -> Result<Event<'a>, TraceError> {
        let mut rest = line.text.trim_start();
        let mut word = || {
            let end = rest
                .find(|c: char| c.is_ascii_whitespace())
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after.trim_start();
            word
        };
        let [device, cpu, sequence, seconds, process, action, rwbs] =
            std::array::from_fn(|_| word());
        if action.is_empty() {
            return Err(
                line.shape("expected device, processor, sequence, seconds, process, action, RWBS")
            );
        }
        let numbers = device.split_once(',').and_then(|(major, minor)| {
            let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
            (major < 1 << (32 - MINOR_BITS) && minor < 1 << MINOR_BITS)
                .then_some(major << MINOR_BITS | minor)
        });
        let device = numbers.ok_or_else(|| {
            line.field(
                "device",
                device,
                "expected major,minor, below 4096 and 1048576",
            )
        })?;
        line.whole("processor", cpu, u64::from(u32::MAX))?;
        line.whole("sequence", sequence, u64::MAX)?;
        line.whole("process", process, u64::from(u32::MAX))?;
        let ps = line.time("seconds", seconds, PS_PER_S)?;
        debug_assert!(ps <= TIME_MAX_PS);
        Ok(Event {
            device,
            ps,
            action,
            rwbs,
            rest,
        })
    }

    fn access(&self) -> Access {
        let (flush, rest) = match self.rwbs.strip_prefix('F') {
            Some(rest) => (true, rest),
            None => (false, self.rwbs),
        };
        let op = match rest.bytes().next() {
            Some(b'R') => Some(Op::Read),
            Some(b'W') => Some(Op::Write),
            _ => None,
        };
        Access {
            flush,
            op,
            fua: op.is_some() && rest[1..].contains('F'),
        }
    }

    /// Returns the key and the sectors of a completed or requeued transfer.
    fn transfer(&self, access: Access) -> Option<(Key, u64)> {
        let op = access.op?;
        let mut words = self.rest.split_ascii_whitespace();
        let (sector, plus, sectors) = (words.next()?, words.next()?, words.next()?);
        let sectors = sectors.parse().ok().filter(|&sectors| sectors > 0)?;
        let sector = sector.parse().ok()?;
        (plus == "+").then_some(((self.device, op == Op::Write, sector), sectors))
    }
}
