//! A published number, a measured one, and how far apart they may be.

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share, shown in percent.
    Share,
    /// A change, shown in percent with its sign.
    Change,
    /// Milliseconds.
    Ms,
    /// Units of 1,024 bytes.
    Kb,
    /// A plain ratio.
    Ratio,
    /// Minutes.
    Minutes,
    /// Things, one by one.
    Count,
    /// Logical sectors.
    Sectors,
}

/// How far the measured number may be from the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Within {
    /// This much, in the unit of the claim (0.03 is three points of a share).
    Absolute(f64),
    /// This part of the published number.
    Relative(f64),
    /// It may be larger by any amount.
    AtLeast,
    /// Nothing.
    Exactly,
    /// It may be anything up to this, in the unit of the claim.
    AtMost(f64),
    /// What is published is a range, and it may be anything in it, ends included.
    Between(f64, f64),
}

/// One published number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// What the number is called, such as T9a.
    pub id: &'static str,
    /// What it says, in a line.
    pub says: &'static str,
    /// The number.
    pub published: f64,
    /// Its unit.
    pub unit: Unit,
    /// The tolerance.
    pub within: Within,
    /// Whether it is judged, or only reported.
    pub scored: bool,
    /// Why the model may miss it, as far as that is known.
    pub if_missed: &'static str,
}

/// Whether a claim is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Met,
    /// Outside it.
    Missed,
    /// Not judged.
    Reported,
}

/// A claim and what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The claim.
    pub claim: &'static Claim,
    /// The measured number.
    pub measured: f64,
}

impl Claim {
    /// A scored claim without a known reason to miss it.
    pub const fn new(
        id: &'static str,
        says: &'static str,
        published: f64,
        unit: Unit,
        within: Within,
    ) -> Claim {
        Claim {
            id,
            says,
            published,
            unit,
            within,
            scored: true,
            if_missed: "",
        }
    }

    /// The same, reported only.
    pub const fn reported(self) -> Claim {
        Claim {
            scored: false,
            ..self
        }
    }

    /// The same with a reason to give where it is missed.
    pub const fn if_missed(self, reason: &'static str) -> Claim {
        Claim {
            if_missed: reason,
            ..self
        }
    }

    /// The published number, or range, with its unit.
    pub fn published(&self) -> String {
        match self.within {
            Within::Between(from, to) => {
                format!("{} to {}", self.unit.show(from), self.unit.show(to))
            }
            _ => self.unit.show(self.published),
        }
    }

    /// Whether an ID names this claim: its own, or that of the group, as T13 and T name T13a.
    pub fn is_called(&self, id: &str) -> bool {
        let rest = self.id.strip_prefix(id);
        !id.is_empty()
            && rest.is_some_and(|rest| {
                id.bytes().all(|byte| byte.is_ascii_alphabetic())
                    || !rest.starts_with(|first: char| first.is_ascii_digit())
            })
    }

    /// The tolerance in words.
    pub fn tolerance(&self) -> String {
        match (self.within, self.unit) {
            (Within::Absolute(by), Unit::Share | Unit::Change) => {
                format!("{} points", trimmed(by * 100.0))
            }
            (Within::Absolute(by), unit) => unit.show(by),
            (Within::Relative(part), _) => format!("{} %", trimmed(part * 100.0)),
            (Within::AtLeast, _) => "or more".to_owned(),
            (Within::Exactly, _) => "exact".to_owned(),
            (Within::AtMost(bound), unit) => format!("{} or less", unit.show(bound)),
            (Within::Between(..), _) => "in between".to_owned(),
        }
    }
}

impl Finding {
    /// Whether the claim is met.
    pub fn verdict(&self) -> Verdict {
        let Claim {
            published,
            within,
            scored,
            ..
        } = *self.claim;
        let apart = (self.measured - published).abs();
        let met = match within {
            Within::Absolute(by) => apart <= by,
            Within::Relative(part) => apart <= part * published.abs(),
            Within::AtLeast => self.measured >= published,
            Within::Exactly => apart == 0.0,
            Within::AtMost(bound) => self.measured <= bound,
            Within::Between(from, to) => (from..=to).contains(&self.measured),
        };
        match (scored, met) {
            (false, _) => Verdict::Reported,
            (true, true) => Verdict::Met,
            (true, false) => Verdict::Missed,
        }
    }
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Reported => "reported",
        }
    }
}

impl Unit {
    /// A number with its unit.
    pub fn show(self, number: f64) -> String {
        match self {
            Unit::Share => format!("{:.1} %", number * 100.0),
            Unit::Change => format!("{:+.1} %", number * 100.0),
            Unit::Ms => format!("{number:.2} ms"),
            Unit::Kb => format!("{} KB", number.round()),
            Unit::Ratio => format!("{number:.3}"),
            Unit::Minutes => format!("{number:.2} min"),
            Unit::Count => format!("{number:.0}"),
            Unit::Sectors => format!("{number:.0} sectors"),
        }
    }
}

fn trimmed(number: f64) -> String {
    let rounded = (number * 1e6).round() / 1e6;
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: Claim = Claim::new("X", "a claim", -0.18, Unit::Change, Within::Absolute(0.03));

    /// Is the bound itself met, and what lies beyond it missed?
    #[test]
    fn both_sides_of_a_bound() {
        let at = |measured| {
            Finding {
                claim: &CLAIM,
                measured,
            }
            .verdict()
        };
        assert_eq!(at(-0.2099), Verdict::Met);
        assert_eq!(at(-0.2101), Verdict::Missed);
        assert_eq!(at(-0.1501), Verdict::Met);
        assert_eq!(at(-0.1499), Verdict::Missed);
    }

    /// Do numbers read as the papers print them?
    #[test]
    fn shown() {
        assert_eq!(CLAIM.unit.show(CLAIM.published), "-18.0 %");
        assert_eq!(CLAIM.tolerance(), "3 points");
        assert_eq!(Within::Relative(0.03), Within::Relative(0.03));
    }

    /// Are the ends of a range in it, and does a bound hold from one side only?
    #[test]
    fn ranges_and_bounds() {
        const RANGE: Claim =
            Claim::new("X", "a range", 2.15, Unit::Ratio, Within::Between(2.0, 2.3));
        const BOUND: Claim = Claim::new(
            "X",
            "four hours",
            240.0,
            Unit::Minutes,
            Within::AtMost(10.0),
        );
        let met =
            |claim: &'static Claim, measured| Finding { claim, measured }.verdict() == Verdict::Met;
        assert!(met(&RANGE, 2.0) && met(&RANGE, 2.3) && !met(&RANGE, 1.999) && !met(&RANGE, 2.301));
        assert!(met(&BOUND, 0.0) && met(&BOUND, 10.0) && !met(&BOUND, 10.001));
        assert_eq!(RANGE.published(), "2.000 to 2.300");
        assert_eq!(BOUND.published(), "240.00 min");
        assert_eq!(BOUND.tolerance(), "10.00 min or less");
    }

    /// Does a name find its own claim and its group, and not one whose number merely begins alike?
    #[test]
    fn names() {
        let is = |id: &'static str, name: &str| Claim { id, ..CLAIM }.is_called(name);
        assert!(is("Q1a", "Q1a") && is("Q1a", "Q1") && is("Q1a", "Q") && is("T2", "T2"));
        assert!(!is("Q10a", "Q1") && !is("Q1a", "Q1b") && !is("Q1a", "") && !is("T2", "Q"));
        assert!(!is("Q1", "Q1a"));
    }
}
