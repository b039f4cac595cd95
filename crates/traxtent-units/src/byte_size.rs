//! Sizes in bytes as text: the grammar of every size on the command line and in specifications.
//!
//! The suffixes are those of the GNU coreutils ("2.3 Block size" in their manual): a bare letter,
//! or a letter followed by `iB`, is a power of 1024; a letter followed by `B` is a power of 1000.
//! fio's grammar is not followed: with its default `kb_base=1024`, it swaps the meanings of the
//! suffixes with and without `i`.

use std::fmt;

/// The grammar of sizes in one line, for help texts.
pub const BYTE_SIZE_HELP: &str = "A size in BYTES may have a suffix: 64K and 64KiB are 65536 bytes, 64kB is 64000; also M, G, T.";

/// A text that is not a size in bytes, or a size of 2^64 bytes or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSizeError;

impl fmt::Display for ByteSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected a whole number of bytes below 2^64, such as 65536, 64K, 64KiB or 64kB (64000)",
        )
    }
}

impl std::error::Error for ByteSizeError {}

/// Parses a size in bytes.
///
/// ```text
/// size   := number [ suffix ]
/// number := [ "+" ] digits [ "." digits ]
/// suffix := "B" | letter | letter "iB" | letter "B"
/// letter := "K" | "M" | "G" | "T", in either case; a lower-case letter may have "ib"
/// ```
///
/// Digits may be grouped by `_`, and spaces around the number are ignored. A fraction has to give
/// whole bytes: `1.5K` is 1536.
///
/// # Errors
/// Returns an error if the text is not a size, or if the size does not fit in 64 bits.
pub fn parse_byte_size(text: &str) -> Result<u64, ByteSizeError> {
    let text = text.trim();
    let (number, suffix) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "B"),
    };
    let number = number.trim().replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, "0"));
    let size = || {
        let factor = u128::from(byte_unit(suffix)?);
        let whole = u128::from(whole.parse::<u64>().ok()?);
        if fraction.is_empty() || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let scale = 10_u128.checked_pow(fraction.len().try_into().ok()?)?;
        let part = match fraction {
            "" => 0,
            digits => factor.checked_mul(digits.parse().ok()?)?,
        };
        if !part.is_multiple_of(scale) {
            return None;
        }
        u64::try_from(whole * factor + part / scale).ok()
    };
    size().ok_or(ByteSizeError)
}

/// Returns the number of bytes that a suffix denotes; `None` if it is not a suffix.
pub fn byte_unit(suffix: &str) -> Option<u64> {
    let mut letters = suffix.chars();
    let power = match letters.next()?.to_ascii_uppercase() {
        'B' if suffix == "B" => return Some(1),
        'K' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        _ => return None,
    };
    match letters.as_str() {
        "" | "iB" => Some(1024_u64.pow(power)),
        "ib" if suffix.starts_with(|letter: char| letter.is_ascii_lowercase()) => {
            Some(1024_u64.pow(power))
        }
        "B" => Some(1000_u64.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is every form of a size parsed as documented, up to the largest that fits?
    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("+512", 512),
            ("1_048_576", 1 << 20),
            (" 64 K ", 65_536),
            ("64k", 65_536),
            ("64K", 65_536),
            ("64KiB", 65_536),
            ("64kiB", 65_536),
            ("64kib", 65_536),
            ("64KB", 64_000),
            ("64kB", 64_000),
            ("3m", 3 << 20),
            ("3M", 3 << 20),
            ("3MiB", 3 << 20),
            ("3MB", 3_000_000),
            ("2g", 2 << 30),
            ("2GiB", 2 << 30),
            ("2GB", 2_000_000_000),
            ("1t", 1 << 40),
            ("1TiB", 1 << 40),
            ("1TB", 1_000_000_000_000),
            ("1.5K", 1536),
            ("1.50kB", 1500),
            ("2.0", 2),
            ("16777215T", 16_777_215 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_byte_size(text), Ok(bytes), "{text:?}");
        }
    }

    /// Are other texts refused, and the smallest size that does not fit?
    #[test]
    fn refusals() {
        for text in [
            "",
            " ",
            "K",
            "-1",
            "1e3",
            "64b",
            "64Ki",
            "64Kib",
            "64KBs",
            "64 K B",
            "64x",
            "1.5",
            "1.0001K",
            "1.K5",
            "1.-5K",
            "1..5K",
            "1.K",
            ".5K",
            "64µ",
            "16777216T",
            "18446744073709551616",
            "1.00000000000000000000000000000000000000000000001K",
        ] {
            assert_eq!(parse_byte_size(text), Err(ByteSizeError), "{text:?}");
        }
    }
}
