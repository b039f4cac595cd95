//! The log-structured layout: its structures, and whole devices.

use traxtent_layout::log::format::{Checkpoint, Summary, Superblock, reseal};
use traxtent_layout::log::{BlockLocation, Cleaning, Log, LogOp, LogShape, Recovery, RecoveryStep};
use traxtent_units::Lbn;

/// The size of a sector in bytes.
const SECTOR_BYTES: usize = 512;

/// The size of the device in bytes.
const DEVICE_BYTES: usize = 128 * SECTOR_BYTES;

/// A superblock, checkpoint or summary: decoded input is encoded and decoded again. Its checksum is
/// corrected first, because hardly any input has a correct one.
pub(crate) fn structure(input: &[u8]) {
    let superblock = Superblock {
        id: 1,
        range: Lbn(0)..Lbn(128),
        shape: LogShape {
            sector_bytes: SECTOR_BYTES as u32,
            block_sectors: 1,
            grain_sectors: 1,
        },
        blocks: 10,
        region_sectors: 2,
    };
    let mut input = input.to_vec();
    reseal(&mut input);
    let (at, shape) = (Lbn(0), superblock.shape);
    match Superblock::decode(&input, at) {
        Ok(read) => assert_eq!(Superblock::decode(&read.encode(), at), Ok(read)),
        Err(error) => drop(error.to_string()),
    }
    match Checkpoint::decode(&input, at, &superblock) {
        Ok(read) => {
            assert_eq!(
                Checkpoint::decode(&read.encode(shape), at, &superblock),
                Ok(read)
            );
        }
        Err(error) => drop(error.to_string()),
    }
    match Summary::decode(&input, at) {
        Ok(read) => {
            assert!(read.placed(shape).count() as u64 == read.blocks());
            assert_eq!(Summary::decode(&read.encode(shape), at), Ok(read));
        }
        Err(error) => drop(error.to_string()),
    }
}

/// A device in pieces, each of which has two bytes of offset in units of 64 bytes, one byte of
/// length, and that many bytes. A log on it is refused or opened. If it is opened, its counts of
/// live blocks are correct after it has been used.
pub(crate) fn image(input: &[u8]) {
    let mut device = vec![0; DEVICE_BYTES];
    let mut rest = input;
    while let [low, high, length, after @ ..] = rest {
        let at = usize::from(u16::from_le_bytes([*low, *high])) * 64 % DEVICE_BYTES;
        let bytes = &after[..after.len().min((*length).into())];
        rest = &after[bytes.len()..];
        let end = DEVICE_BYTES.min(at + bytes.len());
        device[at..end].copy_from_slice(&bytes[..end - at]);
    }
    // Structures may be longer than a sector.
    for at in (0..DEVICE_BYTES).step_by(SECTOR_BYTES) {
        reseal(&mut device[at..]);
    }
    if let Some(mut log) = open(&mut device) {
        use_it(&mut log, &mut device);
    }
}

fn open(device: &mut [u8]) -> Option<Log> {
    let range = Lbn(0)..Lbn((DEVICE_BYTES / SECTOR_BYTES) as u64);
    let mut step = Recovery::begin(range, SECTOR_BYTES as u32, Cleaning::default());
    loop {
        step = match step {
            RecoveryStep::Perform(op, recovery) => match recovery.complete(perform(device, op)) {
                Ok(step) => step,
                Err(error) => {
                    assert!(!error.to_string().contains('\n'));
                    return None;
                }
            },
            RecoveryStep::Open(log) => return Some(*log),
        }
    }
}

fn use_it(log: &mut Log, device: &mut [u8]) {
    drain(log, device);
    let block = vec![7; log.shape().block_bytes()];
    for number in (0..log.blocks()).cycle().take(40) {
        // A log with damaged segments can be full.
        let _ = log.write(number, &block);
        drain(log, device);
    }
    let _ = log.sync();
    drain(log, device);
    for number in 0..log.blocks().min(40) {
        if let Ok(BlockLocation::At(place)) = log.read(number) {
            let bytes = perform(device, log.op_for(place));
            let _ = log.verify(place, &bytes);
        }
    }
    let table: Vec<u32> = log.segments().iter().map(|segment| segment.live).collect();
    assert_eq!(table, log.recount());
}

fn drain(log: &mut Log, device: &mut [u8]) {
    while let Some(op) = log.next_op() {
        // The content of a damaged segment is refused.
        let _ = log.complete(perform(device, op));
    }
}

fn perform(device: &mut [u8], op: LogOp) -> Vec<u8> {
    match op {
        LogOp::Read { lbn, sectors } => {
            let at = lbn.0 as usize * SECTOR_BYTES;
            device[at..at + sectors.0 as usize * SECTOR_BYTES].to_vec()
        }
        LogOp::Write { lbn, data } => {
            let at = lbn.0 as usize * SECTOR_BYTES;
            device[at..at + data.len()].copy_from_slice(&data);
            Vec::new()
        }
        LogOp::Flush => Vec::new(),
    }
}
