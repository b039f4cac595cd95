//! Agreement of a model with a measured trace, request by request: which reads were served from the
//! buffer, and how much the response times of each class of requests differ.
//!
//! The demerit compares distributions only. A model whose buffer holds the wrong sectors can have a
//! small demerit, because its wrong hits and its wrong misses cancel. In a measured trace, a read
//! from the buffer and a read from the media differ by milliseconds, so the measured time tells
//! which of the two the real drive did. A read that found only its first sectors in the buffer
//! takes as long as a hit if the drive was about to read the others; in the model, too, its time
//! decides.
//!
//! A trace does not preserve the phase of the spindle across pauses, so the rotational latency of a
//! request cannot be compared. A read from the media can be as fast as one from the buffer by
//! chance; the number of reads for which this is expected is part of the result.

use std::ops::Range;

use traxtent_model::drive::ServedBy;
use traxtent_units::Span;
use traxtent_units::stats::{ConfidenceInterval, ConfidenceLevel, demerit};

/// The maximum time in milliseconds by which a hit may exceed the expected time of a buffer hit of
/// the same size. In the measured traces of DiskSim, the distribution of this excess over all reads
/// has its minimum between 0.5 ms and 2 ms.
pub const HIT_MARGIN_MS: f64 = 0.5;

/// A request of a measured trace, after its replay on a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayedRequest {
    /// Whether it is a read.
    pub is_read: bool,
    /// The number of sectors.
    pub sectors: u32,
    /// The part of the modelled drive that had its data.
    pub served: ServedBy,
    /// The modelled response time in milliseconds.
    pub simulated_ms: f64,
    /// The rotational latency in the modelled response time, in milliseconds.
    pub rotation_ms: f64,
    /// The measured response time in milliseconds.
    pub measured_ms: f64,
    /// The number of cylinders between this access to the media and the one before it; `None` if
    /// the request does not access the media, or the drive has no cylinders.
    pub seek_cylinders: Option<u32>,
}

/// The names of the classes of requests.
const CLASSES: [&str; 3] = ["read from buffer", "read from media", "write"];

impl ReplayedRequest {
    /// Returns whether the model served it from the buffer, as far as times can tell, if a hit
    /// takes less than `limit_ms`. A read from the media that is as fast by chance is not a hit.
    pub fn is_model_hit(&self, limit_ms: f64) -> bool {
        match self.served {
            ServedBy::Buffer => true,
            ServedBy::Both => self.simulated_ms < limit_ms,
            ServedBy::Media => false,
        }
    }

    /// Returns the name of the request's class, as in [`ClassAgreement`].
    pub fn class(&self) -> &'static str {
        let [from_buffer, from_media, write] = CLASSES;
        match (self.is_read, self.served) {
            (true, ServedBy::Buffer) => from_buffer,
            (true, ServedBy::Media | ServedBy::Both) => from_media,
            (false, _) => write,
        }
    }
}

/// The reads of a trace by where the model and the real drive had their data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HitAgreement {
    /// The number of reads.
    pub reads: u64,
    /// Reads that both served from the buffer.
    pub both_hit: u64,
    /// Reads that only the model served from the buffer.
    pub model_only: u64,
    /// Reads that only the real drive served from the buffer.
    pub drive_only: u64,
    /// The largest part of `drive_only` that is expected by chance: reads from the media with
    /// almost no rotational latency. It is an upper bound, because the fastest access of the model
    /// may be faster than that of the drive.
    pub by_chance_max: f64,
}

impl HitAgreement {
    /// Returns the share of the reads on which the model and the drive disagree, including those on
    /// which they disagree by chance.
    pub fn disagreement(&self) -> f64 {
        match self.reads {
            0 => 0.0,
            reads => (self.model_only + self.drive_only) as f64 / reads as f64,
        }
    }
}

/// The agreement on the requests of one class. The model determines the class of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassAgreement {
    /// The name: `read from buffer`, `read from media`, `write`.
    pub name: &'static str,
    /// All requests of the class.
    pub all: TimeAgreement,
    /// The requests of each range of sizes that occurs, in ascending order. A range begins at a
    /// power of two.
    pub sizes: Vec<SizeAgreement>,
}

/// The agreement on the requests of one class whose sizes are in a range.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeAgreement {
    /// The sizes in sectors: from a power of two up to, but not including, twice that power.
    pub sectors: Range<u32>,
    /// Their times.
    pub times: TimeAgreement,
}

/// The agreement of the modelled with the measured response times of some requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeAgreement {
    /// The number of requests.
    pub requests: u64,
    /// The mean modelled response time in milliseconds.
    pub mean_ms: f64,
    /// The mean measured response time in milliseconds.
    pub measured_mean_ms: f64,
    /// Half the width of the 95 % confidence interval of the difference of the means, in
    /// milliseconds. `None` if there are too few requests. The differences are averaged over
    /// consecutive requests first, since neighbours resemble each other.
    pub difference_half_width_ms: Option<f64>,
    /// The demerit in milliseconds.
    pub rms_ms: f64,
}

impl TimeAgreement {
    /// Compares the times of requests; `None` if there are none.
    fn of<'a>(requests: impl Iterator<Item = &'a ReplayedRequest>) -> Option<TimeAgreement> {
        let (mut simulated, mut measured): (Vec<f64>, Vec<f64>) = requests
            .map(|request| (request.simulated_ms, request.measured_ms))
            .unzip();
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let (mean_ms, measured_mean_ms) = (mean(&simulated), mean(&measured));
        let pairs = simulated.iter().zip(&measured);
        let differences: Vec<f64> = pairs.map(|(model, drive)| model - drive).collect();
        let blocks: Vec<f64> = differences
            .chunks_exact(AVERAGED_REQUESTS)
            .map(mean)
            .collect();
        let interval = ConfidenceInterval::of(&blocks, ConfidenceLevel::P95);
        Some(TimeAgreement {
            requests: simulated.len() as u64,
            mean_ms,
            measured_mean_ms,
            difference_half_width_ms: interval.and_then(|interval| interval.half_width),
            rms_ms: demerit(&mut simulated, &mut measured)?,
        })
    }
}

/// The number of consecutive requests over which differences are averaged before an interval is
/// computed.
const AVERAGED_REQUESTS: usize = 50;

/// The differences between the modelled and the measured times of accesses to the media over
/// similar seek distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// The mean seek distance in cylinders.
    pub cylinders: f64,
    /// The first quartile, the median and the third quartile of modelled minus measured times, in
    /// milliseconds.
    pub quartiles_ms: [f64; 3],
}

/// Returns the differences of the accesses to the media by seek distance, in ascending order, in at
/// most `groups` groups of about the same number of requests. Requests of the same distance are in
/// one group. The accesses over the longest distances are left out if they are too few for a group.
/// A trace does not preserve the phase of the spindle across pauses, so the first and the third
/// quartile are more than half a revolution apart even for a perfect model; the median should be
/// zero at every distance.
pub fn residuals(requests: &[ReplayedRequest], groups: usize) -> Vec<Residual> {
    let mut accesses: Vec<(u32, f64)> = requests
        .iter()
        .filter_map(|one| Some((one.seek_cylinders?, one.simulated_ms - one.measured_ms)))
        .collect();
    accesses.sort_by_key(|access| access.0);
    let size = accesses.len().div_ceil(groups.max(1)).max(GROUP_MIN);
    let group = |accesses: &[(u32, f64)]| {
        let cylinders = accesses.iter().map(|access| f64::from(access.0));
        let mut differences: Vec<f64> = accesses.iter().map(|access| access.1).collect();
        differences.sort_by(f64::total_cmp);
        let at = |quarter: usize| differences[quarter * (differences.len() - 1) / 4];
        Residual {
            cylinders: cylinders.sum::<f64>() / accesses.len() as f64,
            quartiles_ms: [at(1), at(2), at(3)],
        }
    };
    let mut found = Vec::new();
    let mut rest = &accesses[..];
    while rest.len() >= size {
        let farthest = rest[size - 1].0;
        let end = rest.partition_point(|access| access.0 <= farthest);
        found.push(group(&rest[..end]));
        rest = &rest[end..];
    }
    found
}

/// The smallest number of requests from which quartiles are computed.
const GROUP_MIN: usize = 20;

/// Returns the agreement on which reads were buffer hits. Returns `None` if the model served fewer
/// than two reads from the buffer, so that the time of a hit is not known.
///
/// The expected time of a hit is a straight line over the number of sectors, fitted to the medians
/// of the model's own hits of each size. `revolution` is that of the spindle, if the drive has one.
pub fn hit_agreement(
    requests: &[ReplayedRequest],
    revolution: Option<Span>,
) -> Option<HitAgreement> {
    let line = HitTime::of(requests)?;
    let mut found = HitAgreement::default();
    for request in requests.iter().filter(|request| request.is_read) {
        let limit = line.at(request.sectors) + HIT_MARGIN_MS;
        let in_drive = request.measured_ms < limit;
        let in_model = request.is_model_hit(limit);
        found.reads += 1;
        found.both_hit += u64::from(in_model && in_drive);
        found.model_only += u64::from(in_model && !in_drive);
        found.drive_only += u64::from(!in_model && in_drive);
        if let (false, Some(revolution)) = (in_model, revolution) {
            let least = request.simulated_ms - request.rotation_ms;
            found.by_chance_max += ((limit - least) / revolution.as_ms()).clamp(0.0, 1.0);
        }
    }
    Some(found)
}

/// Returns the agreement of each class that has requests.
pub fn class_agreement(requests: &[ReplayedRequest]) -> Vec<ClassAgreement> {
    let class = |name: &'static str| {
        let of: Vec<&ReplayedRequest> = requests.iter().filter(|one| one.class() == name).collect();
        let with_exponent = |exponent: u32| {
            let sectors = 1 << exponent..(2_u32 << exponent);
            let within = of.iter().copied();
            let times =
                TimeAgreement::of(within.filter(|request| sectors.contains(&request.sectors)))?;
            Some(SizeAgreement { sectors, times })
        };
        Some(ClassAgreement {
            name,
            all: TimeAgreement::of(of.iter().copied())?,
            sizes: (0..u32::BITS - 1).filter_map(with_exponent).collect(),
        })
    };
    CLASSES.into_iter().filter_map(class).collect()
}

/// The time of a buffer hit: a straight line over the number of sectors.
struct HitTime {
    fixed_ms: f64,
    sector_ms: f64,
}

impl HitTime {
    /// Fits the line to the medians of the model's hits of each size, by least squares.
    fn of(requests: &[ReplayedRequest]) -> Option<HitTime> {
        let mut hits: Vec<(u32, f64)> = requests
            .iter()
            .filter(|request| request.is_read && request.served == ServedBy::Buffer)
            .map(|request| (request.sectors, request.simulated_ms))
            .collect();
        if hits.len() < 2 {
            return None;
        }
        hits.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
        let medians: Vec<(f64, f64)> = hits
            .chunk_by(|left, right| left.0 == right.0)
            .map(|size| (f64::from(size[0].0), size[size.len() / 2].1))
            .collect();
        let count = medians.len() as f64;
        let mean_x = medians.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = medians.iter().map(|(_, y)| y).sum::<f64>() / count;
        let spread: f64 = medians
            .iter()
            .map(|(x, _)| (x - mean_x) * (x - mean_x))
            .sum();
        let product: f64 = medians
            .iter()
            .map(|(x, y)| (x - mean_x) * (y - mean_y))
            .sum();
        let sector_ms = if spread > 0.0 { product / spread } else { 0.0 };
        Some(HitTime {
            fixed_ms: mean_y - sector_ms * mean_x,
            sector_ms,
        })
    }

    fn at(&self, sectors: u32) -> f64 {
        self.fixed_ms + self.sector_ms * f64::from(sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sectors: u32, simulated_ms: f64, measured_ms: f64) -> ReplayedRequest {
        ReplayedRequest {
            is_read: true,
            sectors,
            served: ServedBy::Media,
            simulated_ms,
            rotation_ms: 0.0,
            measured_ms,
            seek_cylinders: Some(sectors),
        }
    }

    /// Does a model agree with itself, also on reads that found their first sectors in the buffer?
    #[test]
    fn a_model_agrees_with_itself() {
        let times = [
            (ServedBy::Buffer, 1.0),
            (ServedBy::Buffer, 1.0),
            (ServedBy::Both, 1.1),
            (ServedBy::Both, 4.0),
            (ServedBy::Media, 9.0),
        ];
        let requests = times.map(|(served, ms)| ReplayedRequest {
            served,
            ..request(8, ms, ms)
        });
        let found = hit_agreement(&requests, None).unwrap();
        assert_eq!((found.both_hit, found.disagreement()), (3, 0.0));
    }

    /// Is every request in one range of sizes, and is the mean of each range that of its requests?
    #[test]
    fn sizes_divide_a_class() {
        let sizes = [1, 2, 3, 4, 7, 8, 255, 256];
        let requests = sizes.map(|sectors| request(sectors, f64::from(sectors), 1.0));
        let [class] = &class_agreement(&requests)[..] else {
            panic!("all requests are of one class");
        };
        let found: Vec<_> = class
            .sizes
            .iter()
            .map(|size| {
                (
                    size.sectors.clone(),
                    size.times.requests,
                    size.times.mean_ms,
                )
            })
            .collect();
        let expected = [
            (1..2, 1, 1.0),
            (2..4, 2, 2.5),
            (4..8, 2, 5.5),
            (8..16, 1, 8.0),
            (128..256, 1, 255.0),
            (256..512, 1, 256.0),
        ];
        assert_eq!(found, expected);
        assert_eq!(class.all.requests, 8);
    }

    /// Does the interval of the difference contain a known bias, and is it as narrow as the noise
    /// allows?
    #[test]
    fn a_bias_is_in_its_interval() {
        let mut rng = traxtent_units::Rng::new(3);
        let mut noise = || rng.fraction() - 0.5;
        let requests: Vec<_> = (0..5000)
            .map(|_| request(8, 5.0 + noise(), 4.9 + noise()))
            .collect();
        let class = &class_agreement(&requests)[0].all;
        let half_width = class.difference_half_width_ms.unwrap();
        let bias = class.mean_ms - class.measured_mean_ms;
        assert!((bias - 0.1).abs() < half_width, "{bias} {half_width}");
        // The deviation of a difference is 0.41 ms, so that of the mean of 5000 is 0.0058 ms.
        assert!((0.008..0.016).contains(&half_width), "{half_width}");
    }

    /// Do residuals show at which distances a model is wrong?
    #[test]
    fn residuals_find_the_distance() {
        let late = |cylinders: u32| if cylinders > 500 { 2.0 } else { 0.0 };
        let requests: Vec<_> = (0..1000)
            .map(|cylinders| request(cylinders, 5.0 + late(cylinders), 5.0))
            .collect();
        let found = residuals(&requests, 10);
        assert_eq!(found.len(), 10);
        for group in &found {
            let expected = if group.cylinders > 500.0 { 2.0 } else { 0.0 };
            assert_eq!(group.quartiles_ms, [expected; 3], "{group:?}");
        }
    }
}
