//! Seek curves: rows of `distance, milliseconds` after an optional heading with their number.
//!
//! The third column, if present, is the deviation of the measurement. The fourth is the time of a
//! seek for a write.

use super::params::ParamError;
use traxtent_units::Count;

/// A measured seek.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekPoint {
    /// Cylinders crossed.
    pub distance: u32,
    /// Milliseconds for a read.
    pub read_ms: f64,
    /// Milliseconds for a write, if it was measured separately.
    pub write_ms: Option<f64>,
}

/// Parses a seek file. `file` is its name in error messages.
///
/// The points are returned in the order of the file, with ascending distances.
///
/// # Errors
/// Returns an error if a line is neither empty, a comment (`#`), the heading nor a row of two to
/// four numbers, if a time is negative or 1e6 ms or more, if distances do not ascend, if there are
/// no rows, or if their number is not the one that the heading states.
pub fn parse_seeks(file: &str, text: &[u8]) -> Result<Vec<SeekPoint>, ParamError> {
    let text = String::from_utf8_lossy(text);
    let mut points: Vec<SeekPoint> = Vec::new();
    let mut announced = None;
    let mut last_line = 1;
    for (line, row) in (1..).zip(text.lines()) {
        let error = |problem: String| ParamError {
            file: file.to_string(),
            line,
            problem,
        };
        let row = row.trim();
        last_line = line;
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        if let Some(count) = row.strip_prefix("Seek distances measured:") {
            let count = count.trim();
            let count = count
                .parse::<usize>()
                .map_err(|_| error(format!("\"{count}\" is not a count")))?;
            announced = Some(count);
            continue;
        }
        let mut fields = row.split(',').map(str::trim);
        let distance = fields.next().unwrap_or_default();
        let distance = distance
            .parse::<u32>()
            .map_err(|_| error(format!("\"{distance}\" is not a seek distance")))?;
        let times = fields
            .map(|field| match field.parse::<f64>() {
                Ok(ms) if (0.0..1e6).contains(&ms) => Ok(ms),
                _ => Err(error(format!("\"{field}\" is not a time in milliseconds"))),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let (read_ms, write_ms) = match times[..] {
            [read] | [read, _] => (read, None),
            [read, _, write] => (read, Some(write)),
            _ => {
                return Err(error(format!(
                    "{}; a row must have two to four",
                    Count(times.len() + 1, "column")
                )));
            }
        };
        if points
            .last()
            .is_some_and(|before| before.distance >= distance)
        {
            return Err(error(format!(
                "distance {distance} is not greater than the one before it"
            )));
        }
        points.push(SeekPoint {
            distance,
            read_ms,
            write_ms,
        });
    }
    let at_end = |problem: String| ParamError {
        file: file.to_string(),
        line: last_line,
        problem,
    };
    match announced {
        Some(count) if count != points.len() => Err(at_end(format!(
            "{} found; the heading announces {count}",
            Count(points.len(), "seek")
        ))),
        _ if points.is_empty() => Err(at_end("no seeks found".to_string())),
        _ => Ok(points),
    }
}
