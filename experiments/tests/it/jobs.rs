//! Do the built-in drives perform the usual jobs as their manufacturers promise?

use std::num::NonZeroU32;

use traxtent_experiments::data_sheets;
use traxtent_experiments::jobs::jobs;
use traxtent_lab::Bench;
use traxtent_model::profile::builtin;

/// Is every drive with mechanics within all bounds? Sequential reads reach the media rate, which
/// matches the manufacturer's; random reads take the manufacturer's access time; and no larger size
/// or depth is slower without a known reason. Outside a soak, only every fifth drive is run.
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

/// Does a drive whose reads cannot join the read-ahead, and therefore lose revolutions, exceed the
/// bounds?
#[test]
fn a_lost_revolution_is_noticed() {
    let bench = Bench::new("hp-c2247", 1).unwrap();
    let slow = [
        ("bus.read_sector_ms", "0.001"),
        ("cache.almost_hits", "false"),
    ]
    .iter()
    .try_fold(bench, |bench, (key, value)| {
        bench.with_parameter(key, value)
    })
    .unwrap();
    let misses = jobs(&slow, NonZeroU32::MIN).unwrap().misses;
    assert!(!misses.is_empty());
}

/// Does each data sheet belong to a built-in drive, and name its source?
#[test]
fn data_sheets_have_drives() {
    for (name, sheet) in data_sheets() {
        assert!(builtin::builtin(name).is_some(), "{name}");
        assert!(!sheet.source.is_empty(), "{name}");
    }
}
