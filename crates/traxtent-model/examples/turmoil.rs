//! A server, simulated with the `turmoil` crate, that keeps its log on a modelled drive and
//! survives crashes.
//!
//! `cargo run --release -p traxtent-model --example turmoil [seed]`
//!
//! Clients send transactions over turmoil's simulated TCP. The server appends them to a log and
//! acknowledges each once it is durable. A crash of the host cuts the power to its disk. At the
//! end, every acknowledged transaction must be in the log.
//!
//! The disk's clock follows turmoil's. Tokio's timers count milliseconds, so the server notices a
//! completion at the next millisecond. `tokio::select!` must be `biased`: otherwise it picks a
//! branch at random, with a seed that turmoil does not set.
#![allow(clippy::disallowed_methods)]

mod wal;

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};
use traxtent_model::disk::{Disk, Fault, Tearing};
use traxtent_model::profile::builtin;
use traxtent_units::{SimTime, Span};
use turmoil::net::{TcpListener, TcpStream};
use wal::{Log, cut_and_count, percentile};

const DRIVE: &str = "toshiba-x300";
const PORT: u16 = 7000;
const CLIENTS: u64 = 8;
/// The number of transactions per client.
const TRANSACTIONS: u64 = 100;
/// The times at which the server crashes.
const CRASHES: [Duration; 2] = [Duration::from_millis(700), Duration::from_millis(1900)];
/// The time from a crash until the server starts again.
const DOWN: Duration = Duration::from_millis(300);
/// The time after which a client gives up on an attempt.
const TIMEOUT: Duration = Duration::from_millis(100);
/// The time that a client waits after a failed attempt before it connects again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The acknowledged transactions, each with the time from its first attempt to its acknowledgement.
type Acknowledged = Rc<RefCell<Vec<(u64, Duration)>>>;

fn main() -> turmoil::Result {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse())?;
    print!("{}", simulate(seed, true)?.0);
    Ok(())
}

/// Runs the simulation. Returns a report, and the number of acknowledged transactions lost.
pub(crate) fn simulate(seed: u64, flushes: bool) -> turmoil::Result<(String, usize)> {
    let mut report = format!("seed {seed}: {CLIENTS} clients, a server on {DRIVE}\n");
    let mut sim = turmoil::Builder::new()
        .rng_seed(seed)
        .max_message_latency(Duration::from_millis(2))
        .build();

    // The disk is outside the host, because it survives a crash.
    let profile = builtin(DRIVE).ok_or("not a built-in drive")?;
    let disk = Rc::new(RefCell::new(Disk::new(&profile)?));
    let server_disk = disk.clone();
    sim.host("server", move || serve(server_disk.clone(), flushes));
    let acknowledged = Acknowledged::default();
    for number in 0..CLIENTS {
        let client = client(number, acknowledged.clone());
        sim.client(format!("client{number}"), client);
    }

    while !sim.step()? {
        let time = sim.elapsed();
        if CRASHES.contains(&time) {
            sim.crash("server");
            let cut = Fault::PowerCut {
                seed: Some(seed + time.as_millis() as u64),
                tearing: Tearing::Physical,
                off: Span(picoseconds(DOWN)),
            };
            let cut = disk.borrow_mut().inject(SimTime(picoseconds(time)), cut)?;
            report += &format!("{time:?}: power cut, {}\n", cut.unwrap_or_default());
        }
        if CRASHES.iter().any(|crash| *crash + DOWN == time) {
            sim.bounce("server");
        }
    }

    let (transactions, mut latencies): (Vec<u64>, Vec<_>) = acknowledged.take().into_iter().unzip();
    let (found, lost) = cut_and_count(&mut disk.borrow_mut(), seed, &transactions)?;
    latencies.sort();
    let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(&latencies, percent));
    let (count, time) = (latencies.len(), sim.elapsed());
    report += &format!("{time:?}: {count} acknowledged, {found} found, {lost} lost\n");
    report += &format!("latency: p50 {p50:?}, p99 {p99:?}, max {max:?}\n");
    Ok((report, lost))
}

/// The server's state in memory, which a crash loses, and its disk, which survives a crash.
struct Server {
    log: RefCell<Log>,
    disk: Rc<RefCell<Disk>>,
    /// Signals that records were appended or acknowledged. With a single thread, no signal is
    /// missed.
    changed: Notify,
}

/// Runs the server from its start until a crash.
async fn serve(disk: Rc<RefCell<Disk>>, flushes: bool) -> turmoil::Result {
    // Recovery runs on the disk's own clock. The host then waits until its own clock has caught up.
    let (log, _) = Log::recover(&mut disk.borrow_mut(), now(), flushes)?;
    let ready = disk.borrow().now();
    sleep_until(ready).await;
    let server = Rc::new(Server {
        log: RefCell::new(log),
        disk,
        changed: Notify::new(),
    });
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    let accept = async {
        loop {
            let (stream, _) = listener.accept().await?;
            spawn_local(answer(server.clone(), stream));
        }
    };
    tokio::select! {
        biased;
        result = write_log(&server) => result,
        result = accept => result,
    }
}

/// Advances the log at each event of the disk or, while none is due, once a record is appended.
async fn write_log(server: &Server) -> turmoil::Result {
    loop {
        let disk = &server.disk;
        (server.log.borrow_mut()).poll(&mut disk.borrow_mut(), now())?;
        let wakeup = disk.borrow().next_wakeup();
        server.changed.notify_waiters();
        match wakeup {
            Some(wakeup) => sleep_until(wakeup).await,
            None => server.changed.notified().await,
        }
    }
}

/// Receives transactions from a client, and sends back the number of each once its record is
/// durable.
async fn answer(server: Rc<Server>, mut stream: TcpStream) -> turmoil::Result {
    loop {
        let transaction = stream.read_u64().await?;
        let record = (server.log.borrow_mut()).append(&server.disk.borrow(), transaction);
        server.changed.notify_waiters();
        while server.log.borrow().acknowledged() <= record {
            server.changed.notified().await;
        }
        stream.write_u64(transaction).await?;
    }
}

/// Sends a client's transactions in order, and retries each until it is acknowledged.
async fn client(number: u64, acknowledged: Acknowledged) -> turmoil::Result {
    let mut stream = None;
    for transaction in number * TRANSACTIONS..(number + 1) * TRANSACTIONS {
        let started = turmoil::elapsed();
        while let Err(_) | Ok(Err(_)) = timeout(TIMEOUT, send(&mut stream, transaction)).await {
            stream = None;
            sleep(RETRY_DELAY).await;
        }
        let took = turmoil::elapsed() - started;
        acknowledged.borrow_mut().push((transaction, took));
    }
    Ok(())
}

async fn send(stream: &mut Option<TcpStream>, transaction: u64) -> std::io::Result<()> {
    let stream = match stream {
        Some(stream) => stream,
        None => stream.insert(TcpStream::connect(("server", PORT)).await?),
    };
    stream.write_u64(transaction).await?;
    assert_eq!(stream.read_u64().await?, transaction);
    Ok(())
}

/// The simulation's time, on the scale of the disk's clock.
fn now() -> SimTime {
    let elapsed = turmoil::sim_elapsed().expect("called in a simulation");
    SimTime(picoseconds(elapsed))
}

fn picoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64 * 1000
}

async fn sleep_until(time: SimTime) {
    let nanoseconds = time.saturating_since(now()).0.div_ceil(1000);
    sleep(Duration::from_nanos(nanoseconds)).await;
}
