//! Efficiency against request size, by random reads in the first zone (paper T, Fig. 1).
//!
//! Efficiency is the media transfer time of the requested bytes at the zone's rate over head time;
//! see [`WorkloadResult::efficiency`](crate::WorkloadResult::efficiency).

/// The number of requests that are always outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// One: the next request arrives when the previous one is complete.
    OneReq = 1,
    /// Two: one request is always queued while another is in service.
    TwoReq = 2,
}

/// Efficiencies at ascending request sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct EfficiencyCurve {
    /// Request size in sectors, and efficiency from 0 to 1.
    pub points: Vec<(u32, f64)>,
}

/// The number of requests for each point, the same as in the paper.
pub const REQUESTS: u32 = 5000;

/// The workload of random requests of one size in the first zone.
pub fn random_in_zone_0(sectors: u32, aligned: bool, queue: Queue) -> String {
    let align = if aligned { "track" } else { "none" };
    let outstanding = queue as u32;
    format!("random,count={REQUESTS},size={sectors},align={align},zone=0,outstanding={outstanding}")
}

/// The workload of 4,000 sequential reads from the beginning of the first zone, two outstanding.
pub fn sequential_in_zone_0(sectors: u32) -> String {
    format!("sequential,count=4000,size={sectors},zone=0,outstanding=2")
}

impl EfficiencyCurve {
    /// Measures at sizes of `step` sectors and its multiples up to `most`. `efficiency` returns the
    /// efficiency at a size.
    ///
    /// # Errors
    /// Returns the first error of `efficiency`.
    ///
    /// # Panics
    /// Panics if `step` is zero.
    pub fn measure<E>(
        step: u32,
        most: u32,
        efficiency: impl Fn(u32) -> Result<f64, E>,
    ) -> Result<EfficiencyCurve, E> {
        let sizes = (step..=most).step_by(step as usize);
        let points = sizes
            .map(|sectors| Ok((sectors, efficiency(sectors)?)))
            .collect::<Result<_, E>>()?;
        Ok(EfficiencyCurve { points })
    }

    /// The size at which the curve first reaches an efficiency, by linear interpolation between
    /// points; `None` if no point reaches it.
    pub fn reaches(&self, efficiency: f64) -> Option<f64> {
        let above = self.points.iter().position(|point| point.1 >= efficiency)?;
        let (size, here) = self.points[above];
        let Some(&(before, there)) = above.checked_sub(1).map(|index| &self.points[index]) else {
            return Some(f64::from(size));
        };
        let part = (efficiency - there) / (here - there);
        Some(f64::from(before) + part * f64::from(size - before))
    }

    /// The most efficient of the measured sizes within half a track of the `n`-th multiple of a
    /// track, if there are any.
    pub fn peak_near(&self, n: u32, track: u32) -> Option<u32> {
        let (from, to) = (n * track - track / 2, n * track + track / 2);
        let near = self
            .points
            .iter()
            .filter(|point| (from..to).contains(&point.0));
        near.max_by(|a, b| a.1.total_cmp(&b.1)).map(|point| point.0)
    }
}
