//! The server in the guest: exports a drive as a block device until it receives a line, and counts
//! the requests.

use std::env;
use std::io::{Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use traxtent_server::serve::{DriveServer, Settings};
use traxtent_server::service::{BlockService, BlockSizes, Export, ServiceError};
use traxtent_server::ublk::UblkDevice;

use super::inside::profile;

/// The variable with the server's options.
pub(super) const OPTIONS: &str = "TRAXTENT_UBLK_OPTIONS";

/// The requests that have reached the drive.
#[derive(Debug, Default)]
struct Counts {
    outstanding: AtomicU64,
    /// The largest number of outstanding requests.
    outstanding_max: AtomicU64,
    /// The size of the largest read or write in bytes.
    largest: AtomicU64,
    /// The number of reads and writes.
    data: AtomicU64,
    fua: AtomicU64,
    flushes: AtomicU64,
    trims: AtomicU64,
    zeros: AtomicU64,
}

/// A drive whose requests are counted.
#[derive(Debug)]
struct Counted {
    drive: DriveServer,
    optimal: Option<u32>,
    /// The number of outstanding requests that is printed once it is reached.
    announced: u64,
    counts: Counts,
}

impl Counted {
    fn counted<T>(
        &self,
        kind: &AtomicU64,
        bytes: u64,
        fua: bool,
        request: impl FnOnce() -> T,
    ) -> T {
        let counts = &self.counts;
        kind.fetch_add(1, Ordering::Relaxed);
        counts.fua.fetch_add(u64::from(fua), Ordering::Relaxed);
        let now = counts.outstanding.fetch_add(1, Ordering::Relaxed) + 1;
        let before = counts.outstanding_max.fetch_max(now, Ordering::Relaxed);
        if before < now && now == self.announced {
            println!("\nreached {now}");
            stdout().flush().unwrap();
        }
        counts.largest.fetch_max(bytes, Ordering::Relaxed);
        let result = request();
        counts.outstanding.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

impl BlockService for Counted {
    fn start(&self) -> Result<(), ServiceError> {
        self.drive.start()
    }
    fn stop(&self) -> Result<(), ServiceError> {
        self.drive.stop()
    }
    fn bytes(&self) -> u64 {
        self.drive.bytes()
    }
    fn block_sizes(&self) -> BlockSizes {
        self.drive.block_sizes()
    }
    fn optimal_bytes(&self) -> Option<u32> {
        self.optimal
    }
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServiceError> {
        let bytes = buffer.len() as u64;
        let read = || self.drive.read(buffer, offset);
        self.counted(&self.counts.data, bytes, false, read)
    }
    fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError> {
        let count = bytes.len() as u64;
        let write = || self.drive.write(bytes, offset, fua);
        self.counted(&self.counts.data, count, fua, write)
    }
    fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        let zero = || self.drive.zero(offset, count, fua);
        self.counted(&self.counts.zeros, 0, fua, zero)
    }
    fn trim(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        let trim = || self.drive.trim(offset, count, fua);
        self.counted(&self.counts.trims, 0, fua, trim)
    }
    fn flush(&self) -> Result<(), ServiceError> {
        let flush = || self.drive.flush();
        self.counted(&self.counts.flushes, 0, false, flush)
    }
}

/// Serves a drive with the given options, and prints the device or the error. Ends after a line on
/// standard input, and prints the counts.
pub(super) fn run() {
    let options = env::var(OPTIONS).unwrap();
    let value = |key: &str| {
        let mut options = options.split(' ');
        options.find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    };
    let name = value("drive").unwrap();
    let mut settings = Settings::of(name, profile(name));
    settings.file = value("file").map(Into::into);
    let service = Arc::new(Counted {
        drive: DriveServer::open(settings).unwrap(),
        optimal: value("optimal").map(|bytes| bytes.parse().unwrap()),
        announced: value("announce").map_or(u64::MAX, |depth| depth.parse().unwrap()),
        counts: Counts::default(),
    });
    service.start().unwrap();
    let export = Export {
        name: name.to_owned(),
        description: String::new(),
        service: Arc::clone(&service) as Arc<dyn BlockService>,
        read_only: value("readonly").is_some(),
    };
    let number = value("number").map(|number| number.parse().unwrap());
    let device = match UblkDevice::start(&export, number) {
        Ok(device) => device,
        Err(error) => {
            println!("\nerror: {error}");
            return;
        }
    };
    println!("\nserving {}", device.path().display());
    stdout().flush().unwrap();
    let _ = stdin().read_line(&mut String::new());
    device.stop().unwrap();
    service.stop().unwrap();
    let counts = &service.counts;
    for (name, count) in [
        ("outstanding_max", &counts.outstanding_max),
        ("largest", &counts.largest),
        ("data", &counts.data),
        ("fua", &counts.fua),
        ("flushes", &counts.flushes),
        ("trims", &counts.trims),
        ("zeros", &counts.zeros),
    ] {
        println!("count {name} {}", count.load(Ordering::Relaxed));
    }
}
