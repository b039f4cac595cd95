//! The differences between two maps.

use std::io::Write;

use serde_json::json;
use traxtent_map::{MapDifference, Side, differences};

use super::Subject;
use crate::failure::{Failure, Result};
use crate::output;

/// Writes a line for each track that is in only one map: `-` for the first map, `+` for the second.
pub(super) fn text(left: &Subject, right: &Subject, mut out: impl Write) -> Result<()> {
    let mut count = 0_u64;
    for MapDifference { side, track } in differences(&left.file().tracks, &right.file().tracks) {
        let sign = match side {
            Side::Left => '-',
            Side::Right => '+',
        };
        writeln!(out, "{sign} {} {}", track.first_lbn, track.sectors.0)?;
        count += 1;
    }
    output::finish(out)?;
    verdict(left, right, count)
}

/// Writes the same differences as a JSON object.
pub(super) fn json(left: &Subject, right: &Subject, mut out: impl Write) -> Result<()> {
    let (left_name, right_name) = (left.name(), right.name());
    writeln!(
        out,
        "{{\"left\": {}, \"right\": {}, \"differences\": [",
        json!(left_name),
        json!(right_name)
    )?;
    let mut count = 0_u64;
    for MapDifference { side, track } in differences(&left.file().tracks, &right.file().tracks) {
        let object = json!({
            "only_in": match side { Side::Left => "left", Side::Right => "right" },
            "track": track.index,
            "first_lbn": track.first_lbn.0,
            "sectors": track.sectors.0,
        });
        writeln!(out, "{}{object}", if count == 0 { "" } else { "," })?;
        count += 1;
    }
    writeln!(out, "], \"count\": {count}}}")?;
    output::finish(out)?;
    verdict(left, right, count)
}

fn verdict(left: &Subject, right: &Subject, count: u64) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    Err(Failure::Finding(format!(
        "{} and {} differ: {} in only one of them",
        left.name(),
        right.name(),
        match count {
            1 => "1 track is".to_owned(),
            count => format!("{count} tracks are"),
        }
    )))
}
