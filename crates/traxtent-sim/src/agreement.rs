//! Agreement of a model with a measured trace, request by request: which reads were served from the
//! buffer, and how far the classes of requests are apart.
//!
//! The demerit compares distributions only. A model whose buffer holds the wrong sectors can have a
//! small demerit, because its wrong hits and its wrong misses cancel. In a measured trace, a read
//! from the buffer and a read from the media differ by milliseconds, so the measured time tells
//! which of the two the real drive did.
//!
//! Pauses in these traces do not keep the phase of the spindle, so the rotational latency of a
//! request cannot be compared. A read from the media can be as fast as one from the buffer by
//! chance; the number of reads for which this is expected is part of the result.

use traxtent_model::drive::ServedBy;
use traxtent_units::Span;
use traxtent_units::stats::demerit;

/// The time above that of a buffer hit of the same size, up to which a read counts as a hit, in
/// milliseconds. In the measured traces of DiskSim, the number of reads by this time has its
/// minimum between 0.5 ms and 2 ms.
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
    /// The rotational latency in it, in milliseconds.
    pub rotation_ms: f64,
    /// The measured response time in milliseconds.
    pub measured_ms: f64,
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
    /// Returns the share of the reads on which the model and the drive disagree, those by chance
    /// included.
    pub fn disagreement(&self) -> f64 {
        match self.reads {
            0 => 0.0,
            reads => (self.model_only + self.drive_only) as f64 / reads as f64,
        }
    }
}

/// The requests of one class, according to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassAgreement {
    /// The name: `read from buffer`, `read from media`, `write`.
    pub name: &'static str,
    /// The number of requests.
    pub requests: u64,
    /// The mean modelled response time in milliseconds.
    pub mean_ms: f64,
    /// The mean measured response time in milliseconds.
    pub measured_mean_ms: f64,
    /// The demerit of the class in milliseconds.
    pub rms_ms: f64,
}

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
        let in_model = request.served == ServedBy::Buffer;
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
    type Class = (&'static str, fn(&ReplayedRequest) -> bool);
    let classes: [Class; 3] = [
        ("read from buffer", |request| {
            request.is_read && request.served == ServedBy::Buffer
        }),
        ("read from media", |request| {
            request.is_read && request.served != ServedBy::Buffer
        }),
        ("write", |request| !request.is_read),
    ];
    let class = |(name, is_in): Class| {
        let of = requests.iter().filter(|request| is_in(request));
        let (mut simulated, mut measured): (Vec<f64>, Vec<f64>) = of
            .map(|request| (request.simulated_ms, request.measured_ms))
            .unzip();
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let (mean_ms, measured_mean_ms) = (mean(&simulated), mean(&measured));
        let rms_ms = demerit(&mut simulated, &mut measured)?;
        Some(ClassAgreement {
            name,
            requests: simulated.len() as u64,
            mean_ms,
            measured_mean_ms,
            rms_ms,
        })
    };
    classes.into_iter().filter_map(class).collect()
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
