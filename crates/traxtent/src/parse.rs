//! Values of options.

use std::ops::Range;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use traxtent_core::units::Lbn;
use traxtent_core::workload::{ReplayPace, TraceFormat};

/// The name of a trace format.
pub(crate) fn formats() -> impl TypedValueParser<Value = TraceFormat> {
    let names = TraceFormat::all().map(TraceFormat::name);
    PossibleValuesParser::new(names).map(|name| {
        name.parse::<TraceFormat>()
            .expect("only names of formats pass")
    })
}

/// When a trace's requests are issued.
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

/// LBNs, half-open.
pub(crate) fn lbns(text: &str) -> Result<Range<Lbn>, String> {
    text.split_once("..")
        .and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?))
        .filter(|range: &Range<u64>| range.start < range.end)
        .map(|range| Lbn(range.start)..Lbn(range.end))
        .ok_or_else(|| "expected FIRST..END, two LBNs, the second behind the last".to_owned())
}

/// A factor above 0.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| (1e-6..=1e6).contains(speed))
        .ok_or_else(|| "expected a number from 0.000001 to 1000000".to_owned())
}
