//! Counting the requests and translations of a probe.

use super::target::{Defects, Target, TargetError};
use traxtent_map::Identity;
use traxtent_model::geometry::Place;
use traxtent_units::request::Request;
use traxtent_units::request::Timing;
use traxtent_units::{Lbn, SimTime};

/// A target that counts the requests and translations sent to it.
#[derive(Debug)]
pub struct CountingTarget<T> {
    target: T,
    counts: RequestCounts,
}

/// The number of requests and translations, successful or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// The number of timed requests.
    pub requests: u64,
    /// The number of translations, in both directions.
    pub translations: u64,
}

impl<T: Target> CountingTarget<T> {
    /// Wraps a target, with the counts at zero.
    pub fn new(target: T) -> CountingTarget<T> {
        CountingTarget {
            target,
            counts: RequestCounts::default(),
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> RequestCounts {
        self.counts
    }

    /// The wrapped target.
    pub fn target_mut(&mut self) -> &mut T {
        &mut self.target
    }
}

impl<T: Target> Target for CountingTarget<T> {
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
        self.counts.requests += 1;
        self.target.request(request)
    }
    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        self.counts.translations += 1;
        self.target.translate(lbn)
    }
    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        self.counts.translations += 1;
        self.target.translate_back(place)
    }
    fn defects(&mut self) -> Result<Defects, TargetError> {
        self.target.defects()
    }
    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        self.target.switch_caching(on)
    }
}
