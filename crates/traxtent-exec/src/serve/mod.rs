//! A drive served in real time: what an NBD server, or any program with threads, calls.
//!
//! [`Server`] holds a model drive on the real clock, its data, a request log and a receipt. Every call of
//! [`Server::read`] and its kin blocks until the model completes the request. Data are moved while the
//! drive's time passes, by the thread that asked, with no lock held.
//!
//! Left out: the protocol. That is nbdkit's (`bindings/nbdkit`).

mod clock;
mod error;
mod keys;
mod load;
mod log;
mod paced;
mod receipt;
mod store;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use traxtent_core::drive::Drive;
use traxtent_core::request::{Op, Request};
use traxtent_core::units::{Lbn, Sectors};

pub use clock::Speed;
pub use error::ServeError;
pub use keys::{Key, Settings};
pub use receipt::{Machine, Percentiles, Receipt, Verdict};

use load::Load;
use log::Log;
use paced::{Delivered, Paced};
use receipt::Tally;
use store::Store;

/// A drive that is served. See the module.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    sha256: String,
    drive: Drive,
    store: Store,
    log: Option<Log>,
    tally: Mutex<Tally>,
    running: OnceLock<Running>,
}

/// What there is once time passes.
#[derive(Debug)]
struct Running {
    paced: Arc<Paced>,
    load: Load,
    pacer: Mutex<Option<JoinHandle<()>>>,
}

/// The sizes that a client should know, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Requests are multiples of this: the logical sector.
    pub minimum: u32,
    /// Best are multiples of this: the physical sector.
    pub preferred: u32,
    /// The most that one request may have.
    pub maximum: u32,
}

/// The most that one request may read or write, in bytes: what NBD clients may send unasked.
const REQUEST_MAX: u32 = 32 << 20;

impl Server {
    /// Opens everything that may fail. No time passes yet, and no thread is started.
    ///
    /// # Errors
    /// A profile out of its bounds, a file that cannot be used.
    pub fn open(settings: Settings) -> Result<Server, ServeError> {
        let drive = Drive::new(&settings.profile).map_err(|error| ServeError::Profile {
            path: settings.drive.clone().into(),
            error,
        })?;
        let bytes = bytes_of(&drive);
        Ok(Server {
            store: Store::open(settings.file.as_deref(), bytes)?,
            log: settings.log.as_deref().map(Log::create).transpose()?,
            sha256: receipt::sha256(&settings.profile),
            tally: Mutex::default(),
            running: OnceLock::new(),
            drive,
            settings,
        })
    }

    /// Starts the drive's clock and the threads that the server needs. Later calls do nothing.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub fn start(&self) -> Result<(), ServeError> {
        if let Some(log) = &self.log {
            log.start().map_err(ServeError::Thread)?;
        }
        if self.running.get().is_none() {
            let paced = Paced::start(self.drive.clone(), self.settings.speed);
            let pacer = paced.pace().map_err(ServeError::Thread)?;
            // Nobody else starts it at the same time.
            let _ = self.running.set(Running {
                paced,
                load: Load::now(),
                pacer: Mutex::new(Some(pacer)),
            });
        }
        Ok(())
    }

    /// The drive's size in bytes.
    pub fn bytes(&self) -> u64 {
        bytes_of(&self.drive)
    }

    /// What it is told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The sizes that a client should know.
    pub fn block_sizes(&self) -> BlockSizes {
        let sector = &self.settings.profile.sector;
        BlockSizes {
            minimum: sector.logical_bytes,
            preferred: sector.physical_bytes,
            maximum: REQUEST_MAX,
        }
    }

    /// Reads from byte `offset` on, in the drive's time.
    ///
    /// # Errors
    /// A request that is misaligned or beyond the end, and what the drive or its data report.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServeError> {
        let request = self.request(Op::Read, offset, buffer.len() as u64, false);
        self.serve(request, || self.store.read(buffer, offset))
    }

    /// Writes from byte `offset` on; with `fua` it is on the media when this returns.
    ///
    /// # Errors
    /// As of [`Server::read`].
    pub fn write(&self, bytes: &[u8], offset: u64, fua: bool) -> Result<(), ServeError> {
        let request = self.request(Op::Write, offset, bytes.len() as u64, fua);
        self.serve(request, || {
            self.store.write(bytes, offset)?;
            if fua { self.store.sync() } else { Ok(()) }
        })
    }

    /// Makes `count` bytes from `offset` on zero, in the time of a write.
    ///
    /// # Errors
    /// As of [`Server::read`].
    pub fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServeError> {
        let request = self.request(Op::Write, offset, count, fua);
        self.serve(request, || {
            self.store.zero(offset, count)?;
            if fua { self.store.sync() } else { Ok(()) }
        })
    }

    /// Brings every write that is complete to the media.
    ///
    /// # Errors
    /// What the drive or its data report.
    pub fn flush(&self) -> Result<(), ServeError> {
        self.serve(Ok(Request::flush()), || self.store.sync())
    }

    /// The receipt so far; none before [`Server::start`].
    pub fn receipt(&self) -> Option<Receipt> {
        let running = self.running.get()?;
        let mut tally = self.tally.lock().expect("nobody panics with it");
        let clock = running.paced.clock();
        Some(tally.receipt(&self.settings, &self.sha256, clock, &running.load))
    }

    /// Writes the receipt so far to its file, if it has one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_receipt(&self) -> Result<(), ServeError> {
        let (Some(receipt), Some(path)) = (self.receipt(), &self.settings.receipt) else {
            return Ok(());
        };
        let mut text = serde_json::to_string_pretty(&receipt).expect("a receipt is plain data");
        text.push('\n');
        write_whole(path, text.as_bytes())
            .map_err(|error| ServeError::file(Key::Receipt, path, "write", error))
    }

    /// Ends the threads, and writes log and receipt. What is outstanding fails.
    ///
    /// # Errors
    /// If the log or the receipt cannot be written.
    pub fn stop(&self) -> Result<(), ServeError> {
        if let Some(running) = self.running.get() {
            running.paced.stop();
            let pacer = running.pacer.lock().expect("nobody panics with it").take();
            if let Some(pacer) = pacer {
                pacer.join().expect("the pacer does not panic");
            }
        }
        let log = self.log.as_ref().map_or(Ok(()), Log::finish);
        self.write_receipt()?;
        log
    }

    /// Sends a request to the drive, moves its data, and waits for it.
    fn serve(
        &self,
        request: Result<Request, ServeError>,
        data: impl FnOnce() -> Result<(), ServeError>,
    ) -> Result<(), ServeError> {
        let served = request.and_then(|request| {
            let running = self.running.get().ok_or(ServeError::Stopped)?;
            let ticket = running.paced.arrive(request)?;
            let data = data();
            let delivered = running.paced.wait(ticket)?;
            self.note(delivered);
            data
        });
        if served.is_err() {
            self.tally
                .lock()
                .expect("nobody panics with it")
                .add_error();
        }
        served
    }

    fn note(&self, delivered: Delivered) {
        self.tally
            .lock()
            .expect("nobody panics with it")
            .add(&delivered);
        if let Some(log) = &self.log {
            let mut outcome = delivered.outcome;
            // What the log calls measured: the time as it was delivered.
            outcome.arrival.measured = Some(delivered.at.since(outcome.arrival.at));
            log.push(outcome);
        }
    }

    fn request(&self, op: Op, offset: u64, count: u64, fua: bool) -> Result<Request, ServeError> {
        let sector = self.settings.profile.sector.logical_bytes;
        let bytes = u64::from(sector);
        if !offset.is_multiple_of(bytes) || !count.is_multiple_of(bytes) || count == 0 {
            return Err(ServeError::Misaligned {
                offset,
                count,
                sector,
            });
        }
        let end = offset.checked_add(count);
        let sectors = u32::try_from(count / bytes).ok();
        match (end, sectors) {
            (Some(end), Some(sectors)) if end <= self.bytes() => Ok(Request {
                op,
                lbn: Lbn(offset / bytes),
                sectors,
                fua,
            }),
            _ => Err(ServeError::BeyondEnd {
                offset,
                count,
                bytes: self.bytes(),
            }),
        }
    }
}

fn bytes_of(drive: &Drive) -> u64 {
    let Sectors(sectors) = drive.geometry().capacity();
    sectors * u64::from(drive.profile().sector.logical_bytes)
}

/// Writes a file that is there whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, bytes)?;
    std::fs::rename(&beside, path)
}
