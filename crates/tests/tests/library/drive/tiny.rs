//! A drive whose times can be computed by hand.
//!
//! A revolution takes 10 ms, in which 100 sectors of 0.1 ms pass. There are two surfaces and ten
//! cylinders: LBN 200 c + 100 s is the first of cylinder c, surface s. Slot 0 of surface 0 of
//! cylinder c begins 3 c ms (modulo 10) into each revolution, that of surface 1 another 1 ms later.
//! A seek over d cylinders takes 0.5 d + 0.5 ms, a head switch 0.5 ms. A sector crosses the bus in
//! 0.01 ms. Nothing else takes time.

use traxtent_model::drive::{Completion, Drive, Tag};
use traxtent_model::geometry::{GeometrySpec, PerSurface, Skew, ZoneSpec};
use traxtent_model::profile::{
    AccessSpec, BusHold, BusSpec, CacheSpec, Delivery, FORMAT, MechanicsSpec, OriginKind,
    OverheadSpec, Preseek, Profile, Provenance, QueueSpec, ReadAhead, Scheduler, ScsiSpec,
    SectorSpec, SeekSpec, WriteBack,
};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};

pub(crate) fn tiny() -> Profile {
    Profile {
        format: FORMAT,
        name: "tiny".into(),
        model: "for tests".into(),
        year: None,
        notes: String::new(),
        scsi: ScsiSpec::default(),
        host: None,
        sector: SectorSpec::default(),
        mechanics: Some(MechanicsSpec {
            rpm: 6_000.0,
            head_switch_ms: 0.5,
            write_settle_ms: 0.0,
            seek: SeekSpec::Table {
                read: vec![(1, 1.0), (9, 5.0)],
                write: None,
            },
        }),
        overheads: OverheadSpec::default(),
        access: AccessSpec::default(),
        queue: QueueSpec {
            depth: 64,
            scheduler: Scheduler::Fcfs,
            preseek: Preseek::None,
            choice_ms: 0.0,
        },
        cache: CacheSpec {
            enabled: true,
            segments: 4,
            write_segments: 2,
            segment_sectors: 64,
            dedicated_write_segment: false,
            write_back: WriteBack::None,
            combine_writes: true,
            read_hits_on_written: true,
            writes_update: false,
            hits_while_busy: false,
            writes_while_busy: false,
            almost_hits: false,
            drop_delivered: false,
            read_watermark: 0.0,
            write_watermark: 0.0,
            watermark_of_request: true,
            read_ahead: ReadAhead::default(),
        },
        bus: BusSpec {
            read_sector_ms: 0.01,
            write_sector_ms: 0.01,
            delivery: Delivery::InOrder,
            hold: BusHold::default(),
        },
        provenance: Provenance::uniform(OriginKind::Assumed, "round numbers"),
        geometry: GeometrySpec {
            surfaces: 2,
            cylinders: 10,
            zones: vec![ZoneSpec {
                first_cylinder: 0,
                last_cylinder: 9,
                sectors_per_track: PerSurface::Same(100),
                track_skew: Skew::Sectors(10.0),
                cylinder_skew: Skew::Sectors(20.0),
                ..ZoneSpec::default()
            }],
            ..GeometrySpec::default()
        },
    }
}

/// Returns the tiny drive with some values changed.
pub(crate) fn tiny_with(change: impl FnOnce(&mut Profile)) -> Profile {
    let mut profile = tiny();
    change(&mut profile);
    profile
}

pub(crate) fn read(lbn: u64, sectors: u32) -> Request {
    Request::read(Lbn(lbn), sectors)
}

pub(crate) fn write(lbn: u64, sectors: u32) -> Request {
    Request::write(Lbn(lbn), sectors)
}

pub(crate) fn fua(request: Request) -> Request {
    Request {
        fua: true,
        ..request
    }
}

/// Serves requests that are submitted at the given times, in milliseconds. Returns the completions
/// in order of submission.
pub(crate) fn serve(profile: &Profile, requests: &[(f64, Request)]) -> Vec<Completion> {
    let mut drive = Drive::new(profile).unwrap();
    let mut done = Vec::new();
    for &(ms, request) in requests {
        let now = SimTime::from_ms(ms);
        drain(&mut drive, Some(now), &mut done);
        drive.submit(now, request).unwrap();
    }
    drain(&mut drive, None, &mut done);
    assert_eq!(done.len(), requests.len(), "not every request completed");
    done.sort_by_key(|completion| completion.tag);
    done
}

/// Polls a drive at each of its wake-ups up to and including `until`, or at all of them if it is
/// `None`. Appends the completions to `done`.
pub(crate) fn drain(drive: &mut Drive, until: Option<SimTime>, done: &mut Vec<Completion>) {
    while let Some(wake) = drive
        .next_wakeup()
        .filter(|&wake| until.is_none_or(|until| wake <= until))
    {
        done.extend(std::iter::from_fn(|| drive.poll(wake)));
    }
}

/// Asserts the completion times of requests, given in milliseconds, to the picosecond.
#[track_caller]
pub(crate) fn assert_completions(
    profile: &Profile,
    requests: &[(f64, Request)],
    expected_ms: &[f64],
) {
    let done: Vec<f64> = serve(profile, requests)
        .iter()
        .map(|c| c.completed.as_ms())
        .collect();
    let same = |(ms, expected): (&f64, &f64)| SimTime::from_ms(*ms) == SimTime::from_ms(*expected);
    assert!(
        done.len() == expected_ms.len() && done.iter().zip(expected_ms).all(same),
        "completed at {done:?} ms, expected {expected_ms:?}"
    );
}

/// Returns the order in which the requests in `waiting` are served if all of them wait while the
/// drive serves `first`.
pub(crate) fn order(profile: &Profile, first: Request, waiting: &[Request]) -> Vec<usize> {
    let all: Vec<(f64, Request)> = std::iter::once((0.0, first))
        .chain(waiting.iter().map(|&request| (0.0, request)))
        .collect();
    let mut done = serve(profile, &all);
    done.sort_by_key(|completion| completion.completed);
    done.iter()
        .map(|c| c.tag)
        .filter(|&tag| tag != Tag(0))
        .map(|Tag(n)| n as usize - 1)
        .collect()
}
