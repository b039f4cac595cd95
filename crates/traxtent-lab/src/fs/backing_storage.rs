//! The storage of a file system: a disk, or an array of disks.

use std::collections::BTreeMap;

use traxtent_layout::raid::{Array, StripePlanner};
use traxtent_map::TrackMap;
use traxtent_model::drive::{Completion, Drive};
use traxtent_sim::arrays::{Arrays, CompletionEffect};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{SimTime, Span};
use traxtent_workload::{Arrival, Urgency};

use super::config::Config;
use super::disk::{Io, QueuedDrive, Traffic};

/// A disk or an array of disks with their host queues.
#[derive(Debug)]
pub(super) struct BackingStorage {
    disks: Vec<QueuedDrive>,
    /// The lead of each disk's clock, because no two spindles are synchronized.
    ahead: Vec<Span>,
    /// The array that combines the disks; `None` for a single disk.
    arrays: Option<Arrays>,
    /// The boundaries at which an array's requests to each disk are cut; empty if they are not cut.
    cuts: Vec<TrackMap>,
    /// The array's part to which each outstanding disk request belongs.
    parts: BTreeMap<(usize, Io), Arrival>,
    /// The number of outstanding pieces of each part that was cut, by the part's tag.
    pieces: BTreeMap<u64, usize>,
    next: u64,
    outstanding: usize,
    /// All requests, if they are logged.
    pub(super) log: Option<Vec<Request>>,
}

impl BackingStorage {
    /// Creates the storage of one disk.
    pub(super) fn one(drive: Drive, config: &Config) -> BackingStorage {
        BackingStorage::new(vec![drive], vec![Span::ZERO], None, config)
    }

    /// Creates an array of drives with random spindle phases.
    pub(super) fn array(
        drives: Vec<Drive>,
        array: Array,
        planner: StripePlanner,
        config: &Config,
        rng: &mut Rng,
    ) -> BackingStorage {
        let mut arrays = Arrays::new(planner);
        arrays.add(array, (0..drives.len() as u32).collect());
        let ahead = drives.iter().map(|_| Span(rng.below(1_000_000_000_000)));
        let ahead = ahead.collect();
        BackingStorage::new(drives, ahead, Some(arrays), config)
    }

    fn new(
        drives: Vec<Drive>,
        ahead: Vec<Span>,
        arrays: Option<Arrays>,
        config: &Config,
    ) -> BackingStorage {
        let disks = drives.into_iter();
        BackingStorage {
            disks: disks.map(|drive| QueuedDrive::new(drive, config)).collect(),
            ahead,
            arrays,
            cuts: Vec::new(),
            parts: BTreeMap::new(),
            pieces: BTreeMap::new(),
            next: 0,
            outstanding: 0,
            log: None,
        }
    }

    /// Cuts an array's requests to its disks at the boundaries of these tracks.
    pub(super) fn cut_at(self, cuts: Vec<TrackMap>) -> BackingStorage {
        BackingStorage { cuts, ..self }
    }

    /// The number of outstanding requests.
    pub(super) fn outstanding(&self) -> usize {
        match self.arrays {
            Some(_) => self.outstanding,
            None => self.disks[0].outstanding(),
        }
    }

    /// The traffic of all disks together.
    pub(super) fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        for disk in &self.disks {
            sum.add(&disk.traffic);
        }
        sum
    }

    /// Resets the traffic of all disks.
    pub(super) fn reset_traffic(&mut self) {
        for disk in &mut self.disks {
            disk.traffic = Traffic::default();
        }
    }

    /// Accepts a request at `now`. All events before `now` must have been processed.
    pub(super) fn submit(&mut self, now: SimTime, request: Request) -> Io {
        if let Some(log) = &mut self.log {
            log.push(request);
        }
        let Some(arrays) = &mut self.arrays else {
            return self.disks[0].submit(now, request);
        };
        let io = Io(self.next);
        self.next += 1;
        self.outstanding += 1;
        let parts = arrays.arrive(Arrival {
            at: now,
            tag: io.0,
            device: 0,
            urgency: Urgency::None,
            measured: None,
            request,
        });
        self.send_to_disks(now, parts.expect("a file system stays on its partition"));
        io
    }

    pub(super) fn next_wakeup(&self) -> Option<SimTime> {
        let disks = self.disks.iter().zip(&self.ahead);
        disks
            .filter_map(|(disk, ahead)| Some(disk.next_wakeup()? - *ahead))
            .min()
    }

    /// Returns the next request that is complete at `now`.
    pub(super) fn poll(&mut self, now: SimTime) -> Option<Io> {
        if self.arrays.is_none() {
            return self.disks[0].poll(now);
        }
        for index in 0..self.disks.len() {
            let ahead = self.ahead[index];
            while let Some((io, completion)) = self.disks[index].complete(now + ahead) {
                let part = self.parts.remove(&(index, io));
                let part = part.expect("a disk completes only submitted requests");
                if let Some(left) = self.pieces.get_mut(&part.tag) {
                    *left -= 1;
                    if *left > 0 {
                        self.disks[index].feed(now + ahead);
                        continue;
                    }
                    self.pieces.remove(&part.tag);
                }
                let completion = Completion {
                    submitted: completion.submitted - ahead,
                    completed: completion.completed - ahead,
                    ..completion
                };
                let arrays = self.arrays.as_mut().expect("checked above");
                let progress = arrays.complete(part, completion);
                let complete = match progress {
                    CompletionEffect::Released(parts) => {
                        self.send_to_disks(now, parts);
                        None
                    }
                    CompletionEffect::Complete(arrival, _) => Some(Io(arrival.tag)),
                };
                self.disks[index].feed(now + ahead);
                if complete.is_some() {
                    self.outstanding -= 1;
                    return complete;
                }
            }
            self.disks[index].feed(now + ahead);
        }
        None
    }

    fn send_to_disks(&mut self, now: SimTime, parts: Vec<Arrival>) {
        for part in parts {
            let index = part.device as usize;
            let mut rest = part.request;
            let mut pieces = 0;
            while rest.sectors > 0 {
                let track = self
                    .cuts
                    .get(index)
                    .and_then(|map| map.track_of(rest.lbn))
                    .map_or(rest.end(), |track| track.end());
                let end = track.min(rest.end());
                let piece = Request {
                    sectors: (end.0 - rest.lbn.0) as u32,
                    ..rest
                };
                rest = Request {
                    lbn: end,
                    sectors: rest.sectors - piece.sectors,
                    ..rest
                };
                let io = self.disks[index].submit(now + self.ahead[index], piece);
                self.parts.insert((index, io), part);
                pieces += 1;
            }
            if pieces > 1 {
                self.pieces.insert(part.tag, pieces);
            }
        }
    }
}
