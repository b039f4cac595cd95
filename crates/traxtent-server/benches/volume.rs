//! Measures volumes on members in memory: writes of whole stripes, compared with copies in memory;
//! small writes with and without the journal; and rebuilds, compared with the slowest member.
//!
//! `cargo xtask bench volume` runs it and prints the machine. Arguments: the seed, and a directory
//! on a file system in memory.
#![allow(missing_docs)]

use std::error::Error;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use traxtent_layout::raid::Level;
use traxtent_server::volume::{
    AlignedBuffer, Devices, VolumePlan, create, find, rebuild_for_a_second,
};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_volume::{Action, MemberIo, Op, Volume, VolumeError, WriteHole};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The number of runs of each variant of the writes; a rebuild runs once. The variants alternate,
/// and the medians are reported.
const RUNS: usize = 7;

/// The number of members of the volumes.
const MEMBERS: usize = 5;

/// The size of a member in bytes.
const MEMBER_BYTES: u64 = 256 << 20;

/// The size of a chunk in bytes.
const CHUNK_BYTES: u64 = 128 << 10;

/// The size in bytes of a request that covers whole stripes.
const REQUEST_BYTES: usize = 2 << 20;

/// The number of bytes written in a run of [`stream`] or [`plain_writes`]. [`copies`] copies half
/// as many.
const RUN_BYTES: usize = 512 << 20;

/// The number of small writes, of 4 KiB, in a run.
const SMALL_WRITES: u64 = 50_000;

/// The rates of slow members in bytes per second, the slowest one last.
const SLOW_RATES: [f64; MEMBERS] = [250e6, 250e6, 250e6, 250e6, 200e6];

/// The size of a slow member in bytes.
const SLOW_MEMBER_BYTES: u64 = 128 << 20;

fn main() -> Outcome<()> {
    // `cargo bench` passes flags of its own.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|one| !one.starts_with("--"));
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let folder = arguments.next().map_or("/dev/shm".into(), PathBuf::from);
    whole_stripes(seed, &folder)?;
    small_writes(seed, &folder)?;
    rebuild(seed, &folder)
}

/// Creates a volume on files in memory. All of their pages are allocated, and the files are deleted
/// immediately.
fn volume<M: MemberIo>(
    seed: u64,
    folder: &Path,
    member: u64,
    members: impl FnOnce(Devices) -> M,
    hole: WriteHole,
) -> Outcome<Volume<M>> {
    let mut rng = Rng::new(seed);
    let mut paths = Vec::new();
    let zeros = vec![0; 1 << 20];
    for number in 0..MEMBERS {
        let path = folder.join(format!("member-{number}"));
        let mut file = std::fs::File::create(&path)?;
        for _ in 0..member >> 20 {
            std::io::Write::write_all(&mut file, &zeros)?;
        }
        paths.push(path);
    }
    let plan = VolumePlan {
        level: Level::Raid5,
        chunk_bytes: Some(CHUNK_BYTES),
        granule_bytes: 512,
        journal_bytes: 32 << 20,
        members: paths.iter().map(|path| (path.clone(), None)).collect(),
        force: false,
    };
    let id = || uuid::Uuid::from_u64_pair(rng.bits(), rng.bits());
    create(&plan, id, |_| None)?;
    let volume = find(&paths, false)?.open_on(members, hole)?;
    for path in paths {
        std::fs::remove_file(path)?;
    }
    Ok(volume)
}

/// Measures writes of whole stripes by one thread and by two, and copies and plain writes by the
/// same number of threads.
fn whole_stripes(seed: u64, folder: &Path) -> Outcome<()> {
    println!(
        "RAID-5 of {MEMBERS} members, chunks of {} KiB: writes of whole stripes, {} MiB each, GB/s of data; medians of {RUNS} runs.\n\
         The bound is the rate of copies in memory, divided over data and parity: {} of {MEMBERS} parts. Members are plain memory or\n\
         files in memory. For files, the rate of direct writes by threads is given too, divided in the same way.",
        CHUNK_BYTES >> 10,
        REQUEST_BYTES >> 20,
        MEMBERS - 1,
    );
    println!(
        "{:<8}{:>8}{:>8}{:>7}{:>12}{:>10}{:>8}{:>8}{:>7}{:>12}{:>10}{:>11}{:>7}",
        "threads",
        "bound",
        "memory",
        "ratio",
        "no journal",
        "CPU s/GB",
        "bound",
        "files",
        "ratio",
        "no journal",
        "CPU s/GB",
        "plain",
        "ratio"
    );
    let memory = [WriteHole::Closed, WriteHole::Open]
        .map(|hole| volume(seed, folder, MEMBER_BYTES, InMemory::copy_of, hole));
    let files = [WriteHole::Closed, WriteHole::Open]
        .map(|hole| volume(seed, folder, MEMBER_BYTES, |members| members, hole));
    let ([memory, memory_open], [files, files_open]) = (memory, files);
    let (memory, memory_open, files, files_open) = (memory?, memory_open?, files?, files_open?);
    let share = (MEMBERS - 1) as f64 / MEMBERS as f64;
    let mut good = true;
    for threads in [1, 2] {
        let mut seen: [Vec<f64>; 8] = Default::default();
        for _ in 0..RUNS {
            let of_memory = timed(|| stream(&memory, threads))?;
            let of_files = timed(|| stream(&files, threads))?;
            let run = [
                copies(threads) * share,
                of_memory.0,
                of_memory.1,
                stream(&memory_open, threads)?,
                of_files.0,
                of_files.1,
                stream(&files_open, threads)?,
                plain_writes(folder, threads)? * share,
            ];
            std::iter::zip(&mut seen, run).for_each(|(seen, one)| seen.push(one));
        }
        let ratio = |of: usize, to: usize| {
            let pairs = std::iter::zip(&seen[of], &seen[to]);
            median(pairs.map(|(one, other)| one / other))
        };
        let ratios = [ratio(1, 0), ratio(4, 0), ratio(4, 7)];
        let of = |index: usize| median(seen[index].iter().copied());
        let gb = |index: usize| of(index) / 1e9;
        println!(
            "{threads:<8}{:>8.2}{:>8.2}{:>7.2}{:>12.2}{:>10.2}{:>8.2}{:>8.2}{:>7.2}{:>12.2}{:>10.2}{:>11.2}{:>7.2}",
            gb(0),
            gb(1),
            ratios[0],
            gb(3),
            of(2),
            gb(0),
            gb(4),
            ratios[1],
            gb(6),
            of(5),
            gb(7),
            ratios[2]
        );
        good &= ratios[0] >= 0.5;
    }
    let verdict = if good { "" } else { ": missed" };
    println!(
        "members in memory: the required ratio is at least 0.5{verdict}. With files, the kernel also spends time per page\n"
    );
    Ok(())
}

/// Returns a rate, and the processor seconds per GB of [`RUN_BYTES`].
fn timed(measured: impl FnOnce() -> Outcome<f64>) -> Outcome<(f64, f64)> {
    let before = processor_seconds();
    let rate = measured()?;
    Ok((
        rate,
        1e9 * (processor_seconds() - before) / RUN_BYTES as f64,
    ))
}

/// Returns the rate, in bytes per second, at which threads write files in memory one chunk at a
/// time.
fn plain_writes(folder: &Path, threads: usize) -> Outcome<f64> {
    let data = vec![0x33; CHUNK_BYTES as usize];
    let each = RUN_BYTES / threads / CHUNK_BYTES as usize;
    let mut files = Vec::new();
    for number in 0..threads {
        let path = folder.join(format!("plain-{number}"));
        let file = std::fs::File::create(&path)?;
        std::fs::remove_file(path)?;
        for piece in 0..each {
            file.write_all_at(&data, piece as u64 * CHUNK_BYTES)?;
        }
        files.push(file);
    }
    let begun = Instant::now();
    thread::scope(|scope| {
        let data = &data;
        let write = move |file: &std::fs::File| {
            (0..each).try_for_each(|piece| file.write_all_at(data, piece as u64 * CHUNK_BYTES))
        };
        let threads: Vec<_> = files
            .iter()
            .map(|file| scope.spawn(move || write(file)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    Ok((each * threads * CHUNK_BYTES as usize) as f64 / begun.elapsed().as_secs_f64())
}

/// Returns the rate, in bytes per second, at which threads copy between buffers larger than any
/// cache.
fn copies(threads: usize) -> f64 {
    let each = RUN_BYTES / 2 / threads;
    let mut memory: Vec<(Vec<u8>, Vec<u8>)> = (0..threads)
        .map(|number| (vec![number as u8 + 1; each], vec![0x77; each]))
        .collect();
    let begun = Instant::now();
    thread::scope(|scope| {
        for (from, to) in &mut memory {
            scope.spawn(|| to.copy_from_slice(from));
        }
    });
    let rate = (each * threads) as f64 / begun.elapsed().as_secs_f64();
    std::hint::black_box(memory);
    rate
}

/// Returns the rate, in bytes per second, at which threads write, each to its own part of the
/// volume.
fn stream<M: MemberIo + Sync>(volume: &Volume<M>, threads: usize) -> Outcome<f64>
where
    M::Buffer: Send,
{
    let data: Vec<u8> = (0..REQUEST_BYTES)
        .map(|byte| ((byte * 31) >> 5) as u8)
        .collect();
    let requests = RUN_BYTES / REQUEST_BYTES / threads;
    let begun = Instant::now();
    let write = |number: usize| {
        let sectors = (REQUEST_BYTES / volume.sector_bytes()) as u64;
        for request in number * requests..(number + 1) * requests {
            block_on(volume.write(Lbn(request as u64 * sectors), &data))?;
        }
        Ok::<(), VolumeError>(())
    };
    thread::scope(|scope| {
        let write = &write;
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || write(number)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    Ok((requests * threads * REQUEST_BYTES) as f64 / begun.elapsed().as_secs_f64())
}

/// Measures the cost of a journal that stores the data of writes.
fn small_writes(seed: u64, folder: &Path) -> Outcome<()> {
    println!(
        "random writes of 4 KiB, one at a time, medians of {RUNS} runs (flushes of such members cost nothing; only copying and computing are measured)"
    );
    let mut rates = [Vec::new(), Vec::new()];
    let mut costs = [Vec::new(), Vec::new()];
    let volumes = [WriteHole::Open, WriteHole::Closed]
        .map(|hole| volume(seed, folder, MEMBER_BYTES, |members| members, hole));
    let volumes = volumes.into_iter().collect::<Outcome<Vec<_>>>()?;
    for run in 0..RUNS {
        for (side, volume) in volumes.iter().enumerate() {
            let mut rng = Rng::new(seed ^ run as u64);
            let sectors = 4096 / volume.sector_bytes() as u64;
            let places = volume.capacity().0 / sectors;
            let data = [0x5a; 4096];
            let (begun, before) = (Instant::now(), processor_seconds());
            for _ in 0..SMALL_WRITES {
                block_on(volume.write(Lbn(rng.below(places) * sectors), &data))?;
            }
            rates[side].push(SMALL_WRITES as f64 / begun.elapsed().as_secs_f64());
            costs[side].push(1e9 * (processor_seconds() - before) / (SMALL_WRITES * 4096) as f64);
        }
    }
    let share = median(std::iter::zip(&rates[1], &rates[0]).map(|(with, without)| with / without));
    for (name, (rates, costs)) in ["no journal", "journal"]
        .into_iter()
        .zip(rates.into_iter().zip(costs))
    {
        println!(
            "{name:<12}{:>10.0} per second{:>10.2} CPU s/GB",
            median(rates),
            median(costs)
        );
    }
    println!("with the journal: {share:.2} of the rate without it\n");
    Ok(())
}

/// Measures rebuilds on members of given speeds, and one on members as fast as memory.
fn rebuild(seed: u64, folder: &Path) -> Outcome<()> {
    let slowest = SLOW_RATES.into_iter().fold(f64::MAX, f64::min);
    println!(
        "rebuild of a member of {} MiB; four members at {:?} MB/s, the slowest one at {} MB/s",
        SLOW_MEMBER_BYTES >> 20,
        &SLOW_RATES.map(|rate| rate / 1e6)[..MEMBERS - 1],
        slowest / 1e6
    );
    for (name, victim) in [("from the slowest", 0), ("onto the slowest", MEMBERS - 1)] {
        let slow = volume(
            seed,
            folder,
            SLOW_MEMBER_BYTES,
            Slow::new,
            WriteHole::Closed,
        )?;
        let before = processor_seconds();
        let rate = rebuild_rate(&slow, victim)?;
        let cost = (processor_seconds() - before) / (SLOW_MEMBER_BYTES as f64 / 1e9);
        let ratio = rate / slowest;
        println!(
            "{name:<20}{:>8.1} MB/s{ratio:>8.2} of the slowest's speed{cost:>8.2} CPU s/GB",
            rate / 1e6
        );
    }
    let fast = volume(
        seed,
        folder,
        MEMBER_BYTES,
        |members| members,
        WriteHole::Closed,
    )?;
    let before = processor_seconds();
    let rate = rebuild_rate(&fast, 0)?;
    let cost = (processor_seconds() - before) / (MEMBER_BYTES as f64 / 1e9);
    println!(
        "{:<20}{:>8.1} MB/s{cost:>40.2} CPU s/GB",
        "as fast as memory",
        rate / 1e6
    );
    Ok(())
}

/// Returns the rate, in bytes per second, at which member `victim` is rebuilt.
fn rebuild_rate<M: MemberIo + Sync>(volume: &Volume<M>, victim: usize) -> Outcome<f64>
where
    M::Buffer: Send,
{
    block_on(volume.fail(victim))?;
    block_on(volume.begin_rebuild(victim))?;
    let begun = Instant::now();
    while rebuild_for_a_second(volume)? {}
    let elapsed = begun.elapsed().as_secs_f64();
    let stripes = volume.array().stripes();
    assert_eq!(volume.rebuilt(), stripes);
    Ok((stripes * CHUNK_BYTES) as f64 / elapsed)
}

/// Members in memory, in pieces with one lock each.
struct InMemory {
    devices: Devices,
    members: Vec<Vec<Mutex<Vec<u8>>>>,
    sector_bytes: usize,
}

/// The size of a piece in bytes.
const PIECE_BYTES: usize = 64 << 10;

impl InMemory {
    /// Copies the content of files.
    fn copy_of(devices: Devices) -> InMemory {
        let sector_bytes = devices.device(0).expect("it is there").sector_bytes() as usize;
        let piece = |member: usize, number: usize| {
            let mut bytes = vec![0; PIECE_BYTES];
            let at = Lbn((number * PIECE_BYTES / sector_bytes) as u64);
            block_on(devices.run(&mut [Op::read(member, at, &mut bytes)]));
            Mutex::new(bytes)
        };
        let member = |member: usize| {
            let sectors = devices.device(member).expect("it is there").sectors();
            let pieces = 0..sectors.0 as usize * sector_bytes / PIECE_BYTES;
            pieces.map(|number| piece(member, number)).collect()
        };
        InMemory {
            members: (0..MEMBERS).map(member).collect(),
            sector_bytes,
            devices,
        }
    }

    fn carry_out(&self, op: &mut Op<'_>) {
        let member = &self.members[op.member];
        let (at, length) = match &op.action {
            Action::Read(at, into) => (*at, into.len()),
            Action::Write(at, from) => (*at, from.len()),
            Action::Flush => return,
        };
        let first = at.0 as usize * self.sector_bytes;
        let mut done = 0;
        while done < length {
            let (number, within) = ((first + done) / PIECE_BYTES, (first + done) % PIECE_BYTES);
            let now = (PIECE_BYTES - within).min(length - done);
            let mut piece = member[number].lock();
            let piece = &mut piece[within..within + now];
            match &mut op.action {
                Action::Read(_, into) => into[done..done + now].copy_from_slice(piece),
                Action::Write(_, from) => piece.copy_from_slice(&from[done..done + now]),
                Action::Flush => {}
            }
            done += now;
        }
    }
}

impl MemberIo for InMemory {
    type Buffer = AlignedBuffer;

    fn buffer(&self, bytes: usize) -> AlignedBuffer {
        self.devices.buffer(bytes)
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        ops.iter_mut().for_each(|op| self.carry_out(op));
    }
}

/// Members that take time for each transfer, independently of one another.
struct Slow {
    devices: Devices,
    free_at: Mutex<[Instant; MEMBERS]>,
}

impl Slow {
    fn new(devices: Devices) -> Slow {
        Slow {
            devices,
            free_at: Mutex::new([Instant::now(); MEMBERS]),
        }
    }
}

impl MemberIo for Slow {
    type Buffer = AlignedBuffer;

    fn buffer(&self, bytes: usize) -> AlignedBuffer {
        self.devices.buffer(bytes)
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        let begun = Instant::now();
        let mut done = begun;
        {
            let mut free_at = self.free_at.lock();
            for op in ops.iter() {
                let bytes = match &op.action {
                    Action::Read(_, into) => into.len(),
                    Action::Write(_, from) => from.len(),
                    Action::Flush => 0,
                };
                let takes = Duration::from_secs_f64(bytes as f64 / SLOW_RATES[op.member]);
                let free = &mut free_at[op.member];
                *free = begun.max(*free) + takes;
                done = done.max(*free);
            }
        }
        self.devices.run(ops).await;
        thread::sleep(done.saturating_duration_since(Instant::now()));
    }
}

fn median(of: impl IntoIterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.into_iter().collect();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
