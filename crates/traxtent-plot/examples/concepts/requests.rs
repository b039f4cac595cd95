//! Single requests to a drive at rest, and the phases that each goes through.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use traxtent_model::drive::{Caching, Completion, Drive, Pass};
use traxtent_model::geometry::{Geometry, Occupant, Place, Track};
use traxtent_model::mechanics::Mechanics;
use traxtent_model::profile::{Profile, builtin};
use traxtent_plot::colours::{self, Colour};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Cylinder, Lbn, SimTime, Span};

/// An upper bound on the duration of a request, in revolutions.
const REVOLUTIONS_MAX: u64 = 32;

/// A part of a request's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Overhead,
    Seek,
    TrackSwitch,
    Settle,
    Rotation,
    Transfer,
    Bus,
}

impl Phase {
    pub(crate) const ALL: [Phase; 7] = [
        Phase::Overhead,
        Phase::Seek,
        Phase::TrackSwitch,
        Phase::Settle,
        Phase::Rotation,
        Phase::Transfer,
        Phase::Bus,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Overhead => "command overhead",
            Phase::Seek => "seek",
            Phase::TrackSwitch => "track switch",
            Phase::Settle => "settle",
            Phase::Rotation => "rotational latency",
            Phase::Transfer => "transfer",
            Phase::Bus => "bus",
        }
    }

    /// Returns the colour; that of aligned data for a transfer.
    pub(crate) fn colour(self) -> Colour {
        match self {
            Phase::Overhead => colours::DATA[2],
            Phase::Seek => colours::DATA[3],
            // Both bring the head onto a track, apart from the seek to the request's first track.
            Phase::TrackSwitch | Phase::Settle => colours::DATA[5],
            Phase::Rotation => colours::DATA[4],
            Phase::Transfer => colours::DATA[colours::ALIGNED],
            Phase::Bus => colours::GRID,
        }
    }
}

/// A phase, and the time from the submission of the request to the end of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) phase: Phase,
    pub(crate) end: Span,
}

/// A request that was served.
pub(crate) struct Served {
    pub(crate) done: Completion,
    pub(crate) passes: Vec<Pass>,
    pub(crate) steps: Vec<Step>,
}

/// A drive that serves one request at a time, from the media.
pub(crate) struct Bench {
    pub(crate) profile: Arc<Profile>,
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) revolution: Span,
    drive: RefCell<Drive>,
    /// The revolutions that the drive has made.
    revolutions: Cell<u64>,
}

impl Bench {
    pub(crate) fn new(drive: &str) -> Bench {
        let profile = builtin(drive).expect("a built-in drive");
        Bench::of(profile)
    }

    pub(crate) fn of(profile: Profile) -> Bench {
        let geometry = Geometry::build(&profile.geometry).expect("a valid geometry");
        let (profile, geometry) = (Arc::new(profile), Arc::new(geometry));
        let mut drive = Drive::with_geometry(profile.clone(), geometry.clone());
        drive.set_caching(SimTime::ZERO, Caching::OFF);
        Bench {
            revolution: mechanics(&profile, &geometry).revolution(),
            profile,
            geometry,
            drive: RefCell::new(drive),
            revolutions: Cell::new(0),
        }
    }

    /// Returns the track in the middle of the first zone.
    pub(crate) fn track_in_first_zone(&self) -> Track {
        let zone = self.geometry.zones()[0];
        let middle = Lbn((zone.first_lbn.0 + zone.end_lbn.0) / 2);
        self.geometry.track_of(middle).expect("an LBN of the drive")
    }

    /// Returns the mechanics of the drive.
    pub(crate) fn mechanics(&self) -> Mechanics {
        mechanics(&self.profile, &self.geometry)
    }

    /// Returns the mean distance between two random cylinders of the first zone, in cylinders.
    pub(crate) fn seek_cylinders(&self) -> u32 {
        let zone = self.geometry.zones()[0];
        (zone.last_cylinder.0 + 1 - zone.first_cylinder.0) / 3
    }

    /// Returns an LBN on the same surface as `track`, `cylinders` further in.
    pub(crate) fn inwards(&self, track: &Track, cylinders: u32) -> Lbn {
        let place = |slot| Place {
            cylinder: Cylinder(track.cylinder.0 + cylinders),
            surface: track.surface,
            slot,
        };
        (0..track.slots)
            .find_map(|slot| match self.geometry.lbn_at(place(slot)) {
                Occupant::Lbn(lbn) => Some(lbn),
                _ => None,
            })
            .expect("the track has an LBN")
    }

    /// Serves a request. At its submission, the drive is at rest on the track of `from`, and the
    /// current revolution has lasted for `turned`. Nothing comes from the buffer, and a write
    /// completes on the media.
    pub(crate) fn serve(&self, from: Lbn, turned: Span, request: Request) -> Served {
        let mut drive = self.drive.borrow_mut();
        let begun = SimTime(self.revolutions.get() * self.revolution.0);
        let submitted = begun + Span(REVOLUTIONS_MAX * self.revolution.0) + turned;
        let before = drive.serve(begun, Request::read(from, 1));
        assert!(before.expect("a valid request").completed < submitted);
        let done = drive.serve(submitted, request).expect("a valid request");
        let revolutions = self.revolutions.get() + 2 * REVOLUTIONS_MAX;
        assert!(done.completed.0 < revolutions * self.revolution.0);
        self.revolutions.set(revolutions);
        let passes: Vec<Pass> = drive.passes().collect();
        let steps = steps(&done, &passes);
        Served {
            done,
            passes,
            steps,
        }
    }

    /// Returns the mean of a part of a served request over `count` evenly spaced angles of the
    /// platter, in milliseconds.
    pub(crate) fn mean_ms(
        &self,
        from: Lbn,
        request: Request,
        count: u64,
        part: impl Fn(&Served) -> Span,
    ) -> f64 {
        let turned = |k| Span(self.revolution.0 * k / count);
        let parts = (0..count).map(|k| part(&self.serve(from, turned(k), request)).as_ms());
        parts.sum::<f64>() / count as f64
    }

    /// Converts a number of sectors to KiB.
    pub(crate) fn kib(&self, sectors: u32) -> f64 {
        f64::from(sectors) * f64::from(self.profile.sector.logical_bytes) / 1024.0
    }
}

fn mechanics(profile: &Profile, geometry: &Geometry) -> Mechanics {
    let spec = profile.mechanics.as_ref();
    Mechanics::new(spec.expect("a drive that rotates"), geometry.cylinders())
}

/// Returns the phases of a request in order.
fn steps(done: &Completion, passes: &[Pass]) -> Vec<Step> {
    let mut steps = Steps {
        submitted: done.submitted,
        now: done.submitted,
        steps: Vec::new(),
    };
    for (index, pass) in passes.iter().enumerate() {
        let moves = SimTime(pass.landed.0 - pass.moved.total().0);
        let sought = moves + pass.moved.seek;
        steps.until(Phase::Overhead, moves);
        if index == 0 {
            steps.until(Phase::Seek, sought);
        }
        steps.until(Phase::TrackSwitch, sought + pass.moved.head_switch);
        steps.until(Phase::Settle, pass.landed);
        steps.until(Phase::Rotation, pass.begun);
        if pass.first_passed != pass.lbn {
            // The time between the last sector of the pass and the first, which passes after it.
            let gap = pass.rotation - pass.begun.since(pass.landed);
            steps.until(Phase::Transfer, pass.lbn_begun - gap);
            steps.until(Phase::Rotation, pass.lbn_begun);
        }
        steps.until(Phase::Transfer, pass.end);
    }
    steps.until(Phase::Bus, steps.now + done.breakdown.bus);
    steps.until(Phase::Overhead, done.completed);
    let steps = steps.steps;
    assert_eq!(sums(&steps), parts(done), "{:?}", done.request);
    steps
}

struct Steps {
    submitted: SimTime,
    now: SimTime,
    steps: Vec<Step>,
}

impl Steps {
    fn until(&mut self, phase: Phase, end: SimTime) {
        if end > self.now {
            self.now = end;
            let end = end.since(self.submitted);
            self.steps.push(Step { phase, end });
        }
    }
}

/// Returns the total time of each phase.
pub(crate) fn sums(steps: &[Step]) -> [Span; Phase::ALL.len()] {
    let mut sums = [Span::ZERO; Phase::ALL.len()];
    let mut begun = Span::ZERO;
    for step in steps {
        sums[step.phase as usize] += step.end - begun;
        begun = step.end;
    }
    sums
}

/// Returns the model's own breakdown, in the order of [`Phase::ALL`].
fn parts(done: &Completion) -> [Span; Phase::ALL.len()] {
    let parts = done.breakdown;
    assert_eq!(parts.queue, Span::ZERO, "the drive was at rest");
    assert!(matches!(done.request.op, Op::Read | Op::Write));
    [
        parts.overhead,
        parts.seek,
        parts.head_switch,
        parts.settle,
        parts.rotation,
        parts.transfer,
        parts.bus,
    ]
}
