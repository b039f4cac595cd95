//! The transport of commands to a drive, and of its responses.

use traxtent_units::SimTime;
use traxtent_units::request::Timing;

/// A connection to a SCSI drive, either modelled or reached through the kernel's SG_IO.
pub trait Transport {
    /// The transport's clock.
    fn now(&self) -> SimTime;

    /// Waits until `at`. Returns immediately if that is in the past.
    fn wait_until(&mut self, at: SimTime);

    /// Sends a command and waits for its completion.
    ///
    /// # Errors
    /// Returns an error if the command could not be transported. If the drive itself refuses it,
    /// the result is a [`Reply`].
    fn execute(&mut self, command: &[u8], data: DataTransfer<'_>) -> Result<Reply, TransportError>;
}

/// The data of a command, with its direction.
#[derive(Debug)]
pub enum DataTransfer<'a> {
    /// No data.
    None,
    /// To the drive.
    Out(&'a [u8]),
    /// From the drive, which may send fewer bytes.
    In(&'a mut [u8]),
}

/// A drive's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status of the command.
    pub status: Status,
    /// The number of bytes received from the drive.
    pub received: usize,
    /// Sense data, empty unless the status is [`Status::CheckCondition`].
    pub sense: Vec<u8>,
    /// The times at which the command was sent and completed.
    pub timing: Timing,
}

/// The status of a command (SAM-5, section 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The command succeeded.
    Good,
    /// The sense data contains the reason.
    CheckCondition,
    /// The drive is busy.
    Busy,
    /// Another host has reserved the drive.
    ReservationConflict,
    /// The drive's queue is full.
    TaskSetFull,
    /// Any other status.
    Other(u8),
}

/// The reason why a command could not be transported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The drive, or the connection to it, is no longer there.
    #[error("the drive is no longer available: {0}")]
    Unavailable(String),
    /// The transport refuses the command.
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
                data: DataTransfer<'_>,
            ) -> Result<Reply, TransportError> {
                (**self).execute(command, data)
            }
        }
    )+};
}

forward!(&mut T, Box<T>);
