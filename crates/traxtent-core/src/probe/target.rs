//! What a probe may ask of a drive.

use crate::geometry::Place;
use crate::request::Request;
use crate::units::{Lbn, Sectors, SimTime, Span};

/// A drive as a probe sees it: a clock, requests and their times, and, on some drives, translation.
///
/// Requests go one at a time; the probe is alone on the drive.
pub trait Target {
    /// What the drive says of itself.
    fn identity(&self) -> &Identity;

    /// The target's clock: virtual on a model, monotonic on a real drive.
    fn now(&self) -> SimTime;

    /// Lets time pass until `at`; returns at once where that is past.
    fn wait_until(&mut self, at: SimTime);

    /// Sends a request and waits for its completion.
    ///
    /// # Errors
    /// Where the drive fails or refuses it. An error takes time like any answer.
    fn request(&mut self, request: Request) -> Result<Timing, TargetError>;

    /// The place of an LBN on the media (SCSI: SEND and RECEIVE DIAGNOSTIC, translate address page).
    ///
    /// The slot counts physical sectors of the track as the drive numbers them.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] on drives that do not translate, as by default.
    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        let _ = lbn;
        Err(TargetError::Unsupported("address translation"))
    }

    /// The LBN at a place, or `None` where the place holds none or does not exist.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] on drives that do not translate, as by default.
    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        let _ = place;
        Err(TargetError::Unsupported("address translation"))
    }

    /// The bad sectors that the drive reports (SCSI: READ DEFECT DATA).
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] on drives that have no lists, as by default.
    fn defects(&mut self) -> Result<Defects, TargetError> {
        Err(TargetError::Unsupported("defect lists"))
    }

    /// Switches read caching and read-ahead off, or back to as they were found.
    ///
    /// A drive may take the order and ignore it.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] on drives that take no such order, as by default.
    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        let _ = on;
        Err(TargetError::Unsupported("cache control"))
    }
}

/// What a drive says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The manufacturer, as far as the drive names it.
    pub vendor: String,
    /// The model.
    pub product: String,
    /// The serial number.
    pub serial: String,
    /// How many LBNs it has.
    pub capacity: Sectors,
    /// Bytes in a logical sector.
    pub logical_bytes: u32,
    /// Bytes in a physical sector, as the drive claims.
    pub physical_bytes: u32,
}

/// The bad sectors that a drive reports, in its own order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// Those known when the drive was made.
    pub primary: Vec<Place>,
    /// Those found since.
    pub grown: Vec<Place>,
}

/// When a request was sent and when it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When the host sent it.
    pub sent: SimTime,
    /// When the host saw it complete.
    pub completed: SimTime,
}

impl Timing {
    /// From sending to completion.
    pub fn response(&self) -> Span {
        self.completed.saturating_since(self.sent)
    }
}

/// Why a target does not answer as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The drive does not know the request.
    #[error("the drive does not support {0}")]
    Unsupported(&'static str),
    /// The media give no answer for these sectors. The drive goes on.
    #[error("{sectors} sectors from LBN {lbn} cannot be read")]
    Unreadable {
        /// The first sector of the request.
        lbn: Lbn,
        /// How many.
        sectors: u32,
    },
    /// The drive refused the request for a reason of its own.
    #[error("the drive refused: {0}")]
    Refused(String),
    /// The drive has gone: no request will succeed.
    #[error("the drive has gone: {0}")]
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
