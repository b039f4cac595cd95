//! Arrays of simulated drives. A request becomes one stripe plan for each stripe that it touches.
//! The reads and writes of the plans go to the drives' queues.
//!
//! A data write is issued once the old data that it overwrites has been read, if the stripe plan
//! reads it. A parity write is issued once everything that it is computed from has been read.
//! DiskSim's `disksim_redun.c` does the same, without "synch writes for safety". Computing takes no
//! time.

use std::collections::BTreeMap;

use traxtent_layout::raid::{
    Array, ArrayShape, ChunkRule, Level, Member, RaidError, StripeHealth, StripePlan,
    StripePlanner, member_requests,
};
use traxtent_map::TrackMap;
use traxtent_model::drive::{Breakdown, Completion, Drive, RequestError};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Sectors, Span};
use traxtent_workload::Arrival;

/// Returns an array of chunks of a fixed size over whole drives.
pub(crate) fn conventional(
    level: Level,
    chunk: Sectors,
    drives: &[&Drive],
) -> Result<Array, RaidError> {
    let members = drives.iter().map(|drive| {
        let map = TrackMap::from_sizes(drive.geometry().track_sizes());
        Member {
            data: map.first()..map.end(),
            map: map.into(),
        }
    });
    let shape = ArrayShape {
        level,
        chunks: ChunkRule::Fixed(chunk),
        granule: 1,
        spares: 0,
    };
    Array::new(shape, members.collect())
}

/// The positioning cost of a read, in sectors. It exceeds the number of sectors of any request, so
/// the plan with the fewest requests is chosen.
const POSITIONING: Sectors = Sectors(1 << 32);

/// The arrays over the drives of a host, and their outstanding requests. Nothing happens between
/// calls; the owner of the arrays also owns the drives' queues.
#[derive(Clone, Debug)]
pub struct Arrays {
    planner: StripePlanner,
    arrays: Vec<(Array, Vec<u32>)>,
    /// Outstanding requests to arrays, by number.
    array_requests: BTreeMap<u64, ArrayRequest>,
    /// Outstanding requests to drives, by number.
    parts: BTreeMap<u64, DriveRequest>,
    array_requests_begun: u64,
    parts_begun: u64,
    /// The number of requests to arrays to exclude from `parts_counted` and `parts_time`. They are
    /// the next to complete.
    warmup: u64,
    /// The number of requests to drives on behalf of complete requests to arrays.
    parts_counted: u64,
    /// The total response time of these requests to drives, including time in the host's queues.
    parts_time: Span,
}

/// A request to an array.
#[derive(Clone, Debug)]
struct ArrayRequest {
    arrival: Arrival,
    /// The number of requests to drives that are not complete.
    left: usize,
    /// The number of requests to drives that are complete.
    parts_complete: u64,
    /// The total response time of these.
    parts_time: Span,
    /// Writes that wait for reads to complete.
    waiting: Vec<WaitingWrite>,
}

#[derive(Clone, Debug)]
struct WaitingWrite {
    disk: u32,
    request: Request,
    /// The tags of the outstanding reads.
    reads: Vec<u64>,
}

/// A request to a drive.
#[derive(Clone, Copy, Debug)]
struct DriveRequest {
    array_request: u64,
    /// The breakdown of the time from the arrival of the array's request to that of this one.
    before: Breakdown,
}

/// The result of a drive's completion.
#[derive(Clone, Debug)]
pub enum CompletionEffect {
    /// The request to the array is not complete. These requests, if any, go to drives now.
    Released(Vec<Arrival>),
    /// The request to the array is complete.
    Complete(Arrival, Completion),
}

impl Default for Arrays {
    /// Returns an empty set of arrays that plans requests as DiskSim does: the fewest requests are
    /// preferred, and no dummy reads are issued.
    fn default() -> Arrays {
        Arrays::new(StripePlanner {
            positioning: POSITIONING,
            dummy_reads: false,
        })
    }
}

impl Arrays {
    /// Creates an empty set of arrays.
    pub fn new(planner: StripePlanner) -> Arrays {
        Arrays {
            planner,
            arrays: Vec::new(),
            array_requests: BTreeMap::new(),
            parts: BTreeMap::new(),
            array_requests_begun: 0,
            parts_begun: 0,
            warmup: 0,
            parts_counted: 0,
            parts_time: Span::ZERO,
        }
    }

    /// Returns whether there are no arrays.
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// Returns the number of arrays.
    pub fn len(&self) -> usize {
        self.arrays.len()
    }

    /// Excludes the next `requests` requests to arrays that complete from
    /// [`drive_response_ms`](Self::drive_response_ms).
    pub fn set_warmup(&mut self, requests: u64) {
        self.warmup = requests;
    }

    /// Returns the mean response time, in milliseconds, of all requests to drives on behalf of
    /// complete requests to arrays, whichever array they belong to; `None` before the first
    /// completion.
    pub fn drive_response_ms(&self) -> Option<f64> {
        let counted = self.parts_counted;
        (counted > 0).then(|| self.parts_time.as_ms() / counted as f64)
    }

    /// Returns the capacity of an array; `None` if it does not exist.
    pub fn capacity(&self, array: u32) -> Option<Sectors> {
        self.arrays
            .get(array as usize)
            .map(|(array, _)| array.capacity())
    }

    /// Adds an array whose members are the drives `disks` of the host.
    pub fn add(&mut self, array: Array, disks: Vec<u32>) {
        self.arrays.push((array, disks));
    }

    /// Takes a request to an array; returns the requests that go to the drives immediately.
    ///
    /// # Errors
    /// Returns an error if the request has no sectors, or reaches beyond the end of the array.
    ///
    /// # Panics
    /// Panics if the array does not exist.
    pub fn arrive(&mut self, arrival: Arrival) -> Result<Vec<Arrival>, RequestError> {
        let (array, disks) = &self.arrays[arrival.device as usize];
        let Request {
            lbn,
            sectors,
            op,
            fua,
        } = arrival.request;
        let (end, capacity) = (arrival.request.end(), array.capacity().0);
        if sectors == 0 {
            return Err(RequestError::Empty {
                op: op.name(),
                lbn: lbn.0,
            });
        }
        if end.0 > capacity {
            return Err(RequestError::BeyondEnd {
                op: op.name(),
                lbn: lbn.0,
                sectors,
                capacity,
            });
        }
        let array_request = self.array_requests_begun;
        self.array_requests_begun += 1;
        let (mut begun, mut waiting) = (Vec::new(), Vec::new());
        let (parts, parts_begun) = (&mut self.parts, &mut self.parts_begun);
        let mut begin = |member: usize, request: Request| {
            let tag = *parts_begun;
            *parts_begun += 1;
            parts.insert(
                tag,
                DriveRequest {
                    array_request,
                    before: Breakdown::default(),
                },
            );
            begun.push(part_of(arrival, tag, disks[member], request));
            tag
        };
        let mut plan = StripePlan::default();
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (stripe, part) in array.stripes_of(lbn..end) {
            let planned = match op {
                Op::Write => self
                    .planner
                    .write(&stripe, part, StripeHealth::GOOD, &mut plan),
                _ => self
                    .planner
                    .read(&stripe, part, StripeHealth::GOOD, &mut plan),
            };
            planned.expect("members are good");
            if op != Op::Write {
                reads.append(&mut plan.reads);
                reads.extend(plan.dummy.take());
                continue;
            }
            let old: Vec<(usize, u64)> = member_requests(&plan.reads, u32::MAX, Request::read)
                .into_iter()
                .map(|(member, read)| (member, begin(member, read)))
                .collect();
            for write in plan.writes.drain(..) {
                let parity = write.logical.is_none();
                let needed = old
                    .iter()
                    .filter(|(member, _)| parity || *member == write.member);
                let needed: Vec<u64> = needed.map(|(_, tag)| *tag).collect();
                if needed.is_empty() {
                    writes.push(write);
                } else {
                    waiting.extend(
                        member_requests([&write], u32::MAX, Request::write)
                            .into_iter()
                            .map(|(member, request)| WaitingWrite {
                                disk: disks[member],
                                request: Request { fua, ..request },
                                reads: needed.clone(),
                            }),
                    );
                }
            }
        }
        for (member, request) in member_requests(&reads, u32::MAX, Request::read) {
            begin(member, Request { op, fua, ..request });
        }
        for (member, request) in member_requests(&writes, u32::MAX, Request::write) {
            begin(member, Request { fua, ..request });
        }
        let left = begun.len() + waiting.len();
        self.array_requests.insert(
            array_request,
            ArrayRequest {
                arrival,
                left,
                parts_complete: 0,
                parts_time: Span::ZERO,
                waiting,
            },
        );
        Ok(begun)
    }

    /// Returns the tag of the array's request to which an outstanding request to a drive belongs,
    /// or `None` if there is no request to a drive with this tag.
    pub fn tag_of_part(&self, tag: u64) -> Option<u64> {
        let part = self.parts.get(&tag)?;
        let array_request = self.array_requests.get(&part.array_request)?;
        Some(array_request.arrival.tag)
    }

    /// Takes the completion of a request to a drive.
    ///
    /// # Panics
    /// Panics if the request was not issued by [`Arrays::arrive`] or this method.
    pub fn complete(&mut self, part: Arrival, completion: Completion) -> CompletionEffect {
        let tag = part.tag;
        let part_began = part.at;
        let DriveRequest {
            array_request: number,
            before,
        } = self.parts.remove(&tag).expect("it was begun here");
        let mut spent = sum(before, completion.breakdown);
        spent.queue += completion.submitted.since(part_began);
        let array_request = self
            .array_requests
            .get_mut(&number)
            .expect("it is not complete");
        array_request.left -= 1;
        array_request.parts_complete += 1;
        array_request.parts_time += completion.completed.since(part_began);
        if array_request.left == 0 {
            let array_request = self.array_requests.remove(&number).expect("it is there");
            if self.warmup > 0 {
                self.warmup -= 1;
            } else {
                self.parts_counted += array_request.parts_complete;
                self.parts_time += array_request.parts_time;
            }
            let completion = Completion {
                request: array_request.arrival.request,
                submitted: array_request.arrival.at,
                breakdown: spent,
                ..completion
            };
            return CompletionEffect::Complete(array_request.arrival, completion);
        }
        let mut released = Vec::new();
        for waiting in &mut array_request.waiting {
            waiting.reads.retain(|read| *read != tag);
        }
        let (parts, parts_begun) = (&mut self.parts, &mut self.parts_begun);
        let arrival = Arrival {
            at: completion.completed,
            ..array_request.arrival
        };
        array_request.waiting.retain(|waiting| {
            let ready = waiting.reads.is_empty();
            if ready {
                let tag = *parts_begun;
                *parts_begun += 1;
                parts.insert(
                    tag,
                    DriveRequest {
                        array_request: number,
                        before: spent,
                    },
                );
                released.push(part_of(arrival, tag, waiting.disk, waiting.request));
            }
            !ready
        });
        CompletionEffect::Released(released)
    }
}

fn part_of(arrival: Arrival, tag: u64, device: u32, request: Request) -> Arrival {
    Arrival {
        tag,
        device,
        request,
        measured: None,
        ..arrival
    }
}

fn sum(a: Breakdown, b: Breakdown) -> Breakdown {
    Breakdown {
        queue: a.queue + b.queue,
        overhead: a.overhead + b.overhead,
        seek: a.seek + b.seek,
        settle: a.settle + b.settle,
        head_switch: a.head_switch + b.head_switch,
        rotation: a.rotation + b.rotation,
        transfer: a.transfer + b.transfer,
        bus: a.bus + b.bus,
    }
}
