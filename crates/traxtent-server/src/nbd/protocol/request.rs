//! Requests of the transmission phase ("Request message" in the text).

use super::ExportInfo;
use super::bytes::Bytes;
use super::flag;

/// The size of a request's header in bytes. The data of a write follows it.
pub const REQUEST_BYTES: usize = 28;

/// The first four bytes of a request.
const MAGIC: u32 = 0x2560_9513;

// Command flags.
const FUA: u16 = 1;
const NO_HOLE: u16 = 1 << 1;
const DF: u16 = 1 << 2;
const REQ_ONE: u16 = 1 << 3;

/// A request as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The value by which the client recognizes the reply.
    pub cookie: u64,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
    flags: u16,
    kind: u16,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `NBD_CMD_READ`.
    Read,
    /// `NBD_CMD_WRITE`; the data follows.
    Write {
        /// Whether it must be durable before the reply.
        fua: bool,
    },
    /// `NBD_CMD_DISC`: the client disconnects, and expects no reply.
    Disconnect,
    /// `NBD_CMD_FLUSH`.
    Flush,
    /// `NBD_CMD_TRIM`.
    Trim {
        /// Whether it must be durable before the reply.
        fua: bool,
    },
    /// `NBD_CMD_CACHE`.
    Cache,
    /// `NBD_CMD_WRITE_ZEROES`.
    WriteZeroes {
        /// Whether it must be durable before the reply.
        fua: bool,
    },
    /// `NBD_CMD_BLOCK_STATUS`.
    BlockStatus,
}

/// The reason why a request is refused before it reaches the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The command is unknown, or was not advertised.
    #[error("the command is not supported")]
    Command,
    /// A flag does not belong to the command.
    #[error("a flag does not apply to the command")]
    Flags,
    /// The request changes a read-only export.
    #[error("the export is read-only")]
    ReadOnly,
    /// The request has no bytes.
    #[error("the request has a length of 0")]
    Empty,
    /// The offset or the length is not a multiple of the minimum block size.
    #[error("the request is not aligned to the minimum block size")]
    Misaligned,
    /// The request ends after the end of the export.
    #[error("the request ends beyond the end of the export")]
    BeyondEnd,
    /// A write or write-zeroes ends after the end of the export; the protocol has a separate error
    /// number for it.
    #[error("the request ends beyond the end of the export")]
    WriteBeyondEnd,
    /// The length exceeds the advertised maximum block size.
    #[error("the request exceeds the maximum block size")]
    TooLong,
}

impl Invalid {
    /// Returns the error number of the protocol ("Error values" in the text).
    pub fn error_number(self) -> u32 {
        match self {
            Invalid::ReadOnly => super::reply::EPERM,
            Invalid::WriteBeyondEnd => super::reply::ENOSPC,
            _ => super::reply::EINVAL,
        }
    }
}

impl Request {
    /// Decodes a header; `None` if it does not begin with the magic number. The stream is then out
    /// of step, so the server must close the connection.
    pub fn decode(header: &[u8; REQUEST_BYTES]) -> Option<Request> {
        let mut bytes = Bytes::new(header);
        if bytes.u32()? != MAGIC {
            return None;
        }
        let (flags, kind) = (bytes.u16()?, bytes.u16()?);
        Some(Request {
            flags,
            kind,
            cookie: bytes.u64()?,
            offset: bytes.u64()?,
            length: bytes.u32()?,
        })
    }

    /// Returns the number of bytes of data that follow the header.
    pub fn payload_bytes(&self) -> u32 {
        if self.kind == 1 { self.length } else { 0 }
    }

    /// Returns whether this is a read. Replies to reads must be structured once structured replies
    /// have been negotiated.
    pub fn is_read(&self) -> bool {
        self.kind == 0
    }

    /// Returns whether the client disconnects.
    pub fn is_disconnect(&self) -> bool {
        self.kind == 2
    }

    /// Returns the command, if the export supports it with these flags and this range.
    ///
    /// # Errors
    /// Returns the reason for refusing the request.
    pub fn command(&self, export: &ExportInfo) -> Result<Command, Invalid> {
        let fua = self.flags & FUA != 0;
        let (command, allowed, needed) = match self.kind {
            0 => (Command::Read, DF, 0),
            1 => (Command::Write { fua }, 0, 0),
            2 => return Ok(Command::Disconnect),
            3 => (Command::Flush, 0, flag::SEND_FLUSH),
            4 => (Command::Trim { fua }, 0, flag::SEND_TRIM),
            5 => (Command::Cache, 0, flag::SEND_CACHE),
            6 => {
                let zeroes = Command::WriteZeroes { fua };
                (zeroes, NO_HOLE, flag::SEND_WRITE_ZEROES)
            }
            7 => (Command::BlockStatus, REQ_ONE, 0),
            _ => return Err(Invalid::Command),
        };
        // FUA "is valid for all commands" once the server has advertised it.
        let general = match export.flags & flag::SEND_FUA {
            0 => 0,
            _ => FUA,
        };
        // "SHOULD return NBD_EINVAL if it receives an unknown command flag".
        if self.flags & !(allowed | general) != 0 {
            return Err(Invalid::Flags);
        }
        self.check_permission(command, export)?;
        if export.flags & needed != needed {
            return Err(Invalid::Command);
        }
        self.check_range(command, export)?;
        Ok(command)
    }

    fn check_permission(&self, command: Command, export: &ExportInfo) -> Result<(), Invalid> {
        let changes = matches!(
            command,
            Command::Write { .. } | Command::Trim { .. } | Command::WriteZeroes { .. }
        );
        if changes && export.flags & flag::READ_ONLY != 0 {
            return Err(Invalid::ReadOnly);
        }
        Ok(())
    }

    fn check_range(&self, command: Command, export: &ExportInfo) -> Result<(), Invalid> {
        if command == Command::Flush {
            // Offset and length "are reserved, and MUST be set to all-zero"; they are ignored.
            return Ok(());
        }
        if self.length == 0 {
            return Err(Invalid::Empty);
        }
        let end = self.offset.checked_add(u64::from(self.length));
        if end.is_none_or(|end| end > export.bytes) {
            return Err(match command {
                Command::Write { .. } | Command::WriteZeroes { .. } => Invalid::WriteBeyondEnd,
                _ => Invalid::BeyondEnd,
            });
        }
        let minimum = export.sizes.minimum;
        let aligned =
            self.offset.is_multiple_of(u64::from(minimum)) && self.length.is_multiple_of(minimum);
        // A block status request need not be aligned.
        if !aligned && command != Command::BlockStatus {
            return Err(Invalid::Misaligned);
        }
        let is_limited = matches!(
            command,
            Command::Read | Command::Write { .. } | Command::Cache
        );
        if is_limited && self.length > export.sizes.maximum {
            return Err(Invalid::TooLong);
        }
        Ok(())
    }
}
