//! Volumes with replicas: is no read stale, does any crash leave all flushed data, and are bad
//! sectors repaired?

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use traxtent_layout::tpl::{PartitionBounds, PartitionCount, PositioningCurve, Survey, TplError};
use traxtent_map::{MapFile, MapSource, TrackMap};
use traxtent_probe::Identity;
use traxtent_units::Rng;
use traxtent_units::{Lbn, Sectors, SimTime};
use traxtent_volume::copies::superblock::{decode_survey, encode_survey};
use traxtent_volume::copies::{CopiesError, MemberClock, NewVolume, ReplicatedVolume, find};
use traxtent_volume::superblock::SuperblockError;
use uuid::Uuid;

use super::memory::{Drive, Memory, SECTOR, Tasks, interleave, later, wait};

type Volume<'a> = ReplicatedVolume<&'a Memory>;

/// Each operation that changes something takes half a revolution.
impl MemberClock for &Memory {
    fn now(&self) -> SimTime {
        SimTime(self.count.get() * 500_000_000)
    }
}

/// Returns the map of a drive of 270 tracks with room for up to 8 replicas. The table of its volume
/// has two pages.
fn map(rng: &mut Rng) -> TrackMap {
    let mut csv = "first_lbn,sectors\n".to_owned();
    let (mut first, mut sectors) = (0, 18);
    for track in 0..270 {
        if track % 40 == 0 {
            sectors = 16 + rng.below(5);
        }
        csv += &format!("{first},{sectors}\n");
        first += sectors;
    }
    TrackMap::read_csv(csv.as_bytes()).expect("a map")
}

fn new_volume(rng: &mut Rng) -> NewVolume {
    let tracks = map(rng);
    let sectors = Sectors(tracks.end().0);
    let identity = Identity {
        capacity: sectors,
        logical_bytes: SECTOR as u32,
        physical_bytes: SECTOR as u32,
        ..Identity::default()
    };
    let (least, most) = [(1, 8), (1, 2), (2, 4), (2, 2)][rng.below(4) as usize];
    let survey = Survey {
        first_track: 0,
        angles: (0..tracks.len()).map(|_| rng.bits() as u16).collect(),
        reach: PositioningCurve::new(vec![(0, 0.1), (100, 0.8)]),
        period: 1e9,
        phase: (SimTime::ZERO, 0.0),
    };
    let count = |count| PartitionCount::new(count).expect("a valid count");
    NewVolume {
        volume: Uuid::from_u128(9),
        layout: rng.bits(),
        sectors,
        sector_bytes: SECTOR as u32,
        page_bytes: SECTOR as u32,
        block_bytes: 2 * SECTOR as u32,
        bounds: PartitionBounds::new(count(least), count(most)).expect("bounds"),
        regions: 1 + rng.below(3) as u16,
        map: MapFile::new(identity, MapSource::Model, tracks),
        // Without a survey, every request is sent to the drive immediately.
        survey: rng.chance(0.5).then_some(survey),
    }
}

/// Returns the memory of a drive on which a new volume has been written.
fn formatted(new: &NewVolume, rng: &mut Rng) -> Memory {
    let memory = Memory::new(vec![Drive::new(new.sectors.0, rng)], None);
    wait(new.make().expect("it fits").write(&&memory)).expect("the volume is written");
    memory
}

fn open(memory: &Memory) -> Result<Volume<'_>, CopiesError> {
    let sectors = memory.drives.borrow()[0].visible.len() / SECTOR;
    let found = wait(find(&memory, Sectors(sectors as u64), SECTOR as u32))?;
    wait(ReplicatedVolume::open(memory, found))
}

/// The history of a sector.
#[derive(Clone, Debug)]
struct History {
    /// The values written to the sector, oldest first.
    values: Vec<u64>,
    /// The index of the oldest value that may be found after a crash.
    durable: usize,
    /// The index of the last acknowledged value.
    acknowledged: usize,
    /// True while a write is outstanding.
    busy: bool,
}

impl History {
    fn of(value: u64) -> History {
        History {
            values: vec![value],
            durable: 0,
            acknowledged: 0,
            busy: false,
        }
    }
}

#[derive(Clone)]
struct Model {
    sectors: Vec<History>,
    /// The last value that a client has chosen to write.
    last: u64,
}

type Shared = Rc<RefCell<Model>>;

/// Returns the value of a sector, and asserts that all its words agree. Zeros have the value 0.
fn value(bytes: &[u8]) -> u64 {
    let value = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    let same = bytes.chunks_exact(8).all(|word| word == &bytes[..8]);
    assert!(same, "a torn sector");
    value
}

/// Runs one client: a few requests, one after another.
async fn client(volume: &Volume<'_>, model: Shared, seed: u64, requests: u64) {
    let mut rng = Rng::new(seed);
    let capacity = volume.capacity().0;
    for _ in 0..requests {
        // Mostly a small range, so that accesses collide.
        let near = if rng.chance(0.8) { 60 } else { capacity - 80 };
        let first = rng.below(near);
        let most = if rng.chance(0.1) { 80 } else { 7 };
        let count = 1 + rng.below(most);
        let sectors = first as usize..(first + count) as usize;
        match rng.below(12) {
            0 => {
                let acknowledged: Vec<usize> =
                    model.borrow().sectors.iter().map(acknowledged).collect();
                volume.flush().await.expect("the flush succeeds");
                settled(&model, 0..acknowledged.len(), &acknowledged);
            }
            1..=3 => {
                let before: Vec<usize> = model.borrow().sectors[sectors.clone()]
                    .iter()
                    .map(acknowledged)
                    .collect();
                let mut bytes = vec![0; count as usize * SECTOR];
                let read = volume.read(Lbn(first), &mut bytes).await;
                read.expect("the read succeeds");
                let model = model.borrow();
                let found = bytes.chunks_exact(SECTOR).map(value);
                for ((sector, before), found) in sectors.zip(before).zip(found) {
                    // The values acknowledged before the read, or written while it was outstanding.
                    let may = &model.sectors[sector].values[before..];
                    assert!(
                        may.contains(&found),
                        "sector {sector} reads {found}, not {may:?}"
                    );
                }
            }
            kind => {
                while model.borrow().sectors[sectors.clone()]
                    .iter()
                    .any(|one| one.busy)
                {
                    later().await;
                }
                let zero = kind == 4;
                let new = {
                    let mut model = model.borrow_mut();
                    model.last += 1;
                    let new = if zero { 0 } else { model.last };
                    for one in &mut model.sectors[sectors.clone()] {
                        one.busy = true;
                        one.values.push(new);
                    }
                    new
                };
                let bytes: Vec<u8> = new.to_le_bytes().repeat(count as usize * SECTOR / 8);
                let through = kind == 5;
                let done = match (zero, through) {
                    (true, _) => volume.zero(Lbn(first), Sectors(count)).await,
                    (_, true) => volume.write_through(Lbn(first), &bytes).await,
                    _ => volume.write(Lbn(first), &bytes).await,
                };
                done.expect("the write succeeds");
                for one in &mut model.borrow_mut().sectors[sectors.clone()] {
                    one.busy = false;
                    one.acknowledged = one.values.len() - 1;
                }
                if through {
                    let written: Vec<usize> = model.borrow().sectors[sectors.clone()]
                        .iter()
                        .map(acknowledged)
                        .collect();
                    settled(&model, sectors, &written);
                }
            }
        }
    }
}

fn acknowledged(one: &History) -> usize {
    one.acknowledged
}

/// Records that values older than these can no longer be found after a crash.
fn settled(model: &Shared, sectors: std::ops::Range<usize>, durable: &[usize]) {
    for (one, durable) in model.borrow_mut().sectors[sectors].iter_mut().zip(durable) {
        one.durable = one.durable.max(*durable);
    }
}

/// Runs `steps` steps of the background work, and yields to the clients after each.
async fn worker(volume: &Volume<'_>, steps: u64) {
    for _ in 0..steps {
        volume.work().await.expect("background work succeeds");
        later().await;
    }
}

/// Returns the content of a volume, and asserts that all current replicas agree with it.
fn content(volume: &Volume<'_>) -> Vec<u64> {
    let mut bytes = vec![0; volume.capacity().0 as usize * SECTOR];
    wait(volume.read(Lbn(0), &mut bytes)).expect("the read succeeds");
    let values: Vec<u64> = bytes.chunks_exact(SECTOR).map(value).collect();
    let tpl = volume.layout();
    let drives = volume.members().drives.borrow();
    for block in 0..tpl.shape().blocks() {
        let run = tpl.runs(block..block + 1).expect("it is there")[0];
        if !tpl.holds(run.home) {
            continue;
        }
        for (replica, lbn) in tpl.places(run, tpl.current(run)) {
            for sector in 0..2 {
                let at = (lbn.0 + sector) as usize * SECTOR;
                let found = value(&drives[0].visible[at..at + SECTOR]);
                let expected = values[(2 * block + sector) as usize];
                assert_eq!(found, expected, "block {block}, replica {replica}");
            }
        }
    }
    values
}

/// Runs rounds of several clients with background work. Each round ends with a crash or, if all are
/// done, sometimes with a stop.
fn rounds(seed: u64, count: u64) {
    let mut rng = Rng::new(seed);
    let new = new_volume(&mut rng);
    let mut memory = formatted(&new, &mut rng);
    let mut held = vec![0; open(&memory).expect("it is new").capacity().0 as usize];
    for round in 0..count {
        memory = Memory::new(memory.drives.into_inner(), Some(rng.split()));
        let volume = open(&memory).expect("every state reassembles");
        let model = Rc::new(RefCell::new(Model {
            sectors: held.iter().map(|value| History::of(*value)).collect(),
            last: (round + 1) << 32,
        }));
        let mut tasks: Tasks<'_> = Vec::new();
        let done = Cell::new(0);
        for _ in 0..3 {
            let client = client(&volume, Rc::clone(&model), rng.bits(), 25);
            tasks.push(Box::pin(async {
                client.await;
                done.set(done.get() + 1);
            }));
        }
        tasks.push(Box::pin(async {
            worker(&volume, 60).await;
            done.set(done.get() + 1);
        }));
        let stop_at = memory.count.get() + 1 + rng.below(300);
        interleave(tasks, &mut rng, || memory.count.get() >= stop_at);
        // Dropping the volume without stopping it is like a crash.
        if done.get() == 4 && rng.chance(0.5) {
            wait(volume.stop()).expect("the volume stops");
        }
        drop(volume);
        // Any of the unflushed writes may have become durable, the last of them torn.
        let share = [0.0, 0.5, 0.9, 1.0][rng.below(4) as usize];
        let keep: Vec<bool> = (0..memory.drives.borrow()[0].pending.len())
            .map(|_| rng.chance(share))
            .collect();
        let left = memory.drives.borrow()[0].left(|index| keep[index], || rng.chance(0.3));
        memory = Memory::new(vec![left], None);
        let volume = open(&memory).expect("every state reassembles");
        let found = content(&volume);
        for (sector, (found, one)) in found.iter().zip(&model.borrow().sectors).enumerate() {
            assert!(
                one.values[one.durable..].contains(found),
                "sector {sector}: {found} was found, not {one:?}"
            );
        }
        // Background work does not change the content.
        for _ in 0..rng.below(100) {
            wait(volume.work()).expect("background work succeeds");
        }
        assert_eq!(content(&volume), found);
        held = found;
        drop(volume);
    }
}

/// Does no read return stale data while clients write, zero, flush and read concurrently, replicas
/// are updated, tracks are split and merged, and pages are closed? Does every crash leave a volume
/// that opens, with all flushed data?
#[test]
fn no_read_is_stale() {
    for seed in 0..testkit::repeats(80) {
        eprintln!("seed {seed}");
        rounds(seed, 5);
    }
}

/// Returns the memory of a volume with random data whose replicas are all current, its content, and
/// the source of further random numbers.
fn filled(seed: u64) -> (Memory, Vec<u64>, Rng) {
    let mut rng = Rng::new(seed);
    let new = new_volume(&mut rng);
    let memory = formatted(&new, &mut rng);
    let volume = open(&memory).expect("it is new");
    let model = Rc::new(RefCell::new(Model {
        sectors: vec![History::of(0); volume.capacity().0 as usize],
        last: 0,
    }));
    wait(client(&volume, model, rng.bits(), 60));
    while volume.due().is_some() {
        wait(volume.work()).expect("background work succeeds");
    }
    let held = content(&volume);
    drop(volume);
    (memory, held, rng)
}

/// If a run of sectors as long as a partition is bad on every track with replicas, is all data read
/// from other replicas, are bad sectors repaired, and is no replica stale afterwards?
#[test]
fn bad_sectors_are_repaired() {
    let mut repaired = 0;
    for seed in 0..testkit::repeats(30) {
        eprintln!("seed {seed}");
        let (memory, held, mut rng) = filled(seed);
        let volume = open(&memory).expect("every state reassembles");
        let tpl = volume.layout();
        let mut bad = Vec::new();
        for track in tpl.shape().tracks() {
            let count = tpl.track(track).count;
            let sectors = tpl.shape().map().track(track).expect("it is there");
            if count == PartitionCount::ONE {
                continue;
            }
            // No run as long as a partition contains two replicas of a sector.
            let length = u64::from(tpl.shape().share(track, count)) * 2;
            let first = sectors.first_lbn.0 + rng.below(sectors.sectors.0 - length);
            bad.extend(first as usize..(first + length) as usize);
        }
        memory.drives.borrow_mut()[0].bad = bad;
        let mut bytes = vec![0; held.len() * SECTOR];
        wait(volume.read(Lbn(0), &mut bytes)).expect("replicas hold it");
        let found: Vec<u64> = bytes.chunks_exact(SECTOR).map(value).collect();
        assert_eq!(found, held);
        while volume.due().is_some() {
            wait(volume.work()).expect("background work succeeds");
        }
        // A replica that has not been read yet is found bad only when it is read.
        let tpl = volume.layout();
        assert_eq!(tpl.stale_count(), 0);
        wait(volume.read(Lbn(0), &mut bytes)).expect("replicas hold it");
        let found: Vec<u64> = bytes.chunks_exact(SECTOR).map(value).collect();
        assert_eq!(found, held);
        repaired += volume.repaired();
    }
    assert!(repaired > 10, "{repaired}");
}

/// Does reading a sector without a readable replica give an error that names the sector, with the
/// rest of its block still readable? Is the sector readable again once it has been written?
#[test]
fn a_sector_without_a_readable_replica_is_named() {
    let (memory, held, _) = filled(3);
    let volume = open(&memory).expect("every state reassembles");
    let tpl = volume.layout();
    let block = (0..tpl.shape().blocks())
        .find(|block| {
            let run = tpl.runs(*block..block + 1).expect("it is there")[0];
            tpl.holds(run.home)
        })
        .expect("something was written");
    let run = tpl.runs(block..block + 1).expect("it is there")[0];
    for (_, lbn) in tpl.places(run, tpl.writable(run)) {
        memory.drives.borrow_mut()[0].bad.push(lbn.0 as usize);
    }
    let mut bytes = vec![0; SECTOR];
    let at = Lbn(2 * block);
    let error = wait(volume.read(at, &mut bytes)).unwrap_err();
    assert_eq!(error, CopiesError::Unreadable(at));
    wait(volume.read(Lbn(at.0 + 1), &mut bytes)).expect("the other sector of the block");
    assert_eq!(value(&bytes), held[at.0 as usize + 1]);
    wait(volume.write(at, &[7; 2 * SECTOR])).expect("a write fixes bad sectors");
    wait(volume.read(at, &mut bytes)).expect("it was written");
    assert_eq!(bytes, [7; SECTOR]);
}

/// If one of two blocks with an unreadable replica can no longer be read at all, is the other
/// block's replica still rewritten?
#[test]
fn an_unreadable_block_does_not_keep_others_from_being_repaired() {
    let mut tried = 0;
    for seed in 0..30 {
        let (memory, _, _) = filled(seed);
        let volume = open(&memory).expect("every state reassembles");
        let tpl = volume.layout();
        let run = |block: u64| tpl.runs(block..block + 1).expect("it is there")[0];
        // Two blocks that follow one another on a track with current replicas.
        let Some(block) = (0..tpl.shape().blocks() - 1).find(|&block| {
            let (one, two) = (run(block), run(block + 1));
            let replicas = tpl.current(one);
            tpl.holds(one.home)
                && tpl.holds(two.home)
                && one.home.track == two.home.track
                && one.home.index + 1 == two.home.index
                && replicas.count_ones() > 1
                && replicas == tpl.current(two)
        }) else {
            continue;
        };
        let places = |block, mask| -> Vec<usize> {
            let places = tpl.places(run(block), mask);
            places.map(|(_, lbn)| lbn.0 as usize).collect()
        };
        let all = tpl.current(run(block));
        // Replica 0 of both blocks cannot be read, and the reads find out.
        let bad = [places(block, 1), places(block + 1, 1)].concat();
        memory.drives.borrow_mut()[0].bad.clone_from(&bad);
        let mut bytes = vec![0; 2 * SECTOR];
        for block in [block, block + 1] {
            for _ in 0..200 {
                wait(volume.read(Lbn(2 * block), &mut bytes)).expect("another replica");
            }
        }
        let is_found = |block| volume.layout().current(run(block)) & 1 == 0;
        if !is_found(block) || !is_found(block + 1) {
            continue;
        }
        // Then no other replica of the second block can be read.
        let rest = places(block + 1, all & !1);
        memory.drives.borrow_mut()[0].bad.extend(rest);
        while volume.due().is_some() {
            wait(volume.work()).expect("background work succeeds");
        }
        assert_eq!(volume.layout().current(run(block)), all, "seed {seed}");
        assert_ne!(volume.layout().current(run(block + 1)), all, "seed {seed}");
        tried += 1;
    }
    assert!(tried > 3, "{tried}");
}

/// If a volume could not be stopped, does another call fail too, and succeed once the device can be
/// written?
#[test]
fn a_failed_stop_can_be_repeated() {
    for seed in 0..30 {
        let (memory, _, mut rng) = filled(seed);
        let volume = open(&memory).expect("every state reassembles");
        let at = Lbn(rng.below(volume.capacity().0));
        wait(volume.write(at, &[1; SECTOR])).expect("the device can be written");
        memory.drives.borrow_mut()[0].gone = true;
        assert!(wait(volume.stop()).is_err(), "seed {seed}");
        assert!(wait(volume.stop()).is_err(), "seed {seed}");
        memory.drives.borrow_mut()[0].gone = false;
        wait(volume.stop()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(volume.layout().stale_count(), 0, "seed {seed}");
    }
}

/// Is the volume found by its second superblock and second attachments if the first ones are
/// damaged, and refused in clear words if both are? Are a changed map, a device of another size, a
/// device without a superblock, partition counts that do not fit, and requests that the volume
/// cannot serve also refused?
#[test]
fn refused() {
    let mut rng = Rng::new(1);
    let new = new_volume(&mut rng);
    let memory = formatted(&new, &mut rng);
    let end = new.sectors.0 as usize;
    let damage = |sectors: &[usize]| {
        let drive = memory.drives.borrow()[0].clone();
        let copy = Memory::new(vec![drive], None);
        for sector in sectors {
            copy.drives.borrow_mut()[0].visible[sector * SECTOR + 20] ^= 1;
        }
        open(&copy).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(damage(&[0]), Ok(()));
    assert_eq!(damage(&[8]), Ok(()));
    assert_eq!(damage(&[end - 8]), Ok(()));
    assert_eq!(
        damage(&[0, end - 8]),
        Err("damaged superblock: its checksum is wrong".to_owned())
    );
    let unreadable = Memory::new(vec![memory.drives.borrow()[0].clone()], None);
    unreadable.drives.borrow_mut()[0].bad = vec![0, end - 8];
    assert_eq!(
        open(&unreadable).map(drop).unwrap_err(),
        CopiesError::Superblock(SuperblockError::Unreadable)
    );
    let made = new.make().expect("it fits");
    let second = made.superblock.places()[1].1.0 as usize;
    assert_eq!(
        damage(&[8, second]),
        Err("both copies of the volume's track map are damaged".to_owned())
    );
    let table = made.layout.header().first.0 as usize;
    assert_eq!(damage(&[table]), Ok(()));

    // A changed map with correct checksums.
    let mut other = new.clone();
    let mut csv = Vec::new();
    new.map.tracks.write_csv(&mut csv).expect("a text");
    let mut lines: Vec<String> = String::from_utf8(csv)
        .expect("a text")
        .lines()
        .map(str::to_owned)
        .collect();
    let track = |index| new.map.tracks.track(index).expect("it is there");
    lines[101] = format!("{},{}", track(100).first_lbn, track(100).sectors.0 - 1);
    lines[102] = format!(
        "{},{}",
        track(101).first_lbn.0 - 1,
        track(101).sectors.0 + 1
    );
    other.map.tracks = TrackMap::read_csv(lines.join("\n").as_bytes()).expect("a map");
    let others = other.make().expect("it fits");
    let copy = Memory::new(vec![memory.drives.borrow()[0].clone()], None);
    let text = other.map.to_text().into_bytes();
    if others.superblock.map.bytes == made.superblock.map.bytes {
        let mut block = others.superblock.encode();
        block.resize(block.len().next_multiple_of(SECTOR), 0);
        copy.drives.borrow_mut()[0].visible[..block.len()].copy_from_slice(&block);
        copy.drives.borrow_mut()[0].visible[8 * SECTOR..][..text.len()].copy_from_slice(&text);
        let error = open(&copy).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("the map has changed: "), "{error}");
    }

    let larger = wait(find(&&memory, Sectors(new.sectors.0 + 8), SECTOR as u32)).map(drop);
    assert!(
        larger
            .unwrap_err()
            .to_string()
            .contains("bytes, but the volume was made on a device with")
    );
    let of_4096 = wait(find(&&memory, new.sectors, 4096))
        .map(drop)
        .unwrap_err();
    let sectors = new.sectors;
    assert_eq!(
        of_4096.to_string(),
        format!(
            "the device has {sectors} of 4096 bytes, but the volume was made on a device with \
             {sectors} of 512"
        )
    );
    let empty = Memory::new(vec![Drive::new(new.sectors.0, &mut rng)], None);
    assert_eq!(
        open(&empty).map(drop).unwrap_err().to_string(),
        "there is no superblock of a volume"
    );

    let mut too_small = new.clone();
    too_small.bounds =
        PartitionBounds::new(PartitionCount::ONE, PartitionCount::MOST).expect("bounds");
    assert!(matches!(
        too_small.make().map(drop),
        Err(CopiesError::Layout(TplError::DoesNotFit { most: 32, .. }))
    ));
    let volume = open(&memory).expect("it is whole");
    let capacity = volume.capacity();
    let error = wait(volume.read(Lbn(capacity.0), &mut [0; SECTOR])).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "sectors {}..{} are not within the volume, which has {capacity}",
            capacity.0,
            capacity.0 + 1
        )
    );
    assert!(wait(volume.write(Lbn(0), &[0; 100])).is_err());
    wait(volume.stop()).expect("the volume stops");
    assert_eq!(
        wait(volume.write(Lbn(0), &[0; SECTOR])),
        Err(CopiesError::Stopped)
    );
}

/// If a page of the table cannot be written, do writes fail, and is the old data still read, also
/// after the volume is opened again?
#[test]
fn a_table_that_cannot_be_written() {
    let (memory, held, mut rng) = filled(5);
    let volume = open(&memory).expect("every state reassembles");
    memory.drives.borrow_mut()[0].refuses = true;
    let mut error = None;
    for _ in 0..50 {
        let at = Lbn(rng.below(volume.capacity().0));
        error = error.or(wait(volume.write(at, &[0; SECTOR])).err());
    }
    assert!(error.is_some());
    assert_eq!(content(&volume), held);
    memory.drives.borrow_mut()[0].refuses = false;
    drop(volume);
    assert_eq!(
        content(&open(&memory).expect("every state reassembles")),
        held
    );
}

/// Does an encoded survey decode to the same survey? Is one refused that is truncated, or that
/// extends beyond the last track of the map?
#[test]
fn surveys_round_trip() {
    let survey = Survey {
        first_track: 3,
        angles: vec![1, 2, 65_535],
        reach: PositioningCurve::new(vec![(0, 0.25), (7, 0.5)]),
        period: 6e9,
        phase: (SimTime::ZERO, 0.0),
    };
    let bytes = encode_survey(&survey);
    assert_eq!(decode_survey(&bytes, 6), Some(survey));
    assert_eq!(decode_survey(&bytes, 5), None);
    for cut in 0..bytes.len() {
        assert_eq!(decode_survey(&bytes[..cut], 6), None, "{cut}");
    }
}
