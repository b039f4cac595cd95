//! The checks of a layout's description, on both sides of each bound. Also, the runs of moved LBNs
//! and the reach of the search for spares.

use traxtent_model::geometry::{
    Geometry, GeometrySpec, MovedSpec, Order, PerSurface, Skew, Sparing, ZoneSpec,
};
use traxtent_units::Lbn;

fn zone(first_cylinder: u32, last_cylinder: u32, surface: Option<u16>) -> ZoneSpec {
    ZoneSpec {
        first_cylinder,
        last_cylinder,
        surface,
        sectors_per_track: PerSurface::Same(10),
        ..ZoneSpec::default()
    }
}

/// Returns a drive of two surfaces and eight cylinders.
fn drive(zones: Vec<ZoneSpec>) -> GeometrySpec {
    GeometrySpec {
        surfaces: 2,
        cylinders: 8,
        zones,
        ..GeometrySpec::default()
    }
}

/// Returns the number of LBNs, or why the description is refused.
fn built(spec: &GeometrySpec) -> Result<u64, String> {
    Geometry::build(spec)
        .map(|geometry| geometry.capacity().0)
        .map_err(|error| error.to_string())
}

#[track_caller]
fn assert_refused(spec: &GeometrySpec, part: &str) {
    let error = built(spec).expect_err("it must be refused");
    assert!(error.contains(part), "{error}");
}

/// Are zones that share a track refused, and zones that only share a cylinder or a surface
/// accepted?
#[test]
fn zones_of_one_surface_are_disjoint() {
    let apart = drive(vec![zone(0, 3, None), zone(4, 7, None)]);
    assert_eq!(built(&apart), Ok(160));
    let shared = drive(vec![zone(0, 4, None), zone(4, 7, None)]);
    assert_refused(&shared, "zone 1: overlaps zone 0 at cylinder 4");
    let surfaces = drive(vec![zone(0, 7, Some(0)), zone(0, 7, Some(1))]);
    assert_eq!(built(&surfaces), Ok(160));
    let same_surface = drive(vec![zone(0, 4, Some(1)), zone(4, 7, Some(1))]);
    assert_refused(&same_surface, "zone 1: overlaps zone 0 at cylinder 4");
    let all_and_one = drive(vec![zone(0, 4, None), zone(4, 7, Some(1))]);
    assert_refused(&all_and_one, "zone 1: overlaps zone 0 at cylinder 4");
    // In LBN order, an inner zone can come first.
    let inner_first = drive(vec![zone(4, 7, None), zone(0, 4, None)]);
    assert_refused(&inner_first, "zone 0: overlaps zone 1 at cylinder 4");
    assert_refused(
        &drive(vec![zone(0, 7, Some(2))]),
        "surface is 2, but must be in 0..=1",
    );
}

/// Is a replacement for a bad track refused if it holds LBNs, replaces another track or has a
/// different size? Is one that holds LBNs accepted if the description allows shared places?
#[test]
fn a_replacement_must_be_free() {
    let with = |remaps: &[(u64, u64)]| {
        let mut spec = drive(vec![zone(0, 7, None)]);
        spec.sparing = Sparing::TracksPerZone;
        spec.zones[0].spares = 2;
        spec.zones[0].remaps = remaps.to_vec();
        spec
    };
    // Tracks 0 to 13 hold LBNs; 14 and 15 are spares.
    assert_eq!(built(&with(&[(3, 14), (13, 15)])), Ok(140));
    assert_refused(&with(&[(3, 13)]), "track 13 is not free to replace track 3");
    assert_refused(
        &with(&[(3, 14), (4, 14)]),
        "track 14 is not free to replace track 4",
    );
    assert_refused(&with(&[(3, 16)]), "remaps is 16, but must be in 0..=15");
    // A remap of a spare, or of a track to itself, changes nothing.
    assert_eq!(built(&with(&[(14, 15), (3, 3)])), Ok(140));
    let mut shared = with(&[(3, 13)]);
    shared.shared_places = true;
    assert_eq!(built(&shared), Ok(140));
    let mut unequal = with(&[(3, 14)]);
    unequal.zones[0].sectors_per_track = PerSurface::Each(vec![10, 9]);
    assert_refused(
        &unequal,
        "track 14 with 10 sectors cannot replace track 3 with 9",
    );
}

/// May two LBNs be moved to one place only if the description says so, and may an LBN take the
/// place that another one has left? Are places outside the drive refused?
#[test]
fn moved_places_are_disjoint() {
    let to = |lbn, slot| MovedSpec {
        lbn,
        sectors: 1,
        cylinder: 7,
        surface: 1,
        slot,
        slots: None,
    };
    let with = |moved: &[MovedSpec]| {
        let mut spec = drive(vec![zone(0, 7, None)]);
        spec.sparing = Sparing::SectorsPerTrack;
        spec.zones[0].spares = 2;
        spec.moved = moved.to_vec();
        spec
    };
    // The last track has LBNs 120 to 127 in slots 0 to 7.
    assert_eq!(built(&with(&[to(0, 8), to(1, 9)])), Ok(128));
    assert_refused(&with(&[to(0, 8), to(1, 8)]), "slot 8 is not free for LBN 1");
    assert_refused(&with(&[to(0, 7)]), "slot 7 is not free for LBN 0");
    assert_refused(&with(&[to(0, 10)]), "slot 10 is not free for LBN 0");
    assert_eq!(built(&with(&[to(0, 7), to(127, 8)])), Ok(128));
    let mut shared = with(&[to(0, 8), to(1, 8)]);
    shared.shared_places = true;
    assert_eq!(built(&shared), Ok(128));
    let two = |lbn| MovedSpec {
        sectors: 2,
        ..to(lbn, 8)
    };
    assert_eq!(built(&with(&[two(126)])), Ok(128));
    assert_refused(&with(&[two(127)]), "sectors is 2, but must be in 1..=1");
    assert_refused(&with(&[to(128, 8)]), "lbn is 128, but must be in 0..=127");
    // A place off the layout needs the number of slots of its track.
    let off = |cylinder, surface, slot, slots| MovedSpec {
        cylinder,
        surface,
        slots,
        ..to(0, slot)
    };
    let mut room = with(&[off(8, 0, 4, Some(5))]);
    assert_refused(&room, "cylinder is 8, but must be in 0..=7");
    room.cylinders = 9;
    assert_eq!(built(&room), Ok(128));
    room.moved = vec![off(8, 0, 4, None)];
    assert_refused(&room, "cylinder 8, surface 0, slot 4 is not free for LBN 0");
    room.moved = vec![off(8, 0, 5, Some(5))];
    assert_refused(&room, "slot is 5, but must be in 0..=4");
    room.moved = vec![off(8, 2, 4, Some(5))];
    assert_refused(&room, "surface is 2, but must be in 0..=1");
}

/// Does a moved LBN at the beginning of a track form a run of its own?
#[test]
fn a_moved_first_sector_is_a_run() {
    let mut spec = drive(vec![zone(0, 7, None)]);
    spec.sparing = Sparing::SectorsPerTrack;
    spec.zones[0].spares = 2;
    spec.moved = vec![MovedSpec {
        lbn: 8,
        sectors: 1,
        cylinder: 7,
        surface: 1,
        slot: 8,
        slots: None,
    }];
    let geometry = Geometry::build(&spec).unwrap();
    let runs: Vec<_> = geometry
        .lbn_runs()
        .take(4)
        .map(|run| (run.first_lbn, run.sectors, run.cylinder.0, run.surface.0))
        .collect();
    assert_eq!(
        runs,
        [
            (Lbn(0), 8, 0, 0),
            (Lbn(8), 1, 7, 1),
            (Lbn(9), 7, 0, 1),
            (Lbn(16), 8, 1, 0)
        ]
    );
}

/// How many LBNs do spares leave in each scheme, and how many spares are too many? Does the scheme
/// of cylinder ranges require their size?
#[test]
fn spares_are_bounded() {
    let with = |sparing, spares| {
        let mut spec = drive(vec![zone(0, 7, None)]);
        spec.sparing = sparing;
        spec.sparing_range_cylinders = (sparing == Sparing::SectorsPerCylinderRange).then_some(4);
        spec.zones[0].spares = spares;
        spec
    };
    // The scheme, the LBNs with one spare per region, the most spares of a region, and the LBNs
    // that the drive then has.
    for (sparing, one, most, least) in [
        (Sparing::SectorsPerTrack, 160 - 16, 9, 16),
        (Sparing::SectorsPerCylinder, 160 - 8, 20, 0),
        (Sparing::SectorsAtCylinderFront, 160 - 8, 20, 0),
        (Sparing::SectorsPerCylinderRange, 160 - 2, 80, 0),
        (Sparing::SectorsPerZone, 160 - 1, 160, 0),
        (Sparing::TracksPerZone, 160 - 10, 16, 0),
    ] {
        assert_eq!(built(&with(sparing, 1)), Ok(one), "{sparing:?}");
        assert_refused(&with(sparing, most + 1), &format!("must be in 0..={most}"));
        match built(&with(sparing, most)) {
            Ok(capacity) => assert_eq!(capacity, least, "{sparing:?}"),
            // A drive must have an LBN.
            Err(error) => assert!(least == 0 && !error.contains("spares is"), "{error}"),
        }
    }
    let mut without_range = with(Sparing::SectorsPerCylinderRange, 1);
    without_range.sparing_range_cylinders = None;
    assert_refused(&without_range, "requires sparing_range_cylinders");
    without_range.sparing_range_cylinders = Some(0);
    assert_refused(
        &without_range,
        "sparing_range_cylinders is 0, but must be in 1..=",
    );
}

/// Are a zone's reserved sectors, its number of LBNs and the capacity of the drive bounded by what
/// fits?
#[test]
fn a_zone_holds_what_fits() {
    let with = |reserved_sectors, lbns| {
        let mut spec = drive(vec![zone(0, 3, None), zone(4, 7, None)]);
        (spec.zones[0].reserved_sectors, spec.zones[0].lbns) = (reserved_sectors, lbns);
        spec
    };
    assert_eq!(built(&with(80, None)), Ok(80));
    assert_refused(
        &with(81, None),
        "reserved_sectors is 81, but must be in 0..=80",
    );
    assert_eq!(built(&with(30, Some(50))), Ok(130));
    assert_refused(&with(30, Some(51)), "lbns is 51, but must be in 0..=50");
    assert_eq!(built(&with(30, Some(7))), Ok(87));
    let mut drive_end = with(30, Some(7));
    drive_end.capacity_sectors = Some(87);
    assert_eq!(built(&drive_end), Ok(87));
    drive_end.capacity_sectors = Some(88);
    assert_refused(&drive_end, "capacity_sectors is 88, but must be in 1..=87");
    drive_end.capacity_sectors = Some(5);
    assert_eq!(built(&drive_end), Ok(5));
}

/// Are `turn_skew` and `group_skew` refused unless the order is seek-first? With such an order, are
/// a width of zero tracks and an excessive skew refused?
#[test]
fn skews_belong_to_their_order() {
    let mut spec = drive(vec![zone(0, 7, None)]);
    spec.zones[0].turn_skew = Some(Skew::Sectors(1.0));
    assert_refused(&spec, "turn_skew and group_skew are for seek-first orders");
    spec.zones[0].turn_skew = None;
    spec.zones[0].group_skew = Some(Skew::Sectors(1.0));
    assert_refused(&spec, "turn_skew and group_skew are for seek-first orders");
    spec.order = Order::SeekForwardSurfaceForward;
    spec.width_tracks = Some(2);
    assert_eq!(built(&spec), Ok(160));
    spec.width_tracks = Some(0);
    assert_refused(&spec, "width_tracks is 0, but must be in 1..=");
    spec.width_tracks = Some(2);
    spec.zones[0].group_skew = Some(Skew::Sectors(1e9 + 1.0));
    assert_refused(&spec, "not finite, or exceeds a billion");
}

/// How far away may a spare be? A quarter of a million tracks on either side are searched.
#[test]
fn spares_are_near() {
    let (surfaces, reach) = (64, (1 << 18) / 64);
    let mut spec = drive(vec![zone(0, reach, None), zone(reach + 1, reach + 1, None)]);
    (spec.surfaces, spec.cylinders) = (surfaces, reach + 2);
    spec.sparing = Sparing::SectorsPerZone;
    spec.zones[1].spares = 1;
    let geometry = Geometry::build(&spec).unwrap();
    let per_cylinder = u64::from(surfaces) * 10;
    let found = geometry.nearest_spare(Lbn(per_cylinder), 1).unwrap();
    assert_eq!(
        (found.cylinder.0, found.surface.0, found.slot),
        (reach + 1, 63, 9)
    );
    assert_eq!(geometry.nearest_spare(Lbn(per_cylinder - 1), 1), None);
}
