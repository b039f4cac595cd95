//! The NBD protocol without I/O: bytes in, bytes out.
//!
//! The source is the [protocol's text][proto]; comments quote the names of its sections and its
//! keywords. [`Negotiation`] is the handshake up to the choice of an export. [`Request`] and
//! [`reply`] are the transmission phase after it.
//!
//! The server's side of fixed newstyle negotiation is complete, with structured replies, block size
//! constraints and the metadata context `base:allocation`. Left out, and refused as the text
//! requires: TLS, extended headers, and the experimental extensions.
//!
//! [proto]: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md

mod agreement;
mod bytes;
mod negotiation;
mod options;
pub mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use agreement::Agreed;
pub use negotiation::{Negotiation, Next, Step};
pub use request::{Command, Invalid, REQUEST_BYTES, Request};

use crate::service::BlockSizes;

/// The information about an export that clients receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// The name.
    pub name: String,
    /// A description for users, in one line.
    pub description: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The transmission flags.
    pub flags: u16,
    /// The block size constraints.
    pub sizes: BlockSizes,
}

/// The transmission flags ("Transmission flags" in the text).
pub mod flag {
    /// The field holds flags. "MUST always be 1".
    pub const HAS_FLAGS: u16 = 1;
    /// The export is read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// The server supports `NBD_CMD_FLUSH`.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The server supports `NBD_CMD_FLAG_FUA`.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The export has the characteristics of a rotational medium.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// The server supports `NBD_CMD_TRIM`.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// The server supports `NBD_CMD_WRITE_ZEROES`.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The server supports `NBD_CMD_FLAG_DF`. "MUST be set to 0 if structured replies have not been
    /// negotiated", so the negotiation adds it.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers the completed writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// The server supports `NBD_CMD_CACHE`.
    pub const SEND_CACHE: u16 = 1 << 10;
}

/// The name of the only metadata context.
pub(crate) const ALLOCATION: &str = "base:allocation";
/// The identifier of that context in this server.
pub(crate) const ALLOCATION_ID: u32 = 1;
