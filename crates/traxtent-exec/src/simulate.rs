//! The virtual clock: a source of requests, a host's queues, drives.
//!
//! Each drive has a queue in the host in front of it, which holds what the drive has no room for.
//! Events happen in order of time; where several fall on the same picosecond, completions come
//! before arrivals, and drives in the order of their numbers.

use traxtent_core::drive::{Breakdown, Completion, Drive, RequestError, SharedBus};
use traxtent_core::layout::raid::{Level, RaidError};
use traxtent_core::profile::Scheduler;
use traxtent_core::units::{Sectors, SimTime, Span};
use traxtent_core::workload::{Arrival, Due, Source, TraceError};

use crate::arrays::{Arrays, Progress, conventional};
use crate::port::{Port, Refused};

/// The most requests that wait in the host's queue of a drive: some 100 MB. Where more come, they come faster than the drive
/// serves them, and the queue would grow for as long as they do.
pub const QUEUE_MAX: usize = 1 << 20;

/// Drives with the host's queue in front of each.
#[derive(Clone, Debug)]
pub struct Host {
    ports: Vec<Port<Drive>>,
    arrays: Arrays,
}

/// A request that has been served, as its host sees it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// As the source issued it.
    pub arrival: Arrival,
    /// As the drive completed it.
    pub completion: Completion,
}

impl Outcome {
    /// Time in the host's queue.
    pub fn queued(&self) -> Span {
        self.completion.submitted.since(self.arrival.at)
    }

    /// From issue to completion.
    pub fn response(&self) -> Span {
        self.completion.completed.since(self.arrival.at)
    }

    /// Where the response time went; the host's queue counts as waiting.
    pub fn breakdown(&self) -> Breakdown {
        let mut parts = self.completion.breakdown;
        parts.queue += self.queued();
        parts
    }
}

/// Why a simulation ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The source cannot go on.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// A drive refuses a request.
    #[error("request {number}: {error}")]
    Request {
        /// Which one, from 1 in order of issue.
        number: u64,
        /// Why.
        error: RequestError,
    },
    /// More requests wait than a host keeps.
    #[error(
        "request {number}: {QUEUE_MAX} requests wait for drive {drive} at {} ms of simulated time, the most that are kept: \
         they come faster than the drive serves them",
        at.0 / 1_000_000_000
    )]
    Overloaded {
        /// Which one, from 1 in order of issue.
        number: u64,
        /// The drive, counted from 0.
        drive: u32,
        /// When.
        at: SimTime,
    },
    /// A request for a drive that is not there.
    #[error("request {number}: device {device}: there are {devices}, counted from 0")]
    Device {
        /// Which one, from 1 in order of issue.
        number: u64,
        /// The device it names.
        device: u32,
        /// How many there are.
        devices: usize,
    },
}

impl Host {
    /// Drives whose queues alone hold requests: the host passes on what comes, first come first
    /// served, up to each drive's depth.
    pub fn new(drives: Vec<Drive>) -> Host {
        Host {
            ports: drives.into_iter().map(Port::new).collect(),
            arrays: Arrays::default(),
        }
    }

    /// The same with the host's queue of one drive ordered by `scheduler` and at most `depth` requests at the drive.
    ///
    /// # Panics
    /// If there is no such drive.
    pub fn with_queue(mut self, drive: usize, scheduler: Scheduler, depth: u32) -> Host {
        self.ports[drive].set_queue(scheduler, depth);
        self
    }

    /// The same with drives that hang from one bus: one transfer at a time.
    ///
    /// # Panics
    /// If there is no such drive.
    pub fn with_bus(mut self, drives: &[u32]) -> Host {
        let bus = SharedBus::default();
        for drive in drives {
            self.ports[*drive as usize]
                .unit_mut()
                .share_bus(bus.clone());
        }
        self
    }

    /// The same with one more array of drives, in chunks of so many sectors. The devices of requests are then the
    /// arrays, in the order in which they were added.
    ///
    /// # Errors
    /// If these drives cannot be such an array.
    ///
    /// # Panics
    /// If there is no such drive.
    pub fn with_array(
        mut self,
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
        Ok(self)
    }

    /// The mean response time of the requests that arrays made of theirs, in milliseconds; none without arrays, or
    /// before any.
    pub fn drive_response_ms(&self) -> Option<f64> {
        self.arrays.drive_response_ms()
    }

    /// The drives.
    pub fn drives(&self) -> impl ExactSizeIterator<Item = &Drive> {
        self.ports.iter().map(Port::unit)
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
    fn arrive(&mut self, arrival: Arrival) -> Result<(), SimulateError> {
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
        let parts = self.arrays.arrive(arrival);
        let parts = parts.map_err(|error| SimulateError::Request { number, error })?;
        self.pass_on(parts)
    }

    fn pass_on(&mut self, parts: Vec<Arrival>) -> Result<(), SimulateError> {
        for part in parts {
            self.queue(part)?;
        }
        Ok(())
    }

    /// Takes a request for a drive.
    fn queue(&mut self, arrival: Arrival) -> Result<(), SimulateError> {
        let Arrival { at, device, .. } = arrival;
        let port = &mut self.ports[device as usize];
        if port.waiting() >= QUEUE_MAX {
            let number = arrival.tag + 1;
            return Err(SimulateError::Overloaded {
                number,
                drive: device,
                at,
            });
        }
        Ok(port.arrive(arrival, ())?)
    }
}

impl From<Refused<RequestError>> for SimulateError {
    fn from(refused: Refused<RequestError>) -> SimulateError {
        SimulateError::Request {
            number: refused.arrival.tag + 1,
            error: refused.error,
        }
    }
}

/// Runs a source to its end; `sink` sees every outcome in order of completion and may end the run by returning false.
///
/// Returns the time of the last completion.
///
/// # Errors
/// A source that cannot go on, or a request that no drive can serve; what was served before has been seen.
pub fn simulate(
    host: &mut Host,
    source: &mut impl Source,
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
            (Due::At(at), wake) if wake.is_none_or(|(wake, _)| at < wake) => {
                if let Some(arrival) = source.take(at) {
                    host.arrive(arrival)?;
                }
            }
            (_, Some((wake, index))) => {
                let (arrays, mut parts) = (&mut host.arrays, Vec::new());
                let go_on = host.ports[index].complete(wake, |arrival, completion| {
                    let (arrival, completion) = match arrays.is_empty() {
                        true => (arrival, completion),
                        false => match arrays.complete(arrival, completion) {
                            Progress::Complete(arrival, completion) => (arrival, completion),
                            Progress::Released(released) => {
                                parts.extend(released);
                                return true;
                            }
                        },
                    };
                    last = last.max(completion.completed);
                    source.complete(arrival.tag, completion.completed);
                    sink(&Outcome {
                        arrival,
                        completion,
                    })
                });
                if !go_on {
                    return Ok(last);
                }
                // What a completion releases competes with what has waited, as in DiskSim's driver.
                host.pass_on(parts)?;
                host.ports[index].feed(wake)?;
            }
            (_, None) => return Ok(last),
        }
    }
}
