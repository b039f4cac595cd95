//! Layouts that are described by an explicit tree, compared with their tracks listed one by one.

use std::collections::{BTreeMap, BTreeSet};

use traxtent_model::geometry::{
    BranchSpec, Child, Geometry, GeometrySpec, Occupant, Place, SlipSpec, TrackSpec, TreeSpec,
    ZoneInfo,
};
use traxtent_units::{Cylinder, Lbn, Surface};

use crate::random::Random;

/// A track of a tree, with the number of its sectors that are in use.
#[derive(Clone, Copy, Debug)]
struct Listed {
    cylinder: i32,
    surface: i32,
    pattern: TrackSpec,
    used: u32,
    turns: f64,
}

/// Lists the tracks of a branch. The node that contains the branch begins at the cylinder, surface
/// and angle `at`.
fn list(tree: &TreeSpec, branch: &BranchSpec, at: (i32, i32, f64), tracks: &mut Vec<Listed>) {
    let first = tracks.len();
    for k in 0..branch.repeat as i32 {
        let cylinder = at.0 + branch.cylinder + k * branch.cylinder_step;
        let surface = at.1 + branch.surface + k * branch.surface_step;
        let turns = at.2 + branch.angle_turns + f64::from(k) * branch.angle_step_turns;
        match branch.of {
            Child::Track(index) => {
                let pattern = tree.tracks[index as usize];
                let used = pattern.sectors;
                tracks.push(Listed {
                    cylinder,
                    surface,
                    pattern,
                    used,
                    turns,
                });
            }
            Child::Node(index) => {
                for child in &tree.nodes[index as usize] {
                    list(tree, child, (cylinder, surface, turns), tracks);
                }
            }
        }
    }
    let mut rest = branch.total_sectors.unwrap_or(u64::MAX);
    for track in &mut tracks[first..] {
        track.used = rest.min(track.used.into()) as u32;
        rest -= u64::from(track.used);
    }
    let mut index = 0;
    tracks.retain(|track| {
        index += 1;
        index <= first || track.used > 0
    });
}

/// Lists the tracks of each branch of the root.
fn list_root(tree: &TreeSpec) -> Vec<Vec<Listed>> {
    let root = tree.nodes.last().unwrap();
    root.iter()
        .map(|branch| {
            let mut tracks = Vec::new();
            list(tree, branch, (0, 0, 0.0), &mut tracks);
            tracks
        })
        .collect()
}

fn signed(random: &mut Random, least: i32, most: i32) -> i32 {
    least + random.pick(0..(most - least + 1) as u64) as i32
}

/// Returns a tree with steps and offsets in all directions. Tracks may be listed in parts or twice.
fn random_tree(random: &mut Random) -> TreeSpec {
    let mut tree = TreeSpec::default();
    let slots = random.pick(2..9) as u32;
    for _ in 0..random.pick(1..4) {
        let slots = if random.once_in(4) { slots + 1 } else { slots };
        let first_slot = random.of(&[0, 0, slots / 2]);
        let sectors = random.of(&[slots - first_slot, slots.div_ceil(2) - first_slot / 2]);
        tree.tracks.push(TrackSpec {
            slots,
            first_slot,
            sectors: sectors.clamp(1, slots - first_slot),
        });
    }
    let depth = random.pick(1..4);
    for level in 0..depth {
        let mut node = Vec::new();
        for _ in 0..random.pick(1..4) {
            let of = if level > 0 && !random.once_in(4) {
                Child::Node(random.pick(0..level) as u32)
            } else {
                Child::Track(random.pick(0..tree.tracks.len() as u64) as u32)
            };
            let reach = if level == 0 { 2 } else { 5 };
            let branch = BranchSpec {
                cylinder: signed(random, -reach, 2 * reach),
                surface: signed(random, -1, 1),
                angle_turns: f64::from(signed(random, -8, 8)) / 8.0,
                repeat: random.pick(1..4),
                cylinder_step: signed(random, -reach, reach),
                surface_step: random.of(&[0, 0, 1, -1]),
                angle_step_turns: f64::from(signed(random, -8, 8)) / 16.0,
                ..BranchSpec::once(of)
            };
            node.push(branch);
            if random.once_in(6) {
                let mut tracks = Vec::new();
                list(&tree, &branch, (0, 0, 0.0), &mut tracks);
                let total = tracks.iter().map(|track| u64::from(track.used)).sum();
                let shortened = node.last_mut().unwrap();
                shortened.total_sectors = Some(1 + random.pick(0..total));
            }
        }
        tree.nodes.push(node);
    }
    tree
}

/// Returns a drive with a random tree, which usually lies within the drive.
fn random_drive(random: &mut Random) -> GeometrySpec {
    let mut tree = random_tree(random);
    let tracks: Vec<Listed> = list_root(&tree).into_iter().flatten().collect();
    let least = |of: fn(&Listed) -> i32| tracks.iter().map(of).min().unwrap();
    let most = |of: fn(&Listed) -> i32| tracks.iter().map(of).max().unwrap();
    let outside = if random.once_in(4) { -1 } else { 2 };
    let before = random.of(&[0, 0, 1, 3, 3, outside]);
    let outside = if random.once_in(4) { -1 } else { 2 };
    let above = random.of(&[0, 0, 1, 1, 2, outside]);
    let cylinder = before - least(|track| track.cylinder);
    let surface = above - least(|track| track.surface);
    for branch in tree.nodes.last_mut().unwrap() {
        branch.cylinder += cylinder;
        branch.surface += surface;
    }
    let short = if random.once_in(12) { -1 } else { 0 };
    let cylinders = most(|track| track.cylinder) + cylinder + 1 + random.of(&[0, short, 2]);
    let short = if random.once_in(12) { -1 } else { 0 };
    let surfaces = most(|track| track.surface) + surface + 1 + random.of(&[0, short, 2]);
    let total: u64 = tracks.iter().map(|track| u64::from(track.used)).sum();
    let mut position = 0;
    for _ in 0..random.of(&[0, 0, 1, 3]) {
        position += random.pick(0..total);
        let sectors = random.pick(1..6) as u32;
        if position + u64::from(sectors) < total {
            tree.slips.push(SlipSpec { position, sectors });
        }
        position += u64::from(sectors);
    }
    let bad: u64 = tree.slips.iter().map(|slip| u64::from(slip.sectors)).sum();
    GeometrySpec {
        surfaces: surfaces.max(1) as u16,
        cylinders: cylinders.max(1) as u32,
        capacity_sectors: random.once_in(4).then(|| 1 + random.pick(0..total - bad)),
        shared_places: random.once_in(6),
        tree: Some(tree),
        ..GeometrySpec::default()
    }
}

/// Returns why a drive cannot have these tracks, if it cannot.
fn problem(spec: &GeometrySpec, tracks: &[Listed]) -> Option<String> {
    let (cylinders, surfaces) = (spec.cylinders as i32, i32::from(spec.surfaces));
    let by_cylinder = || tracks.iter().map(|track| track.cylinder);
    let by_surface = || tracks.iter().map(|track| track.surface);
    for (what, value, end) in [
        ("cylinder", by_cylinder().min(), cylinders),
        ("cylinder", by_cylinder().max(), cylinders),
        ("surface", by_surface().min(), surfaces),
        ("surface", by_surface().max(), surfaces),
    ] {
        let value = value.unwrap();
        if !(0..end).contains(&value) {
            return Some(format!(
                "tree: {what} is {value}, but must be in 0..={}",
                end - 1
            ));
        }
    }
    let mut taken = BTreeSet::new();
    for track in tracks {
        let begin = track.pattern.first_slot;
        let end = begin + track.used;
        let (cylinder, surface) = (track.cylinder, track.surface);
        if (begin..end).any(|slot| !taken.insert((cylinder, surface, slot))) && !spec.shared_places
        {
            return Some(format!(
                "tree: slots {begin}..{end} of cylinder {cylinder}, surface {surface} are listed \
                 twice"
            ));
        }
    }
    None
}

/// Compares a geometry with the tracks of its tree.
fn compare(spec: &GeometrySpec, geometry: &Geometry, branches: &[Vec<Listed>], case: &str) {
    let tree = spec.tree.as_ref().unwrap();
    let bad: BTreeSet<u64> = tree
        .slips
        .iter()
        .flat_map(|slip| slip.position..slip.position + u64::from(slip.sectors))
        .collect();
    let total: u64 = branches.iter().flatten().map(|t| u64::from(t.used)).sum();
    let capacity = spec.capacity_sectors.unwrap_or(total - bad.len() as u64);
    assert_eq!(geometry.capacity().0, capacity, "{case}");
    assert_eq!(geometry.cylinders(), spec.cylinders, "{case}");
    assert_eq!(geometry.surfaces(), spec.surfaces, "{case}");
    let (mut position, mut lbn, mut count) = (0, 0, 0);
    let mut slots: BTreeMap<(i32, i32), u32> = BTreeMap::new();
    let mut holds: BTreeMap<(i32, i32, u32), Occupant> = BTreeMap::new();
    let mut zones = Vec::new();
    for tracks in branches {
        let first_lbn = Lbn(capacity.min(lbn));
        for track in tracks {
            let before = lbn;
            let (cylinder, surface) = (track.cylinder, track.surface);
            let track_slots = slots.entry((cylinder, surface)).or_default();
            *track_slots = track.pattern.slots.max(*track_slots);
            for slot in track.pattern.first_slot..track.pattern.first_slot + track.used {
                let occupant = if bad.contains(&position) {
                    Occupant::Bad
                } else if lbn < capacity {
                    let place = Place {
                        cylinder: Cylinder(cylinder as u32),
                        surface: Surface(surface as u16),
                        slot,
                    };
                    assert_eq!(geometry.locate(Lbn(lbn)), Some(place), "{case}, LBN {lbn}");
                    let found = geometry.track_of(Lbn(lbn)).unwrap();
                    assert_eq!(found.first_lbn.0, before, "{case}, LBN {lbn}");
                    assert_eq!(
                        (found.index, found.slots),
                        (count, track.pattern.slots),
                        "{case}"
                    );
                    let deviation = (found.origin.as_turns() - track.turns).rem_euclid(1.0);
                    assert!(deviation.min(1.0 - deviation) < 1e-9, "{case}: {found:?}");
                    Occupant::Lbn(Lbn(lbn))
                } else {
                    Occupant::Empty
                };
                lbn += u64::from(occupant != Occupant::Bad);
                position += 1;
                holds.insert((cylinder, surface, slot), occupant);
            }
            count += u64::from(before < lbn && before < capacity);
        }
        let range = |of: fn(&Listed) -> i32| {
            let values = || tracks.iter().map(of);
            (values().min().unwrap(), values().max().unwrap())
        };
        let (cylinders, surfaces) = (range(|track| track.cylinder), range(|track| track.surface));
        zones.push(ZoneInfo {
            first_lbn,
            end_lbn: Lbn(capacity.min(lbn)),
            first_cylinder: Cylinder(cylinders.0 as u32),
            last_cylinder: Cylinder(cylinders.1 as u32),
            surface: (surfaces.0 == surfaces.1).then_some(Surface(surfaces.0 as u16)),
            slots: tracks[0].pattern.slots,
        });
    }
    assert_eq!(geometry.track_count(), count, "{case}");
    // A shortened branch may be divided into several zones.
    let root = tree.nodes.last().unwrap();
    if root.iter().all(|branch| branch.total_sectors.is_none()) {
        assert_eq!(geometry.zones(), zones, "{case}");
    }
    let ends = geometry.zones().windows(2);
    assert!(
        ends.into_iter()
            .all(|pair| pair[0].end_lbn == pair[1].first_lbn),
        "{case}"
    );
    if spec.shared_places {
        return;
    }
    for cylinder in 0..spec.cylinders as i32 + 1 {
        for surface in 0..i32::from(spec.surfaces) + 1 {
            let track_slots = slots.get(&(cylinder, surface)).copied().unwrap_or(0);
            for slot in 0..track_slots + 2 {
                let expected = match holds.get(&(cylinder, surface, slot)) {
                    Some(&occupant) => occupant,
                    None if slot < track_slots => Occupant::Empty,
                    None => Occupant::NoSuchPlace,
                };
                let place = Place {
                    cylinder: Cylinder(cylinder as u32),
                    surface: Surface(surface as u16),
                    slot,
                };
                assert_eq!(geometry.lbn_at(place), expected, "{case}: {place}");
            }
        }
    }
}

/// Do random trees with steps in all directions, tracks in parts, shortened branches and slips
/// agree with their tracks listed one by one? Are those that leave the drive refused, and those
/// that list a sector twice unless places may be shared, and no others?
#[test]
fn random_trees_equal_a_list_or_are_refused() {
    let (mut built, mut refused) = (0, BTreeMap::<String, u32>::new());
    for seed in 0..testkit::repeats(6000) {
        let spec = random_drive(&mut Random(seed));
        let branches = list_root(spec.tree.as_ref().unwrap());
        let tracks: Vec<Listed> = branches.iter().flatten().copied().collect();
        let case = format!("seed {seed}");
        match (Geometry::build(&spec), problem(&spec, &tracks)) {
            (Ok(geometry), None) => {
                compare(&spec, &geometry, &branches, &case);
                built += 1;
            }
            (Err(error), Some(problem)) => {
                assert_eq!(error.to_string(), problem, "{case}");
                let kind = problem.split(' ').nth(1).unwrap();
                *refused.entry(kind.to_owned()).or_default() += 1;
            }
            (Ok(_), Some(problem)) => panic!("{case} was built, although: {problem}"),
            (Err(error), None) => panic!("{case}: {error}"),
        }
    }
    assert!(built > 300, "only {built} were built");
    let enough = |kind| refused.get(kind).is_some_and(|&count| count > 20);
    assert!(
        ["cylinder", "surface", "slots"].into_iter().all(enough),
        "{refused:?}"
    );
}

/// Is a tree accepted on each bound and refused beyond it?
#[test]
fn bounds_of_trees() {
    let track = TrackSpec {
        slots: 10,
        first_slot: 0,
        sectors: 10,
    };
    let with = |track: TrackSpec, branch: BranchSpec| {
        let spec = GeometrySpec {
            surfaces: 2,
            cylinders: 8,
            tree: Some(TreeSpec {
                tracks: vec![track],
                nodes: vec![vec![branch]],
                slips: Vec::new(),
            }),
            ..GeometrySpec::default()
        };
        let built = Geometry::build(&spec);
        built.map(|g| g.capacity().0).map_err(|e| e.to_string())
    };
    let once = BranchSpec::once(Child::Track(0));
    let refused = |built: Result<u64, String>, part: &str| {
        let error = built.expect_err("it must be refused");
        assert!(error.contains(part), "{error}");
    };
    let most = 1e6;
    for turns in [most, -most] {
        let angle = BranchSpec {
            angle_turns: turns,
            ..once
        };
        assert_eq!(with(track, angle), Ok(10));
        let step = BranchSpec {
            angle_step_turns: turns,
            ..once
        };
        assert_eq!(with(track, step), Ok(10));
    }
    for turns in [most + 0.5, -most - 0.5, 2.0 * most, f64::NAN, f64::INFINITY] {
        let message = "an angle is not finite, or exceeds a million turns";
        let angle = BranchSpec {
            angle_turns: turns,
            ..once
        };
        refused(with(track, angle), message);
        let step = BranchSpec {
            angle_step_turns: turns,
            ..once
        };
        refused(with(track, step), message);
    }
    let repeated = |repeat| BranchSpec { repeat, ..once };
    refused(
        with(track, repeated(0)),
        "node 0: repeat is 0, but must be in 1..=",
    );
    let shortened = |total| BranchSpec {
        repeat: 2,
        cylinder_step: 1,
        total_sectors: Some(total),
        ..once
    };
    refused(
        with(track, shortened(0)),
        "total_sectors is 0, but must be in 1..=20",
    );
    refused(
        with(track, shortened(21)),
        "total_sectors is 21, but must be in 1..=20",
    );
    for total in [1, 10, 11, 20] {
        assert_eq!(with(track, shortened(total)), Ok(total));
    }
    let pattern = |slots, first_slot, sectors| TrackSpec {
        slots,
        first_slot,
        sectors,
    };
    assert_eq!(with(pattern(1, 0, 1), once), Ok(1));
    assert_eq!(with(pattern(1_000_000, 0, 1), once), Ok(1));
    assert_eq!(with(pattern(10, 9, 1), once), Ok(1));
    refused(
        with(pattern(0, 0, 1), once),
        "slots is 0, but must be in 1..=1000000",
    );
    refused(with(pattern(1_000_001, 0, 1), once), "slots is 1000001");
    refused(
        with(pattern(10, 10, 1), once),
        "first_slot is 10, but must be in 0..=9",
    );
    refused(
        with(pattern(10, 9, 2), once),
        "sectors is 2, but must be in 1..=1",
    );
    refused(
        with(pattern(10, 0, 0), once),
        "sectors is 0, but must be in 1..=10",
    );
    // A branch that repeats once may have any step within the bounds of a drive.
    for (cylinders, surfaces) in [(4_194_304, 64), (-4_194_304, -64)] {
        let step = BranchSpec {
            cylinder_step: cylinders,
            surface_step: surfaces,
            ..once
        };
        assert_eq!(with(track, step), Ok(10));
        let far = |cylinder_step, surface_step| BranchSpec {
            cylinder_step,
            surface_step,
            ..once
        };
        let more = cylinders + cylinders.signum();
        refused(
            with(track, far(more, 0)),
            &format!("cylinder is {more}, but must be in"),
        );
        let more = surfaces + surfaces.signum();
        refused(
            with(track, far(0, more)),
            &format!("surface is {more}, but must be in"),
        );
    }
    let instances = |repeat| BranchSpec { repeat, ..once };
    refused(
        with(track, instances(1025)),
        "interleaved instances is 1025, but must be in 1..=1024",
    );
    refused(with(track, instances(1024)), "are listed twice");
    let empty = GeometrySpec {
        surfaces: 1,
        cylinders: 1,
        tree: Some(TreeSpec::default()),
        ..GeometrySpec::default()
    };
    let error = Geometry::build(&empty).unwrap_err().to_string();
    assert!(error.contains("there are no nodes"), "{error}");
}
