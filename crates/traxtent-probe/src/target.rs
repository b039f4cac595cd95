//! The requests that a probe can send to a drive.

use traxtent_map::Identity;
use traxtent_model::geometry::Place;
use traxtent_units::request::{Request, Timing};
use traxtent_units::{Count, Lbn, SimTime};

/// A drive under test: a clock, timed requests and, on some drives, translation, defect lists and
/// control of caching.
///
/// Requests are sent one at a time. The probe is the only user of the drive.
pub trait Target {
    /// The drive's description of itself.
    fn identity(&self) -> &Identity;

    /// The target's clock: virtual on a model, monotonic on a real drive.
    fn now(&self) -> SimTime;

    /// Waits until `at`. Returns immediately if `at` has passed.
    fn wait_until(&mut self, at: SimTime);

    /// Sends a request and waits for its completion.
    ///
    /// # Errors
    /// Returns an error if the drive fails or refuses the request. An error takes time like any
    /// other response.
    fn request(&mut self, request: Request) -> Result<Timing, TargetError>;

    /// Returns the place of an LBN on the media (SCSI: SEND and RECEIVE DIAGNOSTIC, translate
    /// address page).
    ///
    /// The slot is the number of the physical sector on the track, in the drive's numbering.
    ///
    /// # Errors
    /// Returns [`TargetError::Unsupported`] on drives that do not translate. This is the default.
    /// Also returns the errors of [`Target::request`].
    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        let _ = lbn;
        Err(TargetError::Unsupported("address translation"))
    }

    /// Returns the LBN at a place, or `None` if the place holds no LBN or does not exist.
    ///
    /// # Errors
    /// Returns [`TargetError::Unsupported`] on drives that do not translate. This is the default.
    /// Also returns the errors of [`Target::request`].
    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        let _ = place;
        Err(TargetError::Unsupported("address translation"))
    }

    /// Returns the bad sectors that the drive reports (SCSI: READ DEFECT DATA).
    ///
    /// # Errors
    /// Returns [`TargetError::Unsupported`] on drives that have no lists. This is the default.
    /// Also returns the errors of [`Target::request`].
    fn defects(&mut self) -> Result<Defects, TargetError> {
        Err(TargetError::Unsupported("defect lists"))
    }

    /// Switches read caching and read-ahead off if `on` is false. Otherwise restores their original
    /// state.
    ///
    /// A drive may accept the command and ignore it.
    ///
    /// # Errors
    /// Returns [`TargetError::Unsupported`] on drives that do not accept such a command. This is
    /// the default. Also returns the errors of [`Target::request`].
    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        let _ = on;
        Err(TargetError::Unsupported("cache control"))
    }
}

/// The bad sectors that a drive reports, in the drive's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// Defects known when the drive was made.
    pub primary: Vec<Place>,
    /// Defects found since then.
    pub grown: Vec<Place>,
}

/// The reason why a target did not carry out a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The drive does not support the request.
    #[error("the drive does not support {0}")]
    Unsupported(&'static str),
    /// A read or a verify failed because the media cannot be read. The drive keeps working.
    #[error("{} from LBN {lbn} cannot be read", Count(sectors, "sector"))]
    Unreadable {
        /// The first sector of the request.
        lbn: Lbn,
        /// The number of sectors.
        sectors: u32,
    },
    /// The drive refused the request for another reason.
    #[error("the drive refused the request: {0}")]
    Refused(String),
    /// The drive is gone: no further request will succeed.
    #[error("the drive is gone: {0}")]
    Gone(String),
}

impl<T: Target + ?Sized> Target for &mut T {
    fn identity(&self) -> &Identity {
        (**self).identity()
    }
    fn now(&self) -> SimTime {
        (**self).now()
    }
    fn wait_until(&mut self, at: SimTime) {
        (**self).wait_until(at);
    }
    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        (**self).request(request)
    }
    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        (**self).translate(lbn)
    }
    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        (**self).translate_back(place)
    }
    fn defects(&mut self) -> Result<Defects, TargetError> {
        (**self).defects()
    }
    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        (**self).switch_caching(on)
    }
}
