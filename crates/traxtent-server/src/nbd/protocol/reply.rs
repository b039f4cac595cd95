//! Replies of the transmission phase ("Simple reply message" and "Structured reply chunk message"
//! in the text).

use rustix::io::Errno;

use super::{ALLOCATION_ID, Request};

/// Operation not permitted.
pub const EPERM: u32 = 1;
/// Input/output error.
pub const EIO: u32 = 5;
/// Cannot allocate memory.
pub const ENOMEM: u32 = 12;
/// Invalid argument.
pub const EINVAL: u32 = 22;
/// No space left on the device.
pub const ENOSPC: u32 = 28;
/// Operation not supported.
pub const ENOTSUP: u32 = 95;
/// The server is being shut down.
pub const ESHUTDOWN: u32 = 108;

const SIMPLE_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;
/// `NBD_REPLY_FLAG_DONE`, the flag of the last chunk of a reply.
const DONE: u16 = 1;

// Chunk types.
const OFFSET_DATA: u16 = 1;
const BLOCK_STATUS: u16 = 5;
const ERROR: u16 = (1 << 15) + 1;

/// The maximum length of an error's message in bytes ("SHOULD NOT exceed 4096 bytes").
const MESSAGE_BYTES_MAX: usize = 4096;

/// Returns the protocol's number for an error number of the system.
pub fn error_of(errno: i32) -> u32 {
    match Errno::from_raw_os_error(errno) {
        Errno::PERM | Errno::ROFS | Errno::ACCESS => EPERM,
        Errno::NOMEM => ENOMEM,
        Errno::INVAL => EINVAL,
        // "It also SHOULD map the EDQUOT and EFBIG errors to NBD_ENOSPC."
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ENOSPC,
        Errno::OPNOTSUPP => ENOTSUP,
        Errno::SHUTDOWN => ESHUTDOWN,
        _ => EIO,
    }
}

/// Returns the bytes before the data of a successful read.
pub fn read_header(request: &Request, structured: bool) -> Vec<u8> {
    if !structured {
        return simple(request, 0);
    }
    let mut chunk = chunk(request, OFFSET_DATA, 8 + request.length);
    chunk.extend(request.offset.to_be_bytes());
    chunk
}

/// Returns the reply to a successful request that returns no data.
pub fn success(request: &Request) -> Vec<u8> {
    simple(request, 0)
}

/// Returns the reply to a request that failed. Structured replies to reads carry the message: "The
/// server MUST use structured replies to the NBD_CMD_READ transmission request".
pub fn failure(request: &Request, error: u32, message: &str, structured: bool) -> Vec<u8> {
    if !structured {
        return simple(request, error);
    }
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let message = &message.as_bytes()[..end];
    let mut chunk = chunk(request, ERROR, 6 + message.len() as u32);
    chunk.extend(error.to_be_bytes());
    chunk.extend((message.len() as u16).to_be_bytes());
    chunk.extend(message);
    chunk
}

/// Returns the reply to a request for the status of blocks: all are allocated, as on a disk.
pub fn all_allocated(request: &Request) -> Vec<u8> {
    let mut chunk = chunk(request, BLOCK_STATUS, 12);
    chunk.extend(ALLOCATION_ID.to_be_bytes());
    chunk.extend(request.length.to_be_bytes());
    // Neither `NBD_STATE_HOLE` nor `NBD_STATE_ZERO`.
    chunk.extend(0_u32.to_be_bytes());
    chunk
}

fn simple(request: &Request, error: u32) -> Vec<u8> {
    let mut reply = Vec::with_capacity(16);
    reply.extend(SIMPLE_MAGIC.to_be_bytes());
    reply.extend(error.to_be_bytes());
    reply.extend(request.cookie.to_be_bytes());
    reply
}

/// Begins a structured reply of one chunk. The caller adds the `length` bytes of data.
fn chunk(request: &Request, kind: u16, length: u32) -> Vec<u8> {
    let mut reply = Vec::with_capacity(20 + 8);
    reply.extend(CHUNK_MAGIC.to_be_bytes());
    reply.extend(DONE.to_be_bytes());
    reply.extend(kind.to_be_bytes());
    reply.extend(request.cookie.to_be_bytes());
    reply.extend(length.to_be_bytes());
    reply
}
