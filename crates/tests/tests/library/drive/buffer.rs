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

/// Where does the last of several requests, 50 ms apart, find its data?
fn last(profile: &Profile, requests: &[traxtent_units::request::Request]) -> ServedBy {
    let timed: Vec<_> = (0..)
        .map(|index| f64::from(index) * 50.0)
        .zip(requests.iter().copied())
        .collect();
    serve(profile, &timed).last().unwrap().served
}

/// Does a drive that reads ahead after sequential reads only do so after the second of two reads in
/// sequence, and also if the first command was a write, but not after a read elsewhere?
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
fn sequential_reads_keep_passed_sectors() {
    for (sequential_only, expected) in [(false, ServedBy::Buffer), (true, ServedBy::Media)] {
        let profile = buffered(|profile| {
            profile.access.read_on_arrival = true;
            profile.cache.read_ahead.sequential_only = sequential_only;
        });
        // At time 0, the head is at the first sector of the track.
        assert_eq!(last(&profile, &[read(50, 10), read(40, 5)]), expected);
    }
}

/// Does a drive that reads whole tracks have the sectors before the request a revolution after the
/// head arrived, and not before? Does a command that needs the arm meanwhile end it?
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

/// Does a write leave the rest of a track in the buffer if the drive updates it, and empty it
/// otherwise?
#[test]
fn writes_update() {
    for (writes_update, expected) in [(false, ServedBy::Media), (true, ServedBy::Buffer)] {
        let profile = buffered(|profile| {
            profile.cache.write_back = traxtent_model::profile::WriteBack::Full;
            profile.cache.writes_update = writes_update;
        });
        let requests = [read(10, 10), write(40, 10), read(70, 10)];
        assert_eq!(last(&profile, &requests), expected);
        // Nor do the sectors that the write has replaced need the media.
        let requests = [read(10, 10), write(40, 10), read(35, 10)];
        assert_eq!(last(&profile, &requests), expected);
    }
}
