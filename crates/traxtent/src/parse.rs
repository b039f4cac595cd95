//! Parsers for option values.

use std::ops::Range;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use traxtent_layout::video::BitRate;
use traxtent_units::{Lbn, Span};
use traxtent_workload::{ReplayPace, TraceFormat};

/// Returns a parser for the name of a trace format.
pub(crate) fn formats() -> impl TypedValueParser<Value = TraceFormat> {
    let names = TraceFormat::all().map(TraceFormat::name);
    PossibleValuesParser::new(names).map(|name| {
        name.parse::<TraceFormat>()
            .expect("only names of formats pass")
    })
}

/// Parses the pace at which a trace's requests are issued.
pub(crate) fn pace(text: &str) -> Result<ReplayPace, String> {
    match text {
        "recorded" => return Ok(ReplayPace::Recorded { speed: 1.0 }),
        "semi-closed" => return Ok(ReplayPace::SemiClosed),
        _ => {}
    }
    text.strip_prefix("closed:")
        .and_then(|count| count.parse().ok())
        .filter(|count| (1..=65_536).contains(count))
        .map(|outstanding| ReplayPace::Closed { outstanding })
        .ok_or_else(|| {
            "expected recorded, semi-closed or closed:N with N from 1 to 65536".to_owned()
        })
}

/// Parses a half-open range of LBNs.
pub(crate) fn lbns(text: &str) -> Result<Range<Lbn>, String> {
    text.split_once("..")
        .and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?))
        .filter(|range: &Range<u64>| range.start < range.end)
        .map(|range| Lbn(range.start)..Lbn(range.end))
        .ok_or_else(|| "expected FIRST..END, where END is the first LBN after the range".to_owned())
}

/// Parses a positive factor.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| (1e-6..=1e6).contains(speed))
        .ok_or_else(|| "expected a number from 0.000001 to 1000000".to_owned())
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

/// Parses a number of bytes: 512, 64k, 1M, 2G.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let shift = match unit {
        "" | "B" => 0,
        "k" | "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return None,
    };
    number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Parses a positive duration.
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

/// Parses a figure of a drive and its value.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Splits a number from the letters after it.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    text.split_at(end.unwrap_or(text.len()))
}
