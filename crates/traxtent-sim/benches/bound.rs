//! Measures an upper bound on the simulator's speed: the speed of straight-line code that does only
//! the work per request that the model cannot avoid, with the model's own functions.
//!
//! For each request: draw it, find its pieces of tracks, seek, rotate, pass over its sectors,
//! reserve the bus, and follow the read-ahead until the next request. Left out: the buffer's
//! contents, queues, buses of other kinds, the components of the response time, and reports. The
//! mean response time must agree with the simulator's; this shows that the bound does the same
//! work.
//!
//! `cargo bench -p traxtent-sim --bench bound` runs it. With the arguments `WORKLOAD PROGRAM COUNT`
//! it runs one program once, for a profiler: `small` or `large`, `model` or `bound`, and the number
//! of requests. `docs/internals/speed.md` has its results.
#![allow(missing_docs)]

use std::time::Instant;

use traxtent_model::drive::Drive;
use traxtent_model::geometry::{Geometry, Piece};
use traxtent_model::mechanics::{HeadPosition, Mechanics, TrackRotation};
use traxtent_model::profile::{Profile, builtin};
use traxtent_sim::{Host, simulate};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Sectors, SimTime, Span};
use traxtent_workload::{CapacityOnly, NextStep, RequestSource, Synthetic, WorkloadSpec};

/// The number of repetitions; the median is reported.
const RUNS: usize = 7;

/// The upper bound on the relative difference between the mean response times. They differ because
/// some requests find sectors in the model's buffer.
const DIFFERENCE_MAX: f64 = 0.005;

/// A program that serves a workload.
type Program = fn(&Profile, &mut Synthetic<'_>) -> Run;

/// The number of requests of a run, the sum of their response times, and the time that the run took
/// without set-up.
struct Run {
    count: u64,
    total: Span,
    seconds: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` passes flags of its own.
    if let [workload, program, count] = &arguments[..] {
        let program: Program = if program == "model" {
            run_model
        } else {
            run_bound
        };
        let (_, response) = run(&specification(workload, count), program);
        println!("mean response {response:.4} ms");
        return;
    }
    println!("atlas10k, one core, median of {RUNS} runs");
    for (name, count) in [("small", "1000000"), ("large", "100000")] {
        let workload = specification(name, count);
        let (model, bound) = (median(&workload, run_model), median(&workload, run_bound));
        println!("{workload}");
        for (name, (rate, response)) in [("model", model), ("bound", bound)] {
            println!("  {name} {rate:>10.0} requests/s, mean response {response:.4} ms");
        }
        println!("  bound / model {:.2}", bound.0 / model.0);
        assert!((bound.1 / model.1 - 1.0).abs() < DIFFERENCE_MAX);
    }
}

/// Returns a workload of `cargo xtask bench sim`, in the workload grammar.
fn specification(name: &str, count: &str) -> String {
    match name {
        "small" => format!("random,read=66%,size=8,align=none,count={count},seed=1"),
        _ => format!("random,size=334,align=none,count={count},seed=1"),
    }
}

/// Returns the median rate of several runs, in requests per second, and the mean response time in
/// milliseconds.
fn median(workload: &str, program: Program) -> (f64, f64) {
    let mut runs: Vec<(f64, f64)> = (0..RUNS).map(|_| run(workload, program)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs[RUNS / 2]
}

/// Returns the rate of one run, in requests per second, and the mean response time in milliseconds.
fn run(workload: &str, program: Program) -> (f64, f64) {
    let spec: WorkloadSpec = workload.parse().expect("a workload of the grammar");
    let profile = builtin("atlas10k").expect("a built-in drive");
    let geometry = Geometry::build(&profile.geometry).expect("a checked profile");
    let tracks = CapacityOnly(geometry.capacity());
    let mut source =
        Synthetic::new(&spec, profile.sector.logical_bytes, &tracks).expect("it fits the drive");
    let run = program(&profile, &mut source);
    let mean = Span(run.total.0 / run.count);
    (run.count as f64 / run.seconds, mean.as_ms())
}

/// Serves a workload with the simulator.
fn run_model(profile: &Profile, source: &mut Synthetic<'_>) -> Run {
    let mut host = Host::new(vec![Drive::new(profile).expect("a checked profile")]);
    let (mut count, mut total) = (0, Span::ZERO);
    let begun = Instant::now();
    simulate(&mut host, source, |outcome| {
        count += 1;
        total += outcome.response();
        true
    })
    .expect("no request is refused");
    let seconds = begun.elapsed().as_secs_f64();
    Run {
        count,
        total,
        seconds,
    }
}

/// Serves a workload with the straight-line code.
fn run_bound(profile: &Profile, source: &mut Synthetic<'_>) -> Run {
    let mut heads = Heads::new(profile);
    let (mut count, mut total) = (0, Span::ZERO);
    let begun = Instant::now();
    while let Ok(NextStep::At(now)) = source.due() {
        let Some(arrival) = source.take(now) else {
            continue;
        };
        let completed = match arrival.request.op {
            Op::Write => heads.write(now, &arrival.request),
            _ => heads.read(now, &arrival.request),
        };
        source.complete(arrival.tag, completed);
        count += 1;
        total += completed.since(now);
    }
    std::hint::black_box(heads.read_ahead);
    let seconds = begun.elapsed().as_secs_f64();
    Run {
        count,
        total,
        seconds,
    }
}

/// The pass of the head over the sectors of one piece.
struct Passed {
    piece: Piece,
    /// The time at which the head is on the track.
    landed: SimTime,
    /// The time at which the first sector in LBN order begins to pass.
    first: SimTime,
    /// The time at which all sectors have passed.
    end: SimTime,
    /// The number of sectors that pass in LBN order between `first` and `end`. The others pass
    /// before.
    in_order: u32,
}

/// The heads and the bus of a drive.
struct Heads {
    geometry: Geometry,
    mechanics: Mechanics,
    write_overhead: Span,
    read_sector: Span,
    write_sector: Span,
    position: HeadPosition,
    /// The time at which the arm is free.
    free: SimTime,
    /// The time at which the bus is free.
    bus: SimTime,
    ahead: Option<Passed>,
    /// The number of sectors that read-ahead has read.
    read_ahead: u64,
}

impl Heads {
    fn new(profile: &Profile) -> Heads {
        let geometry = Geometry::build(&profile.geometry).expect("a checked profile");
        let spec = profile.mechanics.as_ref().expect("a drive that turns");
        Heads {
            mechanics: Mechanics::new(spec, geometry.cylinders()),
            geometry,
            write_overhead: Span::from_ms(profile.overheads.write_hit_after_read_ms),
            read_sector: Span::from_ms(profile.bus.read_sector_ms),
            write_sector: Span::from_ms(profile.bus.write_sector_ms),
            position: HeadPosition::default(),
            free: SimTime::ZERO,
            bus: SimTime::ZERO,
            ahead: None,
            read_ahead: 0,
        }
    }

    /// Returns the time at which the host has the data of a read.
    fn read(&mut self, now: SimTime, request: &Request) -> SimTime {
        let ready = self.stop_read_ahead(now);
        let mut sent = self.bus;
        let last = self.sweep(request, ready, |pass, in_order| {
            // The sectors of a pass are delivered as they come if they come in order.
            let first = if in_order { pass.first } else { pass.end };
            let length = Span(self.read_sector.0 * u64::from(pass.piece.sectors));
            sent = (sent.max(first) + length).max(pass.end + self.read_sector);
        });
        self.bus = sent;
        self.position = HeadPosition::from(&last.piece.track);
        self.free = last.end;
        let (track, end) = (&last.piece.track, request.end());
        if end < track.end_lbn() {
            let rest = (track.end_lbn().0 - end.0) as u32;
            let piece = self.geometry.piece_near(track, end, rest);
            self.ahead = Some(pass(&self.mechanics, piece, last.landed));
        }
        sent
    }

    /// Returns the time at which the buffer has the data of a write.
    fn write(&mut self, now: SimTime, request: &Request) -> SimTime {
        let length = Span(self.write_sector.0 * u64::from(request.sectors));
        let begun = now.max(self.free) + self.write_overhead;
        let full = begun.max(self.bus) + length;
        self.bus = full;
        let ready = self.stop_read_ahead(begun);
        let last = self.sweep(request, ready, |_, _| ());
        self.position = HeadPosition::from(&last.piece.track);
        self.free = last.end;
        full
    }

    /// Passes over the sectors of a request and returns the last pass. `each` receives every pass,
    /// and whether its sectors pass in order.
    fn sweep(
        &self,
        request: &Request,
        ready: SimTime,
        mut each: impl FnMut(&Passed, bool),
    ) -> Passed {
        let (mut position, mut now, mut lbn) = (self.position, ready, request.lbn);
        loop {
            let rest = (request.end().0 - lbn.0) as u32;
            let piece = self.geometry.piece(lbn, rest);
            let to = HeadPosition::from(&piece.track);
            let write = request.op == Op::Write;
            let landed = now + self.mechanics.reposition(position, to, write).total();
            let pass = pass(&self.mechanics, piece, landed);
            each(&pass, pass.in_order == pass.piece.sectors);
            lbn += Sectors(u64::from(pass.piece.sectors));
            if lbn >= request.end() {
                return pass;
            }
            (position, now) = (to, pass.end);
        }
    }

    /// Stops the read-ahead after the sector that is under the head. Returns the time from which
    /// the arm may move.
    fn stop_read_ahead(&mut self, now: SimTime) -> SimTime {
        let now = now.max(self.free);
        let Some(ahead) = self.ahead.take() else {
            return now;
        };
        if now < ahead.first || now >= ahead.end {
            return now;
        }
        let (whole, count) = (ahead.end.since(ahead.first).0, u64::from(ahead.in_order));
        let passed = now.since(ahead.first).0 * count / whole;
        self.read_ahead += passed;
        ahead.first + Span(whole * (passed + 1) / count)
    }
}

/// The zero-latency pass over one piece, from the time at which the head is on its track.
fn pass(mechanics: &Mechanics, piece: Piece, landed: SimTime) -> Passed {
    let rotation = mechanics.rotation(&piece.track, landed);
    let slot = rotation.next_slot();
    let into = slot
        .checked_sub(piece.first_slot)
        .unwrap_or_else(|| slot + piece.track.slots - piece.first_slot);
    let (first, end, in_order) = if into > 0 && into < piece.slots {
        from_middle(mechanics, &rotation, &piece, landed, slot, into)
    } else {
        let first = landed + rotation.wait(piece.first_slot);
        let length = rotation.length(piece.first_slot, piece.slots);
        (first, first + length, piece.sectors)
    };
    Passed {
        piece,
        landed,
        first,
        end,
        in_order,
    }
}

/// Returns `first`, `end` and `in_order` of a pass that begins at `slot`, which is `into` slots
/// after the beginning of the piece.
fn from_middle(
    mechanics: &Mechanics,
    rotation: &TrackRotation,
    piece: &Piece,
    landed: SimTime,
    slot: u32,
    into: u32,
) -> (SimTime, SimTime, u32) {
    let start = landed + rotation.wait(slot);
    let first = start + rotation.between(slot, piece.first_slot);
    (first, start + mechanics.revolution(), into)
}
