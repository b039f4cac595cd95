//! The disk: its data, the state after a power cut, and faults.

mod cuts;
mod data;
mod faults;
mod full;
mod history;
#[path = "../../../../traxtent-model/examples/powercut/log.rs"]
mod log;
mod scenarios;
mod times;

use traxtent_model::disk::{Command, Disk};
use traxtent_model::profile::{Profile, Unmap, WriteBack};
use traxtent_units::Lbn;
use traxtent_units::Rng;

use super::drive::tiny::tiny_with;

/// The sector sizes tested: logical, physical, and the lowest aligned LBN.
const SECTORS: [(u32, u32, u32); 5] = [
    (512, 512, 0),
    (512, 4096, 0),
    (512, 4096, 1),
    (512, 4096, 7),
    (4096, 4096, 0),
];

/// Returns the tiny drive with a write-back cache of 128 sectors, and sectors of the given sizes.
fn small(sizes: (u32, u32, u32)) -> Profile {
    tiny_with(|p| {
        (
            p.sector.logical_bytes,
            p.sector.physical_bytes,
            p.sector.lowest_aligned_lbn,
        ) = sizes;
        p.cache.write_back = WriteBack::Full;
        p.cache.writes_while_busy = true;
        p.scsi.unmap = Unmap::Zeroes;
    })
}

/// Returns a disk on the tiny drive with 512-byte sectors and a write-back cache.
fn write_back() -> Disk {
    Disk::new(&small(SECTORS[0])).unwrap()
}

/// Returns a random command on the first `within` sectors, and the data of a write, which repeats
/// `stamp`.
fn random(rng: &mut Rng, within: u64, sector_bytes: u32, stamp: u64) -> (Command, Vec<u8>) {
    let sectors = match rng.below(10) {
        0 => 1 + rng.below(within.min(150)),
        _ => 1 + rng.below(20),
    };
    let lbn = Lbn(rng.below(within - sectors + 1));
    let fua = rng.chance(0.1);
    let sectors = sectors as u32;
    match rng.below(20) {
        0 => (Command::Flush, Vec::new()),
        1 => (Command::Trim { lbn, sectors }, Vec::new()),
        2 => (Command::WriteZeroes { lbn, sectors, fua }, Vec::new()),
        3..12 => {
            let bytes = sectors as usize * sector_bytes as usize;
            (Command::Write { lbn, sectors, fua }, stamped(stamp, bytes))
        }
        _ => (Command::Read { lbn, sectors }, Vec::new()),
    }
}

fn stamped(stamp: u64, bytes: usize) -> Vec<u8> {
    stamp.to_le_bytes().repeat(bytes / 8)
}

/// Does the example lose some unflushed records but no flushed one, and do flushes cost time?
#[test]
fn the_example_loses_only_unflushed_records() {
    let (lost, ms) = log::survive(true).unwrap();
    let (unflushed_lost, unflushed_ms) = log::survive(false).unwrap();
    assert_eq!(lost, 0);
    assert!(unflushed_lost > 100, "{unflushed_lost}");
    assert!(unflushed_ms < ms, "{unflushed_ms}, {ms}");
}
