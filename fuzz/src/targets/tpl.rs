//! The track partition layout: its header, and the table of a whole device.

use traxtent_layout::tpl::format::{Header, reseal};
use traxtent_layout::tpl::{Config, DeviceStep, PartitionBounds, PartitionCount, Tpl};
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};

/// The size of a sector in bytes.
const SECTOR_BYTES: usize = 160;

/// A header: decoded input is encoded and decoded again. Its checksum is corrected first.
pub(crate) fn header(input: &[u8]) {
    let mut input = input.to_vec();
    reseal(&mut input);
    match Header::decode(&input) {
        Ok(read) => assert_eq!(Header::decode(&read.encode()), Ok(read)),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

/// A device with a layout, some bytes of which are changed. Each change has two bytes of offset,
/// one byte of length, and that many bytes. The device is refused, or opened and used.
pub(crate) fn table(input: &[u8]) {
    let map = map();
    let mut device = formatted(&map);
    let mut rest = input;
    while let [low, high, length, after @ ..] = rest {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % device.len();
        let bytes = &after[..after.len().min((*length).into())];
        rest = &after[bytes.len()..];
        let end = device.len().min(at + bytes.len());
        device[at..end].copy_from_slice(&bytes[..end - at]);
    }
    for at in (0..device.len()).step_by(SECTOR_BYTES) {
        reseal(&mut device[at..at + SECTOR_BYTES]);
    }
    let mut read = |lbn: Lbn, sectors: Sectors| {
        let from = (lbn.0 as usize).checked_mul(SECTOR_BYTES)?;
        let length = (sectors.0 as usize).checked_mul(SECTOR_BYTES)?;
        device
            .get(from..from.checked_add(length)?)
            .map(<[u8]>::to_vec)
    };
    match Tpl::open(
        map.clone(),
        map.first()..map.end(),
        SECTOR_BYTES as u32,
        &mut read,
    ) {
        Ok(opened) => use_it(opened.tpl),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

/// Returns a map of twenty tracks of 70 sectors and ten of 64.
fn map() -> TrackMap {
    let mut text = "first_lbn,sectors\n".to_owned();
    (0..20).for_each(|track| text += &format!("{},70\n", 70 * track));
    (0..10).for_each(|track| text += &format!("{},64\n", 1400 + 64 * track));
    TrackMap::read_csv(text.as_bytes()).expect("a map")
}

fn formatted(map: &TrackMap) -> Vec<u8> {
    let bounds = PartitionBounds::new(PartitionCount::ONE, PartitionCount::MOST).expect("bounds");
    let config = Config {
        id: 1,
        sector_bytes: SECTOR_BYTES as u32,
        page_sectors: 1,
        block_sectors: 2,
        bounds,
        regions: 3,
    };
    let layout = Tpl::format(map.clone(), map.first()..map.end(), &config);
    let (_, steps) = layout.expect("a layout");
    // The table occupies the first tracks.
    let mut device = vec![0; 300 * SECTOR_BYTES];
    for step in steps {
        if let DeviceStep::Table { lbn, bytes } = step {
            let at = lbn.0 as usize * SECTOR_BYTES;
            device[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }
    device
}

/// Checks that blocks can be prepared and written and have a place for each current replica, and
/// that each track that can be filled can then be split. Also synchronizes and merges the tracks
/// for which the layout permits it.
fn use_it(mut tpl: Tpl) {
    let blocks = tpl.shape().blocks();
    for block in (0..blocks).step_by(7) {
        while let Some(plan) = tpl
            .prepare(block..block + 1)
            .expect("no table change is outstanding")
        {
            tpl.commit(plan);
        }
        let run = tpl.runs(block..block + 1).expect("the block exists")[0];
        let copies = tpl.current(run);
        assert!(tpl.places(run, copies).count() as u32 == copies.count_ones());
        tpl.record_write(run, tpl.writable(run) & 0x5555_5555)
            .expect("no table change is outstanding");
    }
    for track in tpl.shape().tracks() {
        for make in [Tpl::resync, Tpl::merge] {
            if let Ok(plan) = make(&mut tpl, track) {
                tpl.commit(plan);
            }
        }
        if tpl.fill(track).is_ok() {
            let plan = tpl.split(track).expect("no table change is outstanding");
            tpl.commit(plan.expect("it was filled"));
        }
    }
}
