//! The results of a probe, for people and programs.

use std::io::Write;

use serde_json::{Value, json};
use traxtent_map::MapSource;
use traxtent_probe::Confirm;

use super::Args;
use super::characterization::MeasuredDrive;
use super::search::ProbeResult;
use crate::failure::Result;
use crate::map;
use crate::output;

/// Prints the result.
pub(super) fn print(
    name: &str,
    done: &ProbeResult,
    measured: Option<&MeasuredDrive>,
    why: &str,
    args: &Args,
) -> Result<()> {
    if args.json {
        let mut object = object(name, done, why, args);
        if let Some(measured) = measured {
            measured.add_to(&mut object);
        }
        return output::json(&object);
    }
    let mut out = output::stdout();
    map::write_summary(name, &done.file, &mut out)?;
    if let Some(measured) = measured {
        measured.write(&mut out)?;
    }
    writeln!(
        out,
        "{:>12}  {:.2} s of processor time",
        "this machine", done.cpu_s
    )?;
    for (what, path) in [("map", &args.map), ("profile", &args.profile)] {
        if let Some(path) = path {
            writeln!(out, "{what:>12}  {}", path.display())?;
        }
    }
    output::finish(out)
}

fn object(name: &str, done: &ProbeResult, why: &str, args: &Args) -> Value {
    let file = &done.file;
    let MapSource::Probe(algorithm, verify) = file.method else {
        unreachable!("the file is a probe's");
    };
    let confidence: serde_json::Map<String, Value> = Confirm::ALL
        .into_iter()
        .zip(file.confidence.counts())
        .map(|(confirm, count)| (confirm.name().to_owned(), json!(count)))
        .collect();
    let count = |ranges: &[std::ops::Range<traxtent_units::Lbn>]| -> u64 {
        ranges.iter().map(|range| range.end.0 - range.start.0).sum()
    };
    json!({
        "target": name,
        "vendor": file.identity.vendor,
        "product": file.identity.product,
        "serial": file.identity.serial,
        "lbns": file.identity.capacity.0,
        "algorithm": algorithm.name(),
        "why": why,
        "verify": verify.name(),
        "tracks": file.tracks.len(),
        "first_lbn": file.tracks.first().0,
        "end_lbn": file.tracks.end().0,
        "reads": file.cost.reads,
        "translations": file.cost.translations,
        "drive_time_s": file.cost.drive_time.as_ms() / 1000.0,
        "host_cpu_s": done.cpu_s,
        "confidence": confidence,
        "unreadable": count(&file.unreadable),
        "moved": done.moved_known.then(|| count(&file.remapped)),
        "doubtful": done.doubtful,
        "notes": file.notes,
        "resumed": done.resumed,
        "map": args.map,
        "profile": args.profile,
        // `MeasuredDrive::add_to` replaces these if the drive was characterized beyond its tracks.
        "layout_order": null,
        "zero_latency": null,
        "rpm": null,
    })
}
