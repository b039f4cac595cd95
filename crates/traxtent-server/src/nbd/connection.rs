//! One client: the handshake, then its requests, with a thread for each outstanding one.
//!
//! The threads take turns. One reads the next request while the others carry out theirs. Each of
//! them blocks until the device has completed its request. A thread is added when none is left to
//! read.
//!
//! If requests complete without waiting ([`BlockService::is_immediate`]), one thread does
//! everything, and replies that are ready at the same time are sent together.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::offer::Offer;
use super::protocol::{
    Agreed, Command, ExportInfo, Negotiation, Next, REQUEST_BYTES, Request, reply,
};
use super::socket::Socket;
use super::threads::ThreadBudget;
use crate::service::{BlockService, ServiceError};

/// The maximum time without data from a client during the handshake.
const HANDSHAKE_SILENCE: Duration = Duration::from_secs(60);

/// The size in bytes of the buffer for requests. Larger data bypasses it.
const INPUT_BYTES: usize = 32 << 10;

/// The maximum time for which a thread spins before the next request. It covers a client's
/// turnaround.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// The size in bytes at which collected replies are sent.
const TOGETHER_BYTES: usize = 128 << 10;

/// The maximum memory in bytes that a thread keeps for its next replies.
const OUTPUT_KEPT_BYTES: usize = 1 << 20;

/// A client in the transmission phase.
pub(super) struct Connection {
    offer: Arc<Offer>,
    budget: Arc<ThreadBudget>,
    socket: Arc<Socket>,
    agreed: Agreed,
    input: Mutex<Input>,
    /// Held while a reply is written.
    output: Mutex<()>,
    /// The number of threads that read, or wait for their turn to read.
    readers: AtomicUsize,
    /// The number of threads that serve this client.
    threads: Mutex<usize>,
    /// Notified when a thread has ended.
    ended: Condvar,
}

/// The client's input: the bytes received with the end of the handshake, then the socket.
type Input = BufReader<Chain<Cursor<Vec<u8>>, SharedSocket>>;

/// A socket to read from.
struct SharedSocket(Arc<Socket>);

impl Read for SharedSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&mut &*self.0).read(into)
    }
}

/// A request with its data.
struct Received {
    request: Request,
    data: Vec<u8>,
    /// Whether the data was too long, and was discarded.
    discarded: bool,
}

impl Connection {
    /// Serves a client until it leaves, its connection fails, or the server stops.
    pub(super) fn serve(offer: &Arc<Offer>, budget: &Arc<ThreadBudget>, socket: &Arc<Socket>) {
        let Ok(Some((agreed, rest))) = negotiate(offer, socket) else {
            socket.shutdown(Shutdown::Both);
            return;
        };
        let connection = Arc::new(Connection {
            offer: Arc::clone(offer),
            budget: Arc::clone(budget),
            socket: Arc::clone(socket),
            agreed,
            input: Mutex::new(rest),
            output: Mutex::new(()),
            readers: AtomicUsize::new(0),
            threads: Mutex::new(1),
            ended: Condvar::new(),
        });
        connection.work();
        connection.wait_for_others();
        socket.shutdown(Shutdown::Both);
    }

    fn service(&self) -> &dyn BlockService {
        self.offer.service(self.agreed.export)
    }

    fn info(&self) -> &ExportInfo {
        &self.offer.infos()[self.agreed.export]
    }

    /// Reads requests and carries them out, in turn with other threads, until there are no more.
    fn work(self: &Arc<Self>) {
        let mut output = Output::default();
        let immediate = self.service().is_immediate();
        loop {
            self.readers.fetch_add(1, Ordering::Relaxed);
            let mut input = self.input.lock();
            if immediate && input.buffer().is_empty() {
                self.spin();
            }
            let received = self.receive(&mut input);
            self.readers.fetch_sub(1, Ordering::Relaxed);
            let Ok(Some(received)) = received else {
                // The next thread to read then also sees the end.
                self.socket.shutdown(Shutdown::Read);
                return;
            };
            if immediate {
                self.execute(received, &mut output);
                let more = input.buffer().len() >= REQUEST_BYTES;
                if more && output.bytes().len() < TOGETHER_BYTES {
                    continue;
                }
                drop(input);
            } else {
                drop(input);
                self.ensure_reader();
                self.execute(received, &mut output);
            }
            if self.send(&mut output).is_err() {
                self.socket.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    /// Waits for the next request without sleeping, for a short time. Waking a thread takes longer
    /// than a response of a drive without mechanics.
    fn spin(&self) {
        if !may_spin() {
            return;
        }
        let begun = Instant::now();
        while begun.elapsed() < SPIN_TIME && !self.socket.is_readable() {
            std::hint::spin_loop();
        }
    }

    /// Starts another thread if none reads. If that fails, the next thread to complete its request
    /// reads.
    fn ensure_reader(self: &Arc<Self>) {
        if self.readers.load(Ordering::Relaxed) > 0 {
            return;
        }
        let mut threads = self.threads.lock();
        let thread = WorkerSlot(Arc::clone(self));
        *threads += 1;
        let count = *threads;
        drop(threads);
        // The slot decrements the count when the thread ends, or if it cannot be started.
        let _ = self.budget.spawn(count, move || thread.0.work());
    }

    /// Waits until no thread but the current one is left.
    fn wait_for_others(&self) {
        let mut threads = self.threads.lock();
        while *threads > 1 {
            self.ended.wait(&mut threads);
        }
    }

    /// Reads a request and its data; `None` if the client disconnects or violates the protocol.
    fn receive(&self, input: &mut Input) -> io::Result<Option<Received>> {
        let mut header = [0; REQUEST_BYTES];
        input.read_exact(&mut header)?;
        let request = Request::decode(&header).filter(|request| !request.is_disconnect());
        let Some(request) = request else {
            return Ok(None);
        };
        let discarded = request.payload_bytes() > self.info().sizes.maximum;
        let mut data = Vec::new();
        if discarded {
            let mut payload = input.take(u64::from(request.payload_bytes()));
            io::copy(&mut payload, &mut io::sink())?;
        } else {
            self.receive_data(input, request.payload_bytes() as usize, &mut data)?;
        }
        Ok(Some(Received {
            request,
            data,
            discarded,
        }))
    }

    /// Reads the data of a write. Most of the data of a large write bypasses the buffer, and goes
    /// into memory that has not been filled with zeros.
    fn receive_data(&self, input: &mut Input, count: usize, data: &mut Vec<u8>) -> io::Result<()> {
        let (rest, _) = input.get_ref().get_ref();
        let has_rest = rest.position() < rest.get_ref().len() as u64;
        if count <= INPUT_BYTES || has_rest {
            data.resize(count, 0);
            return input.read_exact(data);
        }
        data.reserve_exact(count);
        let buffered = input.buffer().len().min(count);
        data.extend_from_slice(&input.buffer()[..buffered]);
        input.consume(buffered);
        self.socket.read_onto(data, count - buffered)
    }

    /// Carries out a request, and adds its reply to the output.
    fn execute(&self, received: Received, output: &mut Output) {
        let Received {
            request,
            data,
            discarded,
        } = received;
        let structured = self.agreed.structured && request.is_read();
        let command = match request.command(self.info()) {
            Ok(command) if !discarded => command,
            Ok(_) => return output.add(&reply::failure(&request, reply::EINVAL, "", false)),
            Err(invalid) => {
                let text = invalid.to_string();
                return output.add(&reply::failure(
                    &request,
                    invalid.error_number(),
                    &text,
                    structured,
                ));
            }
        };
        let (service, offset) = (self.service(), request.offset);
        let count = u64::from(request.length);
        let done = match command {
            Command::Read => {
                return self.read(&request, structured, output);
            }
            Command::BlockStatus => {
                return output.add(&match self.agreed.allocation {
                    Some(_) => reply::all_allocated(&request),
                    None => reply::failure(&request, reply::EINVAL, "", false),
                });
            }
            Command::Cache => service.read(&mut vec![0; count as usize], offset),
            Command::Write { fua } => service.write(data, offset, fua),
            Command::Trim { fua } => service.trim(offset, count, fua),
            Command::WriteZeroes { fua } => service.zero(offset, count, fua),
            Command::Flush => service.flush(),
            Command::Disconnect => Ok(()),
        };
        output.add(&match done {
            Ok(()) => reply::success(&request),
            Err(error) => self.failed(&request, &error, false),
        });
    }

    fn read(&self, request: &Request, structured: bool, output: &mut Output) {
        let header = reply::read_header(request, structured);
        let read = output.add_filled(&header, request.length as usize, |data| {
            self.service().read(data, request.offset)
        });
        if let Err(error) = read {
            output.add(&self.failed(request, &error, structured));
        }
    }

    /// Returns the reply to a request that failed. Failures of the storage are also logged.
    fn failed(&self, request: &Request, error: &ServiceError, structured: bool) -> Vec<u8> {
        let text = error.to_string();
        if error.is_of_storage() {
            self.offer.report(&text);
        }
        reply::failure(request, reply::error_of(error.errno()), &text, structured)
    }

    /// Sends the output, and clears it.
    fn send(&self, output: &mut Output) -> io::Result<()> {
        let turn = self.output.lock();
        let sent = self.socket.write_all(output.bytes());
        drop(turn);
        output.clear();
        sent
    }
}

/// Returns whether another processor remains for the client while a thread spins.
fn may_spin() -> bool {
    static SEVERAL: LazyLock<bool> =
        LazyLock::new(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1));
    *SEVERAL
}

/// A thread's entry in the thread count of its connection.
struct WorkerSlot(Arc<Connection>);

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        *self.0.threads.lock() -= 1;
        self.0.ended.notify_all();
    }
}

/// Replies that are sent together. The memory is reused, so it is zeroed only once.
#[derive(Default)]
struct Output {
    memory: Vec<u8>,
    used: usize,
}

impl Output {
    fn bytes(&self) -> &[u8] {
        &self.memory[..self.used]
    }

    fn add(&mut self, bytes: &[u8]) {
        self.extend(bytes.len()).copy_from_slice(bytes);
    }

    /// Adds a header and `count` bytes from `fill`. Adds nothing if `fill` fails.
    fn add_filled<E>(
        &mut self,
        header: &[u8],
        count: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.used;
        self.add(header);
        let filled = fill(self.extend(count));
        if filled.is_err() {
            self.used = before;
        }
        filled
    }

    fn extend(&mut self, count: usize) -> &mut [u8] {
        let begin = self.used;
        self.used += count;
        if self.memory.len() < self.used {
            self.memory.resize(self.used, 0);
        }
        &mut self.memory[begin..self.used]
    }

    fn clear(&mut self) {
        self.used = 0;
        if self.memory.len() > OUTPUT_KEPT_BYTES {
            self.memory.truncate(OUTPUT_KEPT_BYTES);
            self.memory.shrink_to_fit();
        }
    }
}

/// Carries out the handshake. Returns the agreement and the input, including the bytes already
/// received; `None` if the connection ends.
fn negotiate(offer: &Offer, socket: &Arc<Socket>) -> io::Result<Option<(Agreed, Input)>> {
    socket.set_read_timeout(Some(HANDSHAKE_SILENCE))?;
    let (mut negotiation, greeting) = Negotiation::new(offer.infos());
    socket.write_all(&greeting)?;
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = (&mut &**socket).read(&mut chunk)?;
        if count == 0 {
            return Ok(None);
        }
        received.extend(&chunk[..count]);
        loop {
            let step = negotiation.step(&received);
            received.drain(..step.consumed);
            socket.write_all(&step.reply)?;
            match step.next {
                Next::Continue if step.consumed > 0 => {}
                Next::Continue => break,
                Next::Close => return Ok(None),
                Next::Transmission(agreed) => {
                    socket.set_read_timeout(None)?;
                    let rest = Cursor::new(received).chain(SharedSocket(Arc::clone(socket)));
                    let input = BufReader::with_capacity(INPUT_BYTES, rest);
                    return Ok(Some((agreed, input)));
                }
            }
        }
    }
}
