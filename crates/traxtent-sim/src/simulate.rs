//! Runs a source of requests, a host's queues and drives on the virtual clock.
//!
//! Each drive has a queue in the host in front of it, which holds the requests that the drive has
//! no room for. Events happen in order of time. Among events at the same picosecond, completions
//! come before arrivals, and drives come in the order of their numbers.

use std::fmt;
use std::sync::Arc;

use traxtent_layout::raid::{Level, RaidError};
use traxtent_model::drive::{Breakdown, Completion, Drive, QueuePolicy, RequestError, SharedBus};
use traxtent_model::profile::Scheduler;
use traxtent_units::{Count, Sectors, SimTime, Span};
use traxtent_workload::{Arrival, NextStep, RequestSource, TraceError, WorkloadError};

use crate::arrays::{Arrays, CompletionEffect, conventional};
use crate::port::{DriveQueue, Refused};
use crate::status::RequestStatus;

/// The maximum number of requests that wait in the host's queue of one drive. They take 100 to 200
/// MB of memory. If more arrive, they arrive faster than the drive serves them, and the queue would
/// grow without limit.
pub const QUEUE_MAX: usize = 1 << 20;

/// Drives, each with a host queue in front of it.
#[derive(Clone, Debug)]
pub struct Host {
    ports: Vec<DriveQueue<Drive>>,
    arrays: Arrays,
    array_names: Vec<String>,
    placement: Option<Placement>,
}

/// A user's placement of requests.
#[derive(Clone)]
struct Placement(Arc<dyn Fn(&mut Arrival) + Send + Sync>);

impl Placement {
    /// Returns the request as the user places it.
    fn place(&self, mut arrival: Arrival) -> Arrival {
        self.0(&mut arrival);
        arrival
    }
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Placement")
    }
}

/// A request that has been served, as its host sees it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The request as the source issued it, or as [`Host::with_placement`] changed it.
    pub arrival: Arrival,
    /// The completion as the drive or the array reported it.
    pub completion: Completion,
    /// The success of the request, or the kind of its failure.
    pub status: RequestStatus,
}

impl Outcome {
    /// Returns the time in the host's queue.
    pub fn queued(&self) -> Span {
        self.completion.submitted.since(self.arrival.at)
    }

    /// Returns the time from issue to completion.
    pub fn response(&self) -> Span {
        self.completion.completed.since(self.arrival.at)
    }

    /// Returns the components of the response time; time in the host's queue counts as queueing.
    pub fn breakdown(&self) -> Breakdown {
        let mut parts = self.completion.breakdown;
        parts.queue += self.queued();
        parts
    }
}

/// The reason why a simulation ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The workload does not fit the drive.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// A drive or an array refused a request.
    #[error("request {number}: {error}")]
    Request {
        /// The number of the request, from 1 in order of issue.
        number: u64,
        /// The reason.
        error: RequestError,
    },
    /// A request extends beyond the last sector of an array.
    #[error(
        "request {number}: {op} of {} at LBN {lbn}: the array {array} ends before LBN {capacity}",
        Count(sectors, "sector")
    )]
    BeyondArray {
        /// The number of the request, from 1 in order of issue.
        number: u64,
        /// The array's name.
        array: String,
        /// The operation's name.
        op: &'static str,
        /// The first sector.
        lbn: u64,
        /// The number of sectors.
        sectors: u32,
        /// The array's capacity in sectors.
        capacity: u64,
    },
    /// More requests wait than the host keeps.
    #[error(
        "request {number}: {QUEUE_MAX} requests wait for drive {drive} at {} ms of simulated time, and the queue is full: \
         requests arrive faster than the drive serves them",
        at.0 / 1_000_000_000
    )]
    Overloaded {
        /// The number of the request, from 1 in order of issue.
        number: u64,
        /// The drive, counted from 0.
        drive: u32,
        /// The simulated time.
        at: SimTime,
    },
    /// The request names a device that does not exist.
    #[error(
        "request {number}: device {device} does not exist; {}",
        numbered(*devices)
    )]
    Device {
        /// The number of the request, from 1 in order of issue.
        number: u64,
        /// The device that the request names.
        device: u32,
        /// The number of devices.
        devices: usize,
    },
}

/// Returns how many devices there are, and how they are numbered.
fn numbered(devices: usize) -> String {
    match devices {
        1 => "there is only device 0".to_owned(),
        devices => format!("there are {devices} devices, numbered from 0"),
    }
}

impl Host {
    /// Creates a host that leaves queueing to the drives: it passes requests on in order of
    /// arrival, up to each drive's queue depth.
    pub fn new(drives: Vec<Drive>) -> Host {
        Host {
            ports: drives.into_iter().map(DriveQueue::new).collect(),
            arrays: Arrays::default(),
            array_names: Vec::new(),
            placement: None,
        }
    }

    /// Lets a policy of the user choose among the requests that wait in one drive.
    ///
    /// # Panics
    /// Panics if the drive does not exist.
    pub fn with_queue_policy(mut self, drive: usize, policy: Box<dyn QueuePolicy>) -> Host {
        self.ports[drive].unit_mut().set_queue_policy(Some(policy));
        self
    }

    /// Lets a function of the user change each request before the host takes it: its device, LBN,
    /// sectors or kind.
    pub fn with_placement(mut self, place: impl Fn(&mut Arrival) + Send + Sync + 'static) -> Host {
        self.placement = Some(Placement(Arc::new(place)));
        self
    }

    /// Orders the host's queue of one drive by `scheduler`, with at most `depth` requests at the
    /// drive.
    ///
    /// # Panics
    /// Panics if the drive does not exist, or if requests wait for it.
    pub fn with_queue(mut self, drive: usize, scheduler: Scheduler, depth: u32) -> Host {
        self.ports[drive].set_queue(scheduler, depth);
        self
    }

    /// Connects these drives to one shared bus, which carries one transfer at a time.
    ///
    /// # Panics
    /// Panics if one of the drives does not exist.
    pub fn with_bus(mut self, drives: &[u32]) -> Host {
        let bus = SharedBus::default();
        for drive in drives {
            self.ports[*drive as usize]
                .unit_mut()
                .share_bus(bus.clone());
        }
        self
    }

    /// Adds an array of drives with chunks of `chunk` sectors. The devices of requests are then the
    /// arrays, in the order in which they were added. Errors refer to the array by its name.
    ///
    /// # Errors
    /// Returns an error if these drives cannot form such an array.
    ///
    /// # Panics
    /// Panics if one of the drives does not exist.
    pub fn with_array(
        mut self,
        name: &str,
        level: Level,
        chunk: Sectors,
        disks: Vec<u32>,
    ) -> Result<Host, RaidError> {
        let drives: Vec<&Drive> = disks
            .iter()
            .map(|disk| self.ports[*disk as usize].unit())
            .collect();
        let array = conventional(level, chunk, &drives)?;
        self.arrays.add(array, disks);
        self.array_names.push(name.to_owned());
        Ok(self)
    }

    /// Excludes the first `requests` requests to arrays that complete from
    /// [`drive_response_ms`](Self::drive_response_ms).
    pub fn set_warmup(&mut self, requests: u64) {
        self.arrays.set_warmup(requests);
    }

    /// Returns the mean response time, in milliseconds, of the requests that arrays sent to drives
    /// for complete requests; `None` without arrays, or before the first completion.
    pub fn drive_response_ms(&self) -> Option<f64> {
        self.arrays.drive_response_ms()
    }

    /// Returns the drives.
    pub fn drives(&self) -> impl ExactSizeIterator<Item = &Drive> {
        self.ports.iter().map(DriveQueue::unit)
    }

    /// Returns whether requests go to arrays instead of drives.
    pub fn has_arrays(&self) -> bool {
        !self.arrays.is_empty()
    }

    /// Returns the capacity of a device of requests: an array or, without arrays, a drive. `None`
    /// if it does not exist.
    pub fn capacity(&self, device: u32) -> Option<Sectors> {
        if self.has_arrays() {
            return self.arrays.capacity(device);
        }
        let port = self.ports.get(device as usize)?;
        Some(port.unit().geometry().capacity())
    }
}

impl Host {
    fn devices(&self) -> usize {
        match self.arrays.len() {
            0 => self.ports.len(),
            arrays => arrays,
        }
    }

    /// Takes a request for a device of the host.
    #[inline]
    fn arrive(&mut self, arrival: Arrival) -> Result<(), SimulateError> {
        let arrival = match &self.placement {
            None => arrival,
            Some(placement) => placement.place(arrival),
        };
        let (number, device, devices) = (arrival.tag + 1, arrival.device, self.devices());
        if device as usize >= devices {
            return Err(SimulateError::Device {
                number,
                device,
                devices,
            });
        }
        if self.arrays.is_empty() {
            return self.queue(arrival);
        }
        self.arrive_at_array(arrival)
    }

    fn arrive_at_array(&mut self, arrival: Arrival) -> Result<(), SimulateError> {
        let number = arrival.tag + 1;
        let parts = self.arrays.arrive(arrival).map_err(|error| match error {
            RequestError::BeyondEnd {
                op,
                lbn,
                sectors,
                capacity,
            } => SimulateError::BeyondArray {
                number,
                array: self.array_names[arrival.device as usize].clone(),
                op,
                lbn,
                sectors,
                capacity,
            },
            error => SimulateError::Request { number, error },
        })?;
        self.pass_on(parts)
    }

    fn pass_on(&mut self, parts: Vec<Arrival>) -> Result<(), SimulateError> {
        for part in parts {
            self.queue(part)?;
        }
        Ok(())
    }

    /// Takes a request for a drive.
    #[inline]
    fn queue(&mut self, arrival: Arrival) -> Result<(), SimulateError> {
        let Arrival { at, device, .. } = arrival;
        let port = &mut self.ports[device as usize];
        if port.waiting() >= QUEUE_MAX {
            return Err(SimulateError::Overloaded {
                number: self.number_of(&arrival),
                drive: device,
                at,
            });
        }
        let taken = port.arrive(arrival, ());
        taken.map_err(|refused| self.refusal(refused))
    }

    /// Returns the number of the source's request to which a request to a drive belongs.
    fn number_of(&self, arrival: &Arrival) -> u64 {
        let tag = self.arrays.tag_of_part(arrival.tag);
        1 + tag.unwrap_or(arrival.tag)
    }

    fn refusal(&self, refused: Refused<RequestError>) -> SimulateError {
        SimulateError::Request {
            number: self.number_of(&refused.arrival),
            error: refused.error,
        }
    }
}

/// Runs a source to its end. `sink` receives every outcome in order of completion and may end the
/// run by returning false.
///
/// Returns the time of the last completion.
///
/// # Errors
/// Returns an error if the source fails, a drive or an array refuses a request, a request names a
/// device that does not exist, or too many requests wait for a drive. `sink` has then received
/// every outcome before the error.
pub fn simulate(
    host: &mut Host,
    source: &mut impl RequestSource,
    mut sink: impl FnMut(&Outcome) -> bool,
) -> Result<SimTime, SimulateError> {
    let mut last = SimTime::ZERO;
    loop {
        let due = source.due()?;
        let wake = host
            .ports
            .iter()
            .enumerate()
            .filter_map(|(i, port)| Some((port.next_wakeup()?, i)))
            .min();
        match (due, wake) {
            (NextStep::At(at), wake) if wake.is_none_or(|(wake, _)| at < wake) => {
                if let Some(arrival) = source.take(at) {
                    host.arrive(arrival)?;
                }
            }
            (_, Some((wake, index))) => {
                let (arrays, mut parts) = (&mut host.arrays, Vec::new());
                let continues = host.ports[index].complete(wake, |arrival, completion| {
                    let mut outcome = Outcome {
                        arrival,
                        completion,
                        status: RequestStatus::Ok,
                    };
                    if !arrays.is_empty() {
                        match arrays.complete(arrival, completion) {
                            CompletionEffect::Complete(arrival, completion) => {
                                outcome = Outcome {
                                    arrival,
                                    completion,
                                    ..outcome
                                };
                            }
                            CompletionEffect::Released(released) => {
                                parts.extend(released);
                                return true;
                            }
                        }
                    }
                    let completed = outcome.completion.completed;
                    last = last.max(completed);
                    source.complete(outcome.arrival.tag, completed);
                    sink(&outcome)
                });
                if !continues {
                    return Ok(last);
                }
                // Requests that a completion releases compete with the queued ones, as in DiskSim's
                // driver.
                if !parts.is_empty() {
                    host.pass_on(parts)?;
                }
                let dispatched = host.ports[index].dispatch(wake);
                dispatched.map_err(|refused| host.refusal(refused))?;
            }
            (_, None) => return Ok(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use traxtent_model::profile::builtin;
    use traxtent_units::Lbn;
    use traxtent_units::request::Request;
    use traxtent_workload::Urgency;

    use super::*;

    /// With an array, does a request to a drive get the number of the source's request, for errors?
    #[test]
    fn parts_have_the_number_of_the_source_request() {
        let drive = Drive::new(&builtin("atlas10k").unwrap()).unwrap();
        let host = Host::new(vec![drive.clone(), drive]);
        let mut host = host
            .with_array("a", Level::Raid1, Sectors(64), vec![0, 1])
            .unwrap();
        let arrival = |tag| Arrival {
            at: SimTime::ZERO,
            tag,
            device: 0,
            urgency: Urgency::default(),
            measured: None,
            request: Request::write(Lbn(1000), 8),
        };
        // Each write goes to both drives.
        host.arrive(arrival(0)).unwrap();
        host.arrive(arrival(1)).unwrap();
        let numbers = (0..4).map(|tag| host.number_of(&arrival(tag)));
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 1, 2, 2]);
    }
}
