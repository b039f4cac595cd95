//! A volume's verification of its members' track maps, on simulated drives.

use std::sync::Arc;

use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::builtin;
use traxtent_server::volume::{MapVerdict, verify_on};
use traxtent_sim::{Noise, SimTarget};

fn drive(name: &str) -> (SimTarget, TrackMap) {
    let profile = builtin(name).unwrap();
    let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
    let map = TrackMap::from_sizes(geometry.track_sizes());
    (SimTarget::new(Arc::new(profile), geometry), map)
}

fn verify(target: &mut SimTarget, map: &TrackMap) -> MapVerdict {
    let mut last = 0;
    verify_on(target, map, 1, &mut |done, all| {
        assert!(last < done && done <= all);
        last = done;
    })
}

/// Is a drive's own map confirmed by translation and by timing, and is the map of another or a
/// larger drive rejected?
#[test]
fn maps_are_confirmed_or_rejected() {
    let (target, own) = drive("atlas10k2");
    let (_, other) = drive("atlas10k");
    let (_, larger) = drive("cheetah15k7");
    let mut by_translation = target.clone();
    let mut by_timing = target.clone().without_translation();
    let mut noisy = target.without_translation().with_noise(Noise::TYPICAL, 1);
    for (target, by) in [
        (&mut by_translation, "translation"),
        (&mut by_timing, "timing"),
        (&mut noisy, "timing"),
    ] {
        match verify(target, &own) {
            MapVerdict::Holds { tested, by: how } => {
                assert!(tested >= 60 && how == by, "{tested}, {how}")
            }
            verdict => panic!("{by}: {verdict:?}"),
        }
        assert!(
            matches!(verify(target, &other), MapVerdict::Moved(_)),
            "{by}"
        );
        assert!(
            matches!(verify(target, &larger), MapVerdict::Moved(_)),
            "{by}"
        );
    }
}

/// Is there no verdict on a drive that does not rotate?
#[test]
fn no_verdict_without_rotation() {
    let (target, map) = drive("instant");
    let verdict = verify(&mut target.without_translation(), &map);
    assert_eq!(
        verdict,
        MapVerdict::Unknown("its timing is not that of a rotating disk".to_owned())
    );
}
