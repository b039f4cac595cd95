//! Values of the workload grammar: whole numbers, shares, lengths, times, ranges of LBNs, and
//! distributions of lengths and times.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use super::distribution::Distribution;
use traxtent_units::Lbn;
use traxtent_units::byte_size::byte_unit;

/// The unit of a length. Bytes are converted to sectors once the drive's sector size is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthUnit {
    /// Logical sectors of the drive.
    #[default]
    Sectors,
    /// Bytes.
    Bytes,
}

/// A distribution of lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Length {
    /// The unit of the values.
    pub unit: LengthUnit,
    /// The values.
    pub values: Distribution,
}

/// The largest length, in sectors or bytes: 2^60, more than any drive has.
pub(super) const LENGTH_MAX: f64 = 1_152_921_504_606_846_976.0;

/// The longest time, in milliseconds: 100 days, which a simulation's clock can hold.
pub(super) const TIME_MAX_MS: f64 = 8.64e9;

type Parsed<T> = Result<T, String>;

impl Length {
    /// Returns a constant length of `count` sectors.
    pub fn sectors(count: u64) -> Length {
        Length {
            unit: LengthUnit::Sectors,
            values: Distribution::Constant(count as f64),
        }
    }

    /// Returns the values in sectors of `sector_bytes`.
    pub fn in_sectors(&self, sector_bytes: u32) -> Distribution {
        match self.unit {
            LengthUnit::Sectors => self.values.clone(),
            LengthUnit::Bytes => self.values.scaled(1.0 / f64::from(sector_bytes)),
        }
    }

    pub(super) fn parse(text: &str) -> Parsed<Length> {
        let mut unit = None;
        let values = distribution(text, LENGTH_MAX, &mut |number| {
            let (value, its) = length_value(number)?;
            // Zero is zero in any unit.
            if value != 0.0 && *unit.get_or_insert(its) != its {
                return Err(
                    "give all lengths of a distribution in sectors, or all in bytes".to_owned(),
                );
            }
            Ok(value)
        })?;
        Ok(Length {
            unit: unit.unwrap_or_default(),
            values,
        })
    }
}

impl fmt::Display for LengthUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LengthUnit::Sectors => "",
            LengthUnit::Bytes => "B",
        })
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.write(
            f,
            if self.unit == LengthUnit::Bytes {
                "B"
            } else {
                ""
            },
        )
    }
}

/// Parses a whole number within bounds.
pub(super) fn whole(text: &str, bounds: RangeInclusive<u64>) -> Parsed<u64> {
    let expected = || {
        if *bounds.end() == u64::MAX {
            format!("expected a whole number of at least {}", bounds.start())
        } else {
            format!(
                "expected a whole number from {} to {}",
                bounds.start(),
                bounds.end()
            )
        }
    };
    text.replace('_', "")
        .parse()
        .ok()
        .filter(|number| bounds.contains(number))
        .ok_or_else(expected)
}

/// Parses a share or probability: 0.66 or 66%.
pub(super) fn share(text: &str) -> Parsed<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    value
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        // -0 would be written differently from 0.
        .map(f64::abs)
        .ok_or_else(|| "expected a share from 0 to 1, or 0% to 100%".to_owned())
}

/// Parses a whole number of sectors or bytes, from `least` to `u32::MAX`.
pub(super) fn length(text: &str, least: u64) -> Parsed<(LengthUnit, u64)> {
    let (value, unit) = length_value(text)?;
    if value != libm::floor(value) || value < least as f64 || value > f64::from(u32::MAX) {
        return Err(format!(
            "expected a whole length from {least} to {} sectors or bytes",
            u32::MAX
        ));
    }
    Ok((
        if value == 0.0 {
            LengthUnit::Sectors
        } else {
            unit
        },
        value as u64,
    ))
}

/// Parses a range of LBNs.
pub(super) fn lbns(text: &str) -> Parsed<Range<Lbn>> {
    let expected = || {
        "expected a range of LBNs that is not empty, such as 0..1000000, end excluded".to_owned()
    };
    let (start, end) = text.split_once("..").ok_or_else(expected)?;
    let bound = |text: &str| whole(text.trim(), 0..=u64::MAX).map(Lbn);
    let range = bound(start)?..bound(end)?;
    if range.is_empty() {
        Err(expected())
    } else {
        Ok(range)
    }
}

/// Parses a time in milliseconds. `none` counts as 0.
pub(super) fn time_ms(text: &str) -> Parsed<f64> {
    if text == "none" {
        return Ok(0.0);
    }
    let ms = time_value(text)?;
    if (0.0..=TIME_MAX_MS).contains(&ms) {
        Ok(ms)
    } else {
        Err("expected a time from 0 to 100 days".to_owned())
    }
}

/// Parses a distribution of times, in milliseconds. Negative times are drawn again. Refuses a
/// negative constant, mean (`normal`, `choice`) or base (`exp`, `poisson`), and a `uniform` range
/// without a time of 0 or more.
pub(super) fn times(text: &str) -> Parsed<Distribution> {
    let times = distribution(text, TIME_MAX_MS, &mut time_value)?;
    let problem = match times {
        Distribution::Constant(value) => (value < 0.0).then_some("the time must be 0 or more"),
        Distribution::Uniform { high, .. } => {
            (high <= 0.0).then_some("the upper bound must be more than 0")
        }
        Distribution::Normal { mean, .. } => (mean < 0.0).then_some("the mean must be 0 or more"),
        Distribution::Exponential { base, .. } | Distribution::Poisson { base, .. } => {
            (base < 0.0).then_some("the base must be 0 or more")
        }
        Distribution::Choice(_) => (times.mean() < 0.0).then_some("the mean must be 0 or more"),
    };
    match problem {
        Some(problem) => Err(problem.to_owned()),
        None => Ok(times),
    }
}

/// Parses a distribution; `number` parses each of its numbers.
fn distribution(
    text: &str,
    limit: f64,
    number: &mut impl FnMut(&str) -> Parsed<f64>,
) -> Parsed<Distribution> {
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) => (name, rest),
        None => ("constant", text),
    };
    let mut base_and_mean = || -> Parsed<(f64, f64)> {
        match rest.split_once(':') {
            Some((base, mean)) => Ok((number(base)?, number(mean)?)),
            None => Ok((0.0, number(rest)?)),
        }
    };
    let drawn = match name {
        "constant" => Distribution::Constant(number(rest)?),
        "uniform" => {
            let (low, high) = rest.split_once("..").ok_or("expected uniform:LOW..HIGH")?;
            Distribution::Uniform {
                low: number(low)?,
                high: number(high)?,
            }
        }
        "normal" => {
            let (mean, deviation) = rest
                .split_once(':')
                .ok_or("expected normal:MEAN:DEVIATION")?;
            Distribution::Normal {
                mean: number(mean)?,
                deviation: number(deviation)?,
            }
        }
        "exp" => base_and_mean().map(|(base, mean)| Distribution::Exponential { base, mean })?,
        "poisson" => base_and_mean().map(|(base, mean)| Distribution::Poisson { base, mean })?,
        "choice" => {
            let item = |text: &str| match text.split_once('@') {
                Some((value, weight)) => Ok((
                    number(value)?,
                    weight
                        .parse()
                        .map_err(|_| format!("{weight:?} is not a weight; expected a number"))?,
                )),
                None => Ok((number(text)?, 1.0)),
            };
            Distribution::choice(rest.split('/').map(item).collect::<Parsed<Vec<_>>>()?)
        }
        _ => {
            return Err(format!(
                "{name:?} is not a distribution; expected constant, uniform, normal, exp, poisson or choice"
            ));
        }
    };
    drawn.check(limit)?;
    Ok(drawn)
}

/// Parses a number followed by a unit of length. A number without a unit is in sectors; the units
/// of bytes are those of [`traxtent_units::byte_size`]. Negative numbers and fractions are allowed,
/// since distributions can have them.
fn length_value(text: &str) -> Parsed<(f64, LengthUnit)> {
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "" | "s" => return Ok((number_value(number)?, LengthUnit::Sectors)),
        _ => byte_unit(unit).ok_or_else(|| {
            format!(
                "expected a length such as 8 (sectors), 4K, 4KiB or 4kB (4000 bytes); {unit:?} is not a unit of length"
            )
        })?,
    };
    Ok((number_value(number)? * factor as f64, LengthUnit::Bytes))
}

/// Parses a number followed by a unit of time, and returns milliseconds. Only 0 needs no unit.
fn time_value(text: &str) -> Parsed<f64> {
    let (number, unit) = split_unit(text);
    let value = number_value(number)?;
    Ok(match unit {
        "ns" => value * 1e-6,
        "us" | "µs" => value * 1e-3,
        "ms" => value,
        "s" => value * 1e3,
        "min" => value * 60e3,
        "h" => value * 3600e3,
        "" if value == 0.0 => 0.0,
        _ => {
            return Err(
                "expected a time with its unit (ns, us, ms, s, min, h), such as 10ms".to_owned(),
            );
        }
    })
}

/// Splits a number from the letters after it. The e of an exponent belongs to the number.
fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let bytes = text.as_bytes();
    let exponent = |at: usize| {
        let after = bytes.get(at + 1).copied().unwrap_or_default();
        matches!(bytes[at], b'e' | b'E') && (after.is_ascii_digit() || matches!(after, b'-' | b'+'))
    };
    let end = (0..bytes.len())
        .find(|&at| (bytes[at].is_ascii_alphabetic() && !exponent(at)) || bytes[at] >= 0x80)
        .unwrap_or(bytes.len());
    text.split_at(end)
}

fn number_value(text: &str) -> Parsed<f64> {
    let value = text
        .trim()
        .replace('_', "")
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite());
    // -0 would be written differently from 0.
    value
        .map(|value| value + 0.0)
        .ok_or_else(|| format!("{text:?} is not a number"))
}
