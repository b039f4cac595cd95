//! The values in a line of a trace: exact decimal times, numbers within bounds, and byte ranges as
//! sectors.

use super::error::TraceError;
use super::lines::Line;
use traxtent_units::Lbn;
use traxtent_units::request::{Op, Request};

/// Picoseconds in each unit that traces use.
pub(super) const PS_PER_NS: u64 = 1_000;
pub(super) const PS_PER_US: u64 = 1_000_000;
pub(super) const PS_PER_MS: u64 = 1_000_000_000;
pub(super) const PS_PER_S: u64 = 1_000_000_000_000;

/// The largest time in a trace: half of what the simulator's clock can hold, so that sums do not
/// overflow.
pub(super) const TIME_MAX_PS: u64 = u64::MAX / 2;

impl Line<'_> {
    /// Parses a time in units of `unit_ps` (one of the constants above), and returns it in
    /// picoseconds, like [`decimal`].
    pub(super) fn time(
        &self,
        field: &'static str,
        text: &str,
        unit_ps: u64,
    ) -> Result<u64, TraceError> {
        decimal(text, unit_ps)
            .filter(|&ps| ps <= TIME_MAX_PS)
            .ok_or_else(|| {
                let unit = match unit_ps {
                    PS_PER_S => "s",
                    PS_PER_MS => "ms",
                    PS_PER_US => "us",
                    _ => "ns",
                };
                let most = TIME_MAX_PS / unit_ps;
                self.field(
                    field,
                    text,
                    format!("expected a time from 0 to {most} {unit}"),
                )
            })
    }

    /// Parses a whole number of at most `most`.
    pub(super) fn whole(
        &self,
        field: &'static str,
        text: &str,
        most: u64,
    ) -> Result<u64, TraceError> {
        let number = text.parse().ok().filter(|&number| number <= most);
        number.ok_or_else(|| {
            self.field(
                field,
                text,
                format!("expected a whole number from 0 to {most}"),
            )
        })
    }

    /// Returns a request for whole sectors.
    pub(super) fn sectors(&self, op: Op, lbn: u64, sectors: &str) -> Result<Request, TraceError> {
        let count = self.whole("sectors", sectors, u64::from(u32::MAX))?;
        if count == 0 {
            return Err(self.empty("sectors"));
        }
        if lbn > i64::MAX as u64 {
            return Err(self.field(
                "block",
                &lbn.to_string(),
                format!("expected at most {}", i64::MAX),
            ));
        }
        Ok(Request {
            op,
            lbn: Lbn(lbn),
            sectors: count as u32,
            fua: false,
        })
    }

    /// Returns a request for the sectors that cover a byte range.
    pub(super) fn bytes(
        &self,
        op: Op,
        offset: u128,
        length: u64,
        sector_bytes: u32,
    ) -> Result<Request, TraceError> {
        match covering(offset, u128::from(length), sector_bytes) {
            Some((lbn, sectors)) => Ok(Request {
                op,
                lbn,
                sectors,
                fua: false,
            }),
            None if length == 0 => Err(self.empty("bytes")),
            None => {
                let expected = format!(
                    "expected a range below sector {} of at most {} sectors",
                    i64::MAX,
                    u32::MAX
                );
                Err(self.field(
                    "offset and length",
                    &format!("{offset} + {length}"),
                    expected,
                ))
            }
        }
    }
}

/// Returns the sectors that cover the bytes, or `None` if there are no bytes, too many, or any
/// beyond the largest LBN.
pub(super) fn covering(offset: u128, length: u128, sector_bytes: u32) -> Option<(Lbn, u32)> {
    let sector = u128::from(sector_bytes);
    let first = offset / sector;
    let end = offset.checked_add(length)?.div_ceil(sector);
    if length == 0 || end > i64::MAX as u128 {
        return None;
    }
    Some((Lbn(first as u64), u32::try_from(end - first).ok()?))
}

/// Returns `text` times `unit`, a power of ten, exact for unsigned decimals; further digits are
/// dropped. A number with an exponent is computed in floating point.
pub(super) fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if text.bytes().any(|byte| matches!(byte, b'e' | b'E')) {
        let value = text.parse::<f64>().ok()? * unit as f64;
        return (value >= 0.0 && value < u64::MAX as f64).then_some(value as u64);
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut total = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        if place == 0 {
            break;
        }
        total = total.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(total)
}

/// Returns `text` times `unit`, like [`decimal`], for a time of day in any unit: the whole part may
/// have 64 bits. A number with an exponent must fit 64 bits in picoseconds.
pub(super) fn wide_decimal(text: &str, unit: u64) -> Option<u128> {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (whole, fraction) = text.split_at(end);
    if whole.is_empty() || fraction.contains(['e', 'E']) {
        return decimal(text, unit).map(u128::from);
    }
    let fraction = match fraction {
        "" | "." => 0,
        fraction if fraction.starts_with('.') => decimal(fraction, unit)?,
        _ => return None,
    };
    let whole = whole.parse::<u64>().ok()?;
    Some(u128::from(whole) * u128::from(unit) + u128::from(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are decimal times exact to the picosecond, where floating point would not be?
    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal("13.191135", PS_PER_MS), Some(13_191_135_000));
        assert_eq!(
            decimal("604799999.999999999", PS_PER_MS),
            Some(604_799_999_999_999_999)
        );
        assert_eq!(decimal("0.1234567890123456", PS_PER_US), Some(123_456));
        assert_eq!(decimal("7", PS_PER_S), Some(7_000_000_000_000));
        assert_eq!(decimal(".5", PS_PER_MS), Some(500_000_000));
        assert_eq!(decimal("1e3", PS_PER_US), Some(1_000_000_000));
        for wrong in [
            "",
            ".",
            "-1",
            "+1",
            "1.2.3",
            "nan",
            "inf",
            "1e400",
            "99999999999999999999",
            "0x10",
        ] {
            assert_eq!(decimal(wrong, PS_PER_MS), None, "{wrong}");
        }
    }

    /// Are times of day exact, and times within 64 bits the same as in the narrow form?
    #[test]
    fn wide_decimals_agree_with_narrow_ones() {
        let tick = 100 * PS_PER_NS;
        assert_eq!(
            wide_decimal("128166372003061629", tick),
            Some(12_816_637_200_306_162_900_000)
        );
        assert_eq!(
            wide_decimal("1705276800.123456789", PS_PER_S),
            Some(1_705_276_800_123_456_789_000)
        );
        for text in [
            "",
            ".",
            "0",
            "7.",
            ".5",
            "13.191135",
            "1e3",
            "-1",
            "+1",
            "1.2.3",
            "nan",
            "0x10",
            "1 ",
        ] {
            let narrow = decimal(text, PS_PER_MS).map(u128::from);
            assert_eq!(wide_decimal(text, PS_PER_MS), narrow, "{text:?}");
        }
        assert_eq!(wide_decimal("99999999999999999999", PS_PER_MS), None);
    }

    /// Does a byte range cover every sector that it touches, and are an empty range and the first
    /// length that is too large refused?
    #[test]
    fn byte_ranges_cover_their_sectors() {
        assert_eq!(covering(0, 1, 512), Some((Lbn(0), 1)));
        assert_eq!(covering(511, 2, 512), Some((Lbn(0), 2)));
        assert_eq!(covering(512, 512, 512), Some((Lbn(1), 1)));
        assert_eq!(covering(4096, 8192, 4096), Some((Lbn(1), 2)));
        assert_eq!(covering(0, 0, 512), None);
        assert_eq!(
            covering(0, u128::from(u32::MAX) * 512, 512),
            Some((Lbn(0), u32::MAX))
        );
        assert_eq!(covering(0, u128::from(u32::MAX) * 512 + 1, 512), None);
        assert_eq!(covering(u128::MAX, 1, 512), None);
    }
}
