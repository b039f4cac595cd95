//! How much of its members an array uses, and how evenly.

use super::{Array, Level};
use crate::units::Sectors;

/// What an array has on a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberUsage {
    /// The sectors that it may use.
    pub sectors: Sectors,
    /// Those that hold data.
    pub data: Sectors,
    /// Those that hold parity.
    pub parity: Sectors,
    /// Sectors of the array whose parity is here: as many small writes come here beside those to its data.
    pub covered: Sectors,
    /// Stripes whose parity is here.
    pub parity_stripes: u64,
}

impl MemberUsage {
    /// The sectors that hold nothing.
    pub fn unused(&self) -> Sectors {
        self.sectors - self.data - self.parity
    }
}

impl Array {
    /// What it has on each member. Takes a moment for each run of stripes of the same sizes.
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
            let turn = match self.shape.level {
                Level::Raid0 | Level::Raid1 => 1,
                Level::Raid5 => self.members.len() as u64,
            };
            for number in run.stripe..end.min(run.stripe + turn) {
                let times = (end - number).div_ceil(turn);
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

    /// The share of all its members' sectors that hold neither data nor parity.
    pub fn waste(&self) -> f64 {
        let usage = self.usage();
        let sum = |part: fn(&MemberUsage) -> u64| usage.iter().map(part).sum::<u64>() as f64;
        sum(|member| member.unused().0) / sum(|member| member.sectors.0)
    }
}
