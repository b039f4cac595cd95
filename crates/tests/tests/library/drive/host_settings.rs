//! Cache settings from a host, and sectors that a drive keeps in its buffer regardless of them.

use traxtent_model::drive::{Caching, Completion, Drive, ServedBy};
use traxtent_model::profile::{Profile, ReadAheadUntil, WriteBack};
use traxtent_units::SimTime;
use traxtent_units::request::Request;

use super::tiny::{drain, read, serve, tiny_with, write};

const ON: Caching = Caching {
    read: true,
    read_ahead: true,
    write_back: true,
};

/// Returns a drive with all the caching functions that a host may switch.
fn caching() -> Profile {
    tiny_with(|p| {
        p.cache.read_ahead.until = ReadAheadUntil::SegmentEnd;
        p.cache.read_ahead.max_sectors = 32;
        p.cache.write_back = WriteBack::Full;
    })
}

/// Serves requests after the given settings. Each request is submitted two and a half revolutions
/// after the one before it.
fn serve_under(profile: &Profile, settings: &[Caching], requests: &[Request]) -> Vec<Completion> {
    let mut drive = Drive::new(profile).unwrap();
    settings
        .iter()
        .for_each(|&caching| drive.set_caching(SimTime::ZERO, caching));
    let mut done = Vec::new();
    for (i, &request) in requests.iter().enumerate() {
        let now = SimTime::from_ms(25.0 * i as f64);
        drain(&mut drive, Some(now), &mut done);
        drive.submit(now, request).unwrap();
    }
    drain(&mut drive, None, &mut done);
    if let Some(&last) = settings.last() {
        assert_eq!(drive.caching(), last, "the drive reports another setting");
    }
    done
}

fn served(profile: &Profile, settings: &[Caching], requests: &[Request]) -> Vec<ServedBy> {
    let done = serve_under(profile, settings, requests);
    done.iter().map(|completion| completion.served).collect()
}

/// Does each setting switch its own function and no other?
#[test]
fn settings_take_effect() {
    use ServedBy::{Buffer, Media};
    // A read, the same again, the sectors after it, and a write.
    let requests = [read(20, 10), read(20, 10), read(30, 10), write(50, 5)];
    let setting_of = |read, read_ahead, write_back| Caching {
        read,
        read_ahead,
        write_back,
    };
    for (setting, expected) in [
        (ON, [Media, Buffer, Buffer, Buffer]),
        (setting_of(false, true, true), [Media, Media, Media, Buffer]),
        (
            setting_of(true, false, true),
            [Media, Buffer, Media, Buffer],
        ),
        (
            setting_of(true, true, false),
            [Media, Buffer, Buffer, Media],
        ),
        (Caching::OFF, [Media; 4]),
    ] {
        assert_eq!(
            served(&caching(), &[setting], &requests),
            expected,
            "{setting:?}"
        );
        // Only the last setting applies.
        assert_eq!(
            served(&caching(), &[Caching::OFF, setting], &requests),
            expected
        );
    }
}

/// Does a setting equal to the profile's change nothing?
#[test]
fn a_redundant_setting_changes_nothing() {
    let requests = [read(20, 10), read(5, 30), write(50, 5), read(50, 20)];
    assert_eq!(
        serve_under(&caching(), &[ON], &requests),
        serve_under(&caching(), &[], &requests)
    );
}

/// Does a drive that ignores its host's read settings still read ahead and serve hits, but write as
/// set?
#[test]
fn a_drive_may_ignore_read_settings() {
    let ignoring_host = |p: Profile| {
        let mut p = p;
        p.cache.read_ahead.ignores_host = true;
        p
    };
    let requests = [read(20, 10), read(30, 10), write(50, 5)];
    assert_eq!(
        served(&ignoring_host(caching()), &[Caching::OFF], &requests),
        [ServedBy::Media, ServedBy::Buffer, ServedBy::Media]
    );
}

/// For pairs of sectors read in reverse order, does the buffer serve the share that the profile
/// states, and the same share each time?
#[test]
fn passed_sectors_are_kept_as_often_as_stated() {
    const PAIRS: u64 = 4000;
    let share_kept = |share| {
        let profile = tiny_with(|p| {
            p.access.read_on_arrival = true;
            p.access.read_on_arrival_share = share;
        });
        // Pairs on successive tracks, so that no segment holds the sectors from an earlier pair.
        let requests: Vec<(f64, Request)> = (0..PAIRS)
            .flat_map(|i| {
                let (at, lbn) = (60.0 * i as f64, 100 * (i % 20) + 50);
                [(at, read(lbn + 1, 1)), (at + 30.0, read(lbn, 1))]
            })
            .collect();
        let done = serve(&profile, &requests);
        let kept = done
            .chunks(2)
            .filter(|pair| pair[1].served == ServedBy::Buffer);
        kept.count() as f64 / PAIRS as f64
    };
    let all = share_kept(1.0);
    assert_eq!(share_kept(0.0), 0.0);
    // Four standard deviations of a binomial share.
    let half = share_kept(0.5);
    assert!(
        (half - 0.5 * all).abs() < 4.0 * (0.25 / PAIRS as f64).sqrt(),
        "{half} of {all}"
    );
    assert_eq!(half, share_kept(0.5), "a second run keeps another share");
    assert!(all > 0.95, "{all}");
}
