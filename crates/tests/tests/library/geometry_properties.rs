//! The geometry compared with a layout listed sector by sector.

use std::collections::{BTreeMap, BTreeSet};

use traxtent_model::geometry::{
    BranchSpec, Child, Geometry, GeometrySpec, Occupant, Order, PerSurface, Place, Replacement,
    Skew, SlipSpec, Sparing, Start, TrackSpec, TreeSpec, ZoneSpec,
};
use traxtent_units::{Cylinder, Lbn, Surface};

use crate::geometry_naive::{Naive, Spot};
use crate::random::Random;

fn place((cylinder, surface, slot): Spot) -> Place {
    Place {
        cylinder: Cylinder(cylinder),
        surface: Surface(surface),
        slot,
    }
}

/// Compares a geometry with the naive layout.
fn compare(spec: &GeometrySpec, naive: &Naive, geometry: &Geometry, case: &str) {
    let capacity = naive.home.len() as u64;
    assert_eq!(geometry.capacity().0, capacity, "{case}");
    let mut holds: BTreeMap<Spot, u64> = BTreeMap::new();
    for lbn in 0..capacity {
        let spot = naive.spot(lbn);
        assert_eq!(
            geometry.locate(Lbn(lbn)),
            Some(place(spot)),
            "{case}, LBN {lbn}"
        );
        assert_eq!(holds.insert(spot, lbn), None, "{case}: {spot:?} twice");
    }
    assert_eq!(geometry.locate(Lbn(capacity)), None);
    let slots: BTreeMap<(u32, u16), u32> = naive
        .tracks
        .iter()
        .map(|t| ((t.cylinder, t.surface), t.slots))
        .collect();
    for cylinder in 0..spec.cylinders + 1 {
        for surface in 0..spec.surfaces + 1 {
            let slots = slots.get(&(cylinder, surface)).copied().unwrap_or(0);
            for slot in 0..slots + 2 {
                let spot = (cylinder, surface, slot);
                let expected = if slot >= slots {
                    Occupant::NoSuchPlace
                } else if let Some(&lbn) = holds.get(&spot) {
                    Occupant::Lbn(Lbn(lbn))
                } else if naive.bad.contains(&spot) {
                    Occupant::Bad
                } else {
                    Occupant::Empty
                };
                assert_eq!(geometry.lbn_at(place(spot)), expected, "{case}: {spot:?}");
            }
        }
    }
    compare_tracks(naive, geometry, case);
    compare_pieces(naive, geometry, case);
    compare_spares(spec, naive, geometry, case);
    let defects: BTreeSet<Spot> = geometry
        .defects()
        .flat_map(|d| {
            (0..d.slots).map(move |i| (d.place.cylinder.0, d.place.surface.0, d.place.slot + i))
        })
        .collect();
    assert_eq!(defects, naive.bad, "{case}");
    let remapped = geometry
        .defects()
        .filter(|d| matches!(d.remedy, Replacement::Remapped(..)))
        .count();
    assert_eq!(remapped, naive.moved.len(), "{case}");
    assert_eq!(geometry.moved_count(), naive.moved.len(), "{case}");
    for lbn in 0..capacity {
        let moved = naive.moved.contains_key(&lbn);
        assert_eq!(geometry.is_moved(Lbn(lbn)), moved, "{case}, LBN {lbn}");
    }
}

/// Compares the nearest spare with a search of all places that hold no LBN and are not bad. Nearer
/// cylinders come first, and of two equally near ones the outer one. Within a cylinder, the search
/// begins with the surface of the LBN.
fn compare_spares(spec: &GeometrySpec, naive: &Naive, geometry: &Geometry, case: &str) {
    let is_empty = |place| geometry.lbn_at(place) == Occupant::Empty;
    for sectors in [1, 2] {
        // The first run of that many empty sectors on each track.
        let mut runs: BTreeMap<(u32, u16), u32> = BTreeMap::new();
        for track in &naive.tracks {
            let is_run = |slot: &u32| {
                (*slot..slot + sectors)
                    .all(|slot| is_empty(place((track.cylinder, track.surface, slot))))
            };
            if let Some(slot) = (0..(track.slots + 1).saturating_sub(sectors)).find(is_run) {
                runs.insert((track.cylinder, track.surface), slot);
            }
        }
        for lbn in (0..naive.home.len() as u64).step_by(7) {
            let (home, surface, _) = naive.spot(lbn);
            let order = |(at, _): &(&(u32, u16), &u32)| {
                let turn = (at.1 + spec.surfaces - surface) % spec.surfaces;
                (at.0.abs_diff(home), at.0 > home, turn)
            };
            let nearest = runs.iter().min_by_key(order);
            assert_eq!(
                geometry.nearest_spare(Lbn(lbn), sectors),
                nearest.map(|(&(cylinder, surface), &slot)| place((cylinder, surface, slot))),
                "{case}, LBN {lbn}"
            );
        }
    }
}

fn compare_tracks(naive: &Naive, geometry: &Geometry, case: &str) {
    let mut next = 0;
    let mut count = 0;
    for (index, track) in (0..).zip(geometry.tracks()) {
        count += 1;
        assert_eq!((track.index, track.first_lbn.0), (index, next), "{case}");
        assert_eq!(geometry.track(index), Some(track), "{case}");
        assert_eq!(geometry.track_of(track.first_lbn), Some(track), "{case}");
        next += u64::from(track.sectors);
        assert_eq!(geometry.track_of(Lbn(next - 1)), Some(track), "{case}");
        assert_eq!(geometry.track_end(Lbn(next - 1)), Some(Lbn(next)), "{case}");
        for lbn in track.first_lbn.0..next {
            let home = naive.tracks[naive.home[lbn as usize].0];
            let (cylinder, surface) = (home.cylinder, home.surface);
            assert_eq!(
                (track.cylinder.0, track.surface.0),
                (cylinder, surface),
                "{case}"
            );
            assert_eq!(track.slots, home.slots, "{case}");
            let deviation = (track.origin.as_turns() - home.origin).rem_euclid(1.0);
            assert!(
                deviation.min(1.0 - deviation) < 1e-9,
                "{case}: {track:?} begins at {} turns",
                home.origin
            );
        }
        let has_next = (next as usize) < naive.home.len();
        assert!(
            !has_next || naive.home[next as usize].0 != naive.home[next as usize - 1].0,
            "{case}"
        );
    }
    assert_eq!(
        (next, count),
        (geometry.capacity().0, geometry.track_count()),
        "{case}"
    );
    assert_eq!(geometry.track(count), None);
    let sizes = geometry.tracks().map(|track| track.sectors);
    assert!(geometry.track_sizes().eq(sizes), "{case}");
    let tracks: Vec<_> = geometry.tracks().collect();
    for run in tracks.chunk_by(|a, b| a.cylinder == b.cylinder) {
        let end = run.last().map(|track| track.end_lbn());
        for track in run {
            assert_eq!(geometry.cylinder_end(track.first_lbn), end, "{case}");
        }
    }
    let sum: u64 = geometry.lbn_runs().map(|run| run.sectors).sum();
    assert_eq!(sum, next, "{case}");
    for run in geometry.lbn_runs() {
        for lbn in run.first_lbn.0..run.first_lbn.0 + run.sectors {
            let (cylinder, surface, _) = naive.spot(lbn);
            assert_eq!(
                (run.cylinder.0, run.surface.0),
                (cylinder, surface),
                "{case}"
            );
        }
    }
    for zone in geometry.zones() {
        for lbn in zone.first_lbn.0..zone.end_lbn.0 {
            let (cylinder, ..) = naive.home_spot(lbn);
            assert!(
                (zone.first_cylinder.0..=zone.last_cylinder.0).contains(&cylinder),
                "{case}"
            );
        }
    }
}

fn compare_pieces(naive: &Naive, geometry: &Geometry, case: &str) {
    for max in [1, 3, u32::MAX] {
        let mut lbn = 0;
        while lbn < geometry.capacity().0 {
            let piece = geometry.piece(Lbn(lbn), max);
            let (cylinder, surface, first) = naive.spot(lbn);
            assert_eq!(
                (piece.track.cylinder.0, piece.track.surface.0),
                (cylinder, surface),
                "{case}"
            );
            assert_eq!((piece.lbn.0, piece.first_slot), (lbn, first), "{case}");
            let last = naive.spot(lbn + u64::from(piece.sectors) - 1);
            assert_eq!(last, (cylinder, surface, first + piece.slots - 1), "{case}");
            let moved = |lbn| naive.moved.contains_key(&lbn);
            let next = lbn + u64::from(piece.sectors);
            let continues = next < geometry.capacity().0
                && piece.sectors < max
                && !moved(lbn)
                && !moved(next)
                && naive.home[next as usize].0 == naive.home[lbn as usize].0;
            assert!(
                !continues,
                "{case}: the piece of {max} at LBN {lbn} ends early"
            );
            lbn = next;
        }
    }
}

/// Builds both layouts and compares them. They must also agree on whether the specification can be
/// built. Returns whether it can. Also asserts that the specification survives TOML.
fn check(spec: &GeometrySpec, case: &str) -> bool {
    let text = toml::to_string(spec).unwrap();
    let read: GeometrySpec = toml::from_str(&text).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    assert_eq!(&read, spec, "{case}");
    match (Naive::build(spec), Geometry::build(spec)) {
        (Some(naive), Ok(geometry)) => {
            compare(spec, &naive, &geometry, case);
            true
        }
        (Some(naive), Err(e)) => {
            assert!(naive.home.is_empty(), "{case}: {e}\n{text}");
            false
        }
        (None, Err(e)) => {
            let e = e.to_string();
            assert!(
                e.contains("too few for") || e.contains("reserved_sectors"),
                "{case}: {e}\n{text}"
            );
            false
        }
        (None, Ok(_)) => panic!("{case}: built although spares or sectors are too few\n{text}"),
    }
}

fn random_skew(random: &mut Random) -> Skew {
    if random.once_in(5) {
        Skew::Revolutions(random.pick(0..100) as f64 / 64.0)
    } else {
        Skew::Sectors(random.pick(0..40) as f64 - 5.0)
    }
}

fn random_spec(random: &mut Random) -> GeometrySpec {
    let order = random.of(&Order::ALL);
    let mut sparing = random.of(&Sparing::ALL);
    if sparing.by_cylinder() && !order.is_head_first() {
        sparing = Sparing::SectorsPerZone;
    }
    let range = (sparing == Sparing::SectorsPerCylinderRange).then(|| random.pick(1..4) as u32);
    let mut spec = GeometrySpec {
        surfaces: random.pick(1..5) as u16,
        order,
        width_tracks: (!order.is_head_first()).then(|| random.pick(1..5) as u32),
        start: random.of(&[Start::Forward, Start::Backward, Start::CylinderParity]),
        sparing,
        sparing_range_cylinders: range,
        ..GeometrySpec::default()
    };
    let mut cylinder = random.pick(0..3) as u32;
    for _ in 0..random.pick(1..4) {
        let zone = random_zone(random, &spec, cylinder);
        cylinder = zone.last_cylinder + 1 + random.pick(0..2) as u32;
        spec.zones.push(zone);
    }
    spec.cylinders = cylinder + random.pick(0..2) as u32;
    if random.once_in(5)
        && let Some(naive) = Naive::build(&spec)
        && naive.home.len() > 1
    {
        spec.capacity_sectors = Some(random.pick(1..naive.home.len() as u64));
    }
    spec
}

fn random_zone(random: &mut Random, spec: &GeometrySpec, cylinder: u32) -> ZoneSpec {
    let cylinders = random.pick(1..12) as u32;
    let surface = random
        .once_in(6)
        .then(|| random.pick(0..spec.surfaces.into()) as u16);
    let surfaces = if surface.is_some() { 1 } else { spec.surfaces };
    let sectors_per_track = if random.once_in(4) {
        PerSurface::Each((0..surfaces).map(|_| random.pick(3..14) as u32).collect())
    } else {
        PerSurface::Same(random.pick(3..14) as u32)
    };
    let slots: Vec<u64> = match &sectors_per_track {
        PerSurface::Same(slots) => vec![u64::from(*slots); surfaces.into()],
        PerSurface::Each(slots) => slots.iter().map(|&s| s.into()).collect(),
    };
    let slots_min = *slots.iter().min().unwrap();
    let tracks = u64::from(cylinders) * u64::from(surfaces);
    let sectors = u64::from(cylinders) * slots.iter().sum::<u64>();
    let spares = match spec.sparing {
        Sparing::None | Sparing::SectorsAtDriveEnd => 0,
        Sparing::TracksPerZone => random.pick(0..tracks.min(4)),
        Sparing::SectorsPerTrack => random.pick(0..slots_min.min(4)),
        _ => random.pick(0..slots.iter().sum::<u64>().min(16)),
    };
    let position_count = if spec.sparing == Sparing::TracksPerZone {
        tracks
    } else {
        sectors
    };
    let slips: BTreeSet<u64> = (0..random.of(&[0, 0, 1, 2, 4]))
        .map(|_| near_an_edge(random, position_count, slots[0]))
        .collect();
    let mut remaps = Vec::new();
    let mut used = slips.clone();
    if spec.sparing == Sparing::TracksPerZone {
        let data_end = tracks - spares + slips.len() as u64;
        let is_uniform = slots.iter().all(|&s| s == slots_min);
        if is_uniform && random.once_in(2) && data_end + 1 < tracks && !used.contains(&(tracks - 1))
        {
            remaps.push((random.pick(0..tracks - spares), tracks - 1));
        }
    } else if spares > 2 && slips.is_empty() && !spec.sparing.slips_to_end() && random.once_in(2) {
        // In these schemes, the last sector of the zone is a spare.
        let at_end = matches!(spec.sparing, Sparing::SectorsPerZone)
            || (spec.sparing == Sparing::SectorsPerTrack && surfaces > 0);
        let from = near_an_edge(random, sectors, slots[0]);
        if at_end && from + 3 < sectors && used.insert(from) {
            remaps.push((from, sectors - 1));
        }
    }
    let seek_first = !spec.order.is_head_first();
    ZoneSpec {
        first_cylinder: cylinder,
        last_cylinder: cylinder + cylinders - 1,
        surface,
        sectors_per_track,
        track_skew: random_skew(random),
        cylinder_skew: random_skew(random),
        turn_skew: (seek_first && random.once_in(2)).then(|| random_skew(random)),
        group_skew: (seek_first && random.once_in(2)).then(|| random_skew(random)),
        first_angle: random_skew(random),
        reserved_sectors: random.of(&[0, 0, 0, 1, slots_min, slots_min * 3 + 1]),
        spares: spares as u32,
        slips: slips.into_iter().collect(),
        turns: if slots.iter().all(|&s| s == slots_min) && random.once_in(3) {
            vec![(random.pick(0..tracks), random.pick(0..9) as i32 - 4)]
        } else {
            vec![]
        },
        remaps,
        ..ZoneSpec::default()
    }
}

/// Returns a number below `end`, often close to a multiple of `track`.
fn near_an_edge(random: &mut Random, end: u64, track: u64) -> u64 {
    let at = random.pick(0..end);
    if random.once_in(2) {
        return at;
    }
    (at / track * track + random.pick(0..3))
        .saturating_sub(1)
        .min(end - 1)
}

/// Do LBNs, places, tracks, pieces, spares and defects of thousands of random drives of every order
/// and sparing scheme agree with a layout listed sector by sector?
#[test]
fn random_drives_equal_a_naive_layout() {
    let mut built = 0;
    for seed in 0..6000 {
        built += u32::from(check(
            &random_spec(&mut Random(seed)),
            &format!("seed {seed}"),
        ));
    }
    assert!(
        built > 4000,
        "only {built} of the random drives could be built"
    );
}

/// Do tiny drives of every order and sparing scheme, without a slip and with each possible single
/// one, agree with the naive layout?
#[test]
fn all_tiny_drives_equal_a_naive_layout() {
    for order in Order::ALL {
        for sparing in Sparing::ALL {
            for (surfaces, cylinders, slots) in
                [(1, 1, 2), (1, 3, 3), (2, 2, 2), (2, 3, 3), (3, 2, 2)]
            {
                for (spares, reserved) in [(0, 0), (1, 0), (1, 3)] {
                    check_tiny_drive(
                        order,
                        sparing,
                        (surfaces, cylinders, slots),
                        spares,
                        reserved,
                    );
                }
            }
        }
    }
}

fn check_tiny_drive(
    order: Order,
    sparing: Sparing,
    size: (u16, u32, u32),
    spares: u32,
    reserved: u64,
) {
    let (surfaces, cylinders, slots) = size;
    let has_no_spares = matches!(sparing, Sparing::None | Sparing::SectorsAtDriveEnd);
    let by_cylinder = sparing.by_cylinder();
    if (spares > 0 && has_no_spares) || (spares > 0 && by_cylinder && !order.is_head_first()) {
        return;
    }
    let positions = u64::from(surfaces) * u64::from(cylinders * slots);
    let slip_positions = if sparing == Sparing::TracksPerZone {
        positions / u64::from(slots)
    } else {
        positions
    };
    for slip in (0..slip_positions).map(Some).chain([None]) {
        let zone = ZoneSpec {
            last_cylinder: cylinders - 1,
            sectors_per_track: PerSurface::Same(slots),
            track_skew: Skew::Sectors(1.0),
            cylinder_skew: Skew::Sectors(2.0),
            reserved_sectors: reserved,
            spares,
            slips: slip.into_iter().collect(),
            ..ZoneSpec::default()
        };
        let spec = GeometrySpec {
            surfaces,
            cylinders,
            order,
            width_tracks: (!order.is_head_first()).then_some(2),
            sparing,
            sparing_range_cylinders: (sparing == Sparing::SectorsPerCylinderRange).then_some(2),
            zones: vec![zone],
            ..GeometrySpec::default()
        };
        check(
            &spec,
            &format!("{order:?} {sparing:?} {size:?} {spares} {reserved} {slip:?}"),
        );
    }
}

/// A track of a random tree: cylinder, surface, pattern, sectors in use, angle in revolutions.
type Leaf = (i32, i32, TrackSpec, u32, f64);

fn random_tree(random: &mut Random) -> (TreeSpec, Vec<Leaf>, u16) {
    let surfaces = random.pick(1..4) as u16;
    let mut tree = TreeSpec::default();
    for _ in 0..random.pick(1..4) {
        let slots = random.pick(3..12) as u32;
        let first_slot = if random.once_in(3) {
            random.pick(0..slots.into()) as u32
        } else {
            0
        };
        tree.tracks.push(TrackSpec {
            slots,
            first_slot,
            sectors: slots - first_slot,
        });
    }
    // A lower node passes over its cylinders once per surface, in a random direction. The root
    // repeats these nodes.
    let mut leaves_of: Vec<(Vec<Leaf>, i32)> = Vec::new();
    for _ in 0..random.pick(1..4) {
        let width = random.pick(1..6) as i32;
        let (mut node, mut leaves) = (Vec::new(), Vec::new());
        for surface in 0..surfaces {
            let track = random.pick(0..tree.tracks.len() as u64) as u32;
            let is_backward = random.once_in(2);
            let (angle, step) = (
                random.pick(0..64) as f64 / 64.0,
                random.pick(0..64) as f64 / 64.0,
            );
            let (start, cylinder_step) = if is_backward { (width - 1, -1) } else { (0, 1) };
            node.push(BranchSpec {
                cylinder: start,
                surface: surface.into(),
                angle_turns: angle,
                repeat: width as u64,
                cylinder_step,
                angle_step_turns: step,
                ..BranchSpec::once(Child::Track(track))
            });
            let pattern = tree.tracks[track as usize];
            for k in 0..width {
                let turns = angle + step * f64::from(k);
                leaves.push((
                    start + cylinder_step * k,
                    surface.into(),
                    pattern,
                    pattern.sectors,
                    turns,
                ));
            }
        }
        tree.nodes.push(node);
        leaves_of.push((leaves, width));
    }
    let (mut root, mut tracks, mut cylinder) = (Vec::new(), Vec::new(), 0);
    for _ in 0..random.pick(1..5) {
        let child = random.pick(0..leaves_of.len() as u64) as usize;
        let (leaves, width) = &leaves_of[child];
        let repeat = random.pick(1..5);
        let size: u64 = leaves.iter().map(|leaf| u64::from(leaf.3)).sum();
        let total = size * repeat
            - if random.once_in(3) {
                random.pick(0..size)
            } else {
                0
            };
        root.push(BranchSpec {
            cylinder,
            repeat,
            cylinder_step: *width,
            angle_step_turns: 0.25,
            total_sectors: (total < size * repeat).then_some(total),
            ..BranchSpec::once(Child::Node(child as u32))
        });
        let mut remaining = total;
        for k in 0..repeat as i32 {
            for &(c, s, pattern, sectors, turns) in leaves {
                let used = remaining.min(sectors.into()) as u32;
                remaining -= u64::from(used);
                if used > 0 {
                    tracks.push((
                        cylinder + width * k + c,
                        s,
                        pattern,
                        used,
                        turns + 0.25 * f64::from(k),
                    ));
                }
            }
        }
        cylinder += width * repeat as i32;
    }
    tree.nodes.push(root);
    (tree, tracks, surfaces)
}

/// Do random trees with repeated nodes and slips agree with their tracks listed one by one?
#[test]
fn random_trees_equal_their_listed_tracks() {
    for seed in 0..2000 {
        let random = &mut Random(seed);
        let (mut tree, leaves, surfaces) = random_tree(random);
        let total: u64 = leaves.iter().map(|leaf| u64::from(leaf.3)).sum();
        let mut bad = BTreeSet::new();
        for _ in 0..random.of(&[0, 1, 3]) {
            let position = random.pick(0..total);
            let sectors = random.pick(1..4).min(total - position) as u32;
            if (position..position + u64::from(sectors)).all(|p| !bad.contains(&p)) {
                bad.extend(position..position + u64::from(sectors));
                tree.slips.push(SlipSpec { position, sectors });
            }
        }
        tree.slips.sort_by_key(|s| s.position);
        let cylinders = leaves.iter().map(|leaf| leaf.0).max().unwrap() as u32 + 1;
        let spec = GeometrySpec {
            surfaces,
            cylinders,
            tree: Some(tree),
            ..GeometrySpec::default()
        };
        let case = format!("seed {seed}");
        if bad.len() as u64 == total {
            continue;
        }
        let geometry = Geometry::build(&spec).unwrap_or_else(|e| panic!("{case}: {e}"));
        let (mut position, mut lbn) = (0, 0);
        for (cylinder, surface, pattern, used, turns) in leaves {
            for k in 0..used {
                let expected = place((cylinder as u32, surface as u16, pattern.first_slot + k));
                if bad.contains(&position) {
                    assert_eq!(
                        geometry.lbn_at(expected),
                        Occupant::Bad,
                        "{case}: {expected}"
                    );
                } else {
                    assert_eq!(geometry.locate(Lbn(lbn)), Some(expected), "{case}");
                    assert_eq!(
                        geometry.lbn_at(expected),
                        Occupant::Lbn(Lbn(lbn)),
                        "{case}: {expected}"
                    );
                    let track = geometry.track_of(Lbn(lbn)).unwrap();
                    let deviation = (track.origin.as_turns() - turns).rem_euclid(1.0);
                    assert!(
                        deviation.min(1.0 - deviation) < 1e-9,
                        "{case}: {track:?} at {turns}"
                    );
                    lbn += 1;
                }
                position += 1;
            }
        }
        assert_eq!(geometry.capacity().0, lbn, "{case}");
        assert_eq!(geometry.zones().last().unwrap().end_lbn.0, lbn, "{case}");
    }
}
