//! A volume with replicas on a drive: the gain of its reads compared with that of a drive's own
//! choice, in virtual time and in real time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_lite::future::block_on;
use parking_lot::Mutex;
use traxtent_layout::tpl::{Accuracy, PartitionBounds, PartitionCount, REGIONS, Survey};
use traxtent_map::{MapFile, MapSource, TrackMap};
use traxtent_probe::{Target, survey};
use traxtent_server::serve::DriveServer;
use traxtent_server::service::BlockService;
use traxtent_sim::{Noise, SimTarget};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};
use traxtent_volume::copies::{MemberClock, NewVolume, ReplicatedVolume, find};
use traxtent_volume::{Action, Failed, MemberIo, Op};

use super::host::{BLOCK, fill};
use crate::bench::{Bench, LabError};

/// A device on which reads take time.
pub trait TimedReads {
    /// Reads sectors. Returns whether the read succeeded.
    fn read(&self, lbn: Lbn, sectors: u32) -> bool;
    /// The current time.
    fn now(&self) -> SimTime;
}

/// A drive on the virtual clock.
#[derive(Debug)]
pub struct Virtual(pub RefCell<SimTarget>);

impl TimedReads for Virtual {
    fn read(&self, lbn: Lbn, sectors: u32) -> bool {
        let read = Request::read(lbn, sectors);
        self.0.borrow_mut().request(read).is_ok()
    }

    fn now(&self) -> SimTime {
        self.0.borrow().now()
    }
}

/// A drive that is served in real time.
#[derive(Debug)]
pub struct Real {
    /// The server of the drive.
    pub server: DriveServer,
    /// The number of bytes in a sector.
    pub sector_bytes: u32,
    /// The zero of the clock.
    pub begun: Instant,
}

impl TimedReads for Real {
    fn read(&self, lbn: Lbn, sectors: u32) -> bool {
        let mut bytes = vec![0; (sectors * self.sector_bytes) as usize];
        let offset = lbn.0 * u64::from(self.sector_bytes);
        self.server.read(&mut bytes, offset).is_ok()
    }

    fn now(&self) -> SimTime {
        SimTime(self.begun.elapsed().as_nanos() as u64 * 1000)
    }
}

/// A device whose data is not used. Sectors that were written, the volume's own metadata, are kept
/// in memory and read in no time. Other reads take the drive's time.
#[derive(Debug)]
struct Device<T> {
    timed: T,
    sector_bytes: usize,
    /// The sectors that were written.
    sectors: Mutex<BTreeMap<u64, Vec<u8>>>,
}

impl<T: TimedReads> MemberIo for Device<T> {
    type Buffer = Vec<u8>;

    fn buffer(&self, bytes: usize) -> Vec<u8> {
        vec![0; bytes]
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        let mut sectors = self.sectors.lock();
        for op in ops {
            match &mut op.action {
                Action::Read(at, into) => {
                    let mut known = false;
                    for (index, bytes) in into.chunks_mut(self.sector_bytes).enumerate() {
                        let written = sectors.get(&(at.0 + index as u64));
                        known |= written.is_some();
                        match written {
                            Some(written) => bytes.copy_from_slice(written),
                            None => bytes.fill(0),
                        }
                    }
                    let count = (into.len() / self.sector_bytes) as u32;
                    if !known && !self.timed.read(*at, count) {
                        op.outcome = Err(Failed);
                    }
                }
                Action::Write(at, bytes) => {
                    for (index, bytes) in bytes.chunks(self.sector_bytes).enumerate() {
                        sectors.insert(at.0 + index as u64, bytes.to_vec());
                    }
                }
                Action::Flush => {}
            }
        }
    }
}

impl<T: TimedReads> MemberClock for Device<T> {
    fn now(&self) -> SimTime {
        self.timed.now()
    }
}

/// The results of a volume's reads.
#[derive(Clone, Copy, Debug)]
pub struct Reads {
    /// The mean response time on the same drive without replicas, in milliseconds.
    pub without_ms: f64,
    /// The mean response time of the volume, in milliseconds.
    pub volume_ms: f64,
    /// The accuracy of the volume's predictions.
    pub accuracy: Accuracy,
}

/// A part of a drive that was surveyed.
#[derive(Clone, Debug)]
pub struct Part {
    bench: Bench,
    map: Arc<TrackMap>,
    survey: Survey,
    /// The first LBN after the part.
    end: Lbn,
}

impl Part {
    /// Surveys the first `tracks` tracks, with completions that deviate by `jitter_ms`.
    ///
    /// # Errors
    /// Returns an error if the drive cannot be surveyed.
    pub fn new(bench: &Bench, tracks: usize, jitter_ms: f64) -> Result<Part, LabError> {
        let map = TrackMap::from_sizes(bench.geometry.track_sizes());
        let tracks = tracks.min(map.len());
        // Enough readings for angles more accurate than a single measurement.
        let readings = if jitter_ms > 0.0 { 6 } else { 1 };
        let mut target = target(bench, jitter_ms);
        let survey = survey(&mut target, &map, 0..tracks, readings, BLOCK, &mut |_| ())?;
        Ok(Part {
            bench: bench.clone(),
            end: map.track(tracks).map_or(map.end(), |track| track.first_lbn),
            map: Arc::new(map),
            survey,
        })
    }

    /// The mean response time of random reads in virtual time, in milliseconds, if the drive itself
    /// chooses among `partitions` partitions. The reads are of blocks of a volume with `count`
    /// replicas.
    ///
    /// # Errors
    /// Returns an error if the drive cannot have this number of partitions, or the volume cannot be
    /// made.
    pub fn drive_ms(
        &self,
        count: u32,
        partitions: u32,
        jitter_ms: f64,
        reads: u64,
    ) -> Result<f64, LabError> {
        let bench = self
            .bench
            .with_parameter("access.track_partitions", &partitions.to_string())?;
        let timed = Virtual(RefCell::new(target(&bench, jitter_ms)));
        self.firsts_ms(&timed, count, reads)
    }

    /// The mean response time of reads of first replicas.
    fn firsts_ms(&self, timed: &impl TimedReads, count: u32, reads: u64) -> Result<f64, LabError> {
        let volume = self.new_volume(count)?.make()?;
        let layout = &volume.layout;
        let mut sum = 0.0;
        for block in self.blocks(layout, reads) {
            let run = layout.runs(block..block + 1)?[0];
            let sent = timed.now();
            timed.read(layout.place(run, 0), BLOCK);
            sum += timed.now().since(sent).as_ms();
        }
        Ok(sum / reads as f64)
    }

    /// Measures random reads of a volume with `count` replicas, one at a time.
    ///
    /// # Errors
    /// Returns an error if the volume cannot be made or read.
    pub fn volume<T: TimedReads>(
        &self,
        timed: T,
        count: u32,
        reads: u64,
    ) -> Result<Reads, LabError> {
        let without_ms = self.firsts_ms(&timed, count, reads)?;
        let new = self.new_volume(count)?;
        let device = Device {
            timed,
            sector_bytes: new.sector_bytes as usize,
            sectors: Mutex::default(),
        };
        block_on(new.make()?.write(&device))?;
        let mut found = block_on(find(&device, new.sectors, new.sector_bytes))?;
        // As if all blocks had been written long ago.
        let blocks = found.layout.shape().blocks();
        fill(&mut found.layout, 0..blocks, true)?;
        let layout = found.layout.clone();
        let volume = block_on(ReplicatedVolume::open(device, found))?;
        let mut sum = 0.0;
        let mut bytes = vec![0; volume.block_bytes()];
        for block in self.blocks(&layout, reads) {
            let at = Lbn(block * u64::from(BLOCK));
            let sent = volume.members().now();
            block_on(volume.read(at, &mut bytes))?;
            sum += volume.members().now().since(sent).as_ms();
        }
        Ok(Reads {
            without_ms,
            volume_ms: sum / reads as f64,
            accuracy: volume.accuracy().expect("it was surveyed"),
        })
    }

    fn new_volume(&self, count: u32) -> Result<NewVolume, LabError> {
        let count = PartitionCount::new(count)?;
        let sector = &self.bench.profile.sector;
        let identity = self.bench.target().identity().clone();
        Ok(NewVolume {
            volume: uuid::Uuid::from_u128(1),
            layout: 1,
            sectors: identity.capacity,
            sector_bytes: sector.logical_bytes,
            page_bytes: sector.physical_bytes,
            block_bytes: BLOCK * sector.logical_bytes,
            bounds: PartitionBounds::new(count, count)?,
            regions: REGIONS,
            map: MapFile::new(identity, MapSource::Model, (*self.map).clone()),
            survey: Some(self.survey.clone()),
        })
    }

    /// Random blocks of the part.
    fn blocks(&self, layout: &traxtent_layout::tpl::Tpl, reads: u64) -> Vec<u64> {
        let shape = layout.shape();
        let is_within = |block: u64| {
            let home = shape.home(block).expect("the block is in the layout");
            self.map
                .track(home.track)
                .is_some_and(|track| track.first_lbn < self.end)
        };
        // With a fixed number of replicas, blocks ascend with their tracks.
        let (mut low, mut high) = (0, shape.blocks());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_within(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut rng = Rng::new(self.bench.seed);
        (0..reads).map(|_| rng.below(low)).collect()
    }
}

/// Returns the drive of a bench with completions that deviate by `jitter_ms`.
pub fn target(bench: &Bench, jitter_ms: f64) -> SimTarget {
    let noise = Noise {
        deviation_ms: jitter_ms,
        outliers: 0.0,
        outlier_ms: (0.0, 0.0),
        extra_revolutions: 0.0,
    };
    if jitter_ms > 0.0 {
        bench.target().with_noise(noise, bench.seed)
    } else {
        bench.target()
    }
}
