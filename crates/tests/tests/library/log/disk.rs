//! The log on the model drive, with its volatile cache, its tearing and its power cuts.

use traxtent_layout::log::{Cleaning, LogConfig, LogOp};
use traxtent_map::TrackMap;
use traxtent_model::disk::{Command, Disk, Fault, Tearing};
use traxtent_model::profile::WriteBack;
use traxtent_units::Rng;
use traxtent_units::Span;

use super::super::drive::tiny::tiny_with;
use super::device::{Perform, SECTOR_BYTES};
use super::model::{Model, Worker, contents, drain, recover};
use super::{config, lbns};

/// A model drive that is copied and cut at every write and flush.
#[derive(Clone)]
struct Drive {
    disk: Disk,
    map: TrackMap,
    cleaning: Cleaning,
    rng: Rng,
    cuts: u64,
    torn: u64,
    watching: bool,
}

impl Perform for Drive {
    fn perform(&mut self, op: LogOp) -> Vec<u8> {
        let mut data_read = Vec::new();
        match op {
            LogOp::Read { lbn, sectors } => {
                data_read.resize(sectors.0 as usize * SECTOR_BYTES, 0);
                self.disk.read(lbn.0, &mut data_read).unwrap();
            }
            LogOp::Write { lbn, data } => drop(self.disk.write(lbn.0, &data).unwrap()),
            LogOp::Flush => drop(self.disk.flush().unwrap()),
        }
        data_read
    }

    fn observe(&mut self, model: &Model, next: Option<&LogOp>) {
        if !self.watching {
            return;
        }
        let mut left = self.clone();
        if let Some(LogOp::Write { lbn, data }) = next {
            let sectors = (data.len() / SECTOR_BYTES) as u32;
            let write = Command::Write {
                lbn: *lbn,
                sectors,
                fua: false,
            };
            left.disk
                .submit(left.disk.now(), write, data.clone())
                .unwrap();
            // Some writes are cut while they cross the bus, some on their way to the media.
            left.disk.sleep(Span::from_ms(self.rng.fraction() * 12.0));
        }
        let seed = self.rng.bits();
        self.torn += left.cut(seed);
        let mut log = recover(&self.map, &mut left, self.cleaning).unwrap();
        drain(&mut log, &mut left);
        let found = contents(&log, &mut left);
        assert!(model.allows(&found), "cut {seed}");
        self.cuts += 1;
    }
}

impl Drive {
    /// Cuts the power and returns the number of torn writes.
    fn cut(&mut self, seed: u64) -> u64 {
        let fault = Fault::PowerCut {
            seed: Some(seed),
            tearing: [Tearing::Physical, Tearing::Bytes512][(seed % 2) as usize],
            off: Span::ZERO,
        };
        let cut = self.disk.inject(self.disk.now(), fault).unwrap().unwrap();
        while self.disk.poll(self.disk.now()).is_some() {}
        cut.torn
    }
}

/// Is synced data never lost on drives with physical sectors of 512 and of 4,096 bytes, cut at
/// every write and torn at either size?
#[test]
fn on_the_model_drive() {
    let (mut cuts, mut torn) = (0, 0);
    for seed in 0..testkit::repeats(6) {
        eprintln!("seed {seed}");
        let mut rng = Rng::new(seed);
        let physical = [512, 4096][(seed % 2) as usize];
        let profile = tiny_with(|profile| {
            profile.sector.physical_bytes = physical;
            profile.cache.write_back = WriteBack::Full;
        });
        let disk = Disk::new(&profile).unwrap();
        let map = TrackMap::from_sizes(disk.drive().geometry().track_sizes());
        let mut config = LogConfig {
            sizing: Default::default(),
            ..config(&mut rng)
        };
        config.cleaning.segments = 1;
        if physical == 4096 {
            config.shape.grain_sectors = 8;
            config.shape.block_sectors = 8;
        }
        config.blocks = config.most_blocks(&map, lbns(&map)).unwrap();
        let drive = Drive {
            disk,
            map: map.clone(),
            cleaning: config.cleaning,
            rng: rng.split(),
            cuts: 0,
            torn: 0,
            watching: false,
        };
        let mut worker = Worker::format(&map, drive, &config, rng.split());
        worker.device.watching = true;
        for _ in 0..200 {
            worker.step(&mut rng);
            if rng.chance(0.02) {
                let mut drive = worker.device.clone();
                drive.cut(rng.bits());
                worker.continue_with(drive);
            }
        }
        cuts += worker.device.cuts;
        torn += worker.device.torn;
    }
    assert!(cuts > 500 && torn > 50, "{cuts} cuts, {torn} writes torn");
}
