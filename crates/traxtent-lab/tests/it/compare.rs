//! Detection of wrong probe results.

use traxtent_lab::blind::{Differences, HardProperty, RemapTolerance, compare, random_drive};
use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_units::Lbn;

fn bounds(geometry: &Geometry) -> Vec<Lbn> {
    let map = TrackMap::from_sizes(geometry.track_sizes());
    map.tracks()
        .map(|t| t.first_lbn)
        .chain([map.end()])
        .collect()
}

fn lists(differences: &Differences) -> (&[Lbn], &[Lbn]) {
    (&differences.missing, &differences.additional)
}

/// On twelve random drives, does the true layout count as exact, and is a single boundary that is
/// missing, added or moved by one LBN detected?
#[test]
fn every_single_mistake_is_detected() {
    for drive in (0..12).map(random_drive) {
        let geometry = &drive.geometry;
        let truth = bounds(geometry);
        let check =
            |bounds: &[Lbn]| compare(bounds.iter().copied(), geometry, RemapTolerance::Exact);
        assert!(check(&truth).is_exact(), "seed {}", drive.seed);
        assert_eq!(check(&truth).boundaries, geometry.track_count() - 1);
        for k in (1..truth.len() - 1).step_by(7) {
            let at = truth[k];
            let mut wrong = truth.clone();
            wrong.remove(k);
            assert_eq!(
                lists(&check(&wrong)),
                (&[at][..], &[][..]),
                "seed {}",
                drive.seed
            );
            let next = Lbn(at.0 + 1);
            if truth[k + 1] != next {
                wrong.insert(k, next);
                assert_eq!(lists(&check(&wrong)), (&[at][..], &[next][..]));
                wrong.insert(k, at);
                assert_eq!(lists(&check(&wrong)), (&[][..], &[next][..]));
            }
        }
    }
}

/// Does an empty result miss everything, does one that ends early miss the rest, and does an
/// LBN beyond the end count as additional?
#[test]
fn results_that_end_at_the_wrong_lbn() {
    let drive = random_drive(1);
    let truth = bounds(&drive.geometry);
    let nothing = compare([], &drive.geometry, RemapTolerance::EitherSide);
    assert_eq!(nothing.missing.len() as u64, nothing.boundaries);
    assert!(!nothing.is_exact() && nothing.found_share() == 0.0);
    let half = truth[..truth.len() / 2].iter().copied();
    let half = compare(half, &drive.geometry, RemapTolerance::EitherSide);
    assert_eq!(half.missing.len(), truth.len() - 1 - truth.len() / 2);
    let beyond = truth.iter().copied().chain([Lbn(u64::MAX)]);
    let beyond = compare(beyond, &drive.geometry, RemapTolerance::EitherSide);
    assert_eq!(beyond.additional, [Lbn(u64::MAX)]);
}

/// If a track's first or last LBN is remapped, is a boundary on the other side of it accepted from
/// timing, but not from translations? Is the result refused if the boundary is further away, or if
/// there is one on each side?
#[test]
fn remapped_lbns_have_two_sides() {
    let (mut firsts, mut lasts) = (0, 0);
    for drive in (0..60).map(random_drive) {
        let geometry = &drive.geometry;
        let truth = bounds(geometry);
        // Physical sectors are remapped as a whole.
        let one = u64::from(drive.profile.sector.ratio());
        let moved: Vec<u64> = drive.profile.geometry.moved.iter().map(|m| m.lbn).collect();
        for (k, &Lbn(at)) in truth.iter().enumerate().skip(1) {
            let first = moved.binary_search(&at).is_ok();
            let last = moved.binary_search(&(at - one)).is_ok();
            let other = match (first, last) {
                (true, false) => at + one,
                (false, true) => at - one,
                _ => continue,
            };
            firsts += u32::from(first);
            lasts += u32::from(last);
            let with = |places: &[u64], at_moved| {
                let mut bounds = truth.clone();
                bounds.splice(k..=k, places.iter().copied().map(Lbn));
                compare(bounds, geometry, at_moved).is_exact()
            };
            assert!(
                with(&[other], RemapTolerance::EitherSide),
                "seed {}",
                drive.seed
            );
            assert!(
                !with(&[other], RemapTolerance::Exact),
                "seed {}",
                drive.seed
            );
            let both = [at.min(other), at.max(other)];
            assert!(
                !with(&both, RemapTolerance::EitherSide),
                "seed {}",
                drive.seed
            );
            let further = if first { other + 1 } else { other - 1 };
            assert!(
                !with(&[further], RemapTolerance::EitherSide),
                "seed {}",
                drive.seed
            );
        }
        let has = |trap| drive.traps.contains(&trap);
        assert!(
            has(HardProperty::Remap) || moved.is_empty(),
            "seed {}",
            drive.seed
        );
    }
    assert!(
        firsts > 10 && lasts > 10,
        "{firsts} first and {lasts} last LBNs are remapped"
    );
}
