//! Times of reads: positioning, buffer, read-ahead, bus.

use traxtent_model::drive::{Drive, ServedBy, SharedBus};
use traxtent_model::profile::{BusHold, Delivery, Profile, ReadAheadUntil, SeekSpec};
use traxtent_units::request::{Op, Request};
use traxtent_units::{SimTime, Span};

use super::tiny::{assert_completions, drain, fua, read, serve, tiny, tiny_with, write};

fn reading_ahead() -> Profile {
    tiny_with(|p| p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd)
}

/// Does a read miss complete once its last sector has been read and has crossed the bus?
#[test]
fn a_miss_takes_rotation_transfer_and_a_sector_of_bus() {
    assert_completions(&tiny(), &[(0.0, read(20, 10))], &[3.01]);
    // Surface 1 begins at 1 ms, after the head switch; cylinder 1 at 3 ms, after the seek.
    assert_completions(&tiny(), &[(0.0, read(100, 10))], &[2.01]);
    assert_completions(&tiny(), &[(0.0, read(200, 10))], &[4.01]);
    // Across a track boundary, the head waits for the skew of 1 ms.
    assert_completions(&tiny(), &[(0.0, read(95, 10))], &[11.51]);
}

/// Does the command overhead determine whether a sector is reached in the current revolution?
#[test]
fn overhead_misses_a_sector_or_hides_behind_rotation() {
    let slow = tiny_with(|p| p.overheads.read_miss_after_read_ms = 0.3);
    assert_completions(&slow, &[(0.0, read(20, 10))], &[3.01]);
    assert_completions(&slow, &[(0.0, read(3, 1))], &[0.41]);
    let slower = tiny_with(|p| p.overheads.read_miss_after_read_ms = 0.300_000_001);
    assert_completions(&slower, &[(0.0, read(3, 1))], &[10.41]);
}

/// Does the breakdown assign each part of a read to its cause?
#[test]
fn the_parts_of_a_read_have_their_names() {
    let p = tiny_with(|p| {
        p.overheads.per_request_ms = 0.05;
        p.overheads.read_miss_after_read_ms = 0.15;
        p.overheads.read_completion_ms = 0.25;
    });
    let b = serve(&p, &[(0.0, read(200, 10))])[0].breakdown;
    let parts = [0.0, 0.45, 1.0, 0.0, 0.0, 1.8, 1.0, 0.01].map(Span::from_ms);
    assert_eq!(b.parts(), parts, "{b:?}");
}

/// Is the time that a buffer hit waits for an earlier request counted as queue time?
#[test]
fn waiting_for_others_counts_as_queue() {
    let p = tiny_with(|p| p.overheads.per_request_ms = 0.05);
    // The first request completes at 3.01 ms. The second one waits for it, then finds all its
    // sectors in the buffer.
    let done = serve(&p, &[(0.0, read(20, 10)), (1.0, read(22, 5))]);
    assert_eq!(done[0].breakdown.queue, Span::ZERO);
    assert_eq!(done[1].served, ServedBy::Buffer);
    assert_eq!(done[1].breakdown.queue, Span::from_ms(2.01 - 0.05));
    assert_eq!(done[1].breakdown.overhead, Span::from_ms(0.05));
}

/// Is a read of buffered sectors served at the speed of the bus, except without a cache, with force
/// unit access or for a verify?
#[test]
fn a_whole_hit_takes_the_bus_alone() {
    let p = tiny_with(|p| p.overheads.read_hit_after_read_ms = 0.2);
    let requests = [(0.0, read(20, 10)), (5.0, read(22, 5))];
    assert_completions(&p, &requests, &[3.01, 5.25]);
    assert_eq!(serve(&p, &requests)[1].served, ServedBy::Buffer);
    // There is no hit without a cache, for a read with force unit access, or for a verify.
    let off = tiny_with(|p| p.cache.enabled = false);
    assert_completions(&off, &requests, &[3.01, 12.71]);
    assert_completions(
        &p,
        &[(0.0, read(20, 10)), (5.0, fua(read(22, 5)))],
        &[3.01, 12.71],
    );
    let verify = Request {
        op: Op::Verify,
        ..read(22, 5)
    };
    assert_completions(&p, &[(0.0, read(20, 10)), (5.0, verify)], &[3.01, 12.7]);
}

/// Does a read whose first sectors are in the buffer wait only for the rest?
#[test]
fn a_partial_hit_reads_the_rest() {
    let requests = [(0.0, read(20, 10)), (5.0, read(25, 10))];
    assert_completions(&tiny(), &requests, &[3.01, 13.51]);
    assert_eq!(serve(&tiny(), &requests)[1].served, ServedBy::Both);
}

/// Does a sequential read continue at the position of read-ahead, at media speed and without losing
/// a sector?
#[test]
fn a_sequential_read_is_served_by_read_ahead() {
    let requests = [
        (0.0, read(20, 10)),
        (3.55, read(30, 10)),
        (5.0, read(40, 5)),
    ];
    assert_completions(&reading_ahead(), &requests, &[3.01, 4.01, 5.05]);
    let served: Vec<ServedBy> = serve(&reading_ahead(), &requests)
        .iter()
        .map(|c| c.served)
        .collect();
    assert_eq!(served, [ServedBy::Media, ServedBy::Both, ServedBy::Buffer]);
}

/// Does a read that begins with the next sector of read-ahead continue it, both within that sector
/// and while the head is on its way to it? Only a drive that abandons even a requested sector
/// starts again, and only within that sector.
#[test]
fn a_read_of_the_next_sector_joins_read_ahead() {
    let drive = |stop_in_sector, almost_hits| {
        let mut p = reading_ahead();
        p.cache.read_ahead.stop_in_sector = stop_in_sector;
        p.cache.almost_hits = almost_hits;
        p
    };
    // Sector 30 passes from 3.0 to 3.1 ms. The track ends at 10.0 ms. The head is over the next one
    // at 10.5 ms, and its first sector arrives at 11.0 ms.
    let within_sector = [(0.0, read(20, 10)), (3.05, read(30, 10))];
    let between_tracks = [(0.0, read(90, 10)), (10.7, read(100, 10))];
    for (stop_in_sector, almost_hits) in [(false, false), (false, true), (true, true)] {
        let p = drive(stop_in_sector, almost_hits);
        assert_completions(&p, &within_sector, &[3.01, 4.01]);
        assert_completions(&p, &between_tracks, &[10.01, 12.01]);
        assert_eq!(serve(&p, &within_sector)[1].served, ServedBy::Both);
    }
    let abandoning = drive(true, false);
    assert_completions(&abandoning, &within_sector, &[3.01, 14.01]);
    assert_eq!(
        serve(&abandoning, &within_sector)[1].served,
        ServedBy::Media
    );
    assert_completions(&abandoning, &between_tracks, &[10.01, 12.01]);
}

/// Does read-ahead keep the sectors that the host of a stream has not requested yet, although the
/// rest of the track exceeds the segment?
#[test]
fn a_stream_keeps_its_read_ahead() {
    for until in [ReadAheadUntil::TrackEnd, ReadAheadUntil::AdaptiveTrackEnd] {
        let p = tiny_with(|p| {
            p.cache.segment_sectors = 16;
            p.cache.read_ahead.until = until;
            p.cache.read_ahead.on_idle_hit = true;
        });
        // Between two requests, five sectors pass under the head. The host takes two of them.
        let continuation =
            (0..12u32).map(|i| (2.6 + 0.5 * f64::from(i), read(u64::from(24 + 2 * i), 2)));
        let requests: Vec<_> = std::iter::once((0.0, read(20, 4)))
            .chain(continuation)
            .collect();
        let served: Vec<_> = serve(&p, &requests).iter().map(|c| c.served).collect();
        assert!(
            !served[1..].contains(&ServedBy::Media),
            "{until:?}: {served:?}"
        );
    }
}

/// How far does each kind of read-ahead go? A read of sectors beyond it is not a hit.
#[test]
fn read_ahead_goes_as_far_as_stated() {
    let last_hit = |until| {
        let p = tiny_with(|p| {
            p.cache.read_ahead.until = until;
            p.cache.segment_sectors = 240;
        });
        // Sectors 50 to 59, then half a second for read-ahead.
        let hit = |lbn| {
            let probe = [(0.0, read(50, 10)), (500.0, read(lbn, 1))];
            serve(&p, &probe)[1].served == ServedBy::Buffer
        };
        (50..400).take_while(|&lbn| hit(lbn)).last()
    };
    assert_eq!(last_hit(ReadAheadUntil::None), Some(59));
    assert_eq!(last_hit(ReadAheadUntil::TrackEnd), Some(99));
    assert_eq!(last_hit(ReadAheadUntil::CylinderEnd), Some(199));
    assert_eq!(last_hit(ReadAheadUntil::AdaptiveTrackEnd), Some(99));
    // Read-ahead fills a whole segment after the request, and replaces the request's own sectors.
    let p = tiny_with(|p| p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd);
    for (lbn, served) in [
        (123, ServedBy::Buffer),
        (124, ServedBy::Media),
        (60, ServedBy::Buffer),
        (59, ServedBy::Media),
    ] {
        assert_eq!(
            serve(&p, &[(0.0, read(50, 10)), (500.0, read(lbn, 1))])[1].served,
            served,
            "{lbn}"
        );
    }
}

/// Does read-ahead on arrival hold the sectors that have passed since the head reached the track?
/// Does it read the next track within a revolution and a head switch? Does read-ahead in order wait
/// for the first sector?
#[test]
fn read_ahead_on_arrival_takes_passing_sectors() {
    let drive = |on_arrival| {
        tiny_with(|p| {
            p.access.zero_latency_read = true;
            p.cache.segment_sectors = 300;
            p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
            p.cache.read_ahead.on_arrival = on_arrival;
        })
    };
    let both = |requests: &[(f64, Request)], expected: [[f64; 2]; 2]| {
        assert_completions(&drive(true), requests, &expected[0]);
        assert_completions(&drive(false), requests, &expected[1]);
    };
    // The head arrives at sector 30. All of the second half passes before the first half is
    // complete.
    let halves = [(3.0, read(0, 50)), (13.3, read(50, 50))];
    both(&halves, [[13.21, 13.8], [13.21, 20.01]]);
    // The head arrives at sector 70. With read-ahead on arrival, twenty sectors of the second half
    // are still missing at 15.0 ms. Otherwise all fifty are.
    let halves = [(7.0, read(0, 50)), (15.02, read(50, 50))];
    both(&halves, [[15.01, 17.31], [15.01, 20.01]]);
    // The head arrives at sector 95 of the next track, half a millisecond before its first sector.
    let tracks = [(0.0, read(0, 100)), (12.0, read(100, 100))];
    both(&tracks, [[10.01, 20.56], [10.01, 21.01]]);
}

/// Does a drive that reads on arrival keep exactly the sectors of the track that pass between the
/// arrival of the head and the wanted sectors?
#[test]
fn a_drive_that_reads_on_arrival_keeps_what_passes() {
    let p = tiny_with(|p| {
        p.access.read_on_arrival = true;
        p.cache.segment_sectors = 200;
    });
    let base = Drive::new(&p).unwrap();
    // Times are in hundredths of a millisecond. The head is over surface 1 of cylinder 1 after a
    // seek of 1 ms. LBN 300 passes at 4 ms.
    for start in (0_u64..1000).step_by(7).chain([100, 300, 400]) {
        for (lbn, sectors) in [(350, 4), (395, 10)] {
            let landed = start + 100;
            let wanted = landed + (400 + 10 * (lbn - 300) + 1000 - landed % 1000) % 1000;
            let kept = (300..lbn).find(|other| wanted >= landed + 10 * (lbn - other));
            let first = kept.unwrap_or(lbn);
            let at = |ticks: u64| SimTime::from_ms(ticks as f64 / 100.0);
            let mut drive = base.clone();
            drive.serve(at(start), read(lbn, sectors)).unwrap();
            let served = |lbn| drive.clone().serve(at(9000), read(lbn, 1)).unwrap().served;
            assert_eq!(served(first), ServedBy::Buffer, "{start}, {lbn}: {first}");
            assert_eq!(
                served(first - 1),
                ServedBy::Media,
                "{start}, {lbn}: {first}"
            );
        }
    }
}

/// Does read-ahead finish its sector when a request arrives, but only if the drive cannot abandon a
/// sector?
#[test]
fn read_ahead_stops_at_the_end_of_a_sector_or_at_once() {
    // At 3.25 ms sector 32 passes. A seek of 1.02 ms from there just reaches slot 13 at 4.3 ms;
    // from the sector's end it does not.
    let change = |p: &mut Profile, in_sector: bool| {
        p.mechanics.as_mut().unwrap().seek = SeekSpec::Constant { ms: 1.02 };
        p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
        p.cache.read_ahead.stop_in_sector = in_sector;
    };
    let requests = [(0.0, read(20, 10)), (3.25, read(213, 1))];
    assert_completions(&tiny_with(|p| change(p, true)), &requests, &[3.01, 4.41]);
    assert_completions(&tiny_with(|p| change(p, false)), &requests, &[3.01, 14.41]);
}

/// When a request arrives, does read-ahead complete a track change, but abandon a rotational wait
/// immediately?
#[test]
fn read_ahead_stops_after_a_move_and_in_a_wait() {
    // Track 0 ends at 10.0 ms. The head is on surface 1 at 10.5 ms, and the first sector there
    // arrives at 11.0 ms.
    let requests = |ms, lbn| [(0.0, read(90, 5)), (ms, read(lbn, 1))];
    assert_completions(&reading_ahead(), &requests(10.2, 10), &[9.51, 11.11]);
    assert_completions(&reading_ahead(), &requests(10.2, 9), &[9.51, 21.01]);
    assert_completions(&reading_ahead(), &requests(10.7, 12), &[9.51, 11.31]);
}

/// Does the minimum read-ahead continue although another request waits?
#[test]
fn the_minimum_read_ahead_is_not_interrupted() {
    let p = tiny_with(|p| {
        p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
        p.cache.read_ahead.min_sectors = 20;
    });
    // Read-ahead lasts until 5.0 ms, and the seek takes 1 ms. Slot 29 of cylinder 1 passes at
    // 5.9 ms, slot 30 at 6.0 ms.
    assert_completions(
        &p,
        &[(0.0, read(20, 10)), (3.1, read(230, 1))],
        &[3.01, 6.11],
    );
    assert_completions(
        &p,
        &[(0.0, read(20, 10)), (3.1, read(229, 1))],
        &[3.01, 16.01],
    );
}

/// If a write arrives while its sectors are being read, does a later read of them go to the media?
#[test]
fn a_write_during_a_read_leaves_no_stale_sectors() {
    let p = tiny_with(|p| {
        p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
        p.cache.writes_while_busy = true;
        p.cache.read_hits_on_written = false;
    });
    // The write is submitted while the read waits for its sectors, before read-ahead begins.
    let requests = [
        (0.0, read(20, 10)),
        (0.5, write(22, 4)),
        (200.0, read(22, 4)),
    ];
    let done = serve(&p, &requests);
    assert_eq!(done[2].served, ServedBy::Media, "{done:?}");
}

/// If a write takes over a read's segment before the read-ahead begins, does the segment hold the
/// write's sectors only?
#[test]
fn a_write_that_takes_a_segment_keeps_it() {
    let p = tiny_with(|p| {
        p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
        p.cache.segments = 1;
        p.cache.write_segments = 1;
        p.cache.writes_while_busy = true;
        p.overheads.read_completion_ms = 2.0;
    });
    // The last sector is sent at 3.01 ms, and the read is acknowledged at 5.01 ms. The write
    // arrives at 4.0 ms, while the read-ahead that would continue from 3.0 ms is still pending.
    let requests = |lbn| {
        [
            (0.0, read(20, 10)),
            (4.0, write(10, 4)),
            (200.0, read(lbn, 2)),
        ]
    };
    assert_eq!(serve(&p, &requests(40))[2].served, ServedBy::Media);
    assert_eq!(serve(&p, &requests(11))[2].served, ServedBy::Buffer);
}

/// When do the sectors of a zero-latency read reach the host, for each order of delivery?
#[test]
fn delivery_decides_when_a_zero_latency_read_ends() {
    let p = |delivery| {
        tiny_with(|p| {
            p.access.zero_latency_read = true;
            p.bus.delivery = delivery;
        })
    };
    // The head lands within sector 25 and reads from sector 26 at 2.6 ms for a revolution, until
    // 12.6 ms.
    let track = [(2.55, read(0, 100))];
    // In order, sectors 0 to 25 cross the bus as they pass, the other 74 after sector 25.
    assert_completions(&p(Delivery::InOrder), &track, &[13.35]);
    assert_completions(&p(Delivery::InOrderWhenComplete), &track, &[13.6]);
    assert_completions(&p(Delivery::OutOfOrder), &track, &[12.61]);
    // Sectors that pass in order are not delayed.
    let half = [(2.55, read(50, 20))];
    for delivery in [
        Delivery::InOrder,
        Delivery::InOrderWhenComplete,
        Delivery::OutOfOrder,
    ] {
        assert_completions(&p(delivery), &half, &[7.01]);
    }
}

/// Does every sector cross the bus only after it has been read, even out of order over a slow bus?
#[test]
fn nothing_is_delivered_before_it_is_read() {
    let p = tiny_with(|p| {
        p.bus.delivery = Delivery::OutOfOrder;
        p.bus.read_sector_ms = 0.2;
    });
    assert_completions(&p, &[(0.0, read(20, 10))], &[4.1]);
}

/// When does a drive that disconnects from the bus reconnect, and how much time does holding the
/// bus save?
#[test]
fn the_bus_is_held_or_reacquired() {
    let p = |change: fn(&mut Profile)| {
        tiny_with(|p| {
            p.overheads.first_reselect_ms = 0.05;
            p.overheads.read_disconnect_after_write_ms = 0.02;
            change(p);
        })
    };
    let request = [(0.0, read(20, 10))];
    // The bus is acquired for each sector.
    assert_completions(&p(|_| ()), &request, &[3.06]);
    // It is held from the first sector on, or from the command on.
    let during_read = BusHold {
        during_read: true,
        ..BusHold::default()
    };
    let always = BusHold {
        always: true,
        ..BusHold::default()
    };
    let held = p(|p| p.bus.hold.during_read = true);
    assert_eq!(held.bus.hold, during_read);
    assert_completions(&held, &request, &[3.01]);
    let held = p(|p| p.bus.hold.always = true);
    assert_eq!(held.bus.hold, always);
    assert_completions(&held, &request, &[3.01]);
    // It is acquired at 2.5 ms, when five sectors are ready. They are sent by 2.6 ms, followed by
    // a sixth that is ready then. The bus is acquired again for the last four.
    assert_completions(&p(|p| p.cache.read_watermark = 0.5), &request, &[3.09]);
}

/// Do drives on one bus wait for each other, but not for idle ones?
#[test]
fn drives_on_one_bus_wait_for_each_other() {
    let profile = tiny_with(|p| p.bus.read_sector_ms = 1.0);
    let request = read(20, 10);
    let alone = serve(&profile, &[(0.0, request)])[0].completed;
    let bus = SharedBus::default();
    let attach = || {
        let mut drive = Drive::new(&profile).unwrap();
        drive.share_bus(bus.clone());
        drive
    };
    let mut drives = [attach(), attach(), attach()];
    let mut completed = Vec::new();
    for drive in &mut drives[..2] {
        drive.submit(SimTime::ZERO, request).unwrap();
    }
    for drive in &mut drives {
        let mut done = Vec::new();
        drain(drive, None, &mut done);
        completed.extend(done.iter().map(|completion| completion.completed));
    }
    assert_eq!(completed[0], alone);
    let transfer = Span::from_ms(10.0);
    assert!(completed[1] >= alone + transfer, "{completed:?}");
    // The third drive, which is idle, adds no transfer.
    assert!(completed[1] < alone + transfer + transfer, "{completed:?}");
}

/// If a drive on a shared bus loses power during its transfer, is the bus free for others from then
/// on, and does the drive share it again afterwards?
#[test]
fn a_restarted_drive_stays_on_its_bus() {
    let profile = tiny_with(|p| p.bus.read_sector_ms = 1.0);
    let request = read(20, 10);
    let bus = SharedBus::default();
    let mut drives = [0, 1].map(|_| {
        let mut drive = Drive::new(&profile).unwrap();
        drive.share_bus(bus.clone());
        drive
    });
    let alone = serve(&profile, &[(0.0, request)])[0].completed;
    drives[0].submit(SimTime::ZERO, request).unwrap();
    let cut = alone - Span::from_ms(1.0);
    assert!(drives[0].poll(cut).is_none());
    drives[0].restart(cut);
    let later = alone + Span::from_ms(100.0);
    let [first, second] = &mut drives;
    let freed = second.serve(cut, request).unwrap().completed;
    let lone = serve(&profile, &[(cut.as_ms(), request)])[0].completed;
    assert_eq!(freed, lone);
    let one = first.serve(later, request).unwrap().completed;
    let other = second.serve(later, read(100, 10)).unwrap().completed;
    assert!(other >= one + Span::from_ms(10.0), "{one} {other}");
}

/// Does a drive keep a shared bus until it has reported the completion of a hit?
#[test]
fn a_shared_bus_is_kept_for_the_completion() {
    let profile = tiny_with(|p| p.overheads.read_completion_ms = 0.3);
    let bus = SharedBus::default();
    let mut drives = [0, 1].map(|_| {
        let mut drive = Drive::new(&profile).unwrap();
        drive.share_bus(bus.clone());
        drive
    });
    let request = read(20, 10);
    for drive in &mut drives {
        drive.serve(SimTime::ZERO, request).unwrap();
    }
    // Both drives now have the sectors in their buffers. Each transfer takes 0.1 ms.
    let now = SimTime::from_ms(50.0);
    let completed = drives.map(|mut drive| drive.serve(now, request).unwrap().completed);
    assert_eq!(completed[0], SimTime::from_ms(50.4));
    assert_eq!(completed[1], SimTime::from_ms(50.8));
}
