//! What a power cut leaves of the writes that were not durable.
//!
//! Each of them may be lost, kept, or torn: kept up to some place, from some place on, or in parts.
//! A drive writes its cache out in the order that suits its arm, so a later write may be kept where
//! an earlier one is lost. Of two versions of a sector that both reached the media, the later one
//! stands there. A draw from the seed decides how many are lost on the whole, so that cuts at which
//! all is lost, or nothing, are as likely as any.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::workload::Rng;

/// The unit that a power cut leaves whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tearing {
    /// A physical sector is old or new: `physical`. So drives that finish a sector on what the
    /// spindle still holds of energy.
    #[default]
    Physical,
    /// 512 bytes are old or new, also inside a physical sector of 4096: `512`. So some drives
    /// without such protection.
    Bytes512,
}

/// What a power cut did to the writes that were not durable, acknowledged or under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The seed that decided; the same seed on the same disk does the same.
    pub seed: u64,
    /// How many are wholly on the media.
    pub kept: u64,
    /// How many are not there at all.
    pub lost: u64,
    /// How many are there in part.
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

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut {
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

/// Where the units lie that a cut leaves whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    /// Bytes of a unit.
    pub(super) unit: u64,
    /// The first byte at which one begins.
    pub(super) first: u64,
}

impl Grain {
    /// The end of the unit that a byte is in.
    fn end(self, at: u64) -> u64 {
        let shift = self.unit - self.first % self.unit;
        (at + shift) / self.unit * self.unit + self.unit - shift
    }

    /// The units that a range touches, cut to it.
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

/// Draws what is left of each write.
#[derive(Debug)]
pub(super) struct Fates {
    rng: Rng,
    loss: f64,
    grain: Grain,
    pub(super) cut: Cut,
}

impl Fates {
    pub(super) fn new(seed: u64, grain: Grain) -> Fates {
        let mut rng = Rng::new(seed);
        Fates {
            loss: rng.fraction(),
            rng,
            grain,
            cut: Cut {
                seed,
                ..Cut::default()
            },
        }
    }

    /// The parts that are left of a write to `range`, ascending.
    pub(super) fn of(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let left = self.draw(range.clone());
        let count = match left.as_slice() {
            [] => &mut self.cut.lost,
            [whole] if *whole == range => &mut self.cut.kept,
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
        let units = self.grain.units(range.clone()).count() as u64;
        let place = rng.below(units + 1);
        let at = |n: u64| self.grain.units(range.clone()).nth(n as usize);
        let boundary = at(place).map_or(range.end, |unit| unit.start);
        match rng.below(3) {
            0 => some(range.start..boundary),
            1 => some(boundary..range.end),
            _ => {
                let mut left: Vec<Range<u64>> = Vec::new();
                for unit in self.grain.units(range) {
                    match left.last_mut() {
                        _ if rng.chance(0.5) => {}
                        Some(last) if last.end == unit.start => last.end = unit.end,
                        _ => left.push(unit),
                    }
                }
                left
            }
        }
    }
}

fn some(range: Range<u64>) -> Vec<Range<u64>> {
    if range.is_empty() {
        Vec::new()
    } else {
        vec![range]
    }
}
