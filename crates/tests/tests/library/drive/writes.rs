//! Times of writes: through to the media, into the buffer, appended, in physical sectors; and of
//! flushes.

use traxtent_model::drive::{Drive, ServedBy};
use traxtent_model::geometry::{PerSurface, Skew, ZoneSpec};
use traxtent_model::profile::{ExtraDisconnect, Profile, ReadAheadUntil, WriteBack, builtin};
use traxtent_units::request::Request;
use traxtent_units::{SimTime, Span};

use super::tiny::{assert_completions, fua, read, serve, tiny, tiny_with, write};

fn write_back(change: impl FnOnce(&mut Profile)) -> Profile {
    tiny_with(|p| {
        p.cache.write_back = WriteBack::Full;
        p.cache.writes_while_busy = true;
        p.cache.write_segments = 3;
        change(p);
    })
}

/// Does a write complete once it is in the buffer if the drive has write-back, and otherwise, or
/// with FUA, once it is on the media?
#[test]
fn writes_complete_on_the_media_or_in_the_buffer() {
    let request = write(20, 10);
    assert_completions(&tiny(), &[(0.0, request)], &[3.0]);
    assert_completions(&write_back(|_| ()), &[(0.0, request)], &[0.1]);
    assert_completions(&write_back(|_| ()), &[(0.0, fua(request))], &[3.0]);
    assert_eq!(
        serve(&write_back(|_| ()), &[(0.0, request)])[0].served,
        ServedBy::Buffer
    );
    assert_eq!(
        serve(&write_back(|_| ()), &[(0.0, fua(request))])[0].served,
        ServedBy::Media
    );
}

/// Is a disabled cache also disabled for writes?
#[test]
fn a_disabled_cache_takes_no_write() {
    let off = write_back(|p| p.cache.enabled = false);
    assert_completions(&off, &[(0.0, write(20, 10))], &[3.0]);
    assert_eq!(
        serve(&off, &[(0.0, write(20, 10))])[0].served,
        ServedBy::Media
    );
}

/// Does a write stream reach the media rate for writes of any size, even larger than a segment, and
/// with a queue?
#[test]
fn sequential_writes_of_any_size_stream() {
    for (sectors, depth) in [
        (16, 1),
        (63, 1),
        (64, 1),
        (65, 2),
        (100, 2),
        (200, 1),
        (200, 4),
    ] {
        let p = write_back(|p| {
            p.cache.write_segments = 1;
            p.cache.writes_while_busy = false;
            p.cache.write_watermark = 0.9;
        });
        let mut drive = Drive::new(&p).unwrap();
        let (mut now, mut lbn, mut outstanding) = (SimTime::ZERO, 0, 0);
        while lbn < 1_600 {
            while outstanding < depth {
                drive.submit(now, write(lbn, sectors)).unwrap();
                lbn += u64::from(sectors);
                outstanding += 1;
            }
            now = drive.next_wakeup().unwrap();
            outstanding -= std::iter::from_fn(|| drive.poll(now)).count();
        }
        // Sixteen tracks take 16 revolutions of 10 ms, 8 skews of 1 ms and 8 of 2 ms. Another
        // 12 ms allow for the wait for the first sector, which is at most a revolution.
        let most = 160.0 + 24.0 + 12.0;
        assert!(
            now.as_ms() < most,
            "{sectors} sectors, {depth} at a time: {now}"
        );
    }
}

/// Do the media wait for late data?
#[test]
fn data_must_arrive_before_its_sector_passes() {
    // Sector 0 passes at 0.0, before the first sector is in the buffer.
    assert_completions(&tiny(), &[(0.0, write(0, 10))], &[11.0]);
    // Over a bus of half the media rate, the last of ten sectors arrives at 2.0 ms. That is in time
    // if the first passes at 1.1, not at 1.0.
    let slow = tiny_with(|p| p.bus.write_sector_ms = 0.2);
    assert_completions(&slow, &[(0.0, write(11, 10))], &[2.1]);
    assert_completions(&slow, &[(0.0, write(10, 10))], &[12.0]);
}

/// Do the media wait for late data if only a later track passes faster than the bus?
#[test]
fn data_must_arrive_before_a_faster_track_passes() {
    // Sectors take 1 ms each on cylinder 0, whose last LBN is 19, and 0.1 ms on cylinder 1.
    let p = |first_ms: f64| {
        tiny_with(|p| {
            p.bus.write_sector_ms = 0.5;
            let outer = ZoneSpec {
                last_cylinder: 0,
                sectors_per_track: PerSurface::Same(10),
                ..ZoneSpec::default()
            };
            let inner = ZoneSpec {
                first_cylinder: 1,
                last_cylinder: 9,
                sectors_per_track: PerSurface::Same(100),
                first_angle: Skew::Sectors(10.0 * first_ms),
                ..ZoneSpec::default()
            };
            p.geometry.zones = vec![outer, inner];
        })
    };
    // The last of 51 sectors is in the buffer at 25.5 ms. That is in time if the first sector of
    // cylinder 1 passes at 20.6 ms, not at 20.5.
    assert_completions(&p(0.6), &[(0.0, write(19, 51))], &[25.6]);
    assert_completions(&p(0.5), &[(0.0, write(19, 51))], &[35.5]);
}

/// Is the settling time, positive or negative, added to the seek before a write, but not to that
/// before a read?
#[test]
fn settling_lengthens_or_shortens_the_way_to_a_write() {
    // Slot 0 of cylinder 1 passes at 3.0 ms.
    let settle = |ms| tiny_with(|p| p.mechanics.as_mut().unwrap().write_settle_ms = ms);
    assert_completions(&settle(2.0), &[(0.0, write(200, 10))], &[4.0]);
    assert_completions(&settle(2.01), &[(0.0, write(200, 10))], &[14.0]);
    assert_completions(&settle(2.01), &[(0.0, read(200, 10))], &[4.01]);
    // Without arm movement there is no settling.
    assert_completions(&settle(9.0), &[(0.0, write(20, 10))], &[3.0]);
    // From cylinder 2 to cylinder 0, the arm takes 1.5 ms, or 1.3 ms with a negative settling time.
    let there_and_back = [(0.0, read(400, 10)), (7.1, write(84, 1))];
    assert_completions(&settle(-0.2), &there_and_back, &[7.01, 8.5]);
    assert_completions(&settle(0.0), &there_and_back, &[7.01, 18.5]);
}

/// Does a flush wait for every older write to reach the media, but for no newer one?
#[test]
fn a_flush_waits_for_older_writes_alone() {
    let requests = [
        (0.0, write(20, 10)),
        (0.15, write(50, 10)),
        (0.3, Request::flush()),
        (0.4, write(310, 10)),
    ];
    // The first write is on the media at 3.0 ms, the second one at 6.0 ms, the third one later.
    assert_completions(&write_back(|_| ()), &requests, &[0.1, 0.25, 6.0, 0.5]);
    let idle = [
        (0.0, Request::flush()),
        (0.1, write(20, 10)),
        (20.0, Request::flush()),
    ];
    assert_completions(&write_back(|_| ()), &idle, &[0.0, 0.2, 20.0]);
    // Also without write-back: the write that waits for a read is older than the flush.
    let through = [
        (0.0, read(20, 10)),
        (0.1, write(50, 10)),
        (0.2, Request::flush()),
    ];
    assert_completions(&tiny(), &through, &[3.01, 6.0, 6.0]);
}

/// Do sequential writes that join a dirty segment reach the media without a gap?
#[test]
fn appended_writes_lose_no_revolution() {
    let requests = [
        (0.0, write(20, 10)),
        (0.2, write(30, 10)),
        (0.4, write(40, 10)),
        (0.6, Request::flush()),
    ];
    let p = |combine: bool| {
        write_back(|p| {
            p.cache.combine_writes = combine;
            p.overheads.minimum_write_seek_ms = 0.5;
        })
    };
    assert_completions(&p(true), &requests, &[0.1, 0.3, 0.5, 5.0]);
    // Each write that does not join an active one makes its minimum seek of 0.5 ms and comes too
    // late.
    assert_completions(&p(false), &requests, &[0.1, 0.3, 0.5, 25.0]);
}

/// Do sequential writes join one segment until it is full, and does the next one wait until sectors
/// have left it?
#[test]
fn writes_join_until_the_segment_is_full() {
    let p = write_back(|p| p.cache.write_segments = 1);
    // A segment has 64 sectors. The first 16 are on the media at 3.6 ms.
    let requests: Vec<_> = (0..5u32)
        .map(|i| (0.2 * f64::from(i), write(u64::from(20 + 16 * i), 16)))
        .collect();
    assert_completions(&p, &requests, &[0.16, 0.36, 0.56, 0.76, 3.76]);
    // A write that would begin elsewhere does not join.
    let elsewhere = [(0.0, write(20, 16)), (0.2, write(37, 16))];
    assert_completions(&p, &elsewhere, &[0.16, 3.76]);
}

/// Do the overheads of a write that waits for the media add up, and are they counted as overhead?
#[test]
fn the_overheads_of_a_write_add_up() {
    let p = tiny_with(|p| {
        p.overheads.write_miss_after_read_ms = 0.3;
        p.overheads.write_disconnect_ms = 0.05;
        p.overheads.first_reselect_ms = 0.2;
        p.overheads.write_completion_ms = 0.15;
    });
    // The media end at 3.0 ms; then the drive reselects and reports the completion.
    assert_completions(&p, &[(0.0, write(20, 10))], &[3.35]);
    let breakdown = serve(&p, &[(0.0, write(20, 10))])[0].breakdown;
    assert_eq!(breakdown.overhead, Span::from_ms(0.3 + 0.2 + 0.15));
    assert_eq!(breakdown.rotation, Span::from_ms(1.7));
    assert_eq!(breakdown.transfer, Span::from_ms(1.0));
    assert_eq!(breakdown.bus, Span::ZERO);
    // If the media end before the drive has disconnected, the write completes after the
    // disconnection.
    let late = tiny_with(|p| p.overheads.write_disconnect_ms = 5.0);
    assert_completions(&late, &[(0.0, write(20, 10))], &[5.1]);
}

/// Do the media start later for large writes, and which size is the smallest that counts as large?
#[test]
fn large_writes_start_later() {
    let p = tiny_with(|p| {
        p.bus.write_sector_ms = 0.09;
        p.overheads.extra_write_disconnect = Some(ExtraDisconnect {
            start_after_sectors: 1,
            large_start_after_sectors: 5,
            large_sectors: 9,
            ..ExtraDisconnect::default()
        });
    });
    // Sector 1 passes at 0.1 ms. By then one sector is in the buffer; five are at 0.45 ms.
    assert_completions(&p, &[(0.0, write(1, 8))], &[0.9]);
    assert_completions(&p, &[(0.0, write(1, 9))], &[11.0]);
    assert_completions(&p, &[(0.0, write(1, 10))], &[11.1]);
    // Sector 5 passes at 0.5 ms.
    assert_completions(&p, &[(0.0, write(5, 9))], &[1.4]);
    assert_completions(&p, &[(0.0, write(4, 9))], &[11.3]);
}

/// Does a write wait while the maximum number of segments is dirty?
#[test]
fn a_write_waits_for_a_segment_to_be_clean() {
    let requests = [(0.0, write(20, 10)), (0.2, write(310, 10))];
    assert_completions(
        &write_back(|p| p.cache.write_segments = 2),
        &requests,
        &[0.1, 0.3],
    );
    // The first is on the media at 3.0 ms.
    assert_completions(
        &write_back(|p| p.cache.write_segments = 1),
        &requests,
        &[0.1, 3.1],
    );
}

/// Are written sectors found in the buffer, if the drive keeps them for reads?
#[test]
fn reads_hit_written_sectors() {
    let requests = [(0.0, write(20, 10)), (5.0, read(22, 4))];
    assert_completions(&tiny(), &requests, &[3.0, 5.04]);
    assert_completions(
        &tiny_with(|p| p.cache.read_hits_on_written = false),
        &requests,
        &[3.0, 12.61],
    );
}

fn emulating(lowest_aligned_lbn: u32) -> Profile {
    tiny_with(|p| {
        p.sector.physical_bytes = 4096;
        p.sector.lowest_aligned_lbn = lowest_aligned_lbn;
    })
}

/// Does an unaligned write first read the physical sectors that it covers in part, and write a
/// revolution later, whereas an aligned write does not? (The mechanism of claim A1.)
#[test]
fn an_unaligned_write_costs_a_revolution() {
    let p = emulating(0);
    assert_completions(&p, &[(0.0, write(24, 8))], &[3.2]);
    assert_completions(&p, &[(0.0, write(20, 8))], &[13.2]);
    assert_completions(&p, &[(0.0, write(24, 4))], &[13.2]);
    // Only the first and the last physical sector are read: 1.6 to 2.4, 4.8 to 5.6 ms.
    assert_completions(&p, &[(0.0, write(20, 32))], &[15.6]);
    // A native drive has no such cost.
    assert_completions(&tiny(), &[(0.0, write(20, 8))], &[2.8]);
}

/// Is the read omitted if the buffer holds the rest of the physical sectors, and are they written
/// whole?
#[test]
fn buffered_sectors_are_not_read_again() {
    assert_completions(
        &emulating(0),
        &[(0.0, read(16, 16)), (5.0, write(20, 8))],
        &[3.21, 13.2],
    );
}

/// Does a disabled cache hold nothing, so that the rest of a physical sector is read again?
#[test]
fn a_disabled_cache_holds_no_physical_sector() {
    let mut p = emulating(0);
    let requests = [(0.0, read(16, 16)), (5.0, write(20, 8))];
    assert_completions(&p, &requests, &[3.21, 13.2]);
    p.cache.enabled = false;
    assert_completions(&p, &requests, &[3.21, 23.2]);
    p.cache.read_ahead.until = ReadAheadUntil::TrackEnd;
    assert_completions(&p, &requests, &[3.21, 23.2]);
}

/// Does the lowest aligned LBN shift the alignment? (Claim A6.)
#[test]
fn the_lowest_aligned_lbn_shifts_alignment() {
    let p = emulating(7);
    assert_completions(&p, &[(0.0, write(23, 8))], &[3.1]);
    assert_completions(&p, &[(0.0, write(24, 8))], &[13.9]);
    // The first physical sector has seven LBNs.
    assert_completions(&p, &[(9.0, write(0, 7))], &[10.7]);
    assert_completions(&p, &[(9.0, write(1, 6))], &[20.7]);
}

/// Returns the rate, in millions of bytes per second, at which sequential writes are acknowledged.
/// They have `sectors` sectors each and start at LBN `first`, with `outstanding` of them at a time.
fn streamed(profile: &Profile, first: u64, sectors: u32, outstanding: u64) -> f64 {
    let mut drive = Drive::new(profile).expect("a sound profile");
    let mut now = SimTime::ZERO;
    for sent in 0..2000 + outstanding {
        while sent >= outstanding && drive.poll(now).is_none() {
            now = drive.next_wakeup().expect("a write is outstanding");
        }
        let next = write(first + sent * u64::from(sectors), sectors);
        drive.submit(now, next).expect("the LBNs are on the drive");
    }
    2000.0 * f64::from(sectors) * 512.0 / now.as_ms() / 1000.0
}

/// Do sequential writes that the buffer acknowledges reach the media rate, even if the buffer is
/// always full?
#[test]
fn cached_writes_in_sequence_stream() {
    for (write_segments, writes_while_busy, outstanding) in
        [(1, false, 1), (2, false, 1), (4, true, 4)]
    {
        let mut profile = builtin("maxtor10k5").expect("it is built in");
        profile.cache.write_segments = write_segments;
        profile.cache.writes_while_busy = writes_while_busy;
        for sectors in [64, 256] {
            // Tracks of 1,144 and 1,092 sectors take 6 ms each, plus a switch between them.
            let rate = streamed(&profile, 0, sectors, outstanding);
            assert!(
                rate > 75.0,
                "{rate} MB/s: {sectors} sectors, {write_segments} segments"
            );
        }
    }
}

/// Do sequential writes that begin within physical sectors stream almost as fast as aligned ones if
/// the buffer acknowledges them? A physical sector that two of them share is then written only
/// once.
#[test]
fn writes_that_share_a_physical_sector_stream() {
    let profile = builtin("wd10ears").expect("it is built in");
    for sectors in [64, 256] {
        let [aligned, shifted] = [0, 1].map(|first| streamed(&profile, first, sectors, 1));
        assert!(
            shifted > 0.9 * aligned,
            "{sectors} sectors: {shifted} MB/s for {aligned}"
        );
    }
    // A host that sends one write at a time and waits for the media pays for a read and a
    // revolution each time.
    let mut through = profile;
    through.cache.write_back = WriteBack::None;
    let [aligned, shifted] = [0, 1].map(|first| streamed(&through, first, 64, 1));
    assert!(shifted < 0.6 * aligned, "{shifted} MB/s for {aligned}");
}
