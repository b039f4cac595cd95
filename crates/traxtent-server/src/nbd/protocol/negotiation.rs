//! The handshake, from the server's greeting to the choice of an export.

use super::ExportInfo;
use super::agreement::{Agreed, find, flags};
use super::bytes::Bytes;
use super::options::{self, OptionAnswer};

/// "NBDMAGIC", the first eight bytes from a server.
const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT", before the handshake flags and before every option.
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// The handshake flag `NBD_FLAG_FIXED_NEWSTYLE`. The client's flag has the same value.
const FIXED_NEWSTYLE: u16 = 1;
/// The handshake flag `NBD_FLAG_NO_ZEROES`. The client's flag has the same value.
const NO_ZEROES: u16 = 1 << 1;
/// The number of zero bytes after the reply to `NBD_OPT_EXPORT_NAME`.
const PADDING_BYTES: usize = 124;
/// The size in bytes of an option's header: magic number, option, length.
const HEADER_BYTES: usize = 16;

/// The maximum length of an option's data in bytes. Names have at most 4096 bytes, and no client
/// asks for many contexts. Longer data is skipped, and the option refused as too big.
const DATA_BYTES_MAX: u32 = 64 << 10;
/// The maximum length in bytes of option data that is skipped. If there is more, the connection is
/// closed ("the server MAY terminate the session"): no client sends that much, and skipping it
/// would take long.
const SKIPPED_BYTES_MAX: u32 = 32 << 20;

/// `NBD_OPT_EXPORT_NAME`, the only option without an option reply.
const EXPORT_NAME: u32 = 1;

/// The state of a handshake.
#[derive(Debug)]
pub struct Negotiation<'a> {
    exports: &'a [ExportInfo],
    stage: Stage,
    pub(super) agreed: Agreed,
    no_zeroes: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    ClientFlags,
    Option,
    /// The data of a refused option, whose remaining bytes are skipped.
    Skip {
        left: u32,
    },
    Done,
}

/// The result of processing the client's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of bytes that were processed.
    pub consumed: usize,
    /// Bytes to send.
    pub reply: Vec<u8>,
    /// The continuation once they have been sent.
    pub next: Next,
}

/// The continuation of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes are needed, or the rest of the input may hold another message.
    Continue,
    /// The transmission phase.
    Transmission(Agreed),
    /// The end of the connection.
    Close,
}

impl<'a> Negotiation<'a> {
    /// Begins a handshake; returns it and the bytes to send. The first export is the default one.
    pub fn new(exports: &'a [ExportInfo]) -> (Negotiation<'a>, Vec<u8>) {
        let mut greeting = Vec::new();
        greeting.extend(NBD_MAGIC.to_be_bytes());
        greeting.extend(OPTION_MAGIC.to_be_bytes());
        greeting.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        let negotiation = Negotiation {
            exports,
            stage: Stage::ClientFlags,
            agreed: Agreed::default(),
            no_zeroes: false,
        };
        (negotiation, greeting)
    }

    /// Processes the client's next message, if it is complete in `input`. Call it again with the
    /// rest of the input until it consumes nothing.
    pub fn step(&mut self, input: &[u8]) -> Step {
        match self.stage {
            Stage::ClientFlags => self.client_flags(input),
            Stage::Option => self.option(input),
            Stage::Skip { left } => {
                let skipped = input.len().min(left as usize);
                self.stage = match left - skipped as u32 {
                    0 => Stage::Option,
                    left => Stage::Skip { left },
                };
                Step::quiet(skipped)
            }
            Stage::Done => Step::close(0),
        }
    }

    fn client_flags(&mut self, input: &[u8]) -> Step {
        let Some(flags) = Bytes::new(input).u32() else {
            return Step::quiet(0);
        };
        // "If the client flags contain unknown bits, the server MUST close the connection."
        if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
            return self.close(4);
        }
        self.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
        self.stage = Stage::Option;
        Step::quiet(4)
    }

    fn option(&mut self, input: &[u8]) -> Step {
        let mut header = Bytes::new(input);
        let (Some(magic), Some(option), Some(length)) = (header.u64(), header.u32(), header.u32())
        else {
            return Step::quiet(0);
        };
        if magic != OPTION_MAGIC || length > SKIPPED_BYTES_MAX {
            return self.close(HEADER_BYTES);
        }
        if length > DATA_BYTES_MAX {
            self.stage = Stage::Skip { left: length };
            return match option {
                EXPORT_NAME => self.close(HEADER_BYTES),
                _ => Step::reply(HEADER_BYTES, options::too_big(option)),
            };
        }
        let Some(data) = header.take(length as usize) else {
            return Step::quiet(0);
        };
        let consumed = HEADER_BYTES + data.len();
        if option == EXPORT_NAME {
            return self.export_name(consumed, data);
        }
        match options::answer(option, data, self.exports, &mut self.agreed) {
            OptionAnswer::Continue(reply) => Step::reply(consumed, reply),
            OptionAnswer::Close(reply) => {
                self.stage = Stage::Done;
                Step {
                    consumed,
                    reply,
                    next: Next::Close,
                }
            }
            OptionAnswer::Go { export, reply } => self.go(consumed, export, reply),
        }
    }

    /// `NBD_OPT_EXPORT_NAME`: "If the chosen export does not exist […], the server MUST terminate
    /// the session."
    fn export_name(&mut self, consumed: usize, name: &[u8]) -> Step {
        let name = std::str::from_utf8(name).ok();
        let Some(index) = name.and_then(|name| find(self.exports, name)) else {
            return self.close(consumed);
        };
        let mut reply = Vec::new();
        reply.extend(self.exports[index].bytes.to_be_bytes());
        reply.extend(flags(&self.exports[index], &self.agreed).to_be_bytes());
        if !self.no_zeroes {
            reply.extend([0; PADDING_BYTES]);
        }
        self.go(consumed, index, reply)
    }

    /// Enters the transmission phase. A context that was chosen for another export is not valid.
    fn go(&mut self, consumed: usize, export: usize, reply: Vec<u8>) -> Step {
        self.stage = Stage::Done;
        self.agreed.export = export;
        let allocation = self.agreed.allocation.filter(|chosen| *chosen == export);
        let agreed = Agreed {
            allocation,
            ..self.agreed.clone()
        };
        Step {
            consumed,
            reply,
            next: Next::Transmission(agreed),
        }
    }

    fn close(&mut self, consumed: usize) -> Step {
        self.stage = Stage::Done;
        Step::close(consumed)
    }
}

impl Step {
    fn quiet(consumed: usize) -> Step {
        Step::reply(consumed, Vec::new())
    }

    fn reply(consumed: usize, reply: Vec<u8>) -> Step {
        Step {
            consumed,
            reply,
            next: Next::Continue,
        }
    }

    fn close(consumed: usize) -> Step {
        Step {
            consumed,
            reply: Vec::new(),
            next: Next::Close,
        }
    }
}
