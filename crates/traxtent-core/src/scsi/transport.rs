//! What carries command bytes to a drive and answers back.

use crate::probe::Timing;
use crate::units::SimTime;

/// A way to a SCSI drive: a model, or a kernel's SG_IO.
pub trait Transport {
    /// The transport's clock.
    fn now(&self) -> SimTime;

    /// Lets time pass until `at`; returns at once where that is past.
    fn wait_until(&mut self, at: SimTime);

    /// Sends a command and waits for its end.
    ///
    /// # Errors
    /// Where the command could not be carried. What the drive itself refuses is a [`Reply`].
    fn execute(&mut self, command: &[u8], data: Data<'_>) -> Result<Reply, TransportError>;
}

/// Where a command's data come from or go to.
#[derive(Debug)]
pub enum Data<'a> {
    /// There are none.
    None,
    /// To the drive.
    Out(&'a [u8]),
    /// From the drive; it may send fewer.
    In(&'a mut [u8]),
}

/// What a drive answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How the command ended.
    pub status: Status,
    /// Bytes that came from the drive.
    pub received: usize,
    /// Sense data, empty unless the status is [`Status::CheckCondition`].
    pub sense: Vec<u8>,
    /// When it was sent and when it ended.
    pub timing: Timing,
}

/// How a command ended (SAM-5, section 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// As asked.
    Good,
    /// Sense data say what happened.
    CheckCondition,
    /// The drive is busy.
    Busy,
    /// Another host holds the drive.
    ReservationConflict,
    /// The drive's queue is full.
    TaskSetFull,
    /// Any other.
    Other(u8),
}

/// Why a command could not be carried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The drive or the way to it has gone.
    #[error("the drive has gone: {0}")]
    Gone(String),
    /// The way to the drive refuses it.
    #[error("{0}")]
    Refused(String),
}

macro_rules! forward {
    ($($lender:ty),+) => {$(
        impl<T: Transport + ?Sized> Transport for $lender {
            fn now(&self) -> SimTime {
                (**self).now()
            }
            fn wait_until(&mut self, at: SimTime) {
                (**self).wait_until(at);
            }
            fn execute(
                &mut self,
                command: &[u8],
                data: Data<'_>,
            ) -> Result<Reply, TransportError> {
                (**self).execute(command, data)
            }
        }
    )+};
}

forward!(&mut T, Box<T>);
