//! The whole path through SCSI bytes, on simulated drives: from a probe's request through command
//! bytes to the drive and back.

use std::sync::Arc;

use traxtent_model::geometry::{Geometry, MovedSpec, Place, Sparing};
use traxtent_model::profile::{Profile, builtin};
use traxtent_probe::{CachingOff, ScsiTarget};
use traxtent_probe::{Defects, Identity, Target, TargetError, Timing};
use traxtent_scsi::mode::{CACHING_PAGE, CachingPage};
use traxtent_scsi::{
    AdditionalSense, DataTransfer, PageValues, Reply, Sense, SenseFormat, SenseKey, Status,
    Transport, TransportError,
};
use traxtent_scsi::{Compliance, Faults};
use traxtent_sim::{Noise, SimTarget, SimTransport};
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Cylinder, Lbn, SimTime, Span, Surface};

fn parts(profile: Profile) -> (Arc<Profile>, Arc<Geometry>) {
    let geometry = Geometry::build(&profile.geometry).unwrap();
    (Arc::new(profile), Arc::new(geometry))
}

fn by_bytes(profile: Profile) -> ScsiTarget<SimTransport> {
    let (profile, geometry) = parts(profile);
    ScsiTarget::open(SimTransport::new(profile, geometry)).unwrap()
}

fn named(name: &str) -> Profile {
    builtin(name).unwrap()
}

/// Returns a built-in drive with slipped, remapped and spare sectors.
fn damaged() -> Profile {
    let mut profile = named("atlas10k2");
    let spec = &mut profile.geometry;
    spec.sparing = Sparing::SectorsPerTrack;
    for zone in &mut spec.zones {
        zone.spares = 3;
        zone.slips = vec![0, 1, 2, 700, 5_000, 5_001];
    }
    spec.capacity_sectors = None;
    let slots = Geometry::build(spec).unwrap().track(0).unwrap().slots;
    spec.moved = (0..3)
        .map(|k| MovedSpec {
            lbn: 1_000 + 2_000 * k,
            sectors: 1,
            cylinder: 1 + k as u32,
            surface: 0,
            slot: slots - 1,
            slots: None,
        })
        .collect();
    profile
}

/// Returns a request of a random kind at a random place. Some extend beyond the drive's end.
fn random_request(rng: &mut Rng, capacity: u64) -> Request {
    let lbn = Lbn((rng.fraction() * 1.001 * capacity as f64) as u64);
    let op = match (rng.fraction() * 20.0) as u32 {
        0..=7 => Op::Read,
        8..=11 => Op::Write,
        12..=18 => Op::Verify,
        _ => return Request::flush(),
    };
    Request {
        lbn,
        sectors: 1 + (rng.fraction() * 600.0) as u32,
        op,
        fua: op != Op::Verify && rng.chance(0.3),
    }
}

/// Returns the outcome without the text of its error.
fn kind(outcome: &Result<Timing, TargetError>) -> Result<Timing, TargetError> {
    match outcome {
        Err(TargetError::Refused(_)) => Err(TargetError::Refused(String::new())),
        Err(TargetError::Unsupported(_)) => Err(TargetError::Unsupported("")),
        other => other.clone(),
    }
}

/// Does a drive behave the same through SCSI bytes as directly: its identity, the time of each of
/// thousands of requests to the picosecond, translations in both directions with their times,
/// defect lists, failures, even with noise and on drives with large physical sectors?
#[test]
fn bytes_change_nothing() {
    for (i, profile) in [
        named("atlas10k2"),
        named("wd10ears-jumper"),
        named("generic-20tb"),
        named("instant"),
        damaged(),
    ]
    .into_iter()
    .enumerate()
    {
        let name = profile.name.clone();
        let (profile, geometry) = parts(profile);
        let faults = Faults {
            unreadable: (0..1000).map(|k| Lbn(k * 40_009)).collect(),
            ..Faults::default()
        };
        let mut direct = SimTarget::new(profile.clone(), geometry.clone())
            .with_faults(faults.clone())
            .with_noise(Noise::TYPICAL, 7);
        let transport = SimTransport::new(profile.clone(), geometry.clone())
            .with_faults(faults)
            .with_noise(Noise::TYPICAL, 7);
        let mut bytes = ScsiTarget::open(transport).unwrap();
        bytes.allow_writes();
        assert_eq!(bytes.identity(), direct.identity(), "{name}");

        let capacity = geometry.capacity().0;
        let mut rng = Rng::new(i as u64);
        let mut good = 0;
        for _ in 0..testkit::repeats(3_000) {
            if rng.chance(0.2) {
                let lbn = Lbn((rng.fraction() * capacity as f64) as u64);
                let place = direct.translate(lbn).unwrap();
                assert_eq!(bytes.translate(lbn), Ok(place), "{name}: LBN {lbn}");
                // The places include empty ones and ones that do not exist.
                let place = Place {
                    slot: place.slot + (rng.fraction() * 1_000.0) as u32,
                    ..place
                };
                let lbn = direct.translate_back(place).unwrap();
                assert_eq!(bytes.translate_back(place), Ok(lbn), "{name}: {place}");
            } else {
                let request = random_request(&mut rng, capacity);
                let (one, other) = (direct.request(request), bytes.request(request));
                good += u32::from(one.is_ok());
                assert_eq!(kind(&one), kind(&other), "{name}: {request:?}");
            }
            assert_eq!(bytes.now(), direct.now(), "{name}");
        }
        assert!(good > 1_000, "{name}: only {good} requests succeeded");
        let defects = direct.defects().unwrap();
        assert_eq!(bytes.defects().unwrap(), defects, "{name}");
        assert_eq!(bytes.now(), direct.now(), "{name}");
        let damaged = i == 4;
        assert_eq!(damaged, defects != Defects::default(), "{name}");
    }
}

/// Does a drive identify itself as in its profile, through INQUIRY, its pages and READ CAPACITY?
#[test]
fn identity_comes_from_inquiry() {
    let mut profile = named("wd10ears");
    profile.scsi.vendor = "WDC".into();
    profile.scsi.product = "WD10EARS-00Y5B1".into();
    profile.scsi.revision = "80.0".into();
    profile.scsi.serial = "WD-WCAV5".into();
    let sectors = Geometry::build(&profile.geometry).unwrap().capacity();
    let target = by_bytes(profile);
    let expected = Identity {
        vendor: "WDC".into(),
        product: "WD10EARS-00Y5B1".into(),
        serial: "WD-WCAV5".into(),
        capacity: sectors,
        logical_bytes: 512,
        physical_bytes: 4096,
    };
    assert_eq!(*target.identity(), expected);
    assert_eq!(target.inquiry().revision, "80.0");
}

/// Returns the time of a read of an LBN that has just been read.
fn reread_time<T: Target>(target: &mut T) -> Span {
    let read = Request::read(Lbn(12_345), 1);
    target.request(read).unwrap();
    target.request(read).unwrap().response()
}

fn caching(target: &mut ScsiTarget<impl Transport>) -> Vec<u8> {
    target.mode_page(CACHING_PAGE, PageValues::Current).unwrap()
}

/// While caching is suspended, does rereading the same LBN take exactly one revolution? Before and
/// afterwards, does it come from the buffer, with the mode page unchanged?
#[test]
fn suspended_caching_shows_the_spindle() {
    for name in ["atlas10k2", "cheetah15k4", "cheetahx15", "wd10ears"] {
        let profile = named(name);
        let revolution = Span::from_ms(profile.revolution_ms());
        let mut target = by_bytes(profile);
        let found = caching(&mut target);
        assert!(reread_time(&mut target) < Span(revolution.0 / 2), "{name}");
        let off = target.suspend_caching().unwrap();
        let all = CachingOff {
            reads: true,
            read_ahead: true,
            prefetch: true,
        };
        assert_eq!(off, all, "{name}");
        let page = CachingPage::decode(&caching(&mut target));
        assert!(page.read_cache_disabled && page.read_ahead_disabled && page.prefetch_up_to == 0);
        assert_eq!(reread_time(&mut target), revolution, "{name}");
        // The values that survive a loss of power have not been changed.
        let saved = target.mode_page(CACHING_PAGE, PageValues::Saved).unwrap();
        assert_eq!(saved, found, "{name}");
        target.restore_caching().unwrap();
        assert_eq!(caching(&mut target), found, "{name}");
        assert!(reread_time(&mut target) < Span(revolution.0 / 2), "{name}");
        // Probes switch caching like this.
        target.switch_caching(false).unwrap();
        target.switch_caching(false).unwrap();
        assert_eq!(reread_time(&mut target), revolution, "{name}");
        target.switch_caching(true).unwrap();
        assert_eq!(caching(&mut target), found, "{name}");
    }
}

/// Is the caching page restored when the target is dropped, even after failed requests, and when a
/// panic unwinds?
#[test]
fn dropping_restores_caching() {
    let (profile, geometry) = parts(named("atlas10k2"));
    let faults = Faults {
        unreadable: vec![Lbn(0)],
        ..Faults::default()
    };
    let mut transport = SimTransport::new(profile, geometry).with_faults(faults);
    let found = caching(&mut ScsiTarget::open(&mut transport).unwrap());
    {
        let mut target = ScsiTarget::open(&mut transport).unwrap();
        target.suspend_caching().unwrap();
        assert_ne!(caching(&mut target), found);
        let read = target.request(Request::read(Lbn(0), 8));
        let unreadable = TargetError::Unreadable {
            lbn: Lbn(0),
            sectors: 8,
        };
        assert_eq!(read, Err(unreadable));
    }
    assert_eq!(
        caching(&mut ScsiTarget::open(&mut transport).unwrap()),
        found
    );
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut target = ScsiTarget::open(&mut transport).unwrap();
        target.suspend_caching().unwrap();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(unwound.is_err());
    assert_eq!(
        caching(&mut ScsiTarget::open(&mut transport).unwrap()),
        found
    );
}

/// Are medium errors of reads and verifications reported as unreadable sectors, and those of writes
/// as refusals with the drive's reason?
#[test]
fn medium_errors_of_reads_and_writes() {
    let (profile, geometry) = parts(named("atlas10k2"));
    let faults = Faults {
        unreadable: vec![Lbn(3)],
        ..Faults::default()
    };
    let transport =
        SimTransport::new(Arc::clone(&profile), Arc::clone(&geometry)).with_faults(faults.clone());
    let mut by_bytes = ScsiTarget::open(transport).unwrap();
    by_bytes.allow_writes();
    let mut direct = SimTarget::new(profile, geometry).with_faults(faults);
    let targets: [&mut dyn Target; 2] = [&mut by_bytes, &mut direct];
    for target in targets {
        let read = Request::read(Lbn(0), 8);
        let verify = Request {
            op: Op::Verify,
            ..read
        };
        for request in [read, verify] {
            let error = target.request(request).unwrap_err();
            assert_eq!(error.to_string(), "8 sectors from LBN 0 cannot be read");
        }
        let before = target.now();
        let error = target.request(Request::write(Lbn(0), 8)).unwrap_err();
        assert!(matches!(error, TargetError::Refused(_)), "{error}");
        assert!(error.to_string().contains("medium error"), "{error}");
        assert!(target.now() > before, "the error took no time");
    }
}

/// The deviations of a drive from the standard or from a good drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Quirks {
    /// The operation codes of commands that the drive does not support.
    unknown: &'static [u8],
    /// The drive reports a reset before each command that it accepts.
    attentions: bool,
    /// The drive's lists begin with the first descriptor, whatever index is requested.
    ignores_index: bool,
    /// No byte of the mode page can be changed.
    fixed_page: bool,
}

/// A transport to a drive with deviations.
struct Quirky {
    inner: SimTransport,
    quirks: Quirks,
    /// With [`Quirks::attentions`], whether the last known command was refused by a unit attention.
    attention: bool,
    /// The operation codes of all commands, in order.
    sent: Vec<u8>,
}

impl Transport for Quirky {
    fn now(&self) -> SimTime {
        self.inner.now()
    }
    fn wait_until(&mut self, at: SimTime) {
        self.inner.wait_until(at);
    }
    fn execute(&mut self, command: &[u8], data: DataTransfer<'_>) -> Result<Reply, TransportError> {
        self.sent.push(command[0]);
        let refuse = |sense: Sense, now| {
            Ok(Reply {
                status: Status::CheckCondition,
                received: 0,
                sense: sense.encode(SenseFormat::Fixed),
                timing: Timing {
                    sent: now,
                    completed: now,
                },
            })
        };
        if self.quirks.unknown.contains(&command[0]) {
            let code = AdditionalSense::INVALID_OPERATION;
            return refuse(Sense::new(SenseKey::IllegalRequest, code), self.now());
        }
        self.attention = !self.attention;
        if self.quirks.attentions && self.attention {
            let code = AdditionalSense::new(0x29, 0x00);
            return refuse(Sense::new(SenseKey::UnitAttention, code), self.now());
        }
        let mut command = command.to_vec();
        if self.quirks.ignores_index && command[0] == 0xb7 {
            command[2..6].fill(0);
        }
        let changeable = command[0] == 0x5a && command[2] == 0x48;
        match data {
            DataTransfer::In(room) => {
                let reply = self.inner.execute(&command, DataTransfer::In(&mut *room))?;
                if changeable && self.quirks.fixed_page {
                    room[10..reply.received].fill(0);
                }
                Ok(reply)
            }
            other => self.inner.execute(&command, other),
        }
    }
}

fn quirky(profile: Profile, quirks: Quirks) -> Quirky {
    let (profile, geometry) = parts(profile);
    Quirky {
        inner: SimTransport::new(profile, geometry),
        quirks,
        attention: false,
        sent: Vec::new(),
    }
}

/// Does a drive of an earlier standard work without the long commands?
#[test]
fn old_drives_work() {
    let quirks = Quirks {
        unknown: &[0x9e, 0x88, 0x8a, 0x8f, 0x5a, 0x55, 0xb7],
        ..Quirks::default()
    };
    let mut transport = quirky(damaged(), quirks);
    let mut target = ScsiTarget::open(&mut transport).unwrap();
    let mut modern = by_bytes(damaged());
    assert_eq!(target.identity(), modern.identity());
    assert_eq!(target.defects(), modern.defects());
    let found = caching(&mut target);
    target.suspend_caching().unwrap();
    let revolution = Span::from_ms(damaged().revolution_ms());
    assert_eq!(reread_time(&mut target), revolution);
    target.restore_caching().unwrap();
    assert_eq!(caching(&mut target), found);
    drop(target);
    assert!(transport.sent.contains(&0x15) && transport.sent.contains(&0x37));
}

/// Is a command repeated if the drive reports a unit attention?
#[test]
fn commands_are_repeated_after_unit_attentions() {
    let quirks = Quirks {
        attentions: true,
        ..Quirks::default()
    };
    let mut target = ScsiTarget::open(quirky(named("atlas10k2"), quirks)).unwrap();
    target.suspend_caching().unwrap();
    target.request(Request::read(Lbn(5), 5)).unwrap();
    target.translate(Lbn(5)).unwrap();
    target.restore_caching().unwrap();
}

/// Is it reported that caching cannot be switched if the drive allows no change, refuses it or has
/// no mode pages? Does a drive that ignores the setting report success?
#[test]
fn caching_that_stays_on() {
    let fixed = Quirks {
        fixed_page: true,
        ..Quirks::default()
    };
    let mut target = ScsiTarget::open(quirky(named("atlas10k2"), fixed)).unwrap();
    let nothing = CachingOff {
        reads: false,
        read_ahead: false,
        prefetch: false,
    };
    assert_eq!(target.suspend_caching(), Ok(nothing));
    assert!(!target.transport_mut().sent.contains(&0x55));
    let outcome = target.switch_caching(false);
    assert!(
        matches!(outcome, Err(TargetError::Unsupported(_))),
        "{outcome:?}"
    );

    let none = Quirks {
        unknown: &[0x1a, 0x5a],
        ..Quirks::default()
    };
    let mut target = ScsiTarget::open(quirky(named("atlas10k2"), none)).unwrap();
    let outcome = target.suspend_caching();
    assert!(
        matches!(outcome, Err(TargetError::Unsupported(_))),
        "{outcome:?}"
    );

    let (profile, geometry) = parts(named("atlas10k2"));
    let faults = |cache_control| Faults {
        cache_control,
        ..Faults::default()
    };
    let refuses = SimTransport::new(profile.clone(), geometry.clone())
        .with_faults(faults(Compliance::Refuses));
    let mut target = ScsiTarget::open(refuses).unwrap();
    assert!(target.suspend_caching().is_err());
    // A drive that accepts the setting and ignores it reports success.
    let ignores = SimTransport::new(profile, geometry).with_faults(faults(Compliance::Ignores));
    let mut target = ScsiTarget::open(ignores).unwrap();
    assert!(target.suspend_caching().unwrap().reads);
    assert!(reread_time(&mut target) < Span::from_ms(3.0));
}

/// Are long defect lists read in parts, and is the list of a drive that always begins with the
/// first descriptor rejected?
#[test]
fn long_defect_lists() {
    let mut profile = named("atlas10k2");
    profile.geometry.capacity_sectors = None;
    profile.geometry.zones[0].slips = (0..20_000).map(|k| k * 3).collect();
    let (shared, geometry) = parts(profile.clone());
    let mut direct = SimTarget::new(shared, geometry);
    let mut target = ScsiTarget::open(quirky(profile.clone(), Quirks::default())).unwrap();
    let defects = target.defects().unwrap();
    assert_eq!(defects.primary.len(), 20_000);
    assert_eq!(direct.defects(), Ok(defects));
    let stubborn = Quirks {
        ignores_index: true,
        ..Quirks::default()
    };
    let outcome = ScsiTarget::open(quirky(profile, stubborn))
        .unwrap()
        .defects();
    assert!(
        matches!(outcome, Err(TargetError::Refused(_))),
        "{outcome:?}"
    );
}

/// Is a drive that does not translate recognized, whichever request comes first, and is a drive
/// that disappears reported as gone?
#[test]
fn drives_that_do_not_translate() {
    let mut profile = named("atlas10k2");
    profile.scsi.translates = false;
    profile.scsi.defect_lists = false;
    let place = Place {
        cylinder: Cylinder(1),
        surface: Surface(0),
        slot: 0,
    };
    let unsupported = |error: TargetError| matches!(error, TargetError::Unsupported(_));
    let mut target = by_bytes(profile.clone());
    assert!(unsupported(target.translate_back(place).unwrap_err()));
    assert!(unsupported(target.translate(Lbn(0)).unwrap_err()));
    assert!(unsupported(target.defects().unwrap_err()));
    let deaf = Quirks {
        unknown: &[0x1c],
        ..Quirks::default()
    };
    let mut target = ScsiTarget::open(quirky(named("atlas10k2"), deaf)).unwrap();
    assert!(unsupported(target.translate(Lbn(0)).unwrap_err()));

    let (profile, geometry) = parts(named("atlas10k2"));
    let faults = Faults {
        unresponsive_after: Some(2),
        ..Faults::default()
    };
    let transport = SimTransport::new(profile, geometry).with_faults(faults);
    let mut target = ScsiTarget::open(transport).unwrap();
    target.suspend_caching().unwrap();
    target.request(Request::read(Lbn(0), 1)).unwrap();
    target.translate(Lbn(0)).unwrap();
    let gone = |error: TargetError| matches!(error, TargetError::Gone(_));
    assert!(gone(target.request(Request::read(Lbn(0), 1)).unwrap_err()));
    assert!(gone(target.translate(Lbn(0)).unwrap_err()));
    assert!(gone(target.restore_caching().unwrap_err()));
}

/// Does a target write only if writes have been allowed?
#[test]
fn writes_need_permission() {
    let mut target = by_bytes(named("atlas10k2"));
    let write = Request::write(Lbn(0), 1);
    let before = target.now();
    assert!(matches!(
        target.request(write),
        Err(TargetError::Refused(_))
    ));
    assert_eq!(target.now(), before);
    target.allow_writes();
    target.request(write).unwrap();
}
