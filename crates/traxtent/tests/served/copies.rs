//! Tests of served volumes with replicas, on files: the server is killed, or the disk below is
//! full.

use std::fs::File;
use std::path::{Path, PathBuf};

use futures_lite::future::block_on;
use traxtent_layout::tpl::{PartitionBounds, PartitionCount};
use traxtent_map::{MapFile, MapSource, TrackMap};
use traxtent_probe::Identity;
use traxtent_server::copies::{DeviceReplicaVolume, ReplicaVolumePlan, create, find};
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::copies::ReplicatedVolume;
use uuid::Uuid;

use crate::attach::Mount;
use crate::client::{Client, ENOSPC};
use crate::kill::{Area, CLIENTS, SECTOR, SECTORS, assert_kept};
use crate::server::{Server, argument, quick_folder};

/// Creates a file of 8 MiB, a map of it with about 100 sectors per track, and a volume on it.
/// Asserts that a second volume on it is refused.
fn new_volume(folder: &Path, seed: u64) -> PathBuf {
    let (device, map) = (folder.join("disk"), folder.join("map"));
    File::create(&device).unwrap().set_len(8 << 20).unwrap();
    let sectors = 16_384;
    let mut csv = "first_lbn,sectors\n".to_owned();
    let mut first = 0;
    while first < sectors {
        let size = (100 + first / 1000).min(sectors - first);
        csv += &format!("{first},{size}\n");
        first += size;
    }
    let identity = Identity {
        capacity: Sectors(sectors),
        logical_bytes: 512,
        physical_bytes: 512,
        ..Identity::default()
    };
    let tracks = TrackMap::read_csv(csv.as_bytes()).unwrap();
    let text = MapFile::new(identity, MapSource::List, tracks).to_text();
    std::fs::write(&map, text).unwrap();
    let plan = ReplicaVolumePlan {
        device: device.clone(),
        map,
        bounds: PartitionBounds::new(PartitionCount::ONE, PartitionCount::new(4).unwrap()).unwrap(),
        block_bytes: 4096,
        readings: 0,
        force: false,
    };
    let id = Uuid::from_u128(u128::from(seed) << 64 | 1);
    create(&plan, id, |_| None, |_, _| ()).unwrap();
    let again = create(&plan, id, |_| None, |_, _| ()).unwrap_err();
    assert!(
        again.to_string().contains("; use --force to overwrite it"),
        "{again}"
    );
    device
}

fn open(device: &Path) -> DeviceReplicaVolume {
    let (device, found) = find(device).unwrap();
    block_on(ReplicatedVolume::open(device, found)).unwrap()
}

/// Kills the server while three clients write and flush. Does every sector of the volume hold its
/// state at the last flush or that of a later write, and does it stay the same while replicas are
/// updated?
#[test]
fn a_volume_with_copies_survives_kills() {
    let mut flushes = 0;
    let kills = testkit::repeats(6).min(60);
    for seed in 0..kills {
        let folder = quick_folder();
        let device = new_volume(folder.path(), seed);
        let server = Server::volume(&[argument(device.display())]);
        let areas = Area::work_until_killed(server, seed);
        let mut left = vec![0; (CLIENTS * SECTORS * SECTOR) as usize];
        let volume = open(&device);
        block_on(volume.read(Lbn(0), &mut left)).unwrap();
        while volume.due().is_some() {
            block_on(volume.work()).unwrap();
        }
        let mut again = vec![0; left.len()];
        block_on(volume.read(Lbn(0), &mut again)).unwrap();
        assert!(left == again, "seed {seed}: a sector changed back");
        block_on(volume.stop()).unwrap();
        assert_kept(&areas, &left, seed);
        flushes += areas.iter().map(|area| area.flushes).sum::<u64>();
    }
    eprintln!("{kills} kills, {flushes} flushes");
    assert!(flushes > 3 * kills);
}

/// Does a client of a volume with replicas get the error for a full disk if the disk below is full?
/// Is its flushed data still there, and do writes continue once there is room?
#[test]
fn a_full_disk_below() {
    let mount = testkit::tool!("mount");
    let folder = quick_folder();
    let Ok(below) = Mount::memory(&mount, &folder.path().join("below"), "4m") else {
        testkit::skip!("a small file system cannot be mounted here");
    };
    let device = new_volume(below.folder(), 1);
    let server = Server::volume(&[argument(device.display())]);
    let mut client = Client::new(&server);
    let part = |number: u64| vec![number as u8 + 1; 32 << 10];
    let mut store = |number: u64| {
        let written = client.write(number << 15, &part(number)).unwrap();
        written.and_then(|()| client.flush().unwrap())
    };
    let stored = (0..128).take_while(|number| match store(*number) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error, ENOSPC, "{}", server.output());
            false
        }
    });
    let stored = stored.count() as u64;
    assert!((10..128).contains(&stored), "{stored} parts");
    below.resize("64m");
    store(stored).unwrap();
    for number in 0..=stored {
        let mut back = vec![0; 32 << 10];
        client.read(number << 15, &mut back).unwrap().unwrap();
        assert!(back == part(number), "part {number}");
    }
}
