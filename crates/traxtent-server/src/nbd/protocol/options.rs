//! The answers to the client's options ("Option types" and "Option reply types" in the text).

use super::agreement::{Agreed, find, flags};
use super::bytes::Bytes;
use super::{ALLOCATION, ALLOCATION_ID, ExportInfo};

/// The first eight bytes of every option reply.
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

// Options.
const ABORT: u32 = 2;
const LIST: u32 = 3;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;
const LIST_META_CONTEXT: u32 = 9;
const SET_META_CONTEXT: u32 = 10;

// Option replies. Errors have the highest bit set.
const ACK: u32 = 1;
const SERVER: u32 = 2;
const REP_INFO: u32 = 3;
const META_CONTEXT: u32 = 4;
const ERR_UNSUP: u32 = (1 << 31) + 1;
const ERR_INVALID: u32 = (1 << 31) + 3;
const ERR_UNKNOWN: u32 = (1 << 31) + 6;
const ERR_TOO_BIG: u32 = (1 << 31) + 9;

// Information types of `NBD_REP_INFO`.
const INFO_EXPORT: u16 = 0;
const INFO_NAME: u16 = 1;
const INFO_DESCRIPTION: u16 = 2;
const INFO_BLOCK_SIZE: u16 = 3;

/// The answer to an option.
pub(super) enum OptionAnswer {
    /// The bytes to send before the next option.
    Continue(Vec<u8>),
    /// The bytes to send before the connection ends.
    Close(Vec<u8>),
    /// The bytes to send before the transmission phase with an export.
    Go { export: usize, reply: Vec<u8> },
}

/// Answers an option other than `NBD_OPT_EXPORT_NAME`.
pub(super) fn answer(
    option: u32,
    data: &[u8],
    exports: &[ExportInfo],
    agreed: &mut Agreed,
) -> OptionAnswer {
    let mut reply = Reply::to(option);
    match option {
        ABORT => {
            reply.add(ACK, &[]);
            return OptionAnswer::Close(reply.bytes);
        }
        LIST if data.is_empty() => list(&mut reply, exports),
        INFO | GO => {
            if let Some(export) = info(&mut reply, data, exports, agreed)
                && option == GO
            {
                let reply = reply.bytes;
                return OptionAnswer::Go { export, reply };
            }
        }
        STRUCTURED_REPLY if data.is_empty() => {
            agreed.structured = true;
            reply.add(ACK, &[]);
        }
        LIST | STRUCTURED_REPLY => reply.error(ERR_INVALID, "the option takes no data"),
        LIST_META_CONTEXT | SET_META_CONTEXT => contexts(&mut reply, data, exports, agreed),
        // "NBD_REP_ERR_UNSUP: The option sent by the client is unknown by this server".
        _ => reply.error(ERR_UNSUP, "the option is not supported"),
    }
    OptionAnswer::Continue(reply.bytes)
}

/// Refuses an option whose data is too long.
pub(super) fn too_big(option: u32) -> Vec<u8> {
    let mut reply = Reply::to(option);
    reply.error(ERR_TOO_BIG, "the option's data is too long");
    reply.bytes
}

/// `NBD_OPT_LIST`: a `NBD_REP_SERVER` for each export, then `NBD_REP_ACK`.
fn list(reply: &mut Reply, exports: &[ExportInfo]) {
    for export in exports {
        let length = (export.name.len() as u32).to_be_bytes();
        let name = export.name.as_bytes();
        reply.add(SERVER, &[&length, name, export.description.as_bytes()]);
    }
    reply.add(ACK, &[]);
}

/// `NBD_OPT_INFO` and `NBD_OPT_GO`. Returns the export if there is no error.
///
/// The block sizes are sent even if the client has not requested them: "The server MAY send
/// information requests back which are not explicitly requested".
fn info(reply: &mut Reply, data: &[u8], exports: &[ExportInfo], agreed: &Agreed) -> Option<usize> {
    let Some((name, wanted)) = info_request(data) else {
        reply.error(ERR_INVALID, "the option's data is not valid");
        return None;
    };
    let Some(index) = name.and_then(|name| find(exports, name)) else {
        reply.error(ERR_UNKNOWN, "there is no export with this name");
        return None;
    };
    let export = &exports[index];
    let (bytes, flags) = (export.bytes.to_be_bytes(), flags(export, agreed));
    reply.info(INFO_EXPORT, &[&bytes, &flags.to_be_bytes()]);
    if wanted.contains(&INFO_NAME) {
        reply.info(INFO_NAME, &[export.name.as_bytes()]);
    }
    if wanted.contains(&INFO_DESCRIPTION) {
        reply.info(INFO_DESCRIPTION, &[export.description.as_bytes()]);
    }
    let sizes = &export.sizes;
    let sizes = [sizes.minimum, sizes.preferred, sizes.maximum].map(u32::to_be_bytes);
    reply.info(INFO_BLOCK_SIZE, &[&sizes[0], &sizes[1], &sizes[2]]);
    reply.add(ACK, &[]);
    Some(index)
}

/// Returns the name (`None` if it is not UTF-8) and the requested information types.
fn info_request(data: &[u8]) -> Option<(Option<&str>, Vec<u16>)> {
    let mut data = Bytes::new(data);
    let name = data.string()?;
    let count = data.u16()?;
    let wanted = (0..count)
        .map(|_| data.u16())
        .collect::<Option<Vec<u16>>>()?;
    data.is_empty().then_some((name, wanted))
}

/// `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
fn contexts(reply: &mut Reply, data: &[u8], exports: &[ExportInfo], agreed: &mut Agreed) {
    let set = reply.option == SET_META_CONTEXT;
    if set {
        // "the server MUST […] replace any previously selected contexts", even on an error.
        agreed.allocation = None;
    }
    if !agreed.structured {
        return reply.error(ERR_INVALID, "structured replies must be negotiated first");
    }
    let Some((name, queries)) = context_request(data) else {
        return reply.error(ERR_INVALID, "the option's data is not valid");
    };
    let Some(index) = name.and_then(|name| find(exports, name)) else {
        return reply.error(ERR_UNKNOWN, "there is no export with this name");
    };
    // A list option without queries asks for all contexts. The namespace alone, "base:", is a
    // wildcard in a list option, and chooses nothing in a set option.
    let all = !set && (queries.is_empty() || queries.contains(&Some("base:")));
    if all || queries.contains(&Some(ALLOCATION)) {
        let id = if set { ALLOCATION_ID } else { 0 };
        reply.add(META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION.as_bytes()]);
        if set {
            agreed.allocation = Some(index);
        }
    }
    reply.add(ACK, &[]);
}

/// The name of an export and the queries for contexts, `None` where they are not UTF-8.
type ContextRequest<'a> = (Option<&'a str>, Vec<Option<&'a str>>);

fn context_request(data: &[u8]) -> Option<ContextRequest<'_>> {
    let mut data = Bytes::new(data);
    let name = data.string()?;
    let count = data.u32()?;
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(data.string()?);
    }
    data.is_empty().then_some((name, queries))
}

/// The option replies to one option.
struct Reply {
    option: u32,
    bytes: Vec<u8>,
}

impl Reply {
    fn to(option: u32) -> Reply {
        let bytes = Vec::new();
        Reply { option, bytes }
    }

    /// Adds an option reply of a type, with its data in parts.
    fn add(&mut self, kind: u32, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.bytes.extend(REPLY_MAGIC.to_be_bytes());
        self.bytes.extend(self.option.to_be_bytes());
        self.bytes.extend(kind.to_be_bytes());
        self.bytes.extend((length as u32).to_be_bytes());
        parts.iter().for_each(|part| self.bytes.extend(*part));
    }

    fn info(&mut self, kind: u16, parts: &[&[u8]]) {
        let kind = kind.to_be_bytes();
        let parts: Vec<&[u8]> = [&kind[..]]
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        self.add(REP_INFO, &parts);
    }

    /// Adds an error with a message for users.
    fn error(&mut self, kind: u32, message: &str) {
        self.add(kind, &[message.as_bytes()]);
    }
}
