//! A target with an observer, which is notified before and after each request and translation, and
//! can refuse them.

use super::target::{Defects, Target, TargetError};
use traxtent_map::Identity;
use traxtent_model::geometry::Place;
use traxtent_units::request::Request;
use traxtent_units::request::Timing;
use traxtent_units::{Lbn, SimTime};

/// The kind of an observed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetOperation {
    /// A timed request.
    Request,
    /// A translation, in either direction.
    Translation,
}

/// An observer of a target's operations.
pub trait TargetObserver {
    /// Called before an operation.
    ///
    /// # Errors
    /// Returns an error to refuse the operation. The target then does not receive it.
    fn before(&mut self, operation: TargetOperation) -> Result<(), TargetError> {
        let _ = operation;
        Ok(())
    }

    /// Called after an operation that the observer did not refuse, with the target's time and, if
    /// the operation failed, its error.
    fn after(&mut self, operation: TargetOperation, now: SimTime, error: Option<&TargetError>) {
        let _ = (operation, now, error);
    }
}

/// A target whose requests and translations are observed.
#[derive(Debug)]
pub struct ObservedTarget<T, O> {
    /// The target.
    pub target: T,
    /// Its observer.
    pub observer: O,
}

impl<T: Target, O: TargetObserver> ObservedTarget<T, O> {
    /// Wraps a target.
    pub fn new(target: T, observer: O) -> ObservedTarget<T, O> {
        ObservedTarget { target, observer }
    }

    fn observe<R>(
        &mut self,
        operation: TargetOperation,
        run: impl FnOnce(&mut T) -> Result<R, TargetError>,
    ) -> Result<R, TargetError> {
        self.observer.before(operation)?;
        let result = run(&mut self.target);
        let now = self.target.now();
        self.observer.after(operation, now, result.as_ref().err());
        result
    }
}

impl<T: Target, O: TargetObserver> Target for ObservedTarget<T, O> {
    fn identity(&self) -> &Identity {
        self.target.identity()
    }
    fn now(&self) -> SimTime {
        self.target.now()
    }
    fn wait_until(&mut self, at: SimTime) {
        self.target.wait_until(at);
    }
    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        self.observe(TargetOperation::Request, |target| target.request(request))
    }
    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        self.observe(TargetOperation::Translation, |target| target.translate(lbn))
    }
    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        self.observe(TargetOperation::Translation, |target| {
            target.translate_back(place)
        })
    }
    fn defects(&mut self) -> Result<Defects, TargetError> {
        self.target.defects()
    }
    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        self.target.switch_caching(on)
    }
}

/// An observer that counts requests and translations, successful or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// The number of timed requests.
    pub requests: u64,
    /// The number of translations, in both directions.
    pub translations: u64,
}

impl TargetObserver for RequestCounts {
    fn before(&mut self, operation: TargetOperation) -> Result<(), TargetError> {
        match operation {
            TargetOperation::Request => self.requests += 1,
            TargetOperation::Translation => self.translations += 1,
        }
        Ok(())
    }
}
