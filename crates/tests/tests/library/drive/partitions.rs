//! Track partitions: does a read use the nearest replica, and a write the original?

use proptest::prelude::*;
use traxtent_model::drive::Drive;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};

use super::tiny::tiny_with;

/// Returns the time until the nearest replica of a sector arrives under the head, on the tiny
/// drive's first track, whose first sector passes at the start of each revolution. The unit is a
/// sector, 0.1 ms.
fn wait(slot: u64, replicas: u64, phase: f64) -> f64 {
    let distance =
        |replica| (slot as f64 + (replica * 100 / replicas) as f64 - phase).rem_euclid(100.0);
    (0..replicas).map(distance).fold(f64::INFINITY, f64::min)
}

proptest! {
    /// Does a read wait for the sector's nearest replica, even if the replicas do not divide the
    /// track evenly, and does a write wait for the sector itself?
    #[test]
    fn reads_use_the_nearest_replica(
        replicas in 1..=40u32, slot in 0..100u64, sectors in 1..=20u32, at_us in 0..20_000u64, write: bool,
    ) {
        let sectors = sectors.min(100 - slot as u32);
        let profile = tiny_with(|p| {
            p.cache.enabled = false;
            p.access.track_partitions = replicas;
        });
        let at = SimTime(at_us * 1_000_000);
        let serve = |profile, request| Drive::new(profile).unwrap().serve(at, request).unwrap();
        if write {
            let write = Request::write(Lbn(slot), sectors);
            let unpartitioned = tiny_with(|p| p.cache.enabled = false);
            prop_assert_eq!(serve(&profile, write), serve(&unpartitioned, write));
        } else {
            let parts = serve(&profile, Request::read(Lbn(slot), sectors)).breakdown;
            prop_assert!((parts.transfer.as_ms() - 0.1 * f64::from(sectors)).abs() < 1e-6);
            let waited = parts.rotation.as_ms() * 10.0;
            let expected = wait(slot, u64::from(replicas), at_us as f64 / 100.0);
            prop_assert!((waited - expected).abs() < 1e-6, "waited for {waited} sectors, expected {expected}");
        }
    }
}

/// Are all accesses counted, with their rotational latencies?
#[test]
fn accesses_are_counted() {
    let profile = tiny_with(|p| {
        p.cache.enabled = false;
        p.access.track_partitions = 4;
    });
    let mut drive = Drive::new(&profile).unwrap();
    let mut rotation = 0;
    for i in 0..50_u64 {
        let at = SimTime(i * 40_000_000_000);
        let done = drive
            .serve(at, Request::read(Lbn(i * 37 % 2000), 1))
            .unwrap();
        rotation += done.breakdown.rotation.0;
    }
    assert_eq!(drive.accesses().count, 50);
    assert_eq!(drive.accesses().rotation.0, rotation);
}
