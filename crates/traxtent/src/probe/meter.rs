//! A target whose requests are counted, and that the user can interrupt.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use rustix::time::{ClockId, clock_gettime};
use traxtent_io::device::Interrupt;
use traxtent_map::ProbeCost;
use traxtent_model::geometry::Place;
use traxtent_probe::{Defects, Identity, RequestCounts, Target, TargetError, Timing};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};

use crate::failure::{Failure, Result};

/// The cost of a search, readable while it runs.
pub(super) struct ProbeMeter {
    began: SimTime,
    now: Cell<SimTime>,
    counts: Cell<RequestCounts>,
    unreadable: RefCell<BTreeSet<Lbn>>,
    stop: Interrupt,
}

impl ProbeMeter {
    /// Begins to count, and to handle Ctrl-C.
    pub(super) fn start(target: &dyn Target) -> Result<ProbeMeter> {
        let stop = Interrupt::catch().map_err(|error| Failure::Io(format!("signals: {error}")))?;
        Ok(ProbeMeter {
            began: target.now(),
            now: Cell::new(target.now()),
            counts: Cell::default(),
            unreadable: RefCell::default(),
            stop,
        })
    }

    /// Returns the target with its requests counted by this meter.
    pub(super) fn watch<'a>(&'a self, target: &'a mut dyn Target) -> MeteredTarget<'a> {
        MeteredTarget {
            target,
            meter: self,
        }
    }

    /// Returns whether the user has interrupted the search.
    pub(super) fn stopped(&self) -> bool {
        self.stop.raised()
    }

    /// Returns the cost so far.
    pub(super) fn cost(&self) -> ProbeCost {
        let counts = self.counts.get();
        ProbeCost {
            reads: counts.requests,
            translations: counts.translations,
            drive_time: self.now.get().saturating_since(self.began),
        }
    }

    /// Returns the LBNs that could not be read so far.
    pub(super) fn unreadable(&self) -> Vec<Lbn> {
        self.unreadable.borrow().iter().copied().collect()
    }
}

/// A target whose requests a [`ProbeMeter`] counts.
pub(super) struct MeteredTarget<'a> {
    target: &'a mut dyn Target,
    meter: &'a ProbeMeter,
}

impl MeteredTarget<'_> {
    fn ask<T>(
        &mut self,
        requests: u64,
        question: impl FnOnce(&mut dyn Target) -> std::result::Result<T, TargetError>,
    ) -> std::result::Result<T, TargetError> {
        if self.meter.stopped() {
            return Err(TargetError::Gone("stopped".to_owned()));
        }
        let mut counts = self.meter.counts.get();
        counts.requests += requests;
        counts.translations += 1 - requests;
        self.meter.counts.set(counts);
        let answer = question(self.target);
        self.meter.now.set(self.target.now());
        answer
    }
}

impl Target for MeteredTarget<'_> {
    fn identity(&self) -> &Identity {
        self.target.identity()
    }

    fn now(&self) -> SimTime {
        self.target.now()
    }

    fn wait_until(&mut self, at: SimTime) {
        self.target.wait_until(at);
    }

    fn request(&mut self, request: Request) -> std::result::Result<Timing, TargetError> {
        let answer = self.ask(1, |target| target.request(request));
        if let Err(TargetError::Unreadable { lbn, sectors: 1 }) = answer {
            self.meter.unreadable.borrow_mut().insert(lbn);
        }
        answer
    }

    fn translate(&mut self, lbn: Lbn) -> std::result::Result<Place, TargetError> {
        self.ask(0, |target| target.translate(lbn))
    }

    fn translate_back(&mut self, place: Place) -> std::result::Result<Option<Lbn>, TargetError> {
        self.ask(0, |target| target.translate_back(place))
    }

    fn defects(&mut self) -> std::result::Result<Defects, TargetError> {
        self.target.defects()
    }

    fn switch_caching(&mut self, on: bool) -> std::result::Result<(), TargetError> {
        self.target.switch_caching(on)
    }
}

/// Returns the processor time of this process in seconds.
pub(super) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
