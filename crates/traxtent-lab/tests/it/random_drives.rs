//! The drives on which blind probes are tested.

use std::collections::BTreeMap;

use traxtent_lab::blind::{HardProperty, Layouts, RandomDrive, random_drive};
use traxtent_model::geometry::{Order, Sparing};
use traxtent_model::profile::Profile;
use traxtent_units::Lbn;

fn drives() -> impl Iterator<Item = RandomDrive> {
    (0..200).map(random_drive)
}

/// Do 200 seeds cover every order, sparing scheme and trap, each on several drives?
#[test]
fn every_trap_occurs() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut traps: BTreeMap<HardProperty, u32> = BTreeMap::new();
    for drive in drives() {
        let spec = &drive.profile.geometry;
        if spec.tree.is_none() {
            *counts.entry(format!("{:?}", spec.order)).or_default() += 1;
            *counts.entry(format!("{:?}", spec.sparing)).or_default() += 1;
        }
        for trap in drive.traps {
            *traps.entry(trap).or_default() += 1;
        }
    }
    for order in Order::ALL {
        assert!(
            counts.get(&format!("{order:?}")).is_some_and(|&n| n > 2),
            "{order:?}"
        );
    }
    for sparing in Sparing::ALL {
        assert!(
            counts.get(&format!("{sparing:?}")).is_some_and(|&n| n > 2),
            "{sparing:?}"
        );
    }
    for trap in HardProperty::ALL {
        assert!(traps.get(&trap).is_some_and(|&n| n > 2), "{trap:?}");
    }
}

/// Can every drive's profile be written and read back unchanged, and are its numbers of tracks,
/// surfaces and slots in the stated ranges?
#[test]
fn drives_are_profiles() {
    for drive in drives().take(60) {
        let read = Profile::from_toml(&drive.profile.to_toml()).unwrap();
        assert_eq!(read, *drive.profile, "seed {}", drive.seed);
        let geometry = &drive.geometry;
        assert!(
            (300..=4_000).contains(&geometry.track_count()),
            "seed {}",
            drive.seed
        );
        assert!(
            (1..=10).contains(&geometry.surfaces()),
            "seed {}",
            drive.seed
        );
        let slots = geometry.tracks().map(|track| track.slots);
        assert!(
            { slots }.all(|slots| (40..=1_200).contains(&slots)),
            "seed {}",
            drive.seed
        );
    }
}

/// Does a seed give the same drive on every machine and in every release?
#[test]
fn seeds_are_pinned() {
    // FNV-1a over the text of all drives.
    let hash_of = |drives: &mut dyn Iterator<Item = RandomDrive>| {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in drives.flat_map(|d| d.profile.to_toml().into_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash
    };
    let hashes = [
        hash_of(&mut drives()),
        hash_of(&mut (0..40).map(|seed| Layouts::Irregular.drive(seed))),
    ];
    assert_eq!(
        hashes,
        [0xdc5e_1056_2dca_ced3, 0xd2e5_1abb_2f5d_8688],
        "a change of the generator changes every drive: {hashes:#x?}"
    );
}

/// Do irregular drives have the features of DiskSim's layouts g2 and g4: tracks that begin after
/// slot 0, tracks in two parts, tracks of many sizes, slips?
#[test]
fn irregular_drives_are_irregular() {
    let [mut late, mut parts, mut slips, mut sizes] = [0; 4];
    for drive in (0..40).map(|seed| Layouts::Irregular.drive(seed)) {
        let spec = &drive.profile.geometry;
        let tree = spec.tree.as_ref().expect("it is listed");
        late += usize::from(tree.tracks.iter().any(|track| track.first_slot > 0));
        slips += usize::from(tree.slips.len() > 10);
        sizes += usize::from(tree.tracks.len() > 10);
        let homes: Vec<_> = drive
            .geometry
            .tracks()
            .map(|t| (t.cylinder, t.surface))
            .collect();
        parts += usize::from(homes.windows(2).any(|pair| pair[0] == pair[1]));
    }
    for (count, what) in [
        (late, "begin after slot 0"),
        (parts, "are in parts"),
        (slips, "have slips"),
        (sizes, "are of many sizes"),
    ] {
        assert!(count >= 10, "tracks of {count} drives {what}");
    }
}

/// Are undecidable cases avoided: a track of a single physical sector, which looks like a remapped
/// one; adjacent remapped sectors, which look like a track; a sector at a boundary that is remapped
/// to the track beyond it?
#[test]
fn ambiguous_layouts_are_not_generated() {
    for drive in drives() {
        let physical = drive.profile.sector.ratio();
        let least = drive.geometry.tracks().map(|track| track.sectors).min();
        assert!(least > Some(physical), "seed {}", drive.seed);
        let moved = &drive.profile.geometry.moved;
        let apart = moved.windows(2).all(|pair| {
            let end = pair[0].lbn + u64::from(pair[0].sectors);
            pair[1].lbn > end + u64::from(physical)
        });
        assert!(apart, "seed {}", drive.seed);
        for m in moved {
            let home = drive.geometry.track_of(Lbn(m.lbn)).unwrap();
            let beyond = [
                (m.lbn == home.first_lbn.0).then(|| home.index.wrapping_sub(1)),
                (m.lbn + u64::from(m.sectors) == home.end_lbn().0).then_some(home.index + 1),
            ];
            for track in beyond.into_iter().flatten() {
                let other = drive.geometry.track(track).unwrap();
                let there = (other.cylinder.0, other.surface.0);
                assert_ne!(there, (m.cylinder, m.surface), "seed {}", drive.seed);
            }
        }
    }
}
