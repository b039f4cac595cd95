//! A target that counts its requests, and that the user can interrupt.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use rustix::time::{ClockId, clock_gettime};
use traxtent_io::device::Interrupt;
use traxtent_map::ProbeCost;
use traxtent_probe::{
    ObservedTarget, RequestCounts, Target, TargetError, TargetObserver, TargetOperation,
};
use traxtent_units::{Lbn, SimTime};

use crate::failure::{Failure, Result};

/// The cost of a probe, readable while it runs.
pub(super) struct ProbeMeter {
    began: SimTime,
    now: Cell<SimTime>,
    counts: Cell<RequestCounts>,
    unreadable: RefCell<BTreeSet<Lbn>>,
    stop: Interrupt,
}

impl ProbeMeter {
    /// Starts counting requests, and catches the signals that interrupt a command.
    pub(super) fn start(target: &dyn Target) -> Result<ProbeMeter> {
        let stop = Interrupt::catch()
            .map_err(|error| Failure::Io(format!("cannot catch signals: {error}")))?;
        Ok(ProbeMeter {
            began: target.now(),
            now: Cell::new(target.now()),
            counts: Cell::default(),
            unreadable: RefCell::default(),
            stop,
        })
    }

    /// Wraps the target so that this meter counts its requests.
    pub(super) fn watch<'a>(&'a self, target: &'a mut dyn Target) -> MeteredTarget<'a> {
        ObservedTarget::new(target, self)
    }

    /// Returns whether the user has interrupted the probe.
    pub(super) fn stopped(&self) -> bool {
        self.stop.raised()
    }

    /// Returns the failure for a probe that ended early, with the signal that interrupted it, if
    /// any.
    pub(super) fn early_end(&self, message: String) -> Failure {
        match self.stop.signal() {
            Some(signal) => Failure::Interrupted(message, signal),
            None => Failure::Io(message),
        }
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

    /// Returns the number of requests and translations so far.
    pub(super) fn operations(&self) -> u64 {
        let counts = self.counts.get();
        counts.requests + counts.translations
    }

    /// Returns the LBNs found to be unreadable so far, by requests for a single sector.
    pub(super) fn unreadable(&self) -> Vec<Lbn> {
        self.unreadable.borrow().iter().copied().collect()
    }
}

/// A target whose requests a [`ProbeMeter`] counts.
pub(super) type MeteredTarget<'a> = ObservedTarget<&'a mut dyn Target, &'a ProbeMeter>;

impl TargetObserver for &ProbeMeter {
    fn before(&mut self, operation: TargetOperation) -> std::result::Result<(), TargetError> {
        if self.stopped() {
            return Err(TargetError::Gone("stopped".to_owned()));
        }
        let mut counts = self.counts.get();
        counts.before(operation)?;
        self.counts.set(counts);
        Ok(())
    }

    fn after(&mut self, operation: TargetOperation, now: SimTime, error: Option<&TargetError>) {
        self.now.set(now);
        if let (TargetOperation::Request, Some(&TargetError::Unreadable { lbn, sectors: 1 })) =
            (operation, error)
        {
            self.unreadable.borrow_mut().insert(lbn);
        }
    }
}

/// Returns the processor time that this process has used so far, in seconds.
pub(super) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
