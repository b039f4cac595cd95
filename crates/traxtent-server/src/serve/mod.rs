//! A modelled drive that serves requests in real time, for a block protocol or a multithreaded
//! program.
//!
//! [`DriveServer`] combines a model disk on the real clock with its data, a request log, a receipt,
//! and a control socket that accepts faults. A request blocks until the model completes it.
//!
//! The protocols are separate modules, such as [`crate::nbd`].

mod clock;
mod error;
mod file_times;
mod load;
mod log;
mod paced;
mod receipt;
mod receipt_file;
mod settings;
mod store;
mod transport;

use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use traxtent_model::disk::{Command, Completion, Disk, MemoryMedia, Scenario};
use traxtent_model::drive::{self, Drive};
use traxtent_model::profile::{Unmap, WriteBack};
use traxtent_units::{Lbn, Sectors};

pub use clock::Speed;
pub use error::ServeError;
pub use file_times::{FileOperations, FileTimes};
pub use load::MachineLoad;
pub use receipt::{
    KindTimes, KindsOfRequests, MeanAndPercentiles, Percentiles, Receipt, ReceiptVerdict,
};
pub use settings::Settings;
pub use store::memory_limit;

use crate::control::Control;
use crate::service::{BlockService, BlockSizes, FileRole, REQUEST_MAX, ServiceError};
use load::Load;
use log::Log;
use paced::{Delivered, RealTimeDrive};
use receipt::ReceiptStatistics;
use receipt_file::ReceiptFile;
use store::{Store, StoreMedia};
use traxtent_io::device::guard::Access;
use traxtent_sim::{Outcome, RequestStatus};

/// The time that outstanding requests have to complete during a shutdown. After it, they fail,
/// because a stalled drive could otherwise delay the end for a long time.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A drive that is served; see the module's documentation.
#[derive(Debug)]
pub struct DriveServer {
    settings: Settings,
    sha256: String,
    drive: Drive,
    scenario: Scenario,
    store: Arc<Store>,
    log: Option<Log>,
    receipt_file: Option<ReceiptFile>,
    control: Mutex<Option<Control>>,
    tally: Mutex<ReceiptStatistics>,
    running: OnceLock<Running>,
}

/// The state of a started server.
#[derive(Debug)]
struct Running {
    paced: Arc<RealTimeDrive>,
    load: Load,
    pacer: Mutex<Option<JoinHandle<()>>>,
}

impl DriveServer {
    /// Opens all files and checks the settings. A missing data file is created. The log and the
    /// receipt of an earlier run stay until [`DriveServer::start`]. The clock does not run yet, and
    /// no thread is started.
    ///
    /// # Errors
    /// Returns an error if the profile or the scenario is invalid, if a file cannot be used, or if
    /// the control socket cannot be created.
    pub fn open(settings: Settings) -> Result<DriveServer, ServeError> {
        let drive = Drive::new(&settings.profile).map_err(|error| ServeError::Profile {
            path: settings.drive.clone().into(),
            error,
        })?;
        let scenario = scenario_of(&settings, &drive)?;
        let access = if settings.read_only {
            Access::Read
        } else {
            Access::Write
        };
        let receipt = settings.receipt.as_deref();
        let receipt_file = receipt.map(ReceiptFile::open).transpose()?;
        let (file, memory) = (settings.file.as_deref(), settings.memory_bytes_max);
        let store = Store::open(file, memory, bytes_of(&drive), access)?;
        Ok(DriveServer {
            store: Arc::new(store),
            receipt_file,
            log: settings.log.as_deref().map(Log::open).transpose()?,
            control: Mutex::new(settings.control.as_deref().map(Control::open).transpose()?),
            sha256: receipt::sha256(&settings.profile),
            tally: Mutex::default(),
            running: OnceLock::new(),
            scenario,
            drive,
            settings,
        })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the receipt so far; `None` before [`DriveServer::start`].
    pub fn receipt(&self) -> Option<Receipt> {
        let running = self.running.get()?;
        let mut tally = self.tally.lock();
        let (events, pending) = running.paced.take_events();
        for event in events {
            tally.add_event(&event);
        }
        let clock = running.paced.clock();
        let subject = receipt::Subject {
            drive: &self.settings.drive,
            sha256: &self.sha256,
            seed: self.scenario.seed,
            scheduler: self.settings.profile.queue.scheduler,
            has_write_back: self.drive.caching().write_back,
            file: self.store.file_times(),
        };
        let mut receipt = tally.receipt(&subject, clock, &running.load);
        // The time of a fault can pass before the model is evaluated again.
        let faults = &self.scenario.faults;
        receipt.pending_faults = faults[faults.len() - pending..]
            .iter()
            .map(|scheduled| receipt::timed(scheduled.at, &scheduled.fault))
            .collect();
        Some(receipt)
    }

    /// Sends a command to the drive and waits for its completion. If `durable` is set and there is
    /// a data file, the file is synchronized after a successful command. After a flush, all flushed
    /// data is written to it first.
    fn submit_and_sync(
        &self,
        running: &Running,
        command: Command,
        data: Vec<u8>,
        durable: bool,
    ) -> Result<Delivered, ServiceError> {
        let (delivered, ()) = running.paced.serve(command, data, || (), |_| ())?;
        let has_data_file = self.store.is_file() && !self.settings.read_only;
        if durable && has_data_file && delivered.completion.outcome.is_ok() {
            if command == Command::Flush {
                running.paced.write_out()?;
            }
            self.store.sync()?;
        }
        Ok(delivered)
    }

    /// Writes the drive's volatile cache to the data file, if there is one.
    fn write_cache(&self) -> Result<(), ServiceError> {
        match self.running.get() {
            Some(running) if self.store.is_file() && !self.settings.read_only => {
                running.paced.write_cache()?;
                self.store.sync()
            }
            _ => Ok(()),
        }
    }

    /// Carries out a command, and records its outcome and delivery time.
    fn record_outcome(
        &self,
        command: impl FnOnce(&Running) -> Result<Delivered, ServiceError>,
    ) -> Result<(), ServiceError> {
        let running = self.running.get().ok_or(ServiceError::Stopped)?;
        let ended = command(running).and_then(|mut delivered| {
            delivered.delivered_at = running.paced.clock().now();
            match delivered.completion.outcome.clone() {
                Ok(()) => Ok(delivered),
                Err(error) => {
                    self.log_row(&delivered);
                    Err(error.into())
                }
            }
        });
        let mut tally = self.tally.lock();
        match ended {
            Ok(delivered) => {
                tally.add(&delivered, self.settings.speed);
                drop(tally);
                self.log_row(&delivered);
                Ok(())
            }
            Err(error) => {
                tally.add_error(&error);
                Err(error)
            }
        }
    }

    /// Carries out a read, and adds its duration to `time` if the data is in a file.
    fn timed<T>(&self, time: &Cell<Duration>, read: impl FnOnce() -> T) -> T {
        let begun = self.store.is_file().then(Instant::now);
        let result = read();
        if let Some(begun) = begun {
            time.set(time.get() + begun.elapsed());
        }
        result
    }

    /// Adds a row to the log if the drive has processed the command.
    fn log_row(&self, delivered: &Delivered) {
        let Completion {
            submitted,
            completed,
            breakdown,
            ..
        } = delivered.completion;
        if let (Some(log), Some(served)) = (&self.log, delivered.completion.served) {
            let mut arrival = delivered.arrival;
            // The log's `measured` column is the response time as delivered.
            let measured = delivered.delivered_at.since(arrival.at) + delivered.held_up;
            arrival.measured = Some(measured);
            log.push(Outcome {
                arrival,
                completion: drive::Completion {
                    tag: drive::Tag(arrival.tag),
                    request: arrival.request,
                    submitted,
                    completed,
                    breakdown,
                    served,
                },
                status: RequestStatus::of(&delivered.completion.outcome),
            });
        }
    }

    /// Returns the sectors that hold a range of bytes.
    fn sectors(&self, offset: u64, count: u64) -> Result<(Lbn, u32), ServiceError> {
        let sector = self.settings.profile.sector.logical_bytes;
        let bytes = u64::from(sector);
        if !offset.is_multiple_of(bytes) || !count.is_multiple_of(bytes) || count == 0 {
            return Err(ServiceError::Misaligned {
                offset,
                count,
                sector,
            });
        }
        let end = offset.checked_add(count);
        let sectors = u32::try_from(count / bytes).ok();
        match (end, sectors) {
            (Some(end), Some(sectors)) if end <= self.bytes() => Ok((Lbn(offset / bytes), sectors)),
            _ => Err(ServiceError::BeyondEnd {
                offset,
                count,
                bytes: self.bytes(),
            }),
        }
    }
}

impl BlockService for DriveServer {
    fn start(&self) -> Result<(), ServiceError> {
        if self.running.get().is_some() {
            return Ok(());
        }
        if let Some(log) = &self.log {
            log.start()?;
        }
        if let Some(file) = &self.receipt_file {
            file.start()?;
        }
        let mut disk = Disk::with_media(self.drive.clone(), StoreMedia(Arc::clone(&self.store)));
        disk.schedule_faults(&self.scenario)?;
        let paced = RealTimeDrive::start(disk, self.scenario.faults.len(), &self.settings);
        let pacer = paced.pace().map_err(ServiceError::Thread)?;
        if let Some(control) = &*self.control.lock() {
            control.start(&paced).map_err(ServiceError::Thread)?;
        }
        // No other thread starts the server at the same time.
        let _ = self.running.set(Running {
            paced,
            load: Load::now(),
            pacer: Mutex::new(Some(pacer)),
        });
        Ok(())
    }

    fn stop(&self) -> Result<(), ServiceError> {
        if let Some(running) = self.running.get() {
            running.paced.stop();
            let pacer = running.pacer.lock().take();
            if let Some(pacer) = pacer {
                pacer.join().expect("the pacer does not panic");
            }
        }
        drop(self.control.lock().take());
        let results = [
            self.write_cache(),
            self.log.as_ref().map_or(Ok(()), Log::finish),
            self.write_receipt(),
        ];
        let mut errors = results.into_iter().filter_map(Result::err);
        let first = errors.next();
        for other in errors {
            tracing::error!("{other}");
        }
        first.map_or(Ok(()), Err)
    }

    fn limit_shutdown(&self) {
        std::thread::sleep(SHUTDOWN_TIMEOUT);
        if let Some(running) = self.running.get() {
            running.paced.stop();
        }
    }

    fn write_receipt(&self) -> Result<(), ServiceError> {
        let (Some(receipt), Some(file)) = (self.receipt(), &self.receipt_file) else {
            return Ok(());
        };
        file.write(&receipt)
    }

    fn bytes(&self) -> u64 {
        bytes_of(&self.drive)
    }

    fn block_sizes(&self) -> BlockSizes {
        let sector = &self.settings.profile.sector;
        BlockSizes {
            minimum: sector.logical_bytes,
            preferred: sector.physical_bytes,
            maximum: REQUEST_MAX,
        }
    }

    fn is_immediate(&self) -> bool {
        self.settings.profile.mechanics.is_none() && self.settings.file.is_none()
    }

    fn is_rotational(&self) -> bool {
        self.settings.profile.mechanics.is_some()
    }

    fn has_write_cache(&self) -> bool {
        let cache = &self.settings.profile.cache;
        cache.enabled && cache.write_back == WriteBack::Full
    }

    fn trim_zeroes(&self) -> bool {
        self.settings.profile.scsi.unmap == Unmap::Zeroes
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServiceError> {
        self.record_outcome(|running| {
            let (lbn, sectors) = self.sectors(offset, buffer.len() as u64)?;
            let command = Command::Read { lbn, sectors };
            let into = RefCell::new(&mut *buffer);
            let fetched = Cell::new(None);
            let file_time = Cell::new(Duration::ZERO);
            let fetch_early = || {
                let changes = self.store.changes();
                if self.timed(&file_time, || {
                    self.store.read(&mut into.borrow_mut(), offset).is_ok()
                }) {
                    fetched.set(Some(changes));
                }
            };
            let (mut delivered, fetched) =
                running
                    .paced
                    .serve(command, Vec::new(), fetch_early, |disk| {
                        if disk.unflushed_bytes() + disk.backlog_bytes() > 0 {
                            return Some(
                                self.timed(&file_time, || disk.fetch(lbn, &mut into.borrow_mut())),
                            );
                        }
                        // If no data is cached, the media hold the newest data.
                        (fetched.get() == Some(self.store.changes())).then_some(Ok(()))
                    })?;
            if delivered.completion.outcome.is_ok() {
                // The model is unlocked now, so no other request waits for this read.
                fetched.unwrap_or_else(|| {
                    Ok(self.timed(&file_time, || self.store.read(buffer, offset))?)
                })?;
            }
            delivered.file_time = file_time.get();
            Ok(delivered)
        })
    }

    fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError> {
        self.record_outcome(|running| {
            let (lbn, sectors) = self.sectors(offset, bytes.len() as u64)?;
            let command = Command::Write { lbn, sectors, fua };
            self.store.prefetch(offset, bytes.len() as u64);
            self.submit_and_sync(running, command, bytes, fua)
        })
    }

    fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        self.record_outcome(|running| {
            let (lbn, sectors) = self.sectors(offset, count)?;
            let command = Command::WriteZeroes { lbn, sectors, fua };
            self.submit_and_sync(running, command, Vec::new(), fua)
        })
    }

    fn trim(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        self.record_outcome(|running| {
            let (lbn, sectors) = self.sectors(offset, count)?;
            self.submit_and_sync(running, Command::Trim { lbn, sectors }, Vec::new(), false)
        })?;
        if fua { self.flush() } else { Ok(()) }
    }

    fn flush(&self) -> Result<(), ServiceError> {
        self.record_outcome(|running| {
            self.submit_and_sync(running, Command::Flush, Vec::new(), true)
        })
    }
}

/// Returns the scheduled faults, and the seed for those without one of their own.
fn scenario_of(settings: &Settings, drive: &Drive) -> Result<Scenario, ServeError> {
    let mut scenario = Scenario::default();
    if let Some(path) = &settings.scenario {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ServeError::file(FileRole::Scenario, path, "read", error))?;
        scenario = text.parse().map_err(|error| ServeError::Scenario {
            path: path.clone(),
            error,
        })?;
        // Only a disk can check whether the faults fit.
        Disk::with_media(drive.clone(), MemoryMedia::new())
            .schedule_faults(&scenario)
            .map_err(|error| ServeError::ScenarioMismatch {
                path: path.clone(),
                error,
            })?;
    }
    scenario.seed = settings.seed.unwrap_or(scenario.seed);
    Ok(scenario)
}

impl Drop for DriveServer {
    fn drop(&mut self) {
        // Callers that need the error call `stop` themselves.
        let _ = self.stop();
    }
}

fn bytes_of(drive: &Drive) -> u64 {
    let Sectors(sectors) = drive.geometry().capacity();
    sectors * u64::from(drive.profile().sector.logical_bytes)
}
