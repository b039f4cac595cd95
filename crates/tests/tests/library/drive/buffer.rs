//! The sectors that a buffer keeps beyond the request: after which reads, how much of the track,
//! and what a write does to them. The tiny drive reads a track of 100 sectors in 10 ms.

use traxtent_model::drive::ServedBy;
use traxtent_model::profile::{Profile, ReadAheadUntil};

use super::tiny::{read, serve, tiny_with, write};

fn buffered(change: impl FnOnce(&mut Profile)) -> Profile {
    tiny_with(|profile| {
        profile.cache.segment_sectors = 100;
        profile.cache.read_ahead.until = ReadAheadUntil::TrackEnd;
        change(profile);
    })
}

/// Returns where the last of several requests, 50 ms apart, finds its data.
fn last(profile: &Profile, requests: &[traxtent_units::request::Request]) -> ServedBy {
    let timed: Vec<_> = (0..)
        .map(|index| f64::from(index) * 50.0)
        .zip(requests.iter().copied())
        .collect();
    serve(profile, &timed).last().unwrap().served
}

/// Does a drive with `sequential_only` read ahead after the second of two commands in sequence,
/// even if the first is a write, but not after a read elsewhere?
#[test]
fn sequential_only() {
    let every = buffered(|_| {});
    let sequential = buffered(|profile| profile.cache.read_ahead.sequential_only = true);
    let (first, second, third) = (read(10, 10), read(20, 10), read(40, 10));
    assert_eq!(last(&every, &[first, second]), ServedBy::Buffer);
    assert_eq!(last(&sequential, &[first, second]), ServedBy::Media);
    assert_eq!(last(&sequential, &[first, second, third]), ServedBy::Buffer);
    assert_eq!(
        last(&sequential, &[write(10, 10), second, third]),
        ServedBy::Buffer
    );
    // The second read does not begin where the first one ended.
    assert_eq!(
        last(&sequential, &[first, read(21, 9), third]),
        ServedBy::Media
    );
    // The request's own sectors stay.
    assert_eq!(last(&sequential, &[first, first]), ServedBy::Buffer);
}

/// Are sectors that pass before the wanted ones kept only by reads that also read ahead?
#[test]
fn only_reads_that_read_ahead_keep_passed_sectors() {
    for (sequential_only, expected) in [(false, ServedBy::Buffer), (true, ServedBy::Media)] {
        let profile = buffered(|profile| {
            profile.access.read_on_arrival = true;
            profile.cache.read_ahead.sequential_only = sequential_only;
        });
        // At time 0, the head is at the first sector of the track.
        assert_eq!(last(&profile, &[read(50, 10), read(40, 5)]), expected);
    }
}

/// Does a drive that reads whole tracks hold the sectors in front of the request one revolution
/// after the head arrived, and not earlier? Does a command that needs the arm meanwhile end the
/// reading?
#[test]
fn whole_track() {
    let rest = buffered(|_| {});
    let whole = buffered(|profile| profile.cache.read_ahead.whole_track = true);
    let (middle, before) = (read(50, 10), read(20, 5));
    assert_eq!(last(&rest, &[middle, before]), ServedBy::Media);
    assert_eq!(last(&whole, &[middle, before]), ServedBy::Buffer);
    let served =
        |profile: &Profile, requests: &[(f64, _)]| serve(profile, requests).last().unwrap().served;
    // The head is on the track from time 0 on, so it has passed all of it at 10 ms.
    assert_eq!(
        served(&whole, &[(0.0, middle), (9.9, before)]),
        ServedBy::Media
    );
    assert_eq!(
        served(&whole, &[(0.0, middle), (10.1, before)]),
        ServedBy::Buffer
    );
    let elsewhere = (8.0, read(1000, 10));
    assert_eq!(
        served(&whole, &[(0.0, middle), elsewhere, (100.0, before)]),
        ServedBy::Media
    );
}

/// Does a write leave the sectors that the buffer holds for reads if the drive updates them, and
/// empty their segment otherwise?
#[test]
fn writes_update() {
    for (writes_update, expected) in [(false, ServedBy::Media), (true, ServedBy::Buffer)] {
        let profile = buffered(|profile| {
            profile.cache.write_back = traxtent_model::profile::WriteBack::Full;
            profile.cache.writes_update = writes_update;
        });
        let requests = [read(10, 10), write(40, 10), read(70, 10)];
        assert_eq!(last(&profile, &requests), expected);
        // The same holds for a read that includes sectors of the write.
        let requests = [read(10, 10), write(40, 10), read(35, 10)];
        assert_eq!(last(&profile, &requests), expected);
    }
}

/// Is the segment that was used least recently replaced, whether its last use was a miss or a hit?
#[test]
fn the_least_recently_used_segment_goes() {
    // Four segments, each with a request of its own, then a fifth.
    let profile = tiny_with(|_| {});
    let (a, b, c, d) = (read(0, 4), read(300, 4), read(600, 4), read(900, 4));
    for fifth in [read(1200, 4), write(1200, 4)] {
        let fill = |also: &[_], probe| [&[a, b, c, d], also, &[fifth, probe]].concat();
        for (also, gone, kept) in [
            (vec![], a, [b, c, d]),
            (vec![a], b, [a, c, d]),
            (vec![a, b], c, [a, b, d]),
        ] {
            assert_eq!(last(&profile, &fill(&also, gone)), ServedBy::Media);
            for probe in kept {
                assert_eq!(last(&profile, &fill(&also, probe)), ServedBy::Buffer);
            }
        }
    }
}

/// Where does read-ahead end if the profile bounds it, and where if the request fills the segment?
#[test]
fn bounds_of_read_ahead() {
    let bounded = |max_sectors, max_from_request_start, min_sectors| {
        tiny_with(|profile| {
            let ahead = &mut profile.cache.read_ahead;
            ahead.until = ReadAheadUntil::SegmentEnd;
            (ahead.max_sectors, ahead.min_sectors) = (max_sectors, min_sectors);
            ahead.max_from_request_start = max_from_request_start;
        })
    };
    // The end of the sectors in the buffer, half a second after the request.
    let end_after = |profile: &Profile, request| {
        let in_buffer = |lbn| {
            let timed = [(0.0, request), (500.0, read(lbn, 1))];
            serve(profile, &timed)[1].served == ServedBy::Buffer
        };
        (request.lbn.0 + 1..(request.end().0 + 200).min(2000))
            .rfind(|&lbn| in_buffer(lbn))
            .map(|last| last + 1)
    };
    // A segment has 64 sectors.
    assert_eq!(end_after(&bounded(0, false, 0), read(50, 10)), Some(124));
    assert_eq!(end_after(&bounded(20, false, 0), read(50, 10)), Some(80));
    assert_eq!(end_after(&bounded(20, true, 0), read(50, 10)), Some(80));
    assert_eq!(end_after(&bounded(0, true, 0), read(50, 10)), Some(114));
    // A request of 45 sectors or more leaves less of the segment than the minimum.
    assert_eq!(end_after(&bounded(0, true, 20), read(50, 44)), Some(114));
    assert_eq!(end_after(&bounded(0, true, 20), read(50, 45)), Some(115));
    assert_eq!(end_after(&bounded(0, true, 20), read(50, 64)), Some(134));
    // The drive has 2000 sectors.
    assert_eq!(end_after(&bounded(0, false, 0), read(1950, 10)), Some(2000));
}

/// Does adaptive read-ahead go on to the next track if the buffer holds data of the previous one?
#[test]
fn adaptive_read_ahead_follows_a_stream() {
    let profile = tiny_with(|profile| {
        profile.cache.segment_sectors = 300;
        profile.cache.read_ahead.until = ReadAheadUntil::AdaptiveTrackEnd;
    });
    let one = [read(90, 5)];
    let across = [read(90, 5), read(95, 10)];
    let with = |before: &[_], lbn| last(&profile, &[before, &[read(lbn, 1)]].concat());
    assert_eq!(with(&one, 99), ServedBy::Buffer);
    assert_eq!(with(&one, 100), ServedBy::Media);
    // The second read ends on the second track, and the segment begins on the first.
    assert_eq!(with(&across, 199), ServedBy::Buffer);
    assert_eq!(with(&across, 299), ServedBy::Buffer);
    assert_eq!(with(&across, 300), ServedBy::Media);
    // After a read that only reaches the end of its track, read-ahead does not go on.
    assert_eq!(with(&[read(90, 10)], 100), ServedBy::Media);
}
