//! When the drive is idle, and when the arm leaves read-ahead for another request.

use traxtent_model::drive::Drive;
use traxtent_model::geometry::Skew;
use traxtent_model::profile::{Preseek, Profile, ReadAheadUntil, SeekSpec, WriteBack};
use traxtent_units::SimTime;
use traxtent_units::request::Request;

use super::tiny::{assert_completions, read, tiny, tiny_with, write};

/// Returns the periods during which a drive is not idle, in milliseconds. The drive is polled every
/// hundredth of a millisecond.
fn busy(profile: &Profile, requests: &[(f64, Request)], until_ms: u32) -> Vec<(f64, f64)> {
    let mut drive = Drive::new(profile).unwrap();
    let mut requests = requests.iter().peekable();
    let mut periods: Vec<(f64, f64)> = Vec::new();
    let mut was_idle = true;
    for tick in 0..100 * until_ms {
        let ms = f64::from(tick) / 100.0;
        let now = SimTime::from_ms(ms);
        while drive.poll(now).is_some() {}
        while let Some((_, request)) = requests.next_if(|(at, _)| *at <= ms) {
            drive.submit(now, *request).unwrap();
            assert!(!drive.is_idle(), "idle with a new request at {ms} ms");
        }
        match (was_idle, drive.is_idle()) {
            (true, false) => periods.push((ms, f64::INFINITY)),
            (false, true) => periods.last_mut().unwrap().1 = ms,
            _ => {}
        }
        was_idle = drive.is_idle();
    }
    periods
}

/// Is a drive idle only once every request is complete and every write is on the media? Is it idle
/// while it reads ahead?
#[test]
fn a_drive_is_idle_once_all_is_done() {
    let miss = (0.5, read(20, 10));
    let hit = (10.0, read(22, 5));
    assert_eq!(
        busy(&tiny(), &[miss, hit], 12),
        [(0.5, 3.01), (10.0, 10.05)]
    );
    // The arm is free before the host has the last sectors.
    for preseek in [
        Preseek::BeforeCompletion,
        Preseek::DuringCompletion,
        Preseek::None,
    ] {
        let slow = tiny_with(|p| {
            p.queue.preseek = preseek;
            p.overheads.read_completion_ms = 0.4;
            p.bus.read_sector_ms = 0.2;
        });
        let periods = [(0.5, 4.5), (10.0, 11.4)];
        assert_eq!(busy(&slow, &[miss, hit], 15), periods, "{preseek:?}");
    }
    let reading_ahead = tiny_with(|p| p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd);
    let ahead = (10.0, read(80, 5));
    assert_eq!(
        busy(&reading_ahead, &[miss, ahead], 12),
        [(0.5, 3.01), (10.0, 10.05)]
    );
    let waiting = [(0.5, read(20, 10)), (1.0, read(50, 10))];
    assert_eq!(busy(&tiny(), &waiting, 12), [(0.5, 6.01)]);
    let held = tiny_with(|p| p.bus.hold.always = true);
    assert_eq!(busy(&held, &waiting, 12), [(0.5, 6.01)]);
    // A write in the buffer is complete after 0.1 ms, and on the media when its sectors have
    // passed.
    let write_back = tiny_with(|p| {
        p.cache.write_back = WriteBack::Full;
        p.cache.writes_while_busy = true;
    });
    let one = [(0.5, write(20, 10)), (13.5, write(50, 10))];
    assert_eq!(busy(&write_back, &one, 20), [(0.5, 3.0), (13.5, 16.0)]);
    let two = [(0.5, write(20, 10)), (0.7, write(50, 10))];
    assert_eq!(busy(&write_back, &two, 12), [(0.5, 6.0)]);
    let flushed = [(0.5, write(20, 10)), (0.7, Request::flush())];
    assert_eq!(busy(&write_back, &flushed, 12), [(0.5, 3.0)]);
    let through = [(0.5, write(20, 10))];
    assert_eq!(busy(&tiny(), &through, 12), [(0.5, 3.0)]);
}

/// When does the arm leave read-ahead for a request that arrives while a sector passes, during the
/// switch to the next track, or while the head waits for that track's first sector?
#[test]
fn when_the_arm_leaves_read_ahead() {
    // Sector 30 begins at 3.0 ms. The track ends at 10.0 ms. The head is over the next track at
    // 10.5 ms. That track's first sector begins then, or half a millisecond later.
    let (track_end, landed) = (1000, 1050);
    for (first, in_sector) in [(1100, false), (1100, true), (1050, false), (1050, true)] {
        let p = tiny_with(|p| {
            p.mechanics.as_mut().unwrap().seek = SeekSpec::Constant { ms: 1.0 };
            let skew = (first - track_end) as f64 / 10.0;
            p.geometry.zones[0].track_skew = Skew::Sectors(skew);
            p.cache.segment_sectors = 200;
            p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
            p.cache.read_ahead.stop_in_sector = in_sector;
        });
        for tick in (301_u64..1250).step_by(3).chain((310..1250).step_by(10)) {
            let sector_end = if in_sector {
                tick
            } else {
                tick.next_multiple_of(10)
            };
            let left = match tick {
                _ if tick <= track_end => sector_end,
                _ if tick < landed => landed,
                _ if tick < first => tick,
                // A sector that begins now is under the head.
                _ if tick == first && !in_sector => first + 10,
                _ => sector_end,
            };
            // The seek to cylinder 1 takes 1 ms. Its first sector begins 2 ms after that of the
            // track before.
            let origin = first - track_end + 200;
            let slot = |since: u64| (since + 1000 - origin).div_ceil(10) % 100;
            let there = left + 100;
            let reached = slot(there);
            let end = there.next_multiple_of(10) + 10 + 1;
            let ms = |ticks: u64| ticks as f64 / 100.0;
            let requests = |slot| [(0.0, read(20, 10)), (ms(tick), read(200 + slot, 1))];
            assert_completions(&p, &requests(reached), &[3.01, ms(end)]);
            let missed = (reached + 99) % 100;
            assert_completions(&p, &requests(missed), &[3.01, ms(end - 10 + 1000)]);
        }
    }
}

/// If another request waits for the arm, does read-ahead that has not begun let the arm go at once?
#[test]
fn the_arm_leaves_at_once_if_read_ahead_has_not_begun() {
    // The last sector passes until 3.0 ms, and the read completes at 3.01 ms. The head is then over
    // sector 30, which ends at 3.1 ms.
    let p = |preseek| {
        tiny_with(|p| {
            p.queue.preseek = preseek;
            p.mechanics.as_mut().unwrap().seek = SeekSpec::Constant { ms: 1.0 };
            p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
        })
    };
    // Sectors 210 and 211 begin at 4.0 and 4.1 ms.
    let requests = |lbn| [(0.0, read(20, 10)), (0.5, read(lbn, 1))];
    assert_completions(&p(Preseek::BeforeCompletion), &requests(210), &[3.01, 4.11]);
    assert_completions(&p(Preseek::None), &requests(210), &[3.01, 14.11]);
    assert_completions(&p(Preseek::None), &requests(211), &[3.01, 4.21]);
}
