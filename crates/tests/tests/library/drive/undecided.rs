//! Cases in which DiskSim 4.0 and the model differ, and no measurement has decided between them.
//!
//! Each test states two response times for some of its requests: that of our model, which it
//! asserts, and that of the same drive in DiskSim. If a change to the model changes a result, the
//! test fails and reports whether the new result agrees with DiskSim's. The author of the change
//! then updates the result. The stated result of our model is not a claim that it is right.
//!
//! DiskSim's times are those of `disksim NAME.parv OUT ascii TRACE 0`, with the requests of the
//! test in TRACE and its parameters set in NAME.diskspecs. They are accurate only to about
//! 0.0005 ms, because DiskSim rounds angles.

use traxtent_model::profile::Profile;
use traxtent_units::request::Request;

use super::tiny::{read, serve, write};
use crate::disksim_files::drive_with;

/// The tolerance of a time that is stated with four decimals.
const STATED_MS: f64 = 0.0001;

/// A smaller difference from DiskSim's time counts as agreement.
const AGREES_MS: f64 = 0.001;

/// The response times of one request, identified by its index.
struct DisputedTimes {
    request: usize,
    ours_ms: f64,
    disksim_ms: f64,
}

/// Asserts that the model still gives the times that are stated as ours.
#[track_caller]
fn assert_undecided(profile: &Profile, requests: &[(f64, Request)], disputed: &[DisputedTimes]) {
    let done = serve(profile, requests);
    for times in disputed {
        let result_ms = done[times.request].response().as_ms();
        let agreement = if (result_ms - times.disksim_ms).abs() < AGREES_MS {
            "as in DiskSim"
        } else {
            "as in neither"
        };
        assert!(
            (result_ms - times.ours_ms).abs() < STATED_MS,
            "request {}: {result_ms:.4} ms, {agreement}; ours was {:.4} ms, DiskSim 4.0: {:.4} ms",
            times.request,
            times.ours_ms,
            times.disksim_ms,
        );
    }
}

/// Does a command wait for the bus while the drive's own data crosses it?
///
/// Ours: it is received immediately. DiskSim: it waits for the transfer in progress, and its
/// overhead begins only after that. Here the overhead of the second command, 0.252 ms, then makes
/// it miss a revolution.
#[test]
fn a_command_during_a_transfer() {
    let folder = testkit::shared_data!("disksim");
    assert_undecided(
        &drive_with(&folder, "ibm18es", &[("Max queue length", "2")]),
        &[(10.0, read(100_000, 200)), (30.0, read(1_000_300, 8))],
        &[DisputedTimes {
            request: 1,
            ours_ms: 11.9176,
            disksim_ms: 20.2514,
        }],
    );
}

/// Does a transfer wait for the overhead of a command that came before it?
///
/// Ours: commands take no bus time from the drive's own data. DiskSim: a command holds the bus
/// until its overhead ends. In sequential reads with a queue, each command thus delays the next
/// transfer.
#[test]
fn a_transfer_during_a_command() {
    let folder = testkit::shared_data!("disksim");
    let profile = drive_with(&folder, "ibm18es", &[("Max queue length", "2")]);
    assert_undecided(
        &profile,
        &[(10.0, read(100_000, 8)), (16.3, read(1_000_000, 8))],
        &[DisputedTimes {
            request: 0,
            ours_ms: 7.1542,
            disksim_ms: 7.3603,
        }],
    );
    // All requests arrive at once. With a queue of two, the others wait outside the drive.
    let sequential: Vec<_> = (0..12).map(|i| (10.0, read(100_000 + 8 * i, 8))).collect();
    assert_undecided(
        &profile,
        &sequential,
        &[DisputedTimes {
            request: 11,
            ours_ms: 16.0422,
            disksim_ms: 18.5650,
        }],
    );
}

/// If a write overlaps a read-ahead and stops it, does the buffer keep the sectors already read?
///
/// Ours: the segment is emptied. DiskSim: the segment becomes valid with the old sectors, and
/// serves them to later reads even where the write has changed them. If the read-ahead has already
/// ended, both empty the segment.
#[test]
fn a_write_over_a_read_ahead_in_progress() {
    let folder = testkit::shared_data!("disksim");
    assert_undecided(
        &drive_with(&folder, "barracuda", &[]),
        &[
            (10.0, read(100_000, 8)),
            (35.0, write(100_020, 8)),
            (70.0, read(100_020, 8)),
            (110.0, read(100_028, 8)),
            (150.0, read(100_000, 8)),
        ],
        &[
            DisputedTimes {
                request: 3,
                ours_ms: 5.3193,
                disksim_ms: 1.1540,
            },
            DisputedTimes {
                request: 4,
                ours_ms: 5.7315,
                disksim_ms: 1.1540,
            },
        ],
    );
}

/// Does read-ahead wait if the segment is full of sectors that a hit has yet to send?
///
/// Ours: it continues and overwrites the oldest sectors. DiskSim: a sector that lies a segment or
/// more after the last sector sent to the host is not read until it passes again, a revolution
/// later. This slows the hit, and keeps more of the sectors that the next read requests.
#[test]
fn read_ahead_into_a_full_segment_during_a_hit() {
    let folder = testkit::shared_data!("disksim");
    assert_undecided(
        &drive_with(&folder, "atlas_III", &[]),
        &[
            (10.0, read(100_000, 48)),
            (24.0, read(100_048, 48)),
            (34.0, read(100_096, 48)),
        ],
        &[
            DisputedTimes {
                request: 1,
                ours_ms: 5.4620,
                disksim_ms: 6.1198,
            },
            DisputedTimes {
                request: 2,
                ours_ms: 11.6153,
                disksim_ms: 5.4620,
            },
        ],
    );
}

/// While another read waits, may the minimum read-ahead extend past the read-ahead limit?
///
/// Ours: the minimum ends at the limit, here the end of the track. DiskSim: a request that waits
/// before the minimum is reached replaces the limit with the minimum, so that the head continues to
/// the next track.
#[test]
fn minimum_read_ahead_while_a_read_waits() {
    let folder = testkit::shared_data!("disksim");
    let changes = [
        ("Max queue length", "2"),
        ("Minimum read-ahead (blks)", "100"),
    ];
    assert_undecided(
        &drive_with(&folder, "atlas10k", &changes),
        &[(10.0, read(100_100, 8)), (10.0, read(3_000_000, 8))],
        &[DisputedTimes {
            request: 1,
            ours_ms: 13.9194,
            disksim_ms: 19.9044,
        }],
    );
}

/// Does the data of a write wait until the preceding read-ahead has reached its minimum?
///
/// Ours: the buffer takes it once the read is complete. DiskSim: the buffer takes it when the arm
/// is free.
#[test]
fn minimum_read_ahead_while_a_write_waits() {
    let folder = testkit::shared_data!("disksim");
    let changes = [
        ("Max queue length", "2"),
        ("Minimum read-ahead (blks)", "60"),
    ];
    assert_undecided(
        &drive_with(&folder, "atlas10k", &changes),
        &[(10.0, read(100_000, 8)), (11.0, write(3_000_000, 8))],
        &[DisputedTimes {
            request: 1,
            ours_ms: 3.3963,
            disksim_ms: 3.8047,
        }],
    );
}

/// Is the overhead "after a read" or "after a write" chosen by the last request submitted, or by
/// the last one completed?
///
/// The last read, a hit, arrives while the read before it is in progress and after a write has
/// completed. Ours: "after a read", 0.068 ms. DiskSim: "after a write", 0.309 ms.
#[test]
fn overhead_after_a_request_in_progress() {
    let folder = testkit::shared_data!("disksim");
    let changes = [
        ("Max queue length", "2"),
        ("Allow sneaky full read hits", "1"),
    ];
    assert_undecided(
        &drive_with(&folder, "cheetah4LP", &changes),
        &[
            (10.0, read(100_000, 8)),
            (50.0, write(5_000_000, 8)),
            (60.0, read(3_000_000, 8)),
            (62.0, read(100_008, 8)),
        ],
        &[DisputedTimes {
            request: 3,
            ours_ms: 0.9160,
            disksim_ms: 1.1570,
        }],
    );
}
