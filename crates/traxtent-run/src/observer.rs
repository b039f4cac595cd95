//! Reports of a run to its caller, and a way to stop the run.

/// The number of requests between two calls of [`Observer::add`], and of [`Observer::stop`].
pub const OBSERVED_REQUESTS: u64 = 1 << 12;

/// A receiver of progress, notes and warnings, which can stop a run. The methods may be called from
/// several threads at the same time. `()` ignores everything and never stops.
pub trait Observer: Sync {
    /// Adds to the number of simulated requests. This is called every [`OBSERVED_REQUESTS`]
    /// requests of each run, and at its end.
    fn add(&self, _requests: u64) {}

    /// Accepts a note: a fact that the user may not expect, such as an input that is omitted.
    fn note(&self, _line: &str) {}

    /// Accepts a warning: a reason to doubt the results.
    fn warn(&self, _line: &str) {}

    /// Accepts a warning that requests of the input are missing from the results. It must reach the
    /// user even if other warnings are not wanted. The default passes it to [`warn`](Self::warn).
    fn warn_of_omission(&self, line: &str) {
        self.warn(line);
    }

    /// Returns whether the run must end with [`RunError::Stopped`](crate::RunError::Stopped). This
    /// is called at the beginning of each run and every [`OBSERVED_REQUESTS`] requests.
    fn stop(&self) -> bool {
        false
    }
}

impl Observer for () {}
