//! Published layouts, a large drive, moved LBNs, and descriptions that must be refused.

use traxtent_model::geometry::{
    BranchSpec, Child, Geometry, GeometrySpec, MovedSpec, Occupant, Order, PerSurface, Place, Skew,
    Sparing, TrackSpec, TreeSpec, ZoneSpec,
};
use traxtent_units::{Angle, Cylinder, Lbn, Surface};

fn drive(surfaces: u16, cylinders: u32, slots: u32) -> GeometrySpec {
    let zone = ZoneSpec {
        last_cylinder: cylinders - 1,
        sectors_per_track: PerSurface::Same(slots),
        ..ZoneSpec::default()
    };
    GeometrySpec {
        surfaces,
        cylinders,
        zones: vec![zone],
        ..GeometrySpec::default()
    }
}

fn starts(geometry: &Geometry, count: usize) -> Vec<u64> {
    geometry
        .tracks()
        .take(count)
        .map(|track| track.first_lbn.0)
        .collect()
}

/// Paper T, Fig. 2(b): 200 sectors per track, two surfaces, a skew of 20 and a slipped sector
/// between LBNs 580 and 581. Where do tracks begin?
#[test]
fn slip_of_traxtents_figure_2b() {
    let mut spec = drive(2, 3, 200);
    spec.zones[0].track_skew = Skew::Sectors(20.0);
    spec.zones[0].cylinder_skew = Skew::Sectors(20.0);
    spec.zones[0].slips = vec![581];
    let geometry = Geometry::build(&spec).unwrap();
    assert_eq!(starts(&geometry, 4), [0, 200, 400, 599]);
    let slot = |lbn| geometry.locate(Lbn(lbn)).unwrap().slot;
    assert_eq!((slot(580), slot(581)), (180, 182));
    for (index, track) in (0..).zip(geometry.tracks()) {
        let deviation = track.origin - Angle::from_ratio(20 * index % 200, 200);
        assert!(
            deviation.0.min(deviation.0.wrapping_neg()) < 100,
            "track {index}: {deviation:?}"
        );
    }
}

/// Paper Q, Fig. 3: the tracks of a Maxtor 10K V run in serpentines of 32. The first ones go from
/// cylinder 31 out to 0 on the top surface and back in on the bottom one. The next go from 63 to 32
/// on the bottom and from 32 to 63 on the top. Does the named order give this sequence?
#[test]
fn serpentine_of_the_maxtor_10k_v() {
    let mut spec = drive(2, 128, 100);
    spec.order = Order::SeekAlternatingSurfaceAlternating;
    spec.start = traxtent_model::geometry::Start::Backward;
    spec.width_tracks = Some(32);
    let geometry = Geometry::build(&spec).unwrap();
    let tracks: Vec<_> = geometry
        .tracks()
        .map(|t| (t.cylinder.0, t.surface.0))
        .collect();
    let down = |from: u32, surface| (from - 31..=from).rev().map(move |c| (c, surface));
    let up = |from: u32, surface| (from..from + 32).map(move |c| (c, surface));
    let expected: Vec<_> = down(31, 0)
        .chain(up(0, 1))
        .chain(down(63, 1))
        .chain(up(32, 0))
        .collect();
    assert_eq!(tracks[..128], expected);
}

/// Does a drive of 24 TB with thousands of slips have a small index?
#[test]
fn a_24_tb_drive_has_a_small_index() {
    let mut spec = GeometrySpec {
        surfaces: 20,
        cylinders: 600_000,
        order: Order::SeekAlternatingSurfaceAlternating,
        width_tracks: Some(150),
        sparing: Sparing::SectorsPerZone,
        ..GeometrySpec::default()
    };
    for zone in 0..30 {
        let slots = 5400 - 100 * zone;
        spec.zones.push(ZoneSpec {
            first_cylinder: 20_000 * zone,
            last_cylinder: 20_000 * zone + 19_999,
            sectors_per_track: PerSurface::Same(slots),
            cylinder_skew: Skew::Revolutions(0.12),
            spares: 1000,
            slips: (0..100).map(|i| i * 9_999_991).collect(),
            ..ZoneSpec::default()
        });
    }
    let geometry = Geometry::build(&spec).unwrap();
    assert!(
        geometry.capacity().0 > 24_000_000_000_000 / 512,
        "{}",
        geometry.capacity()
    );
    // Each of the 3,000 slips makes a run of its own.
    let runs = geometry.runs();
    assert!((3_000..100_000).contains(&runs), "{runs} runs");
    let last = Lbn(geometry.capacity().0 - 1);
    let place = geometry.locate(last).unwrap();
    assert_eq!(geometry.lbn_at(place), Occupant::Lbn(last));
}

/// Are LBNs listed as moved located where the list says, and do they split the pieces around them?
/// Is an LBN that is moved twice, or to a slot that is not free, refused?
#[test]
fn moved_lbns_are_pieces_of_their_own() {
    let mut spec = drive(1, 2, 10);
    spec.sparing = Sparing::SectorsPerTrack;
    spec.zones[0].spares = 2;
    let moved = MovedSpec {
        lbn: 3,
        sectors: 2,
        cylinder: 1,
        surface: 0,
        slot: 8,
        slots: None,
    };
    spec.moved = vec![moved];
    let geometry = Geometry::build(&spec).unwrap();
    let pieces: Vec<_> = [0, 3, 4, 5]
        .map(|lbn| geometry.piece(Lbn(lbn), 100))
        .map(|p| (p.sectors, p.track.cylinder.0, p.first_slot))
        .to_vec();
    assert_eq!(pieces, [(3, 0, 0), (1, 1, 8), (1, 1, 9), (3, 0, 5)]);
    let at = |cylinder, slot| {
        geometry.lbn_at(Place {
            cylinder: Cylinder(cylinder),
            surface: Surface(0),
            slot,
        })
    };
    assert_eq!(at(1, 9), Occupant::Lbn(Lbn(4)));
    assert_eq!((at(0, 3), at(0, 9)), (Occupant::Bad, Occupant::Empty));
    spec.moved.push(moved);
    let twice = Geometry::build(&spec).unwrap_err().to_string();
    assert_eq!(twice, "moved 1: LBN 3 is moved twice");
    spec.moved = vec![MovedSpec { slot: 7, ..moved }];
    let taken = Geometry::build(&spec).unwrap_err().to_string();
    assert_eq!(
        taken,
        "moved 0: cylinder 1, surface 0, slot 7 is not free for LBN 3"
    );
}

/// Is each impossible description refused with its value, bound and location?
#[test]
fn impossible_descriptions_are_refused() {
    type Change = fn(&mut GeometrySpec);
    let cases: [(Change, &str); 16] = [
        (
            |s| s.surfaces = 0,
            "geometry: surfaces is 0, but must be in 1..=64",
        ),
        (
            |s| s.surfaces = 65,
            "geometry: surfaces is 65, but must be in 1..=64",
        ),
        (
            |s| s.cylinders = u32::MAX,
            "geometry: cylinders is 4294967295, but must be in 1..=4194304",
        ),
        (
            |s| s.zones[0].last_cylinder = 9,
            "zone 0: last_cylinder is 9, but must be in 0..=3",
        ),
        (
            |s| s.zones[0].first_cylinder = 4,
            "zone 0: first_cylinder is 4, but must be in 0..=3",
        ),
        (
            |s| s.zones[0].sectors_per_track = PerSurface::Same(0),
            "zone 0: sectors_per_track is 0, but must be in 1..=1000000",
        ),
        (
            |s| s.zones[0].sectors_per_track = PerSurface::Each(vec![1]),
            "zone 0: sectors_per_track states 1 value; the zone has 2 surfaces",
        ),
        (
            |s| s.zones[0].slips = vec![80],
            "zone 0: the slip 80 is beyond the 80 sectors, which follow from cylinders, surfaces and \
             sectors per track; remove such slips if you changed one of these",
        ),
        (
            |s| s.zones[0].slips = vec![5, 5],
            "zone 0: slips is 5, but must be in 6..=79",
        ),
        (
            |s| s.zones[0].spares = 1,
            "zone 0: 1 spare, but this sparing scheme has no spares in a zone",
        ),
        (
            |s| s.zones[0].track_skew = Skew::Revolutions(f64::NAN),
            "zone 0: a skew or first_angle is not finite, or exceeds a billion",
        ),
        (
            |s| s.zones.push(s.zones[0].clone()),
            "zone 1: overlaps zone 0 at cylinder 0",
        ),
        (
            |s| s.width_tracks = Some(3),
            "geometry: width_tracks is for seek-first orders",
        ),
        (
            |s| s.order = Order::SeekForwardSurfaceForward,
            "geometry: a seek-first order requires width_tracks",
        ),
        (
            |s| s.zones.clear(),
            "geometry: either zones or a tree must be given, not both",
        ),
        (
            |s| s.capacity_sectors = Some(81),
            "geometry: capacity_sectors is 81, but must be in 1..=80",
        ),
    ];
    for (change, message) in cases {
        let mut spec = drive(2, 4, 10);
        change(&mut spec);
        assert_eq!(Geometry::build(&spec).unwrap_err().to_string(), message);
    }
}

/// Is a tree refused if it interleaves too many instances, is too deep, lists a sector twice,
/// leaves the drive, or contains itself?
#[test]
fn impossible_trees_are_refused() {
    let track = TrackSpec {
        slots: 10,
        first_slot: 0,
        sectors: 10,
    };
    let build = |nodes: Vec<Vec<BranchSpec>>| {
        let tree = TreeSpec {
            tracks: vec![track],
            nodes,
            slips: Vec::new(),
        };
        let spec = GeometrySpec {
            surfaces: 1,
            cylinders: 1000,
            tree: Some(tree),
            ..GeometrySpec::default()
        };
        Geometry::build(&spec)
            .map(|g| g.capacity().0)
            .map_err(|e| e.to_string())
    };
    let branch = BranchSpec::once(Child::Track(0));
    let run = BranchSpec {
        repeat: 1000,
        cylinder_step: 1,
        ..branch
    };
    assert_eq!(build(vec![vec![run]]), Ok(10_000));
    let twice = "tree: slots 0..10 of cylinder 0, surface 0 are listed twice";
    assert_eq!(build(vec![vec![branch, branch]]), Err(twice.to_string()));
    let outside = "tree: cylinder is 1000, but must be in 0..=999";
    assert_eq!(
        build(vec![vec![BranchSpec { cylinder: 1, ..run }]]),
        Err(outside.to_string())
    );
    let itself = "node 0: Node(0) is not a track or an earlier node";
    assert_eq!(
        build(vec![vec![BranchSpec::once(Child::Node(0))]]),
        Err(itself.to_string())
    );
    let huge = BranchSpec {
        repeat: 1 << 25,
        ..branch
    };
    let square = BranchSpec {
        repeat: 2,
        ..BranchSpec::once(Child::Node(0))
    };
    let many = "node 0: interleaved instances is 33554432, but must be in 1..=1024";
    assert_eq!(build(vec![vec![huge], vec![square]]), Err(many.to_string()));
    let mut deep = vec![vec![branch]];
    deep.extend((0..100_000).map(|i| vec![BranchSpec::once(Child::Node(i))]));
    assert_eq!(
        build(deep),
        Err("node 16: depth is 17, but must be in 1..=16".to_string())
    );
}
