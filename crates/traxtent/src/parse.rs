//! Parsers for option values.

use std::ops::Range;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use traxtent_layout::video::BitRate;
use traxtent_run::data_file;
use traxtent_units::byte_size::parse_byte_size;
use traxtent_units::{Lbn, Span};
use traxtent_workload::TraceFormat;

pub(crate) use traxtent_run::{parse_pace as pace, parse_speed as speed};

/// The prefix of the names of DiskSim's trace formats.
const DISKSIM: &str = "disksim-";

/// Returns a parser for the name of a trace format. Those of DiskSim may lack the prefix, as on its
/// command line.
pub(crate) fn formats() -> impl TypedValueParser<Value = TraceFormat> {
    let names = TraceFormat::all().map(|format| {
        let value = PossibleValue::new(format.name());
        value.aliases(format.name().strip_prefix(DISKSIM))
    });
    PossibleValuesParser::new(names).map(|name| {
        let format = name.parse::<TraceFormat>();
        format
            .or_else(|_| format!("{DISKSIM}{name}").parse())
            .expect("only names of formats pass")
    })
}

/// Parses the name of a file to write. Refuses `-`, which does not mean standard output here.
pub(crate) fn output_file(text: &str) -> Result<PathBuf, String> {
    if text == "-" {
        return Err("expected a file; /dev/stdout writes to standard output".to_owned());
    }
    Ok(text.into())
}

/// Parses the name of a CSV file to write.
pub(crate) fn csv_file(text: &str) -> Result<PathBuf, String> {
    let path = output_file(text)?;
    if !data_file::is_csv(&path) {
        return Err(
            "logs are CSV; expected a name such as log.csv, log.csv.gz or log.csv.zst".to_owned(),
        );
    }
    Ok(path)
}

/// Parses a half-open range of LBNs that is not empty.
pub(crate) fn lbns(text: &str) -> Result<Range<Lbn>, String> {
    text.split_once("..")
        .and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?))
        .filter(|range: &Range<u64>| range.start < range.end)
        .map(|range| Lbn(range.start)..Lbn(range.end))
        .ok_or_else(|| "expected FIRST..END, where END is the first LBN after the range".to_owned())
}

/// Parses a bit rate, a number with its unit.
pub(crate) fn bitrate(text: &str) -> Result<BitRate, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "b/s" | "bit/s" | "bps" => 1.0,
        "kb/s" | "kbit/s" | "kbps" => 1e3,
        "Mb/s" | "Mbit/s" | "Mbps" => 1e6,
        "Gb/s" | "Gbit/s" | "Gbps" => 1e9,
        "B/s" => 8.0,
        "kB/s" => 8e3,
        "MB/s" => 8e6,
        _ => 0.0,
    };
    let rate = number
        .trim()
        .parse::<f64>()
        .map_or(0.0, |rate| rate * factor);
    if (1.0..=1e12).contains(&rate) {
        Ok(BitRate(rate.round() as u64))
    } else {
        Err(
            "expected a bit rate from 1b/s to 1000Gb/s, such as 4Mb/s, 500kb/s or 1.5MB/s"
                .to_owned(),
        )
    }
}

/// Parses a size in bytes that satisfies a condition; `expected` describes the condition.
pub(crate) fn bytes_if(
    text: &str,
    is_allowed: impl Fn(u64) -> bool,
    expected: &str,
) -> Result<u64, String> {
    let bytes = parse_byte_size(text).map_err(|error| error.to_string())?;
    if is_allowed(bytes) {
        Ok(bytes)
    } else if text.to_ascii_lowercase().ends_with("kb") {
        Err(format!(
            "{expected}; {text} is {bytes} bytes, because KB is 1000 bytes and K is 1024"
        ))
    } else {
        Err(expected.to_owned())
    }
}

/// Parses a duration from a microsecond to a day, a number with its unit.
pub(crate) fn time(text: &str) -> Result<Span, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "min" => 60e3,
        _ => 0.0,
    };
    let ms = number
        .trim()
        .parse::<f64>()
        .map_or(0.0, |time| time * factor);
    if (1e-3..=86_400e3).contains(&ms) {
        Ok(Span::from_ms(ms))
    } else {
        Err("expected a time from 1us to 1440min, such as 500ms or 2s".to_owned())
    }
}

/// Parses `KEY=VALUE`: a figure of a drive and its value.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Splits a number from its unit, which begins with the first letter.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use traxtent_units::byte_size::ByteSizeError;

    /// Parses a command line, and returns the error, if any.
    fn usage_error(line: &str) -> Option<String> {
        let words = std::iter::once("traxtent").chain(line.split(' '));
        let parsed = crate::command().try_get_matches_from(words);
        parsed.err().map(|error| error.to_string())
    }

    /// Is a negative number refused by the option's parser, with what it expects, and not taken for
    /// an option?
    #[test]
    fn negative_numbers() {
        for (line, expected) in [
            ("plan video atlas10k2 --bitrate -4Mb/s", "such as 4Mb/s"),
            ("plan video atlas10k2 --bitrate -4", "such as 4Mb/s"),
            ("file allocate a --map m --size -1", "expected"),
            ("file allocate a --map m --size -1G", "expected"),
            ("volume copies create --copies -1 --map m a", "such as 2"),
        ] {
            let error = usage_error(line).expect("it is negative");
            let (first, _) = error.split_once('\n').unwrap();
            assert!(
                first.starts_with("error: invalid value '-"),
                "{line}: {error}"
            );
            assert!(first.contains(expected), "{line}: {error}");
        }
    }

    /// Do options that take a size accept the same forms? If they refuse one, do they name the
    /// accepted forms or values?
    #[test]
    fn sizes_in_options() {
        for line in [
            "check disk.img --erase-block SIZE",
            "check disk.img --chunk SIZE",
            "check disk.img --stripe SIZE",
            "check disk.img --physical-sector SIZE",
            "check disk.img --logical-sector SIZE",
            "plan stack atlas10k2 --physical-sector SIZE",
            "plan stack atlas10k2 --for block=SIZE",
            "plan stack atlas10k2 --for luks=SIZE",
            "plan stack atlas10k2 --for inode-ratio=SIZE",
            "plan stack atlas10k2 --for raid=5xSIZE",
            "volume create --level raid-5 --chunk SIZE a b c",
            "volume create --level raid-5 --journal SIZE a b c",
            "volume copies create --copies 1 --map m --block SIZE a",
        ] {
            for size in ["4096", "4k", "4K", "4KiB", "4096B"] {
                let error = usage_error(&line.replace("SIZE", size));
                assert_eq!(error, None, "{line}, {size}");
            }
            let error = usage_error(&line.replace("SIZE", "4q")).expect("4q is not a size");
            let lists_values = line.contains("block=") || line.contains("luks=");
            let expected = if lists_values {
                "2048, 4096".to_owned()
            } else {
                ByteSizeError.to_string()
            };
            assert!(error.contains(&expected), "{line}: {error}");
        }
        for line in [
            "volume scrub --rate SIZE a b",
            "volume serve --sync-rate SIZE a b",
        ] {
            for size in ["3000000", "3m", "3M", "3MiB", "3MB"] {
                let error = usage_error(&line.replace("SIZE", size));
                assert_eq!(error, None, "{line}, {size}");
            }
            let error = usage_error(&line.replace("SIZE", "63K")).expect("63K is too slow");
            assert!(error.contains("expected at least 64K"), "{line}: {error}");
        }
        assert_eq!(usage_error("check disk.img --erase-block 3m"), None);
    }
}
