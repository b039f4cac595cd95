//! `traxtent drives assumed`: the influence of a drive's assumed figures.

use std::io::Write;

use serde_json::{Value, json};
use traxtent_lab::Bench;
use traxtent_lab::assumed::{Influence, Results, influence};
use traxtent_model::profile::Profile;

use crate::failure::{Failure, Result};
use crate::machine::load;
use crate::output;
use crate::table::{Side, Table};

/// The smallest change of a result for which a figure is listed, as a fraction.
const CHANGE_LEAST: f64 = 0.01;

/// Runs the command.
pub(super) fn run(target: &str, seed: u64, json: bool) -> Result<()> {
    let profile = Profile::clone(&load(target)?.only_drive()?.profile);
    if profile.mechanics.is_none() {
        let mut out = output::stdout();
        writeln!(out, "{}: no access takes any time", profile.name)?;
        return output::finish(out);
    }
    let broken = |error| Failure::input(format!("{target}: {error}"));
    let bench = Bench::with_profile(profile, seed).map_err(broken)?;
    let found = influence(&bench).map_err(broken)?;
    if json {
        return output::json(&to_json(&bench.profile, &found));
    }
    print(&bench.profile.name, &found)
}

fn print(name: &str, found: &Influence) -> Result<()> {
    let mut table = Table::new([
        ("FIGURE", Side::Left),
        ("VALUE", Side::Left),
        ("MOVED TO", Side::Left),
        ("READ, ms", Side::Right),
        ("", Side::Right),
        ("READS/s, 32", Side::Right),
        ("", Side::Right),
        ("STREAM, MB/s", Side::Right),
        ("", Side::Right),
        ("SCAN, MB/s", Side::Right),
        ("", Side::Right),
    ]);
    let mut row = |figure: &str, from: &str, to: &str, results: &Results| {
        let texts = [figure, from, to].map(str::to_owned).into_iter();
        let cells = columns(results).into_iter().zip(columns(&found.own));
        let cells = cells
            .zip([2, 0, 1, 1])
            .flat_map(|((result, own), decimals)| {
                let change = 100.0 * (result / own - 1.0);
                let change = if change.abs() < 0.05 {
                    String::new()
                } else {
                    format!("{change:+.1} %")
                };
                [format!("{result:.decimals$}"), change]
            });
        table.row(texts.chain(cells));
    };
    row("as in the profile", "", "", &found.own);
    let (listed, others): (Vec<_>, Vec<_>) = found
        .moved
        .iter()
        .partition(|moved| greatest_change(&moved.results, &found.own) >= CHANGE_LEAST);
    for moved in &listed {
        row(moved.range.key, &moved.from, &moved.to, &moved.results);
    }
    let together = [
        ("all, slowest read", &found.reads[0]),
        ("all, fastest read", &found.reads[1]),
        ("all, slowest stream", &found.streams[0]),
        ("all, fastest stream", &found.streams[1]),
    ];
    for (what, results) in together {
        row(what, "", "", results);
    }
    let mut out = output::stdout();
    table.write(&mut out)?;
    let mut keys: Vec<&str> = others.iter().map(|moved| moved.range.key).collect();
    keys.retain(|key| listed.iter().all(|moved| moved.range.key != *key));
    keys.dedup();
    writeln!(out)?;
    if !keys.is_empty() {
        writeln!(out, "Below 1 %: {}.", keys.join(", "))?;
    }
    if !found.fixed.is_empty() {
        writeln!(
            out,
            "{} more figures are assumed and not moved; --json lists them.",
            found.fixed.len()
        )?;
    }
    writeln!(out, "Ranges:")?;
    let mut before = "";
    for moved in listed {
        if moved.range.key != before {
            writeln!(out, "  {}: {}", moved.range.key, moved.range.reason)?;
        }
        before = moved.range.key;
    }
    writeln!(
        out,
        "{name}: a random read takes {:.1} to {:.1} ms, and a stream reaches {:.0} to {:.0} MB/s, depending on the assumed figures",
        found.reads[1].read_ms,
        found.reads[0].read_ms,
        found.streams[0].stream,
        found.streams[1].stream,
    )?;
    output::finish(out)
}

fn columns(results: &Results) -> [f64; 4] {
    let Results {
        read_ms,
        reads_32,
        stream,
        scan,
    } = *results;
    [read_ms, reads_32, stream, scan]
}

fn greatest_change(results: &Results, own: &Results) -> f64 {
    let changes = columns(results).into_iter().zip(columns(own));
    changes
        .map(|(result, own)| (result / own - 1.0).abs())
        .fold(0.0, f64::max)
}

fn to_json(profile: &Profile, found: &Influence) -> Value {
    let results = |results: &Results| {
        json!({
            "read_ms": results.read_ms,
            "reads_32_per_s": results.reads_32,
            "stream_mb_per_s": results.stream,
            "scan_mb_per_s": results.scan,
        })
    };
    let moved = |moved: &traxtent_lab::assumed::Moved| {
        json!({
            "figure": moved.range.key,
            "from": moved.from,
            "to": moved.to,
            "reason": moved.range.reason,
            "results": results(&moved.results),
        })
    };
    json!({
        "drive": profile.name,
        "own": results(&found.own),
        "moved": found.moved.iter().map(moved).collect::<Vec<_>>(),
        "not_moved": found.fixed,
        "slowest_read": results(&found.reads[0]),
        "fastest_read": results(&found.reads[1]),
        "slowest_stream": results(&found.streams[0]),
        "fastest_stream": results(&found.streams[1]),
    })
}
