//! If a drive is served for a day, does the server's memory stay bounded, and does the drive's time
//! stay in step with the clock?

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use traxtent_model::profile::{WriteBack, builtin};
use traxtent_units::Rng;

use crate::client::Client;
use crate::server::{Server, argument, option, quick_folder, write};

/// The maximum speed of a server: a day takes 86 seconds.
const SPEED: u64 = 1000;
/// The clients stay below this offset. The range is written first, so the data in memory does
/// not grow later.
const BYTES: u64 = 16 << 20;
const CLIENTS: u64 = 4;
/// The least real time before the first measurement. Every thread then has its stack and buffers.
const WARM: Duration = Duration::from_secs(3);
/// The growth of the process that is allowed after that. One byte per request of a day would exceed
/// it.
const GROWTH_MAX_KIB: u64 = 1024;

/// Serves requests as fast as they come. Does the server's memory stay bounded over 15 minutes of
/// the drive's time, or up to a day in a soak? Two reads, at the beginning and at the end of that
/// time, are each bracketed by readings of this process's clock. Is the drive's time between them
/// the real time times the speed, to within the brackets?
#[test]
fn a_day_of_requests() {
    let zstd = testkit::tool!("zstd");
    let simulated_s = testkit::repeats(900).min(86_400);
    let length = Duration::from_secs_f64(simulated_s as f64 / SPEED as f64);
    let folder = quick_folder();
    let log = folder.path().join("log.csv.zst");
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    let server = Server::start(&[
        argument(write(folder.path(), &profile)),
        option("speed", SPEED),
        option("log", log.display()),
    ]);
    let mut client = Client::new(&server);
    for offset in (0..BYTES).step_by(1 << 20) {
        client.write(offset, &vec![1; 1 << 20]).unwrap().unwrap();
    }
    client.flush().unwrap().unwrap();
    let (stop, requests) = (AtomicBool::new(false), AtomicU64::new(0));
    let (early, late) = thread::scope(|scope| {
        for seed in 0..CLIENTS {
            let client = Client::new(&server);
            let (stop, requests) = (&stop, &requests);
            scope.spawn(move || requests.fetch_add(work(client, seed, stop), Ordering::Relaxed));
        }
        thread::sleep(WARM.max(length / 4));
        let early = TimedRequest::new(&mut client, &server, 0);
        thread::sleep(length);
        let late = TimedRequest::new(&mut client, &server, 1);
        stop.store(true, Ordering::Relaxed);
        (early, late)
    });
    drop(client);
    server.signal("TERM");
    server.wait();

    let requests = requests.into_inner();
    let (before, after) = (early.memory_kib, late.memory_kib);
    eprintln!(
        "{simulated_s} s of the drive's time, {requests} requests; {before} KiB, then {after} KiB"
    );
    assert!(
        requests > 1000 * length.as_secs().max(1),
        "too few requests to show anything"
    );
    assert!(
        after <= before + GROWTH_MAX_KIB,
        "from {before} to {after} KiB"
    );

    let rows = Command::new(zstd)
        .arg("-dc")
        .arg(&log)
        .output()
        .unwrap()
        .stdout;
    let rows = String::from_utf8(rows).unwrap();
    let real_least = late.sent - early.answered;
    let real_most = late.answered - early.sent;
    let modelled = late.submitted(&rows) - early.submitted(&rows);
    let passed = Duration::from_secs_f64(modelled / 1000.0 / SPEED as f64);
    eprintln!(
        "{passed:?} of real time by the drive's log; {real_least:?} to {real_most:?} by the clock"
    );
    assert!((real_least..=real_most).contains(&passed));
}

/// Sends random requests until `stop` is set; returns their number.
fn work(mut client: Client, seed: u64, stop: &AtomicBool) -> u64 {
    let mut rng = Rng::new(seed);
    let mut buffer = vec![0; 4096];
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let offset = rng.below(BYTES / 4096) * 4096;
        let answer = match rng.below(20) {
            0 => client.flush(),
            1..8 => client.write(offset, &buffer),
            _ => client.read(offset, &mut buffer),
        };
        answer.unwrap().unwrap();
        sent += 1;
    }
    sent
}

/// A request between two readings of the clock, and the server's memory at that time.
struct TimedRequest {
    lbn: u64,
    sent: Instant,
    answered: Instant,
    memory_kib: u64,
}

impl TimedRequest {
    /// Performs several reads, each of a different LBN, and returns the one whose clock readings
    /// are closest to each other.
    fn new(client: &mut Client, server: &Server, number: u64) -> TimedRequest {
        let looks = (0..20).map(|trial| {
            let lbn = BYTES / 512 + number * 1000 + trial * 10;
            let sent = Instant::now();
            client.read(lbn * 512, &mut [0; 512]).unwrap().unwrap();
            TimedRequest {
                lbn,
                sent,
                answered: Instant::now(),
                memory_kib: memory_kib(server.id()),
            }
        });
        let closest = looks.min_by_key(|look| look.answered - look.sent);
        closest.expect("there are some")
    }

    /// Returns the time at which the drive received the request, according to its log, in
    /// milliseconds of its own time.
    fn submitted(&self, log: &str) -> f64 {
        let mut rows = log.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let head = rows.next().unwrap();
        let column = |name| head.iter().position(|column| *column == name).unwrap();
        let (lbn, submitted) = (column("lbn"), column("submitted_ms"));
        let number = self.lbn.to_string();
        let row = rows.find(|row| row[lbn] == number).unwrap();
        row[submitted].parse().unwrap()
    }
}

/// Returns the resident memory of a process in KiB.
fn memory_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.unwrap().parse().unwrap()
}
