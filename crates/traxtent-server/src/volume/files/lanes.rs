//! A device's threads for operations that may block. Requests wait for them no longer than the
//! member time-out.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;
use traxtent_units::Lbn;

use super::Device;
use super::watch::{OutstandingOp, POLL_INTERVAL};
use crate::volume::buffers::AlignedBuffer;

/// The maximum number of threads per device. It equals the number of requests per client that
/// `traxtent volume serve` carries out at a time.
const THREADS_MAX: usize = 16;

/// The operation of a job. The memory of reads and writes is stored separately.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Read(Lbn),
    Write(Lbn),
    Flush,
    /// Reserves space from the first LBN to the second, which is excluded.
    Reserve(Lbn, Lbn),
}

/// The threads of a device, and their queue.
#[derive(Debug, Default)]
pub(super) struct DeviceThreads(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<JobQueue>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct JobQueue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

#[derive(Debug)]
struct Job {
    device: Arc<Device>,
    task: Task,
    memory: Option<AlignedBuffer>,
    batch: Arc<Batch>,
    place: usize,
}

impl DeviceThreads {
    fn push(&self, job: Job) -> Result<(), Job> {
        let mut queue = self.0.queue();
        queue.jobs.push_back(job);
        if queue.jobs.len() <= queue.idle {
            self.0.work.notify_one();
        } else if queue.threads < THREADS_MAX {
            let shared = Arc::clone(&self.0);
            let thread = thread::Builder::new().name("member".to_owned());
            match thread.spawn(move || shared.work()) {
                Ok(_) => queue.threads += 1,
                // An existing thread will take the job.
                Err(_) if queue.threads > 0 => {}
                Err(_) => return Err(queue.jobs.pop_back().expect("it was put there")),
            }
        }
        Ok(())
    }
}

impl Drop for DeviceThreads {
    fn drop(&mut self) {
        self.0.queue().is_closed = true;
        self.0.work.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, JobQueue> {
        self.queue.lock()
    }

    /// The loop of a thread, which ends when the device is closed.
    fn work(&self) {
        loop {
            let job = {
                let mut queue = self.queue();
                loop {
                    if let Some(job) = queue.jobs.pop_front() {
                        break job;
                    }
                    if queue.is_closed {
                        return;
                    }
                    queue.idle += 1;
                    self.work.wait(&mut queue);
                    queue.idle -= 1;
                }
            };
            job.carry_out();
        }
    }
}

impl Job {
    fn carry_out(mut self) {
        if self.device.watch().is_given_up() {
            // The request has failed, so the operation must not take effect later.
            self.batch.end(self.place, Err(Errno::TIMEDOUT), None);
            return;
        }
        let record = OutstandingOp::new(self.device);
        let device = Arc::clone(record.device());
        self.batch.begin(self.place, record);
        let memory = self.memory.as_deref_mut().unwrap_or(&mut []);
        let done = match self.task {
            Task::Read(at) => device.read(at, memory),
            Task::Write(at) => device.write(at, memory),
            Task::Flush => device.flush(),
            Task::Reserve(from, to) => device.reserve(from, to),
        };
        drop(device);
        self.batch.end(self.place, done, self.memory);
    }
}

/// The jobs that one request waits for.
#[derive(Debug, Default)]
pub(super) struct Batch {
    places: Mutex<Vec<Place>>,
    ended: Condvar,
}

#[derive(Debug)]
struct Place {
    device: Arc<Device>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Queued,
    Running(OutstandingOp),
    Ended(Result<(), Errno>, Option<AlignedBuffer>),
}

thread_local! {
    /// The batch of a thread's last request, for reuse by the next.
    static BATCH: RefCell<Option<Arc<Batch>>> = const { RefCell::new(None) };
}

impl Batch {
    /// Returns an empty batch.
    pub(super) fn new() -> Arc<Batch> {
        // A job on a device that was given up can still refer to the batch.
        let kept = BATCH.take().filter(|batch| Arc::strong_count(batch) == 1);
        let batch = kept.unwrap_or_default();
        batch.places().clear();
        batch
    }

    /// Queues a task for a device. `memory` holds the data of a write, or receives the data of a
    /// read.
    pub(super) fn push(
        self: &Arc<Batch>,
        device: Arc<Device>,
        task: Task,
        memory: Option<AlignedBuffer>,
    ) {
        let place = {
            let mut places = self.places();
            places.push(Place {
                device: Arc::clone(&device),
                stage: Stage::Queued,
            });
            places.len() - 1
        };
        let job = Job {
            device: Arc::clone(&device),
            task,
            memory,
            batch: Arc::clone(self),
            place,
        };
        if let Err(job) = device.lanes().push(job) {
            self.end(place, Err(Errno::AGAIN), job.memory);
        }
    }

    fn begin(&self, place: usize, record: OutstandingOp) {
        self.places()[place].stage = Stage::Running(record);
    }

    fn end(&self, place: usize, done: Result<(), Errno>, memory: Option<AlignedBuffer>) {
        self.places()[place].stage = Stage::Ended(done, memory);
        self.ended.notify_one();
    }

    /// Waits until every job has ended or its device has been given up. Devices that do not respond
    /// in time are given up. Calls `report` for each job in queue order.
    pub(super) fn wait(
        self: Arc<Batch>,
        timeout: Duration,
        mut report: impl FnMut(usize, Result<(), Errno>, Option<&[u8]>),
    ) {
        let mut places = self.places();
        while !places.iter().all(|place| place.is_over(timeout)) {
            let slice = POLL_INTERVAL.min(timeout);
            self.ended.wait_for(&mut places, slice);
        }
        let mut all_ended = true;
        for (number, place) in places.iter_mut().enumerate() {
            match &mut place.stage {
                Stage::Ended(done, memory) => report(number, *done, memory.take().as_deref()),
                _ => {
                    all_ended = false;
                    report(number, Err(Errno::TIMEDOUT), None);
                }
            }
        }
        if all_ended {
            places.clear();
            drop(places);
            BATCH.set(Some(self));
        }
    }

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock()
    }
}

impl Place {
    fn is_over(&self, timeout: Duration) -> bool {
        if let Stage::Running(record) = &self.stage {
            record.check(timeout);
        }
        matches!(self.stage, Stage::Ended(..)) || self.device.watch().is_given_up()
    }
}
