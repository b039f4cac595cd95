//! The effect of a power cut on writes that were not durable.
//!
//! Each of them may be lost, kept, or torn. A torn write is kept up to some point, from some point
//! on, or in parts. A drive writes its cache in the order that suits its arm, so a later write may
//! be kept while an earlier one is lost. If two versions of a sector both reached the media, the
//! later one remains. Each cut draws its own probability of loss from the seed, so that some cuts
//! lose almost all writes and others almost none.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use traxtent_units::Rng;

/// The unit that a power cut does not tear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tearing {
    /// `physical`: a physical sector is either old or new. This is the case in drives that finish a
    /// sector with the remaining energy of the spindle.
    #[default]
    Physical,
    /// `512`: 512 bytes are either old or new, even within a physical sector of 4096 bytes. This is
    /// the case in some drives without such protection.
    Bytes512,
}

/// The effect of a power cut on the writes that were not durable, whether they were acknowledged or
/// outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCutResult {
    /// The seed that determined the effect. The same seed on the same disk has the same effect.
    pub seed: u64,
    /// The number of writes that are completely on the media.
    pub kept: u64,
    /// The number of writes of which nothing is on the media.
    pub lost: u64,
    /// The number of writes that are on the media in part.
    pub torn: u64,
}

impl fmt::Display for Tearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Tearing::Physical => "physical",
            Tearing::Bytes512 => "512",
        })
    }
}

impl FromStr for Tearing {
    type Err = String;

    fn from_str(text: &str) -> Result<Tearing, String> {
        match text {
            "physical" => Ok(Tearing::Physical),
            "512" => Ok(Tearing::Bytes512),
            _ => Err("expected physical or 512".to_owned()),
        }
    }
}

impl fmt::Display for PowerCutResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PowerCutResult {
            seed,
            kept,
            lost,
            torn,
        } = self;
        write!(
            f,
            "seed {seed}: of {} writes that were not durable, {kept} kept, {lost} lost, {torn} torn",
            kept + lost + torn
        )
    }
}

/// The size and position of the units that a cut does not tear.
#[derive(Clone, Copy, Debug)]
pub(super) struct TearingUnit {
    /// The size of a unit in bytes.
    pub(super) unit: u64,
    /// The first byte at which a unit begins.
    pub(super) first: u64,
}

impl TearingUnit {
    /// The end of the unit that contains a byte.
    fn end(self, at: u64) -> u64 {
        let shift = self.unit - self.first % self.unit;
        (at + shift) / self.unit * self.unit + self.unit - shift
    }

    /// The units that a range touches, each limited to the range.
    fn units(self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut from = range.start;
        std::iter::from_fn(move || {
            let end = self.end(from).min(range.end);
            let unit = from..end;
            from = end;
            (!unit.is_empty()).then_some(unit)
        })
    }
}

/// A random choice of the parts that remain of each write.
#[derive(Debug)]
pub(super) struct CutSampler {
    rng: Rng,
    loss: f64,
    tearing_unit: TearingUnit,
    pub(super) cut: PowerCutResult,
}

impl CutSampler {
    pub(super) fn new(seed: u64, tearing_unit: TearingUnit) -> CutSampler {
        let mut rng = Rng::new(seed);
        CutSampler {
            loss: rng.fraction(),
            rng,
            tearing_unit,
            cut: PowerCutResult {
                seed,
                ..PowerCutResult::default()
            },
        }
    }

    /// Returns the ranges that remain of a write, ascending. Its `parts` are those that no durable
    /// write has replaced, ascending; each range is within one of them. Parts in the same unit are
    /// kept or lost together.
    pub(super) fn of(&mut self, parts: &[Range<u64>]) -> Vec<Range<u64>> {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return Vec::new();
        };
        let drawn = self.draw(first.start..last.end);
        let mut left: Vec<Range<u64>> = Vec::new();
        for drawn in drawn {
            let from = parts.partition_point(|part| part.end <= drawn.start);
            let touched = parts[from..].iter();
            left.extend(
                touched
                    .take_while(|part| part.start < drawn.end)
                    .map(|part| part.start.max(drawn.start)..part.end.min(drawn.end)),
            );
        }
        let count = match left.as_slice() {
            [] => &mut self.cut.lost,
            whole if whole == parts => &mut self.cut.kept,
            _ => &mut self.cut.torn,
        };
        *count += 1;
        left
    }

    fn draw(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let rng = &mut self.rng;
        if rng.chance(self.loss) {
            return Vec::new();
        }
        if rng.chance(0.5) {
            return vec![range];
        }
        let units = self.tearing_unit.units(range.clone()).count() as u64;
        let place = rng.below(units + 1);
        let at = |n: u64| self.tearing_unit.units(range.clone()).nth(n as usize);
        let boundary = at(place).map_or(range.end, |unit| unit.start);
        let mut left: Vec<Range<u64>> = Vec::new();
        match rng.below(3) {
            0 => left.push(range.start..boundary),
            1 => left.push(boundary..range.end),
            _ => {
                for unit in self.tearing_unit.units(range.clone()) {
                    match left.last_mut() {
                        _ if rng.chance(0.5) => {}
                        Some(last) if last.end == unit.start => last.end = unit.end,
                        _ => left.push(unit),
                    }
                }
            }
        }
        left.retain(|part| !part.is_empty());
        // A write of one unit cannot be torn. Whether a write is lost was drawn above.
        if left.is_empty() {
            left.push(range);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are writes of one unit, which cannot be torn, lost with the probability of their cut: none
    /// or almost none of them by one cut in ten, and almost all by another?
    #[test]
    fn losses_of_cuts() {
        let tearing_unit = TearingUnit {
            unit: 4096,
            first: 0,
        };
        let lost = |seed| {
            let mut sampler = CutSampler::new(seed, tearing_unit);
            for write in 0..100 {
                let whole = 4096 * write..4096 * (write + 1);
                sampler.of(std::slice::from_ref(&whole));
            }
            assert_eq!(sampler.cut.torn, 0);
            sampler.cut.lost
        };
        let cuts: Vec<u64> = (0..1000).map(lost).collect();
        let share = |range: Range<u64>| cuts.iter().filter(|lost| range.contains(lost)).count();
        for decile in [0..10, 45..55, 91..101] {
            assert!((60..140).contains(&share(decile.clone())), "{decile:?}");
        }
    }
}
