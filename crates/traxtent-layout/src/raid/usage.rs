//! The use of an array's members: data, parity and unused sectors.

use super::{Array, Level};
use traxtent_map::TrackMap;
use traxtent_map::pattern::RunPattern;
use traxtent_units::{Lbn, Sectors};

/// An array's use of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberUsage {
    /// The number of sectors that the array can use.
    pub sectors: Sectors,
    /// The number of sectors that hold data.
    pub data: Sectors,
    /// The number of sectors that hold parity.
    pub parity: Sectors,
    /// The number of the array's sectors whose parity is on this member. It is proportional to the
    /// small writes that reach the member in addition to those of its own data.
    pub covered: Sectors,
    /// The number of stripes whose parity is on this member.
    pub parity_stripes: u64,
}

impl MemberUsage {
    /// Returns the number of sectors that hold neither data nor parity.
    pub fn unused(&self) -> Sectors {
        self.sectors - self.data - self.parity
    }
}

impl Array {
    /// Returns the use of each member, in time proportional to the number of runs of stripes.
    pub fn usage(&self) -> Vec<MemberUsage> {
        let mut all: Vec<MemberUsage> = self
            .members
            .iter()
            .map(|member| MemberUsage {
                sectors: Sectors(member.data.end.0 - member.data.start.0),
                ..MemberUsage::default()
            })
            .collect();
        let ends = self.runs.iter().skip(1).map(|run| run.stripe);
        let ends = ends.chain([self.stripes]);
        for (index, (run, end)) in self.runs.iter().zip(ends).enumerate() {
            let period = match self.shape.level {
                Level::Raid0 | Level::Raid1 | Level::Raid4 => 1,
                Level::Raid5 => self.members.len() as u64,
            };
            for number in run.stripe..end.min(run.stripe + period) {
                let times = (end - number).div_ceil(period);
                let stripe = self.stripe_in(index, number);
                let parity = stripe.parity_member();
                for (member, usage) in all.iter_mut().enumerate() {
                    let sectors = Sectors(stripe.sectors_on(member).0 * times);
                    if parity == Some(member) {
                        let logical = stripe.logical();
                        usage.parity += sectors;
                        usage.covered += Sectors((logical.end.0 - logical.start.0) * times);
                        usage.parity_stripes += times;
                    } else {
                        usage.data += sectors;
                    }
                }
            }
        }
        all
    }

    /// Returns the array as a map whose tracks are the stripes. A read of one of these tracks reads
    /// every data chunk of the stripe.
    pub fn stripe_map(&self) -> TrackMap {
        let mut sizes = RunPattern::default();
        let ends = self.runs.iter().skip(1).map(|run| run.stripe);
        let ends = ends.chain([self.stripes]);
        for (index, (run, end)) in self.runs.iter().zip(ends).enumerate() {
            let cycle = self.cycle(index, run.stripe);
            let stripe_sectors = |number| u32::try_from(cycle.capacity(number)).unwrap_or(u32::MAX);
            let first = stripe_sectors(run.stripe);
            if (run.stripe..run.stripe + cycle.len()).all(|number| stripe_sectors(number) == first)
            {
                let mut remaining = end - run.stripe;
                while remaining > 0 {
                    let times = remaining.min(u64::from(u32::MAX));
                    sizes.push(first, times as u32);
                    remaining -= times;
                }
            } else {
                (run.stripe..end).for_each(|number| sizes.push(stripe_sectors(number), 1));
            }
        }
        sizes.fold();
        TrackMap::from_pattern(Lbn(0), sizes)
    }

    /// Returns the array as a map whose tracks are the data chunks. A read that stays within one of
    /// them goes to one extent of one member.
    pub fn chunk_map(&self) -> TrackMap {
        let mut sizes = RunPattern::default();
        let ends = self.runs.iter().skip(1).map(|run| run.stripe);
        let ends = ends.chain([self.stripes]);
        for (index, (run, end)) in self.runs.iter().zip(ends).enumerate() {
            let stripe = self.stripe_in(index, run.stripe);
            let (chunks, size) = (stripe.data_chunks(), stripe.data_sectors(0).0 as u32);
            if self
                .cycle(index, run.stripe)
                .sizes
                .iter()
                .all(|chunk_sectors| *chunk_sectors == size)
            {
                let mut remaining = (end - run.stripe) * chunks as u64;
                while remaining > 0 {
                    let times = remaining.min(u64::from(u32::MAX));
                    sizes.push(size, times as u32);
                    remaining -= times;
                }
                continue;
            }
            for number in run.stripe..end {
                let stripe = self.stripe_in(index, number);
                let chunks = (0..chunks).map(|k| stripe.data_sectors(k).0 as u32);
                chunks
                    .filter(|size| *size > 0)
                    .for_each(|size| sizes.push(size, 1));
            }
        }
        sizes.fold();
        TrackMap::from_pattern(Lbn(0), sizes)
    }

    /// Returns the number of sectors that the largest stripe has on all members together.
    pub fn stripe_sectors_max(&self) -> Sectors {
        let ends = self.runs.iter().skip(1).map(|run| run.stripe);
        let runs = self.runs.iter().zip(ends.chain([self.stripes])).enumerate();
        let stripes = runs.flat_map(|(index, (run, end))| {
            let period = self.members.len() as u64;
            let numbers = run.stripe..end.min(run.stripe + period);
            numbers.map(move |number| self.stripe_in(index, number))
        });
        let sectors = stripes.map(|stripe| stripe.chunks().map(|chunk| chunk.sectors.0).sum());
        Sectors(sectors.max().unwrap_or(0))
    }

    /// Returns the share of all members' sectors that hold neither data nor parity.
    pub fn waste(&self) -> f64 {
        let usage = self.usage();
        let sum = |part: fn(&MemberUsage) -> u64| usage.iter().map(part).sum::<u64>() as f64;
        sum(|member| member.unused().0) / sum(|member| member.sectors.0)
    }
}
