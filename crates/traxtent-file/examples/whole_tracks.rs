//! Prints each file's share on whole tracks, and the share that realigning it could reach.
//!
//! `whole_tracks MAP FILE…`, as root. MAP is the map of the drive that holds the files, as
//! `traxtent probe` wrote it. The file system must be ext4, in one piece on one drive.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use traxtent_check::target::HostPaths;
use traxtent_file::{FileSystem, TrackedDrive, file_extents, forecast, summarize};
use traxtent_io::ext4::free_ranges;
use traxtent_map::MapFile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let map = arguments.next().ok_or("usage: whole_tracks MAP FILE...")?;
    let map = MapFile::read(&fs::read(map)?)?;
    let drive = TrackedDrive {
        sector_bytes: map.identity.logical_bytes.into(),
        map: Arc::new(map.tracks),
    };
    for path in arguments {
        let system = FileSystem::of(Path::new(&path), &HostPaths::default())?;
        let partition = system.partition(&drive)?;
        let (id, _) = system
            .in_one_piece()
            .ok_or("the file system is on several drives")?;
        let drives = BTreeMap::from([(id, drive.clone())]);

        let file = File::open(&path)?;
        let extents = file_extents(&file)?;
        let now = summarize(&extents, &system, &drives)?;
        let free = free_ranges(&file)?;
        let best = forecast(&extents, &partition, system.block_bytes, &free);
        let then = summarize(&best.extents, &system, &drives)?;
        println!(
            "{path}: {:.1} % on whole tracks; {:.1} % if {} KiB move",
            now.whole_share() * 100.0,
            then.whole_share() * 100.0,
            best.moved_bytes / 1024
        );
    }
    Ok(())
}
