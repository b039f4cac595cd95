//! Drives as data: profiles, their parameters and their geometry.

use std::sync::LazyLock;

use traxtent_model::drive::Drive;
use traxtent_model::geometry::{Geometry, GeometrySpec, Occupant, Replacement};
use traxtent_model::profile::{Profile, builtin};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};

use super::text;

/// A profile as TOML: it is printed and parsed again, and the drive serves requests.
pub(crate) fn profile(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match Profile::from_toml(text) {
        Ok(profile) => check_profile(&profile),
        Err(error) => drop(error.to_string()),
    }
}

/// Lines of `KEY=VALUE`, each of which changes a parameter of a built-in drive.
pub(crate) fn override_figure(input: &[u8]) {
    /// The largest number of lines of an input that are used.
    const LINES_MAX: usize = 4;
    static DRIVE: LazyLock<Profile> =
        LazyLock::new(|| builtin("hp-c3323a").expect("the drive is built in"));

    let Some(text) = text(input) else { return };
    let mut profile = None;
    for (key, value) in text
        .lines()
        .take(LINES_MAX)
        .filter_map(|line| line.split_once('='))
    {
        match profile.as_ref().unwrap_or(&*DRIVE).with_value(key, value) {
            Ok(changed) => profile = Some(changed),
            Err(error) => drop(error.to_string()),
        }
    }
    if let Some(profile) = profile {
        check_profile(&profile);
    }
}

/// A layout as TOML: its tracks are consecutive, and LBNs are translated to their places and back.
pub(crate) fn geometry(input: &[u8]) {
    let Some(spec) = text(input).and_then(|text| toml::from_str::<GeometrySpec>(text).ok()) else {
        return;
    };
    match Geometry::build(&spec) {
        Ok(geometry) => check_round_trip(&geometry, spec.shared_places),
        Err(error) => drop(error.to_string()),
    }
}

/// Asserts the properties that every accepted profile must have.
pub(super) fn check_profile(profile: &Profile) {
    let again = Profile::from_toml(&profile.to_toml());
    assert_eq!(again.as_ref(), Ok(profile), "it is read back differently");
    let commented = Profile::from_toml(&profile.to_commented_toml("a heading"));
    assert_eq!(
        commented.as_ref(),
        Ok(profile),
        "with comments, it is read back differently"
    );
    let mut drive = Drive::new(profile).expect("a profile is checked as it is read");
    let geometry = drive.geometry().clone();
    check_round_trip(&geometry, profile.geometry.shared_places);
    check_service(&mut drive);
}

/// Asserts that a layout is consistent, at its edges and at some places in between.
pub(super) fn check_round_trip(geometry: &Geometry, shared_places: bool) {
    /// The largest number of tracks, of zones and of defects that are checked.
    const CHECKED_MAX: usize = 50;

    let capacity = geometry.capacity().0;
    let (mut end, mut index) = (Lbn(0), 0);
    for track in geometry.tracks().take(CHECKED_MAX) {
        assert_eq!((track.first_lbn, track.index), (end, index));
        (end, index) = (track.end_lbn(), index + 1);
    }
    let zones = geometry.zones().iter().take(CHECKED_MAX);
    let edges = zones.flat_map(|zone| [zone.first_lbn.0, zone.end_lbn.0.saturating_sub(1)]);
    let between = [0, 1, capacity / 3, capacity / 2, capacity - 1];
    for lbn in edges.chain(between).filter(|&lbn| lbn < capacity).map(Lbn) {
        let track = geometry.track_of(lbn).expect("the LBN is on the drive");
        assert!(
            track.first_lbn <= lbn && lbn < track.end_lbn(),
            "{lbn}: {track:?}"
        );
        assert_eq!(geometry.track(track.index), Some(track));
        let piece = geometry.piece(lbn, 1000);
        assert!(
            piece.sectors >= 1 && piece.first_slot + piece.slots <= piece.track.slots,
            "{piece:?}"
        );
        let place = geometry.locate(lbn).expect("the LBN is on the drive");
        assert!(place.cylinder.0 < geometry.cylinders(), "{lbn}: {place}");
        assert!(place.surface.0 < geometry.surfaces(), "{lbn}: {place}");
        if !shared_places {
            assert_eq!(geometry.lbn_at(place), Occupant::Lbn(lbn), "{place}");
        }
    }
    assert_eq!(geometry.locate(Lbn(capacity)), None);
    for defect in geometry
        .defects()
        .take(CHECKED_MAX)
        .filter(|_| !shared_places)
    {
        match defect.remedy {
            Replacement::Slipped => assert_eq!(geometry.lbn_at(defect.place), Occupant::Bad),
            Replacement::Remapped(lbn, place) => {
                assert_eq!(geometry.lbn_at(place), Occupant::Lbn(lbn));
            }
        }
    }
}

/// Asserts that the drive serves twenty requests, the first ten of them submitted at once. Some are
/// at the ends of the drive.
fn check_service(drive: &mut Drive) {
    const REQUESTS: u64 = 20;
    const AT_ONCE: u64 = 10;
    /// More steps than ten queued requests of these sizes take.
    const STEPS_MAX: usize = 1000;

    let mut now = SimTime::ZERO;
    let mut before = Request::default();
    for number in 0..REQUESTS {
        before = request(number, drive.geometry().capacity().0, before);
        drive
            .submit(now, before)
            .expect("the request is within the drive");
        if number + 1 < AT_ONCE {
            continue;
        }
        let mut steps = 0;
        while let Some(wakeup) = drive.next_wakeup() {
            assert!(wakeup >= now, "the wake-up at {wakeup} is before {now}");
            now = wakeup;
            while let Some(completion) = drive.poll(now) {
                assert_eq!(completion.breakdown.total(), completion.response());
            }
            steps += 1;
            assert!(steps < STEPS_MAX, "the drive is never done");
        }
        now += Span::from_ms(0.5);
    }
}

/// Returns request `number` of the sequence. Kind, size and place vary with different periods.
fn request(number: u64, capacity: u64, before: Request) -> Request {
    let sectors = [1, 8, 200][number as usize % 3].min(capacity);
    let room = capacity - sectors;
    let lbn = match number % 5 {
        0 => 0,
        1 => room,
        2 => room / 2,
        3 => room / 7 * 5,
        // Directly after the previous request.
        _ => (before.lbn.0 + u64::from(before.sectors)).min(room),
    };
    let op = match number {
        6 => return Request::flush(),
        17 => Op::Verify,
        _ if number % 4 < 2 => Op::Read,
        _ => Op::Write,
    };
    Request {
        op,
        lbn: Lbn(lbn),
        sectors: sectors as u32,
        fua: number == 11,
    }
}
