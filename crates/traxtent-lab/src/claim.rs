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
}
