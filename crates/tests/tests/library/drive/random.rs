//! Properties that hold for every drive and every workload, tested on random ones.

use std::sync::Arc;

use traxtent_model::drive::{Breakdown, Completion, Drive};
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{
    Delivery, OverheadSpec, Preseek, Profile, ReadAheadUntil, Scheduler, WriteBack, builtin,
};
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};

use super::tiny::{drain, tiny};

/// A drive with random firmware, and requests for it.
struct Case {
    profile: Arc<Profile>,
    geometry: Arc<Geometry>,
    seed: u64,
    depth: usize,
}

impl Case {
    fn new(base: &Profile, geometry: &Arc<Geometry>, seed: u64) -> Case {
        let mut rng = Rng::new(seed);
        let mut profile = base.clone();
        vary(&mut profile, &mut rng);
        let depth = pick(&mut rng, &[1, 2, 4, 32]);
        Case {
            profile: Arc::new(profile),
            geometry: Arc::clone(geometry),
            seed,
            depth,
        }
    }

    fn drive(&self) -> Drive {
        Drive::with_geometry(Arc::clone(&self.profile), Arc::clone(&self.geometry))
    }

    /// Serves `count` requests, `depth` at a time. Returns the requests with their submission
    /// times, and the completions.
    fn run(&self, count: usize) -> (Vec<(SimTime, Request)>, Vec<Completion>) {
        let mut rng = Rng::new(self.seed ^ 0x5eed);
        let mut requests = Requests {
            rng: rng.split(),
            capacity: self.geometry.capacity().0,
            last: Lbn(0),
        };
        let (mut drive, mut now) = (self.drive(), SimTime::ZERO);
        let (mut submitted, mut done) = (Vec::new(), Vec::<Completion>::new());
        while done.len() < count {
            while submitted.len() < count && submitted.len() - done.len() < self.depth {
                let request = requests.next();
                drive.submit(now, request).unwrap();
                submitted.push((now, request));
            }
            let wake = drive
                .next_wakeup()
                .expect("a wake-up while requests are outstanding");
            assert!(wake >= now, "a wake-up in the past: {wake} at {now}");
            now = wake;
            let before = done.len();
            while let Some(completion) = drive.poll(now) {
                assert_eq!(completion.completed, now, "not reported at its completion");
                check(&completion, &submitted);
                done.push(completion);
            }
            let next = drive.next_wakeup();
            assert!(next.is_none_or(|next| next > now), "woken twice at {now}");
            assert!(
                !drive.is_idle() || submitted.len() == done.len(),
                "idle with requests outstanding"
            );
            // Sometimes the host pauses, and does not poll the drive during the pause.
            if done.len() > before && submitted.len() < count && rng.chance(0.2) {
                let pause = Span(rng.below(20_000_000_000));
                now = next.map_or(now + pause, |next| next.min(now + pause));
                while let Some(completion) = drive.poll(now) {
                    check(&completion, &submitted);
                    done.push(completion);
                }
            }
        }
        drain(&mut drive, None, &mut done);
        let mut tags: Vec<u64> = done.iter().map(|completion| completion.tag.0).collect();
        tags.sort_unstable();
        assert!(
            tags.into_iter().eq(0..count as u64),
            "not every request completed exactly once"
        );
        assert!(
            done.is_sorted_by_key(|completion| completion.completed),
            "completions are not in order of time"
        );
        (submitted, done)
    }
}

fn check(completion: &Completion, submitted: &[(SimTime, Request)]) {
    let (at, request) = submitted[completion.tag.0 as usize];
    assert_eq!((completion.submitted, completion.request), (at, request));
    assert!(completion.completed >= at);
    assert_eq!(
        completion.breakdown.total(),
        completion.response(),
        "{completion:?}"
    );
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// Randomizes most of a profile's firmware, and for some drives the size of physical sectors. Keeps
/// the mechanics.
fn vary(p: &mut Profile, rng: &mut Rng) {
    let coin = |rng: &mut Rng| rng.chance(0.5);
    p.queue.depth = 32;
    let schedulers: Vec<Scheduler> = Scheduler::plain()
        .chain([Scheduler::AgedSptf { weight: 0.2 }])
        .collect();
    p.queue.scheduler = pick(rng, &schedulers);
    p.queue.preseek = pick(
        rng,
        &[
            Preseek::None,
            Preseek::DuringCompletion,
            Preseek::BeforeCompletion,
        ],
    );
    p.bus.delivery = pick(
        rng,
        &[
            Delivery::InOrder,
            Delivery::InOrderWhenComplete,
            Delivery::OutOfOrder,
        ],
    );
    p.bus.hold.during_read = coin(rng);
    p.bus.hold.always = rng.chance(0.2);
    p.bus.read_sector_ms = pick(rng, &[0.0, 0.003, 0.05]);
    p.bus.write_sector_ms = pick(rng, &[0.0, 0.003, 0.05]);
    p.access.zero_latency_read = coin(rng);
    p.access.zero_latency_write = coin(rng);
    p.access.read_on_arrival = coin(rng);
    let o = &mut p.overheads;
    for ms in [
        &mut o.read_hit_after_read_ms,
        &mut o.read_hit_after_write_ms,
        &mut o.read_miss_after_read_ms,
        &mut o.read_miss_after_write_ms,
        &mut o.write_hit_after_read_ms,
        &mut o.write_hit_after_write_ms,
        &mut o.write_miss_after_read_ms,
        &mut o.write_miss_after_write_ms,
        &mut o.read_completion_ms,
        &mut o.write_completion_ms,
        &mut o.data_preparation_ms,
        &mut o.first_reselect_ms,
        &mut o.other_reselect_ms,
        &mut o.read_disconnect_after_read_ms,
        &mut o.read_disconnect_after_write_ms,
        &mut o.write_disconnect_ms,
        &mut o.minimum_write_seek_ms,
        &mut o.per_request_ms,
    ] {
        *ms = if coin(rng) { 0.0 } else { rng.fraction() };
    }
    let c = &mut p.cache;
    c.enabled = rng.chance(0.8);
    c.segments = pick(rng, &[1, 2, 3, 16]);
    c.dedicated_write_segment = c.segments > 1 && rng.chance(0.3);
    c.write_segments = 1 + rng.below(u64::from(c.segments)) as u32;
    c.segment_sectors = pick(rng, &[1, 16, 150, 2_000]);
    c.write_back = pick(rng, &[WriteBack::None, WriteBack::Full]);
    for flag in [
        &mut c.combine_writes,
        &mut c.read_hits_on_written,
        &mut c.hits_while_busy,
        &mut c.writes_while_busy,
        &mut c.almost_hits,
        &mut c.watermark_of_request,
        &mut c.read_ahead.max_from_request_start,
        &mut c.read_ahead.on_idle_hit,
        &mut c.read_ahead.stop_in_sector,
        &mut c.read_ahead.stop_on_write_hit,
        &mut c.read_ahead.on_arrival,
    ] {
        *flag = coin(rng);
    }
    c.drop_delivered = rng.chance(0.2);
    c.read_watermark = pick(rng, &[0.0, 0.1, 1.0]);
    c.read_ahead.until = pick(
        rng,
        &[
            ReadAheadUntil::None,
            ReadAheadUntil::TrackEnd,
            ReadAheadUntil::CylinderEnd,
            ReadAheadUntil::SegmentEnd,
            ReadAheadUntil::AdaptiveTrackEnd,
        ],
    );
    c.read_ahead.min_sectors = pick(rng, &[0, 0, 10, 300]);
    c.read_ahead.max_sectors = pick(rng, &[0, 0, 50, 3_000]);
    if p.sector.logical_bytes == 512 && coin(rng) {
        p.sector.physical_bytes = 4096;
        p.sector.lowest_aligned_lbn = pick(rng, &[0, 1, 7]);
    }
}

/// Sequential, repeated, near and far requests of all kinds and many sizes.
struct Requests {
    rng: Rng,
    capacity: u64,
    last: Lbn,
}

impl Requests {
    fn next(&mut self) -> Request {
        let rng = &mut self.rng;
        let sectors = match rng.below(8) {
            0 => 1 + rng.below(2_500),
            1..4 => 8,
            _ => 1 + rng.below(64),
        }
        .min(self.capacity / 2);
        let lbn = match rng.below(8) {
            0..3 => self.last.0,
            3 => self.last.0.saturating_sub(rng.below(40)),
            4 | 5 => rng.below(4_000),
            6 => self.capacity,
            _ => rng.below(self.capacity),
        }
        .min(self.capacity - sectors);
        self.last = Lbn((lbn + sectors) % (self.capacity - sectors));
        let (lbn, sectors) = (Lbn(lbn), sectors as u32);
        let fua = rng.chance(0.1);
        match rng.below(20) {
            0 => Request::flush(),
            1 => Request {
                op: Op::Verify,
                ..Request::read(lbn, sectors)
            },
            2..10 => Request {
                fua,
                ..Request::write(lbn, sectors)
            },
            _ => Request {
                fua,
                ..Request::read(lbn, sectors)
            },
        }
    }
}

/// Runs a test on `tiny_cases` random cases of the tiny drive, and on `cases` of each built-in
/// drive.
fn for_each_case(tiny_cases: u64, cases: u64, test: impl Fn(&Case)) {
    let built_in = builtin::names().map(|name| (cases, builtin(name).unwrap()));
    for (cases, base) in std::iter::once((tiny_cases, tiny())).chain(built_in) {
        let geometry = Arc::new(Geometry::build(&base.geometry).unwrap());
        for seed in 0..testkit::repeats(cases) {
            let case = Case::new(&base, &geometry, seed);
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&case)));
            if let Err(panic) = caught {
                eprintln!(
                    "drive {}, seed {seed}, depth {}: {:#?}",
                    base.name, case.depth, case.profile.cache
                );
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Does every request complete once, in order of time, with parts that add up to its response time,
/// and does the drive never stall or request a wake-up in the past?
#[test]
fn every_request_completes_once_and_on_time() {
    for_each_case(600, 12, |case| {
        case.run(200);
    });
}

/// Do the same inputs give the same completions, regardless of how often the drive is polled, and
/// of whether it is cloned?
#[test]
fn completions_do_not_depend_on_polling() {
    for_each_case(300, 6, |case| {
        let (submitted, done) = case.run(150);
        assert_eq!(case.run(150).1, done, "run again");

        // Polled only at the end.
        let mut drive = case.drive();
        for &(at, request) in &submitted {
            drive.submit(at, request).unwrap();
        }
        let end = SimTime(u64::MAX);
        let polled_at_end: Vec<_> = std::iter::from_fn(|| drive.poll(end)).collect();
        assert_eq!(polled_at_end, done, "polled at the end only");

        // Polled at random instants, and cloned half-way.
        let mut rng = Rng::new(case.seed);
        let (mut drive, mut polled_often, mut last) = (case.drive(), Vec::new(), SimTime::ZERO);
        for (i, &(at, request)) in submitted.iter().enumerate() {
            for _ in 0..rng.below(4) {
                last = last + Span(rng.below(at.since(last).0 + 1));
                polled_often.extend(std::iter::from_fn(|| drive.poll(last)));
            }
            if i == 75 {
                drive = drive.clone();
            }
            drive.submit(at, request).unwrap();
            last = at;
        }
        drain(&mut drive, None, &mut polled_often);
        assert_eq!(polled_often, done, "polled often");
    });
}

/// Do short sequential reads, one at a time, take at most 10 % more time per sector than long ones,
/// with any firmware that reads ahead to the segment's end and has short overheads?
#[test]
fn short_reads_in_sequence_stream() {
    for_each_case(200, 4, |case| {
        let mut profile = (*case.profile).clone();
        let track = case
            .geometry
            .track_of(Lbn(0))
            .map_or(1, |track| track.sectors);
        let Some(mechanics) = &profile.mechanics else {
            return;
        };
        // A hundredth of a revolution for the sum of a command's overheads.
        let overhead_max_ms = 60_000.0 / mechanics.rpm / 100.0 / 5.0;
        let mut rng = Rng::new(case.seed);
        let o = &mut profile.overheads;
        *o = OverheadSpec::default();
        for ms in [
            &mut o.read_hit_after_read_ms,
            &mut o.read_miss_after_read_ms,
            &mut o.read_completion_ms,
            &mut o.data_preparation_ms,
            &mut o.per_request_ms,
        ] {
            *ms = rng.fraction() * overhead_max_ms;
        }
        let c = &mut profile.cache;
        c.enabled = true;
        c.segment_sectors = 4 * track;
        c.read_watermark = 0.0;
        c.almost_hits |= c.read_ahead.stop_in_sector;
        c.read_ahead.until = ReadAheadUntil::SegmentEnd;
        c.read_ahead.max_sectors = 0;
        c.read_ahead.max_from_request_start = false;
        let profile = Arc::new(profile);
        let total = (40 * u64::from(track)).min(case.geometry.capacity().0);
        let ms_per_sector = |sectors: u32| {
            let geometry = Arc::clone(&case.geometry);
            let mut drive = Drive::with_geometry(Arc::clone(&profile), geometry);
            let (mut now, mut lbn) = (SimTime::ZERO, 0);
            while lbn + u64::from(sectors) <= total {
                let request = Request::read(Lbn(lbn), sectors);
                now = drive.serve(now, request).unwrap().completed;
                lbn += u64::from(sectors);
            }
            now.as_ms() / lbn as f64
        };
        let (short, long) = (ms_per_sector(track / 4), ms_per_sector(2 * track));
        assert!(
            short < 1.1 * long,
            "{short} ms per sector, {long} ms in longer reads"
        );
    });
}

/// Does the first request of an idle drive have no queue time, and does a less restricted order on
/// the bus never delay its completion?
#[test]
fn requests_do_not_queue_on_an_idle_drive() {
    for_each_case(200, 4, |case| {
        let mut requests = Requests {
            rng: Rng::new(case.seed),
            capacity: case.geometry.capacity().0,
            last: Lbn(0),
        };
        for _ in 0..10 {
            let (request, at) = (requests.next(), SimTime(requests.rng.below(1 << 35)));
            let serve = |delivery| {
                let mut profile = (*case.profile).clone();
                profile.bus.delivery = delivery;
                profile.bus.hold.always = true;
                profile.cache.read_watermark = 0.0;
                let mut drive = Drive::with_geometry(Arc::new(profile), Arc::clone(&case.geometry));
                drive.submit(at, request).unwrap();
                let done = drive.poll(SimTime(u64::MAX)).unwrap();
                let Breakdown { queue, .. } = done.breakdown;
                assert_eq!(queue, Span::ZERO, "{done:?}");
                done.completed
            };
            let out_of_order = serve(Delivery::OutOfOrder);
            let in_order = serve(Delivery::InOrder);
            assert!(
                in_order <= serve(Delivery::InOrderWhenComplete),
                "{request:?} at {at}"
            );
            assert!(
                out_of_order <= in_order,
                "{request:?} at {at}: {out_of_order} {in_order}"
            );
        }
    });
}
