//! The reader on a mounted ext4 file system.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use testkit::mount::MountedExt4;
use traxtent_check::target::HostPaths;
use traxtent_file::{FileExtent, FileSystem, TrackReader, TrackedDrive, file_extents};
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Rng};

const MIB: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;

/// Returns the tracks of a drive of `mib` MiB: their sizes differ, and blocks span boundaries.
fn tracks(rng: &mut Rng, mib: u64) -> TrackMap {
    let (mut sizes, mut left) = (Vec::new(), mib * MIB / SECTOR_BYTES);
    while left > 0 {
        let size = (200 + rng.below(400)).min(left);
        sizes.push(size as u32);
        left -= size;
    }
    TrackMap::from_sizes(sizes)
}

/// Writes a file with fragments, holes, and an end within a block.
fn write(rng: &mut Rng, folder: &Path, name: &str) {
    let file = File::create(folder.join(name)).unwrap();
    let mut at = 0;
    for part in 0..40 {
        let mut data = vec![0; 1 + rng.below(400_000) as usize];
        data.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
        file.write_all_at(&data, at).unwrap();
        file.sync_all().unwrap();
        at += data.len() as u64;
        if part % 5 == 1 {
            at += rng.below(300_000);
        }
        // Another file takes the space after this part.
        let mut other = File::create(folder.join(format!("{name}-{part}"))).unwrap();
        other.write_all(&data[..data.len() / 2]).unwrap();
        other.sync_all().unwrap();
    }
    file.set_len(at + rng.below(20_000)).unwrap();
}

/// Returns the tracks that a part of a file is on.
fn tracks_of(
    bytes: std::ops::Range<u64>,
    extents: &[FileExtent],
    map: &TrackMap,
) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut sector = bytes.start / SECTOR_BYTES * SECTOR_BYTES;
    while sector < bytes.end {
        if let Some(extent) = extents.iter().find(|extent| extent.file.contains(&sector)) {
            let device = extent.device_start + sector - extent.file.start;
            let track = map.track_of(Lbn(device / SECTOR_BYTES)).unwrap();
            found.insert(track.index);
        }
        sector += SECTOR_BYTES;
    }
    found
}

/// Does the reader return the same bytes as a plain read, with holes and a tail, however far it
/// reads ahead? Does each part that it returns lie on one track, and hold all data that an extent
/// has on that track? Is the file closed once the reader is dropped?
#[test]
fn reads_the_same_bytes_track_by_track() {
    for block_bytes in [1024, 4096] {
        if let Err(why) = reads_the_same_bytes(block_bytes) {
            testkit::skip!("no ext4 can be mounted: {why}");
        }
    }
}

fn reads_the_same_bytes(block_bytes: u64) -> Result<(), String> {
    let home = tempfile::tempdir().unwrap();
    let mounted = MountedExt4::new(home.path(), 64, block_bytes)?;
    let mut rng = Rng::new(7);
    let map = Arc::new(tracks(&mut rng, 64));
    let system = FileSystem::of(mounted.folder(), &HostPaths::default()).unwrap();
    let partition = system
        .partition(&TrackedDrive {
            map: Arc::clone(&map),
            sector_bytes: SECTOR_BYTES,
        })
        .unwrap();
    write(&mut rng, mounted.folder(), "a");
    fs::write(mounted.folder().join("empty"), "").unwrap();
    fs::write(mounted.folder().join("short"), "short").unwrap();
    File::create(mounted.folder().join("hole"))
        .and_then(|file| file.set_len(20 * MIB + 5))
        .unwrap();
    for name in ["a", "empty", "short", "hole"] {
        let path = mounted.folder().join(name);
        let expected = fs::read(&path).unwrap();
        let extents = file_extents(&File::open(&path).unwrap()).unwrap();
        for ahead in [0, 1, 2, 30] {
            let mut reader = TrackReader::open(&path, &system, &partition, ahead).unwrap();
            let mut found = Vec::new();
            let mut last = None;
            while let Some(data) = reader.next_track().unwrap() {
                let start = found.len() as u64;
                found.extend(data);
                let tracks = tracks_of(start..found.len() as u64, &extents, &map);
                assert!(tracks.len() <= 1, "{name}: {start}: {tracks:?}");
                let extent = extents
                    .iter()
                    .position(|extent| extent.file.contains(&start));
                let now = tracks.first().map(|track| (*track, extent));
                assert!(
                    now.is_none() || now != last,
                    "{name}: {start}: {now:?} twice"
                );
                last = now;
            }
            assert!(found == expected, "{name}: other bytes, {ahead} ahead");
        }
        let mut reader = TrackReader::open(&path, &system, &partition, 3).unwrap();
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == expected, "{name}: other bytes");
    }
    // A reader that is dropped before the end leaves nothing open.
    let path = mounted.folder().join("a");
    let mut reader = TrackReader::open(&path, &system, &partition, 30).unwrap();
    reader.next_track().unwrap();
    drop(reader);
    mounted.unmount().unwrap();
    Ok(())
}
