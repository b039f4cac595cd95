//! Conversion of times in text form, such as `2 s` or `1.5ms`, to picoseconds and back.

use traxtent_units::Span;

/// Names and lengths of units in picoseconds, longest first.
const UNITS: [(&str, u64); 7] = [
    ("h", 3_600_000_000_000_000),
    ("min", 60_000_000_000_000),
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];

/// The longest accepted time: 100 days. A disk's clock ends after 106 days.
pub(super) const LONGEST: Span = Span(8_640_000_000_000_000_000);

/// Parses a time with its unit. Only 0 needs no unit.
pub(super) fn parse(text: &str) -> Result<Span, String> {
    let problem = || {
        "expected a time up to 100 days with its unit (h, min, s, ms, us, ns, ps), such as 1.5 s"
            .to_owned()
    };
    let unit_start = text.find(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let (number, unit) = text.split_at(unit_start.unwrap_or(text.len()));
    if number == "0" && unit.is_empty() {
        return Ok(Span::ZERO);
    }
    let (_, unit) = UNITS
        .into_iter()
        .find(|(name, _)| *name == unit.trim())
        .ok_or_else(problem)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || fraction.len() > 15 {
        return Err(problem());
    }
    let whole: u64 = whole.parse().map_err(|_| problem())?;
    // Up to 15 digits times an hour fit in 128 bits. Fractions of a picosecond are dropped.
    let parts: u128 = fraction.parse().map_err(|_| problem())?;
    let fraction = (parts * u128::from(unit) / 10_u128.pow(fraction.len() as u32)) as u64;
    whole
        .checked_mul(unit)
        .and_then(|ps| ps.checked_add(fraction))
        .map(Span)
        .filter(|span| *span <= LONGEST)
        .ok_or_else(problem)
}

/// Formats a time in the longest unit that divides it.
pub(super) fn write(span: Span) -> String {
    let whole = |&(_, unit): &(&str, u64)| span.0.is_multiple_of(unit);
    match UNITS.into_iter().find(whole) {
        Some((name, unit)) if span.0 > 0 => format!("{} {name}", span.0 / unit),
        _ => "0 s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are accepted spellings parsed correctly, can formatted times be parsed again, and are other
    /// spellings refused?
    #[test]
    fn times_read_back() {
        for (text, ps) in [
            ("2 s", 2_000_000_000_000),
            ("1.5ms", 1_500_000_000),
            ("0", 0),
            ("0 s", 0),
            ("90 min", 5_400_000_000_000_000),
            ("0.000000000001 s", 1),
            ("7 ps", 7),
        ] {
            assert_eq!(parse(text), Ok(Span(ps)), "{text}");
            assert_eq!(parse(&write(Span(ps))), Ok(Span(ps)), "{text}");
        }
        for bad in [
            "",
            "s",
            "2",
            "-1 s",
            "1e3 s",
            "2 fortnights",
            "1. s",
            ".5 s",
            "2401 h",
            "1 s s",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
