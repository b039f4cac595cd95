//! Can a client observe a drive's mechanics from the times of its reads alone?
//!
//! The measurement is that of Figure 3 in "A Linux Implementation Validation of Track-Aligned
//! Extents and Track-Aligned RAIDs": 64 sectors read from increasing offsets after a track
//! boundary.

use std::time::Instant;

use traxtent_model::geometry::{Geometry, Track};
use traxtent_model::profile::builtin;

use crate::client::Client;
use crate::server::{Server, argument, option};

/// The factor by which the drive is slower than real time. Delays caused by a busy machine are then
/// a small fraction of a revolution.
const SLOWDOWN: u32 = 8;
/// The number of sectors in each read.
const SECTORS: u32 = 64;
/// The step between offsets, in sectors.
const STEP: u32 = 16;
/// The tolerance of a delay, in revolutions. For comparison, the skew is 0.1 revolutions.
const TOLERANCE: f64 = 0.04;
/// The number of measurements at an offset that must agree to within half the tolerance. Delays
/// caused by a busy machine do not agree with each other.
const AGREEING_MIN: usize = 5;
/// The maximum number of measurements at an offset.
const MEASUREMENTS_MAX: usize = 40;

/// Does the time from the end of one read to the end of a second grow with the offset of the
/// second, as the rotation implies? Does it jump by the skew where the second begins to cross a
/// track boundary?
#[test]
fn rotation_and_boundary() {
    let profile = builtin("atlas10k2").unwrap();
    let geometry = Geometry::build(&profile.geometry).unwrap();
    let tracks: Vec<Track> = geometry.tracks().take(4000).collect();
    let track_sectors = tracks[0].sectors;
    let server = Server::start(&[
        argument("atlas10k2"),
        option("speed", 1.0 / f64::from(SLOWDOWN)),
    ]);
    let mut client = Client::new(&server);
    let revolution_ms = f64::from(SLOWDOWN) * profile.revolution_ms();

    // Every measurement uses a cylinder that has not been read, so that no read hits the drive's
    // buffer.
    let mut cylinders = tracks
        .chunk_by(|a, b| a.cylinder == b.cylinder)
        .filter(|tracks| {
            tracks.len() == 3 && tracks.iter().all(|track| track.sectors == track_sectors)
        })
        .step_by(2);
    let offsets: Vec<u32> = (0..track_sectors).step_by(STEP as usize).collect();
    let mut delays = Vec::new();
    for offset in &offsets {
        // In revolutions.
        let mut delays_here = Vec::new();
        let agreed = (0..MEASUREMENTS_MAX).find_map(|_| {
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
            delays_here
                .push((turns - f64::from(*offset) / f64::from(track_sectors)).rem_euclid(1.0));
            delays_here.sort_by(f64::total_cmp);
            let mut agreeing = delays_here.windows(AGREEING_MIN);
            let agreeing =
                agreeing.find(|window| window[AGREEING_MIN - 1] - window[0] < TOLERANCE / 2.0)?;
            Some(agreeing[AGREEING_MIN / 2])
        });
        delays.push(agreed.unwrap_or_else(|| panic!("offset {offset}: {delays_here:.3?}")));
    }

    let crossing = offsets.partition_point(|offset| offset + SECTORS <= track_sectors);
    let (within, across) = delays.split_at(crossing);
    let level = median(within);
    let is_near = |delay: &&f64, level: f64| (**delay - level).abs() < TOLERANCE;
    // Without rotation, the delays would be spread over a whole revolution.
    let near_level = within.iter().filter(|delay| is_near(delay, level)).count();
    // If the head arrives over the middle of the requested sectors, the drive starts reading at
    // once, and the read completes slightly earlier.
    let early_max = (SECTORS / STEP + 2) as usize;
    assert!(near_level + early_max >= within.len(), "{delays:.3?}");
    // The track boundary, found from the times alone.
    let last_before_jump = delays.iter().rposition(|delay| *delay < level + TOLERANCE);
    let found_offset = offsets[last_before_jump.unwrap() + 1];
    assert!(
        found_offset.abs_diff(track_sectors - SECTORS) <= STEP,
        "{found_offset}: {delays:.3?}"
    );
    let skew = (tracks[2].origin - tracks[1].origin).as_turns();
    assert!(
        across.iter().all(|delay| is_near(&delay, level + skew)),
        "{delays:.3?}"
    );
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
