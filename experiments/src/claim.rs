//! A published number, and the tolerance for a measured one.

use serde::{Deserialize, Serialize};

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A share, shown in percent.
    Share,
    /// A change, shown in percent with its sign.
    Change,
    /// A plain ratio.
    Ratio,
    /// A number of things.
    Count,
    /// Milliseconds.
    Ms,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Minutes.
    Minutes,
    /// Shares of a revolution.
    Revolutions,
    /// Revolutions per minute.
    Rpm,
    /// A calendar year.
    Year,
    /// Logical sectors.
    Sectors,
    /// Units of 1,024 bytes.
    #[serde(rename = "kb")]
    Kib,
    /// Units of 1,048,576 bytes.
    #[serde(rename = "mb")]
    Mib,
    /// Units of 10^9 bytes.
    Gb,
    /// Streams of a server.
    Streams,
    /// Things per second.
    PerSecond,
    /// Units of 10^6 bytes per second.
    MbPerS,
}

/// The published value: a number or a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// A number.
    Number(f64),
    /// Any value between the two ends, ends included.
    Range([f64; 2]),
}

/// The tolerance: how far the measured number may be from the published one. Except with
/// [`Tolerance::AtMost`], every number within a published range meets the claim.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tolerance {
    /// This amount, in the unit of the claim (0.03 is three points of a share).
    Absolute(f64),
    /// This fraction of the published number.
    Relative(f64),
    /// From the published number divided by this factor to the published number multiplied by it.
    Factor(f64),
    /// No tolerance.
    Exact,
    /// The published number, or more. For a range, its lower end counts.
    AtLeast,
    /// Any value up to this, in the unit of the claim, whatever was published.
    AtMost(f64),
}

/// A published number with its tolerance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The ID of the claim, such as T9a.
    pub id: String,
    /// The statement of the claim, in one line.
    pub says: String,
    /// The published number.
    pub published: Published,
    /// Its unit.
    pub unit: Unit,
    /// The tolerance.
    pub within: Tolerance,
    /// Whether the claim is scored, or only reported.
    pub scored: bool,
    /// The reason why the claim is only reported, or why the model misses it, as far as known.
    #[serde(default)]
    pub reason: String,
    /// The number of measured values for this claim. If the paper does not say which of several it
    /// means, the one nearest to the published number is judged.
    #[serde(default = "one")]
    pub nearest_of: usize,
}

fn one() -> usize {
    1
}

impl Published {
    /// Both ends. For a number, they are equal.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Published::Number(number) => [number; 2],
            Published::Range(ends) => ends,
        }
    }

    /// The distance of a number from the published value, and the nearer end.
    fn distance(self, measured: f64) -> (f64, f64) {
        let [from, to] = self.ends();
        if measured < from {
            (from - measured, from)
        } else if measured > to {
            (measured - to, to)
        } else {
            // The distance of NaN is NaN, which is within no tolerance.
            (measured * 0.0, to)
        }
    }
}

impl Claim {
    /// Returns whether a measured number is within the tolerance.
    pub fn allows(&self, measured: f64) -> bool {
        let (distance, end) = self.published.distance(measured);
        match self.within {
            Tolerance::Absolute(by) => distance <= by,
            Tolerance::Relative(part) => distance <= part * end.abs(),
            Tolerance::Factor(by) => {
                let [from, to] = self.published.ends();
                from / by <= measured && measured <= to * by
            }
            Tolerance::Exact => distance == 0.0,
            Tolerance::AtLeast => measured >= self.published.ends()[0],
            Tolerance::AtMost(bound) => measured <= bound,
        }
    }

    /// Returns the measured number that is nearest to the published one.
    ///
    /// # Panics
    /// Panics if there are no numbers.
    pub fn nearest(&self, measured: &[f64]) -> f64 {
        let distance = |number: &f64| self.published.distance(*number).0;
        let nearest = measured
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        *nearest.expect("a claim is compared with at least one number")
    }

    /// Returns whether an ID names this claim: its own ID, or that of a group. T13 and T name T13a.
    pub fn is_named_by(&self, id: &str) -> bool {
        let is_number = |character: Option<char>| character.is_some_and(|c| c.is_ascii_digit());
        let rest = self.id.strip_prefix(id);
        rest.is_some_and(|rest| {
            let cuts_a_number = is_number(id.chars().last()) && is_number(rest.chars().next());
            !(id.is_empty() || cuts_a_number)
        })
    }

    /// The published number or range, with its unit.
    pub fn published(&self) -> String {
        match self.published {
            Published::Number(number) => self.unit.format(number),
            Published::Range([from, to]) => self.unit.format_range(from, to),
        }
    }

    /// The tolerance in words.
    pub fn tolerance(&self) -> String {
        match (self.within, self.unit) {
            (Tolerance::Absolute(by), Unit::Share | Unit::Change) => {
                let points = plain(by * 100.0);
                let noun = if points == "1" { "point" } else { "points" };
                format!("{points} {noun}")
            }
            (Tolerance::Absolute(by), unit) => unit.format(by),
            (Tolerance::Relative(part), _) => format!("{} %", plain(part * 100.0)),
            (Tolerance::Factor(by), _) => format!("a factor of {}", plain(by)),
            (Tolerance::AtLeast, unit) => {
                format!("{} or more", unit.format(self.published.ends()[0]))
            }
            (Tolerance::Exact, _) if self.published.ends()[0] < self.published.ends()[1] => {
                "in between".to_owned()
            }
            (Tolerance::Exact, _) => "exact".to_owned(),
            (Tolerance::AtMost(bound), unit) => format!("{} or less", unit.format(bound)),
        }
    }
}

impl Unit {
    /// Formats a number with its unit. NaN, which stands for a missing value, becomes `none`.
    pub fn format(self, number: f64) -> String {
        match self {
            _ if number.is_nan() => "none".to_owned(),
            Unit::Share => format!("{} %", fixed(number * 100.0, 1)),
            Unit::Change => match fixed(number * 100.0, 1) {
                change if number > 0.0 && change != "0.0" => format!("+{change} %"),
                change => format!("{change} %"),
            },
            Unit::Ratio | Unit::Revolutions => fixed(number, 3),
            Unit::Count | Unit::Year | Unit::Rpm | Unit::Streams => whole(number),
            Unit::Ms => format!("{} ms", fixed(number, 2)),
            Unit::Seconds => format!("{} s", fixed(number, 1)),
            Unit::Minutes => format!("{} min", fixed(number, 2)),
            Unit::Sectors => format!("{} sectors", whole(number)),
            Unit::Kib => format!("{} KiB", whole(number)),
            Unit::Mib => format!("{} MiB", fixed(number, 2)),
            Unit::Gb => format!("{} GB", fixed(number, 2)),
            Unit::PerSecond => format!("{}/s", fixed(number, 1)),
            Unit::MbPerS => format!("{} MB/s", fixed(number, 1)),
        }
    }

    /// Formats a range. A unit that is separated by a space is only after the second number.
    pub fn format_range(self, from: f64, to: f64) -> String {
        let [from, to] = [from, to].map(|end| self.format(end));
        match (from.split_once(' '), to.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {to}"),
            _ => format!("{from} to {to}"),
        }
    }
}

/// Formats a number with fixed decimals, and negative zero as zero.
fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// Formats a count. A mean over seeds need not be an integer.
fn whole(number: f64) -> String {
    let tenths = fixed(number, 1);
    tenths
        .strip_suffix(".0")
        .map_or(tenths.clone(), str::to_owned)
}

/// Formats a number without unnecessary decimals.
fn plain(number: f64) -> String {
    let rounded = (number * 1e6).round() / 1e6;
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(published: Published, unit: Unit, within: Tolerance) -> Claim {
        Claim {
            id: "X1".to_owned(),
            says: "a claim".to_owned(),
            published,
            unit,
            within,
            scored: true,
            reason: String::new(),
            nearest_of: 1,
        }
    }

    /// On both sides, does a value just within the tolerance meet the claim, and one just beyond it
    /// miss? Do NaN and infinity miss?
    #[test]
    fn just_within_and_just_beyond() {
        let claim = claim(
            Published::Number(-0.18),
            Unit::Change,
            Tolerance::Absolute(0.03),
        );
        assert!(claim.allows(-0.2099) && !claim.allows(-0.2101));
        assert!(claim.allows(-0.1501) && !claim.allows(-0.1499));
        assert!(!claim.allows(f64::NAN) && !claim.allows(f64::INFINITY));
    }

    /// Do the ends of a range belong to it, is a tolerance measured from them, does a factor limit
    /// both sides, and do upper and lower bounds limit one side only?
    #[test]
    fn ranges_and_bounds() {
        let range = |within| claim(Published::Range([2.0, 2.3]), Unit::Ratio, within);
        let exact = range(Tolerance::Exact);
        assert!(exact.allows(2.0) && exact.allows(2.3));
        assert!(!exact.allows(1.999) && !exact.allows(2.301) && !exact.allows(f64::NAN));
        let wider = range(Tolerance::Relative(0.1));
        assert!(wider.allows(1.81) && !wider.allows(1.79));
        assert!(wider.allows(2.52) && !wider.allows(2.54));
        let factor = claim(Published::Number(3.0), Unit::Ratio, Tolerance::Factor(1.5));
        assert!(factor.allows(2.0) && factor.allows(4.5) && factor.tolerance().ends_with("1.5"));
        assert!(!factor.allows(1.999) && !factor.allows(4.501) && !factor.allows(f64::NAN));
        let bound = claim(
            Published::Number(240.0),
            Unit::Minutes,
            Tolerance::AtMost(10.0),
        );
        assert!(bound.allows(0.0) && bound.allows(10.0) && !bound.allows(10.001));
        let least = claim(Published::Number(0.9), Unit::Share, Tolerance::AtLeast);
        assert!(least.allows(0.9) && least.allows(1.0) && !least.allows(0.899));
    }

    /// Are numbers formatted according to their units, and tolerances according to their kinds?
    #[test]
    fn numbers_and_tolerances_are_formatted() {
        let format = |published, unit, within| {
            let claim = claim(published, unit, within);
            (claim.published(), claim.tolerance())
        };
        let number = Published::Number;
        for (found, published, tolerance) in [
            (
                format(number(-0.18), Unit::Change, Tolerance::Absolute(0.03)),
                "-18.0 %",
                "3 points",
            ),
            (
                format(number(-0.002), Unit::Change, Tolerance::Absolute(0.01)),
                "-0.2 %",
                "1 point",
            ),
            (
                format(number(8.3), Unit::Ms, Tolerance::Relative(0.05)),
                "8.30 ms",
                "5 %",
            ),
            (
                format(number(240.0), Unit::Minutes, Tolerance::AtMost(10.0)),
                "240.00 min",
                "10.00 min or less",
            ),
            (
                format(Published::Range([2.0, 2.3]), Unit::Ratio, Tolerance::Exact),
                "2.000 to 2.300",
                "in between",
            ),
            (
                format(number(-0.0001), Unit::Change, Tolerance::Exact),
                "0.0 %",
                "exact",
            ),
            (
                format(number(0.22), Unit::Change, Tolerance::AtLeast),
                "+22.0 %",
                "+22.0 % or more",
            ),
            (
                format(
                    Published::Range([3.0, 6.0]),
                    Unit::Ms,
                    Tolerance::Relative(0.05),
                ),
                "3.00 to 6.00 ms",
                "5 %",
            ),
            (
                format(
                    Published::Range([0.5, 1.0]),
                    Unit::PerSecond,
                    Tolerance::AtLeast,
                ),
                "0.5/s to 1.0/s",
                "0.5/s or more",
            ),
            (
                format(number(264.0), Unit::Kib, Tolerance::Exact),
                "264 KiB",
                "exact",
            ),
            (
                format(number(248.5), Unit::MbPerS, Tolerance::Relative(0.02)),
                "248.5 MB/s",
                "2 %",
            ),
        ] {
            assert_eq!((found.0.as_str(), found.1.as_str()), (published, tolerance));
        }
    }

    /// Does a name select its own claim and its group, but not a claim whose number only has the
    /// same prefix?
    #[test]
    fn names() {
        let is = |id: &str, name: &str| {
            let mut claim = claim(Published::Number(0.0), Unit::Count, Tolerance::Exact);
            id.clone_into(&mut claim.id);
            claim.is_named_by(name)
        };
        assert!(is("Q1a", "Q1a") && is("Q1a", "Q1") && is("Q1a", "Q") && is("T2", "T2"));
        assert!(is("T1a3", "T1a") && is("T1a3", "T1") && is("T1a3", "T1a3"));
        assert!(!is("Q10a", "Q1") && !is("Q1a", "Q1b") && !is("Q1a", "") && !is("T2", "Q"));
        assert!(!is("Q1", "Q1a") && !is("T1a30", "T1a3"));
    }

    /// Is the nearest of several numbers judged, even if another one is missing?
    #[test]
    fn nearest() {
        let claim = claim(
            Published::Number(-0.06),
            Unit::Change,
            Tolerance::Absolute(0.03),
        );
        assert_eq!(claim.nearest(&[-0.2, -0.07, f64::NAN]), -0.07);
    }
}
