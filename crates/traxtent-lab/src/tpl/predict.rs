//! The choice of a replica by the host: its gain compared with that of a drive's own choice.

use std::sync::Arc;

use traxtent_layout::tpl::{BlockHome, HeadTracker, PartitionBounds, PartitionCount, ReplicaMap};
use traxtent_map::TrackMap;
use traxtent_probe::{Target, survey};
use traxtent_sim::{Noise, SimTarget};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_units::request::Request;

use super::host::BLOCK;
use crate::bench::{Bench, LabError};

/// The numbers of partitions that are measured.
pub const COUNTS: [u32; 5] = [2, 4, 8, 16, 32];

/// The number of reads in a measurement.
const READS: u64 = 20_000;

/// The results of the host's choice.
#[derive(Clone, Copy, Debug)]
pub struct Gain {
    /// The mean response time without replicas, in milliseconds.
    pub without_ms: f64,
    /// The mean response time with the drive's own choice.
    pub drive_ms: f64,
    /// The mean response time with the host's choice.
    pub host_ms: f64,
    /// The root mean square error of the angles in revolutions, as the host determines it.
    pub angle_rms: f64,
    /// The share of reads that were served a revolution late.
    pub missed: f64,
    /// The share of reads that the host expected to be late.
    pub expected: f64,
}

impl Gain {
    /// The gain of the host's choice, as a share of the gain of the drive's own choice.
    pub fn share(&self) -> f64 {
        (self.without_ms - self.host_ms) / (self.without_ms - self.drive_ms)
    }
}

/// Measures random reads of a block, one at a time, for each of [`COUNTS`]. The completions that
/// the host sees deviate by `jitter_ms`.
///
/// # Errors
/// Returns an error if the drive cannot be surveyed.
pub fn gains(bench: &Bench, jitter_ms: f64) -> Result<Vec<Gain>, LabError> {
    let map = Arc::new(TrackMap::from_sizes(bench.geometry.track_sizes()));
    let noise = Noise {
        deviation_ms: jitter_ms,
        outliers: 0.0,
        outlier_ms: (0.0, 0.0),
        extra_revolutions: 0.0,
    };
    // Enough readings for angles more accurate than a single measurement.
    let readings = if jitter_ms > 0.0 { 6 } else { 1 };
    let mut target = noisy(bench.target(), noise, bench.seed);
    let survey = survey(
        &mut target,
        &map,
        0..map.len(),
        readings,
        BLOCK,
        &mut |_| (),
    )?;
    // Switch caching on again if the survey has switched it off.
    let _ = target.switch_caching(true);
    let gain = |count: u32| -> Result<Gain, LabError> {
        let count = PartitionCount::new(count)?;
        let bounds = PartitionBounds::new(count, count)?;
        let shape = ReplicaMap::new(Arc::clone(&map), 0..map.len(), BLOCK, bounds, 1)?;
        let mut rng = Rng::new(bench.seed);
        let homes: Vec<BlockHome> = (0..bench.scaled_count(READS))
            .filter_map(|_| shape.home(rng.below(shape.blocks())))
            .collect();
        let first = |home: &BlockHome| shape.replica_lbn(*home, count, 0);
        let mean = |target: &mut SimTarget| -> Result<f64, LabError> {
            let mut sum = 0.0;
            for home in &homes {
                let timing = target.request(Request::read(first(home), BLOCK))?;
                sum += timing.response().as_ms();
            }
            Ok(sum / homes.len() as f64)
        };
        let with = |partitions: u32| -> Result<f64, LabError> {
            let bench = bench.with_parameter("access.track_partitions", &partitions.to_string())?;
            mean(&mut noisy(bench.target(), noise, bench.seed))
        };
        let mut head = HeadTracker::new(Arc::clone(&map), survey.clone());
        let mut drive = target.clone();
        let mut sum = 0.0;
        for home in &homes {
            let choice = head.choose(drive.now(), shape.replica_lbns(*home, count));
            let replica = choice.map_or(0, |choice| choice.index as u32);
            let lbn: Lbn = shape.replica_lbn(*home, count, replica);
            let timing = drive.request(Request::read(lbn, BLOCK))?;
            head.completed(lbn, BLOCK, timing.sent, timing.completed);
            sum += timing.response().as_ms();
        }
        let accuracy = head.accuracy();
        Ok(Gain {
            without_ms: with(1)?,
            drive_ms: with(count.get())?,
            host_ms: sum / homes.len() as f64,
            angle_rms: accuracy.angle_rms,
            missed: accuracy.missed,
            expected: accuracy.expected,
        })
    };
    COUNTS.into_iter().map(gain).collect()
}

fn noisy(target: SimTarget, noise: Noise, seed: u64) -> SimTarget {
    if noise.deviation_ms > 0.0 {
        target.with_noise(noise, seed)
    } else {
        target
    }
}

/// The smallest share of the drive's gain that the host achieves, over all numbers of partitions:
/// with steady completions, and with completions that deviate by 100 microseconds.
pub(crate) fn shares(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let least = |jitter| -> Result<f64, LabError> {
        let gains = gains(bench, jitter)?;
        Ok(gains.iter().map(Gain::share).fold(f64::INFINITY, f64::min))
    };
    Ok(vec![least(0.0)?, least(0.1)?])
}
