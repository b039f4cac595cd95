//! Do the built-in drives make of the usual jobs what their makers promise?

use std::num::NonZeroU32;

use traxtent_core::profile::builtin;
use traxtent_experiments::data_sheets;
use traxtent_experiments::jobs::jobs;
use traxtent_lab::Bench;

/// Is every drive with mechanics within all bounds: reads in sequence at the rate of the media, that at the maker's, random reads in
/// the maker's access time, and nothing slower for being larger or deeper? (Every fifth drive, in the suite.)
#[test]
fn every_drive_is_within_its_bounds() {
    let seconds = NonZeroU32::MIN;
    let mut missed = Vec::new();
    let step = if testkit::repeats(1) > 1 { 1 } else { 5 };
    let names = builtin::names().filter(|name| *name != "instant");
    for name in names.collect::<Vec<_>>().into_iter().rev().step_by(step) {
        let bench = Bench::new(name, 1).unwrap();
        let misses = jobs(&bench, seconds).unwrap().misses;
        missed.extend(misses.iter().map(|miss| format!("{name}: {miss}")));
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Does a drop of the rate of reads in sequence, as it was before they joined read-ahead, fall outside the bounds?
#[test]
fn a_lost_revolution_is_noticed() {
    let bench = Bench::new("hp-c2247", 1).unwrap();
    let loses = [
        ("bus.read_sector_ms", "0.001"),
        ("cache.almost_hits", "false"),
    ]
    .iter()
    .try_fold(bench, |bench, (key, value)| bench.with(key, value))
    .unwrap();
    let misses = jobs(&loses, NonZeroU32::MIN).unwrap().misses;
    assert!(!misses.is_empty());
}

/// Is each data sheet one of a built-in drive?
#[test]
fn data_sheets_have_drives() {
    for (name, sheet) in data_sheets() {
        assert!(builtin::builtin(name).is_some(), "{name}");
        assert!(!sheet.source.is_empty(), "{name}");
    }
}
