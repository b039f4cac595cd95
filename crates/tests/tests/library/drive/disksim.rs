//! Single requests and queues on DiskSim's drives, compared with the times of DiskSim 4.0.
//!
//! DiskSim's times are those of `disksim NAME.parv OUT ascii TRACE 0`, with the requests of the
//! test in TRACE and its parameters set in NAME.diskspecs.

use traxtent_units::request::Request;

use super::tiny::{read, serve, write};
use crate::disksim_files::drive_with;

/// The largest difference from DiskSim's times. DiskSim rounds angles to 2^-20 of a revolution at
/// each event.
const ROUNDING_MS: f64 = 0.005;

#[track_caller]
fn assert_disksim_times(
    name: &str,
    changes: &[(&str, &str)],
    requests: &[Request],
    expected_ms: &[f64],
) {
    let folder = testkit::shared_data!("disksim");
    let requests: Vec<_> = requests.iter().map(|&request| (0.0, request)).collect();
    let done = serve(&drive_with(&folder, name, changes), &requests);
    for (completion, expected) in done.iter().zip(expected_ms) {
        let ms = completion.response().as_ms();
        assert!(
            (ms - expected).abs() < ROUNDING_MS,
            "{name}, {changes:?}, {:?}: {ms:.4} ms, DiskSim 4.0: {expected:.4} ms",
            completion.request
        );
    }
}

/// Does a write that is larger than its segment cross the bus as space becomes free, and reach the
/// media as data arrives?
#[test]
fn writes_larger_than_a_segment() {
    for (sectors, ms) in [(374, 37.212), (375, 37.311), (400, 39.786), (800, 79.386)] {
        assert_disksim_times("atlas10k", &[], &[write(1000, sectors)], &[ms]);
    }
    // The drive reacquires the bus when only one sector in the 64-sector segment remains to be
    // written.
    for (lbn, sectors, ms) in [
        (1000, 65, 16.4146),
        (0, 200, 28.9321),
        (100, 200, 34.7025),
        (1000, 200, 37.9899),
        (1000, 400, 72.5300),
    ] {
        assert_disksim_times("atlas_III", &[], &[write(lbn, sectors)], &[ms]);
    }
    // Written through to the media.
    assert_disksim_times("hp_c3323a", &[], &[write(1000, 600)], &[90.7157]);
}

/// Do the media wait if a slow bus leaves no room in the segment for the sectors being read?
#[test]
fn reads_larger_than_a_segment() {
    let segment = |sectors| [("Segment size (in blks)", sectors)];
    assert_disksim_times("ibm18es", &segment("32"), &[read(1000, 96)], &[25.9705]);
    assert_disksim_times("hp_c3323a", &segment("64"), &[read(1000, 200)], &[52.4491]);
}

/// Does a drive that never disconnects serve one command at a time, whatever its queue depth?
#[test]
fn a_drive_that_keeps_the_bus_has_one_command() {
    let requests = [100_000, 500_000, 900_000, 300_000].map(|lbn| read(lbn, 8));
    let never_disconnects = |queue| [("Never disconnect", "1"), ("Max queue length", queue)];
    for queue in ["1", "4"] {
        let expected = [11.5051, 33.0951, 53.4551, 73.1248];
        assert_disksim_times("hp_c3323a", &never_disconnects(queue), &requests, &expected);
        let expected = [8.8208, 20.4661, 30.2079, 36.8337];
        assert_disksim_times("ibm18es", &never_disconnects(queue), &requests, &expected);
    }
}

/// Does the first request have the overhead of a request after a read?
#[test]
fn the_first_request_comes_after_a_read() {
    assert_disksim_times("atlas10k", &[], &[write(0, 8)], &[0.978]);
    assert_disksim_times("ibm18es", &[], &[write(0, 8)], &[0.891]);
    assert_disksim_times("barracuda", &[], &[write(0, 8)], &[2.082]);
}

/// Does a zero-latency write over a bus slower than the media write only the sectors that have
/// arrived, and the rest a revolution later?
#[test]
fn a_write_over_a_slow_bus() {
    let folder = testkit::shared_data!("disksim");
    let drive = drive_with(&folder, "atlas10k", &[("Fast write level", "0")]);
    for (sectors, expected) in [(30, 8.8954), (60, 9.4329), (100, 16.1338)] {
        let requests = [(0.0, read(50, 1)), (100.0, write(100_210, sectors))];
        let ms = serve(&drive, &requests)[1].response().as_ms();
        assert!(
            (ms - expected).abs() < ROUNDING_MS,
            "{sectors}: {ms:.4} ms, DiskSim 4.0: {expected:.4} ms"
        );
    }
}
