//! Can a client observe a drive's mechanics from nothing but the times of its reads?
//!
//! The measurement is that of Figure 3 in "A Linux Implementation Validation of Track-Aligned
//! Extents and Track-Aligned RAIDs": 64 sectors read from growing offsets after a track boundary.

use std::time::Instant;

use traxtent_model::geometry::{Geometry, Track};
use traxtent_model::profile::builtin;

use crate::client::Client;
use crate::nbdkit::{Server, key};

/// The factor by which the drive is slower than real time. Delays of a busy machine are then a
/// small part of a revolution.
const SLOWER: u32 = 8;
/// The sectors of each read, and the step between offsets.
const SECTORS: u32 = 64;
const STEP: u32 = 16;
/// The tolerance of a time, as a part of a revolution. The skew is 0.1.
const TOLERANCE: f64 = 0.04;
/// The number of times of an offset that must agree, within half of the tolerance. Disturbances on
/// a busy machine do not agree.
const AGREE: usize = 3;
/// The greatest number of reads of an offset until they agree.
const TIMES_MAX: usize = 40;

/// Does the time from the end of one read to the end of another grow with the rotation, and jump by
/// the skew where the second begins to cross a track boundary?
#[test]
fn rotation_and_boundary() {
    let _ = testkit::tool!("nbdkit");
    let profile = builtin("atlas10k2").unwrap();
    let geometry = Geometry::build(&profile.geometry).unwrap();
    let tracks: Vec<Track> = geometry.tracks().take(4000).collect();
    let around = tracks[0].sectors;
    let server = Server::start(&[
        key("drive", "atlas10k2"),
        key("speed", 1.0 / f64::from(SLOWER)),
    ]);
    let mut client = Client::new(&server);
    let revolution_ms = f64::from(SLOWER) * profile.revolution_ms();

    // Every read goes to a cylinder that has not been read, so that the drive's buffer holds none.
    let mut cylinders = tracks
        .chunk_by(|a, b| a.cylinder == b.cylinder)
        .filter(|tracks| tracks.len() == 3 && tracks.iter().all(|track| track.sectors == around))
        .step_by(2);
    let offsets: Vec<u32> = (0..around).step_by(STEP as usize).collect();
    let mut late = Vec::new();
    for offset in &offsets {
        let mut times = Vec::new();
        let agreed = (0..TIMES_MAX).find_map(|_| {
            let [reference, read, _] = cylinders.next().unwrap() else {
                unreachable!("a cylinder has three tracks");
            };
            let mut end_of = |lbn: u64, sectors: u32| {
                let mut data = vec![0; sectors as usize * 512];
                client.read(lbn * 512, &mut data).unwrap().unwrap();
                Instant::now()
            };
            let begin = end_of(reference.first_lbn.0, 1);
            let end = end_of(read.first_lbn.0 + u64::from(*offset), SECTORS);
            let turns = (end - begin).as_secs_f64() * 1000.0 / revolution_ms;
            // The delay beyond the one that the offset implies.
            times.push((turns - f64::from(*offset) / f64::from(around)).rem_euclid(1.0));
            times.sort_by(f64::total_cmp);
            let mut close = times.windows(AGREE);
            let close = close.find(|times| times[AGREE - 1] - times[0] < TOLERANCE / 2.0)?;
            Some(close[AGREE / 2])
        });
        late.push(agreed.unwrap_or_else(|| panic!("offset {offset}: {times:.3?}")));
    }

    // Without rotation, these values would be spread over a whole revolution.
    let crossing = offsets.partition_point(|offset| offset + SECTORS <= around);
    let (within, across) = late.split_at(crossing);
    let level = median(within);
    let near = |late: &&f64, level: f64| (**late - level).abs() < TOLERANCE;
    let on_level = within.iter().filter(|late| near(late, level)).count();
    // If the heads arrive amid the sectors, the drive begins there and completes a little sooner.
    let amid = (SECTORS / STEP + 2) as usize;
    assert!(on_level + amid >= within.len(), "{late:.3?}");
    // The boundary according to the times alone.
    let jump = late.iter().rposition(|late| *late < level + TOLERANCE);
    let found = offsets[jump.unwrap() + 1];
    assert!(
        found.abs_diff(around - SECTORS) <= STEP,
        "{found}: {late:.3?}"
    );
    let skew = (tracks[2].origin - tracks[1].origin).as_turns();
    assert!(
        across.iter().all(|late| near(&late, level + skew)),
        "{late:.3?}"
    );
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
