//! Timing methods on simulated drives: the choice of the method, and its results.

use std::sync::Arc;

use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{Profile, builtin};
use traxtent_probe::ScsiTarget;
use traxtent_probe::{ProbeError, QualifiedMethod, Target, TargetError, TimingMethod, qualify};
use traxtent_scsi::{Compliance, Faults};
use traxtent_sim::{Noise, SimTarget, SimTransport};
use traxtent_units::{Lbn, Sectors};

fn drive(profile: Profile) -> SimTarget {
    let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
    SimTarget::new(Arc::new(profile), geometry)
}

fn named(name: &str) -> SimTarget {
    drive(builtin(name).unwrap())
}

/// Returns the relative error of the measured revolution.
fn relative_error(qualified: &QualifiedMethod, name: &str) -> f64 {
    (qualified.revolution.as_ms() / builtin(name).unwrap().revolution_ms() - 1.0).abs()
}

/// Is VERIFY chosen on every built-in drive with a spindle, and is the measured revolution accurate
/// to one part in ten thousand?
#[test]
fn every_drive_turns() {
    for name in traxtent_model::profile::builtin::names().filter(|name| *name != "instant") {
        let qualified = qualify(&mut named(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(qualified.method, TimingMethod::Verify, "{name}");
        assert!(
            relative_error(&qualified, name) < 1e-4,
            "{name}: {qualified:?}"
        );
        let again = qualified.evidence.same_again.unwrap();
        assert!((again - 1.0).abs() < 0.001, "{name}: {again}");
        assert_eq!(qualified.evidence.early, 0, "{name}");
    }
}

/// Returns ways in which a drive can treat VERIFY, force unit access and cache settings, each
/// with the best timing method that remains.
fn cache_behaviours() -> impl Iterator<Item = (Faults, TimingMethod)> {
    use Compliance::{Ignores, Obeys, Refuses};
    let cases = [
        (Obeys, Ignores, Refuses, TimingMethod::Verify),
        (Refuses, Obeys, Obeys, TimingMethod::ReadFua),
        (Ignores, Obeys, Obeys, TimingMethod::ReadFua),
        (Refuses, Obeys, Refuses, TimingMethod::ReadFua),
        // With caching switched off, force unit access makes no difference.
        (Refuses, Ignores, Obeys, TimingMethod::ReadFua),
        (Refuses, Refuses, Obeys, TimingMethod::Read),
        (Refuses, Refuses, Refuses, TimingMethod::ReadInterleaved),
        (Refuses, Ignores, Refuses, TimingMethod::ReadInterleaved),
        (Ignores, Ignores, Ignores, TimingMethod::ReadInterleaved),
    ];
    cases.into_iter().map(|(verify, fua, cache_control, left)| {
        let faults = Faults {
            verify,
            fua,
            cache_control,
            ..Faults::default()
        };
        (faults, left)
    })
}

/// If a drive serves requests from its cache, or refuses or ignores settings, is a method that
/// reaches its media chosen, with the right revolution, on a steady clock and on a noisy one?
#[test]
fn the_right_method_is_chosen_for_deceitful_drives() {
    for name in ["atlas10k2", "ibm18es", "wd10ears", "toshiba-x300"] {
        for (number, (faults, method)) in cache_behaviours().enumerate() {
            for noise in [None, Some(Noise::TYPICAL)] {
                let context = format!("{name}, {faults:?}, noise {}", noise.is_some());
                let mut target = named(name).with_faults(faults.clone());
                if let Some(noise) = noise {
                    target = target.with_noise(noise, number as u64);
                }
                let qualified = qualify(&mut target).unwrap_or_else(|e| panic!("{context}: {e}"));
                assert_eq!(qualified.method, method, "{context}: {qualified:?}");
                assert!(
                    relative_error(&qualified, name) < 1e-4,
                    "{context}: {qualified:?}"
                );
                assert_eq!(
                    qualified.rejected.is_empty(),
                    method == TimingMethod::Verify
                );
            }
        }
    }
}

/// Is read-ahead detected on a drive that keeps no delivered sectors, so that rereading the same
/// sector looks perfect?
#[test]
fn read_ahead_alone_is_noticed() {
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.drop_delivered = true;
    let mut target = drive(profile).with_faults(Faults {
        verify: Compliance::Refuses,
        fua: Compliance::Ignores,
        cache_control: Compliance::Ignores,
        ..Faults::default()
    });
    let qualified = qualify(&mut target).unwrap();
    assert_eq!(qualified.method, TimingMethod::ReadInterleaved);
    for rejected in &qualified.rejected[1..] {
        let early = "the sector after the one just read arrives early in 24 of 24 trials";
        assert_eq!(rejected.why, early, "{:?}", rejected.method);
    }
}

/// Does noise never lead to a method other than the best one, or to a wrong revolution?
#[test]
fn noise_does_not_mislead() {
    for seed in 0..testkit::repeats(60) {
        for name in ["atlas10k2", "cheetahx15", "hp-c2247"] {
            let mut target = named(name).with_noise(Noise::TYPICAL, seed);
            let qualified = qualify(&mut target).unwrap_or_else(|e| panic!("{name} {seed}: {e}"));
            assert_eq!(
                qualified.method,
                TimingMethod::Verify,
                "{name}, seed {seed}"
            );
            assert!(
                relative_error(&qualified, name) < 1e-4,
                "{name}, seed {seed}"
            );
        }
    }
}

/// Does a timed request reach the media once the method is known, even through a cache?
#[test]
fn timed_requests_turn_with_the_spindle() {
    for (faults, _) in cache_behaviours() {
        let mut target = named("atlas10k2").with_faults(faults);
        let mut qualified = qualify(&mut target).unwrap();
        let revolution = qualified.revolution.as_ms();
        let mut before = None;
        for _ in 0..20 {
            let timing = qualified.timed(&mut target, Lbn(4321), 1).unwrap();
            if let Some(before) = before.replace(timing.completed) {
                let turns = timing.completed.since(before).as_ms() / revolution;
                assert!(
                    turns > 0.99 && (turns - turns.round()).abs() < 0.02,
                    "{turns}"
                );
            }
        }
    }
}

/// Is a drive without mechanics refused, with a measured value and a reason for each method?
#[test]
fn drives_without_rotation_are_refused() {
    let error = qualify(&mut named("instant")).unwrap_err();
    let ProbeError::NotRotating(why) = &error else {
        panic!("{error}");
    };
    for method in TimingMethod::ALL {
        assert!(why.contains(&format!("{}: ", method.name())), "{why}");
    }
    assert!(why.contains("0.000 ms"), "{why}");
}

/// A device that completes everything when a timer of the host ticks, like the kernel's test disks.
#[derive(Debug)]
struct Ticking {
    drive: SimTarget,
    tick_ps: u64,
}

impl Target for Ticking {
    fn identity(&self) -> &traxtent_probe::Identity {
        self.drive.identity()
    }
    fn now(&self) -> traxtent_units::SimTime {
        self.drive.now()
    }
    fn wait_until(&mut self, at: traxtent_units::SimTime) {
        self.drive.wait_until(at);
    }
    fn request(
        &mut self,
        _: traxtent_units::request::Request,
    ) -> Result<traxtent_probe::Timing, TargetError> {
        let sent = self.now();
        let completed = traxtent_units::SimTime((sent.0 / self.tick_ps + 1) * self.tick_ps);
        self.wait_until(completed);
        Ok(traxtent_probe::Timing { sent, completed })
    }
}

/// Is a device that completes requests at the ticks of a 250 Hz timer, the rate of a disk of 15,000
/// RPM, distinguished from a rotating disk?
#[test]
fn a_timer_is_no_spindle() {
    let mut target = Ticking {
        drive: named("instant"),
        tick_ps: 4_000_000_000,
    };
    let error = qualify(&mut target).unwrap_err().to_string();
    assert!(
        error.contains("ms: this is a timer, not a rotating disk"),
        "{error}"
    );
}

/// Are a drive that vanishes, and one on which every second LBN is unreadable, reported as such?
#[test]
fn failing_drives_are_reported_as_such() {
    for after in [0, 5, 40, 90] {
        let mut target = named("atlas10k2").with_faults(Faults {
            unresponsive_after: Some(after),
            ..Faults::default()
        });
        let error = qualify(&mut target).unwrap_err();
        assert!(
            matches!(error, ProbeError::Target(TargetError::Gone(_))),
            "{error}"
        );
    }
    let mut target = named("atlas10k2");
    let Sectors(capacity) = target.identity().capacity;
    // Every second LBN: no pair of neighbours can be read, but many LBNs can.
    target = target.with_faults(Faults {
        unreadable: (0..capacity).step_by(2).map(Lbn).collect(),
        ..Faults::default()
    });
    let error = qualify(&mut target).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

/// Is the same method found through SCSI bytes, and are the cache settings restored when the target
/// is dropped?
#[test]
fn methods_are_found_through_scsi_bytes() {
    for (faults, method) in cache_behaviours() {
        let profile = Arc::new(builtin("atlas10k2").unwrap());
        let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
        let mut transport = SimTransport::new(profile, geometry).with_faults(faults.clone());
        let found = transport.server().drive().caching();
        let mut target = ScsiTarget::open(&mut transport).unwrap();
        let qualified = qualify(&mut target).unwrap_or_else(|e| panic!("{faults:?}: {e}"));
        assert_eq!(qualified.method, method, "{faults:?}: {qualified:?}");
        assert!(
            relative_error(&qualified, "atlas10k2") < 1e-4,
            "{faults:?}: {qualified:?}"
        );
        drop(target);
        assert_eq!(transport.server().drive().caching(), found, "{faults:?}");
    }
}
