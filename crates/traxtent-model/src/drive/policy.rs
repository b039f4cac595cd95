//! A user's own queue scheduler.
//!
//! A [`QueuePolicy`] takes the place of the scheduler that the profile names. The built-in policies
//! are in [`Schedule`](super::Schedule).

use std::fmt::Debug;

use super::{Drive, DriveJob, Tag};
use crate::mechanics::HeadPosition;
use traxtent_units::request::Request;
use traxtent_units::{Angle, Lbn, SimTime, Span};

/// A user's own queue scheduler, which chooses the waiting request that a drive serves next.
///
/// The drive asks it whenever the arm is free and at least two requests wait. A single request is
/// served without asking. Two rules of the drive override the choice, as they override that of a
/// built-in scheduler. Requests for the same sectors keep their order unless both are reads. If the
/// request has to wait for the buffer, a write that the buffer has already accepted is served
/// first.
///
/// ```
/// use traxtent_model::drive::{Drive, HeadView, QueuePolicy, Waiting};
/// use traxtent_model::profile::builtin;
/// use traxtent_units::SimTime;
///
/// /// The request with the fewest sectors first.
/// #[derive(Clone, Debug)]
/// struct SmallestFirst;
///
/// impl QueuePolicy for SmallestFirst {
///     fn choose(&mut self, _: SimTime, _: &HeadView, waiting: &Waiting<'_>) -> usize {
///         let sectors = |&index: &usize| waiting.get(index).map(|it| it.request.sectors);
///         (0..waiting.len()).min_by_key(sectors).unwrap_or(0)
///     }
/// }
///
/// let mut drive = Drive::new(&builtin("atlas10k").expect("a built-in drive"))?;
/// drive.set_queue_policy(Some(Box::new(SmallestFirst)));
/// # Ok::<(), traxtent_model::profile::ProfileError>(())
/// ```
pub trait QueuePolicy: ClonePolicy + Debug + Send + Sync {
    /// Returns the index in `waiting` of the request to serve next. For an index that is out of
    /// range, the drive takes the oldest request, which has index 0.
    fn choose(&mut self, now: SimTime, head: &HeadView, waiting: &Waiting<'_>) -> usize;
}

/// Clones a policy that is known only as a [`QueuePolicy`]. Every policy that implements [`Clone`]
/// implements this trait automatically.
pub trait ClonePolicy {
    /// Returns a copy of the policy with its state.
    fn clone_policy(&self) -> Box<dyn QueuePolicy>;
}

impl<P: QueuePolicy + Clone + 'static> ClonePolicy for P {
    fn clone_policy(&self) -> Box<dyn QueuePolicy> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn QueuePolicy> {
    fn clone(&self) -> Self {
        (**self).clone_policy()
    }
}

/// The state of the heads when a request is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadView {
    /// The position at which the last access, or a read-ahead that has ended since, left the heads.
    pub position: HeadPosition,
    /// The angle of the platter that is under the heads.
    pub angle: Angle,
    /// The first LBN after the most recently served request, or 0 before the first request.
    pub lbn: Lbn,
}

impl HeadView {
    pub(super) fn of(drive: &Drive, now: SimTime) -> HeadView {
        let revolution = drive.mechanics.revolution().0;
        HeadView {
            position: drive.position,
            angle: Angle::from_ratio(now.0, revolution),
            lbn: drive.schedule.last_end(),
        }
    }
}

/// A request that waits in the drive's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingRequest {
    /// The tag that [`Drive::submit`] returned.
    pub tag: Tag,
    /// The request.
    pub request: Request,
    /// The time of its submission.
    pub submitted: SimTime,
}

/// The requests that wait in a drive's queue, in order of arrival.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    drive: &'a Drive,
    now: SimTime,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(drive: &'a Drive, now: SimTime) -> Waiting<'a> {
        Waiting { drive, now }
    }

    /// Returns the number of requests: at least two when a policy is asked.
    pub fn len(&self) -> usize {
        self.drive.waiting.len()
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.drive.waiting.is_empty()
    }

    /// Returns the request at `index`.
    pub fn get(&self, index: usize) -> Option<WaitingRequest> {
        self.drive.waiting.get(index).map(WaitingRequest::from)
    }

    /// Iterates over the requests.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = WaitingRequest> + 'a {
        self.drive.waiting.iter().map(WaitingRequest::from)
    }

    /// Returns the time from now until the first remaining sector of the request at `index` comes
    /// under the head: the value that `sptf` minimizes. It is zero for a read without FUA whose
    /// first sector is in the buffer, or about to be.
    pub fn positioning(&self, index: usize) -> Option<Span> {
        let job = self.drive.waiting.get(index)?;
        Some(self.drive.positioning(job, self.now))
    }
}

impl From<&DriveJob> for WaitingRequest {
    fn from(job: &DriveJob) -> WaitingRequest {
        WaitingRequest {
            tag: job.tag,
            request: job.request,
            submitted: job.submitted,
        }
    }
}

impl Drive {
    /// Lets `policy` choose among waiting requests from now on, or the profile's scheduler if it is
    /// `None`.
    ///
    /// A clone of the drive has a clone of the policy with its state. [`Drive::restart`] keeps the
    /// policy.
    pub fn set_queue_policy(&mut self, policy: Option<Box<dyn QueuePolicy>>) {
        self.policy = policy;
    }
}
