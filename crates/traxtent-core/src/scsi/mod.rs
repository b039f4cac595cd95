//! SCSI by command bytes: what a host sends, what a drive answers.

mod transport;

pub use transport::{Data, Reply, Status, Transport, TransportError};
