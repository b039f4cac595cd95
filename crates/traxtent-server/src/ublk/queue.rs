//! The queue of a block device: a thread that takes requests from the driver and returns results.
//!
//! The driver accepts operations for a queue only from one thread. Because the service blocks, the
//! thread passes requests to [`Workers`], and an eventfd wakes it when one is complete.
//!
//! The driver copies data between a request and the memory that was announced for its tag. This
//! works for every user. The alternative, reading and writing through the node
//! (`UBLK_F_USER_COPY`), is refused to ordinary users, and needs two more system calls for each
//! request. A tag's memory is allocated only up to the size of the tag's largest request so far.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::abi::{self, ABORTED, IoCommand};
use super::completions::{Completed, Completions, Pending};
use super::error::UblkError;
use super::memory::{Descriptors, TagMemory};
use super::parameters::IO_BYTES_MAX;
use super::request::Request;
use super::ring;
use crate::service::BlockService;
use crate::workers::Workers;

/// The maximum number of outstanding requests. Real SATA disks accept 32, SAS disks 128 to 256.
pub(super) const DEPTH: u16 = 256;

/// The user data of the operation that waits for the workers' event. No tag has this value.
const WAKE: u64 = u64::MAX;

/// The running thread of a queue.
#[derive(Debug)]
pub(super) struct QueueThread(JoinHandle<()>);

impl QueueThread {
    /// Starts the thread, and waits until the driver has accepted all tags.
    ///
    /// # Errors
    /// Returns an error if the system refuses the memory, the ring or the thread, or if the driver
    /// refuses the tags.
    pub(super) fn start(
        service: Arc<dyn BlockService>,
        node: File,
        number: u32,
    ) -> Result<QueueThread, UblkError> {
        let mut queue = Queue::new(service, node, number)?;
        let (ready, accepted) = mpsc::channel();
        let run = move || {
            let fetched = queue.fetch_all();
            let serves = fetched.is_ok();
            let _ = ready.send(fetched);
            if serves {
                queue.run();
            }
        };
        let thread = thread::Builder::new().name(format!("ublk{number}"));
        let thread = thread.spawn(run).map_err(UblkError::Thread)?;
        match accepted.recv() {
            Ok(Ok(())) => Ok(QueueThread(thread)),
            Ok(Err(error)) => Err(UblkError::Command {
                what: "fetch its requests",
                number: number.to_string(),
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            }),
            Err(_) => panic!("the thread of a ublk queue has panicked"),
        }
    }

    /// Returns whether the device has been stopped, and all requests are complete.
    pub(super) fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until the device has been stopped and all requests are complete.
    pub(super) fn join(self) {
        // A panic of the thread has already been reported.
        let _ = self.0.join();
    }
}

/// The owner of a tag's memory.
#[derive(Debug)]
enum Tag {
    /// The driver, which may write to the memory until it completes the tag's operation.
    Driver(TagMemory),
    /// A worker.
    Worker,
    /// Nobody, because the device has stopped.
    Ended,
}

/// The state of the thread.
struct Queue {
    /// The ring, which is dropped first so that no operation refers to a closed file.
    ring: IoUring,
    node: File,
    descriptors: Descriptors,
    tags: Vec<Tag>,
    completions: Arc<Completions>,
    workers: Workers,
    service: Arc<dyn BlockService>,
}

impl Queue {
    fn new(service: Arc<dyn BlockService>, node: File, number: u32) -> Result<Queue, UblkError> {
        let entries = u32::from(DEPTH) + 1;
        // With this option, completions do not interrupt the thread (Linux 5.19).
        let ring = IoUring::builder().setup_coop_taskrun().build(entries);
        let completions = Completions::new().map_err(|errno| UblkError::IoUring(errno.into()))?;
        let refused = |what| {
            move |errno| UblkError::Command {
                what,
                number: number.to_string(),
                errno,
            }
        };
        let tags = (0..DEPTH).map(|_| TagMemory::map(IO_BYTES_MAX as usize).map(Tag::Driver));
        Ok(Queue {
            ring: ring.map_err(ring::error)?,
            descriptors: Descriptors::map(&node, DEPTH).map_err(refused("map its requests"))?,
            node,
            tags: tags
                .collect::<Result<_, _>>()
                .map_err(refused("map memory for its data"))?,
            completions: Arc::new(completions),
            workers: Workers::new("ublk request", usize::from(DEPTH)),
            service,
        })
    }

    /// Announces all tags to the driver.
    fn fetch_all(&mut self) -> io::Result<()> {
        for tag in 0..DEPTH {
            let Tag::Driver(data) = &self.tags[usize::from(tag)] else {
                unreachable!("no request has arrived");
            };
            let addr = data.address();
            self.push_command(abi::FETCH_REQ, tag, 0, addr);
        }
        self.push_wake();
        self.ring.submit()?;
        // A tag that the driver refuses completes immediately. No request can arrive yet.
        let refused = self.ring.completion().find(|entry| entry.result() < 0);
        match refused {
            Some(entry) => Err(io::Error::from_raw_os_error(-entry.result())),
            None => Ok(()),
        }
    }

    /// Serves until the device is stopped.
    fn run(mut self) {
        while self.tags.iter().any(|tag| !matches!(tag, Tag::Ended)) {
            ring::submit_and_wait(&self.ring.submitter(), 1);
            let entries: Vec<(u64, i32)> = self
                .ring
                .completion()
                .map(|entry| (entry.user_data(), entry.result()))
                .collect();
            for (user_data, result) in entries {
                match u16::try_from(user_data) {
                    Ok(tag) => self.take_request(tag, result),
                    Err(_) => self.return_results(),
                }
            }
        }
    }

    /// Passes a tag's request to a worker, fails it if it is invalid, or marks the tag as ended.
    fn take_request(&mut self, tag: u16, result: i32) {
        let slot = &mut self.tags[usize::from(tag)];
        if result != 0 {
            if result != ABORTED {
                let error = io::Error::from_raw_os_error(-result);
                tracing::error!("ublk: the driver refuses tag {tag}: {error}");
            }
            *slot = Tag::Ended;
            return;
        }
        let Tag::Driver(data) = std::mem::replace(slot, Tag::Worker) else {
            unreachable!("the driver completes an operation once");
        };
        let pending = Pending::new(tag, data, &self.completions);
        match Request::of(&self.descriptors.get(tag)) {
            Ok(request) => {
                let service = Arc::clone(&self.service);
                let job = move || pending.complete(|data| request.carry_out(&*service, data));
                if let Err(error) = self.workers.run(job) {
                    tracing::error!("ublk: cannot start a thread: {error}");
                }
            }
            Err(errno) => pending.complete(|_| -errno.raw_os_error()),
        }
    }

    /// Returns the workers' results to the driver, and fetches the tags' next requests.
    fn return_results(&mut self) {
        for Completed { tag, result, data } in self.completions.take() {
            let addr = data.address();
            self.tags[usize::from(tag)] = Tag::Driver(data);
            self.push_command(abi::COMMIT_AND_FETCH_REQ, tag, result, addr);
        }
        self.push_wake();
    }

    fn push_command(&mut self, op: abi::Op, tag: u16, result: i32, addr: u64) {
        let command = IoCommand {
            q_id: 0,
            tag,
            result,
            addr,
        };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(command.as_bytes());
        let entry = opcode::UringCmd16::new(Fd(self.node.as_raw_fd()), op)
            .cmd(bytes)
            .build();
        self.push(&entry.user_data(u64::from(tag)));
    }

    /// Adds the operation that waits for the workers' event.
    fn push_wake(&mut self) {
        let event = Fd(self.completions.event().as_raw_fd());
        let readable = PollFlags::IN.bits();
        let entry = opcode::PollAdd::new(event, u32::from(readable)).build();
        self.push(&entry.user_data(WAKE));
    }

    #[allow(unsafe_code)]
    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the files outlive the ring, which is dropped first. A tag's operation refers to
        // `IO_BYTES_MAX` bytes, which `Tag::Driver` owns and does not touch until the operation
        // completes.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("each tag, and the event, has one operation");
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let tags = std::mem::take(&mut self.tags);
        if tags.iter().any(|tag| matches!(tag, Tag::Driver(_))) {
            // The driver can still write to the tags' memory until it has noticed the ring's end.
            std::mem::forget(tags);
        }
    }
}
