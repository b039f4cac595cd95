//! The pace of a replay, as a user writes it.

use traxtent_workload::ReplayPace;

/// The maximum number of outstanding requests of a closed replay.
const OUTSTANDING_MAX: u32 = 65_536;

/// Parses the pace at which a trace's requests are issued: `recorded`, `semi-closed` or `closed:N`.
///
/// # Errors
/// Returns the values that are expected.
pub fn parse_pace(text: &str) -> Result<ReplayPace, String> {
    match text {
        "recorded" => return Ok(ReplayPace::Recorded { speed: 1.0 }),
        "semi-closed" => return Ok(ReplayPace::SemiClosed),
        _ => {}
    }
    text.strip_prefix("closed:")
        .and_then(|count| count.parse().ok())
        .filter(|count| (1..=OUTSTANDING_MAX).contains(count))
        .map(|outstanding| ReplayPace::Closed { outstanding })
        .ok_or_else(|| {
            "expected recorded, semi-closed or closed:N with N from 1 to 65536".to_owned()
        })
}

/// Parses a factor for the speed of a replay.
///
/// # Errors
/// Returns the values that are expected.
pub fn parse_speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| (1e-6..=1e6).contains(speed))
        .ok_or_else(|| "expected a number from 0.000001 to 1000000".to_owned())
}
