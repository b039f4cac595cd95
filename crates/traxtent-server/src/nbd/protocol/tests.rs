//! Tests of the protocol against messages built as its text describes them.

use super::reply::{self, EINVAL, ENOSPC, EPERM};
use super::*;

const SIZES: BlockSizes = BlockSizes {
    minimum: 512,
    preferred: 4096,
    maximum: 32 << 20,
};

fn exports() -> Vec<ExportInfo> {
    let export = |name: &str, bytes, flags| ExportInfo {
        name: name.to_owned(),
        description: format!("drive {name}"),
        bytes,
        flags,
        sizes: SIZES,
    };
    let all = flag::HAS_FLAGS
        | flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_TRIM
        | flag::SEND_WRITE_ZEROES
        | flag::SEND_CACHE;
    vec![
        export("a", 1 << 20, all),
        export("b", 1 << 30, flag::HAS_FLAGS | flag::READ_ONLY),
    ]
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// The data of `NBD_OPT_GO` and `NBD_OPT_INFO`.
fn go(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((wanted.len() as u16).to_be_bytes());
    wanted
        .iter()
        .for_each(|kind| data.extend(kind.to_be_bytes()));
    data
}

/// The data of the options on metadata contexts.
fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query)));
    data
}

/// An option reply: the option, the type, and the data.
type Reply = (u32, u32, Vec<u8>);

/// Passes messages to a new negotiation in pieces of `piece` bytes. Returns the replies and the
/// last step's continuation.
fn talk(exports: &[ExportInfo], messages: &[Vec<u8>], piece: usize) -> (Vec<u8>, Next) {
    let (mut negotiation, greeting) = Negotiation::new(exports);
    assert_eq!(greeting, b"NBDMAGICIHAVEOPT\0\x03");
    let flags = 3_u32.to_be_bytes().to_vec();
    let sent = [&[flags], messages].concat().concat();
    let (mut received, mut said) = (Vec::new(), Vec::new());
    for bytes in sent.chunks(piece) {
        received.extend(bytes);
        loop {
            let step = negotiation.step(&received);
            received.drain(..step.consumed);
            said.extend(step.reply);
            match step.next {
                Next::Continue if step.consumed > 0 => {}
                Next::Continue => break,
                end => return (said, end),
            }
        }
    }
    (said, Next::Continue)
}

/// Splits option replies.
fn replies(mut said: &[u8]) -> Vec<Reply> {
    let mut replies = Vec::new();
    while !said.is_empty() {
        assert_eq!(said[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
        let number = |at: usize| u32::from_be_bytes(said[at..at + 4].try_into().unwrap());
        let end = 20 + number(16) as usize;
        replies.push((number(8), number(12), said[20..end].to_vec()));
        said = &said[end..];
    }
    replies
}

fn kinds(said: &[u8]) -> Vec<u32> {
    replies(said).iter().map(|(_, kind, _)| *kind).collect()
}

const ERROR: u32 = 1 << 31;

/// Are the options of an ordinary client answered as the text requires, however its bytes are
/// split?
#[test]
fn an_ordinary_client() {
    let messages = [
        option(8, &[]),
        option(10, &contexts("b", &["base:allocation", "x-else:y"])),
        option(7, &go("b", &[1, 2, 3])),
    ];
    for piece in [1, 3, 7, 1000] {
        let (said, end) = talk(&exports(), &messages, piece);
        let said = replies(&said);
        assert_eq!(said[0], (8, 1, vec![]));
        let context = [&1_u32.to_be_bytes()[..], b"base:allocation"].concat();
        assert_eq!(said[1], (10, 4, context));
        assert_eq!(said[2], (10, 1, vec![]));
        // Size and flags, with `NBD_FLAG_SEND_DF` for structured replies.
        let flags = flag::HAS_FLAGS | flag::READ_ONLY | flag::SEND_DF;
        let info = [
            &[0, 0],
            &(1_u64 << 30).to_be_bytes()[..],
            &flags.to_be_bytes(),
        ]
        .concat();
        assert_eq!(said[3], (7, 3, info));
        assert_eq!(said[4].2, [&[0, 1][..], b"b"].concat());
        assert_eq!(said[5].2, [&[0, 2][..], b"drive b"].concat());
        let sizes = [512_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat();
        assert_eq!(said[6].2, [&[0, 3][..], &sizes].concat());
        assert_eq!(said[7], (7, 1, vec![]));
        let agreed = Agreed {
            export: 1,
            structured: true,
            allocation: Some(1),
        };
        assert_eq!(end, Next::Transmission(agreed));
    }
}

/// Is a context valid only for the export for which it was chosen, only with structured replies,
/// and only until the client replaces it?
#[test]
fn contexts_belong_to_an_export() {
    let set = |name| option(10, &contexts(name, &["base:allocation"]));
    let agreed = |messages: &[Vec<u8>]| match talk(&exports(), messages, 1000).1 {
        Next::Transmission(agreed) => agreed.allocation,
        other => panic!("{other:?}"),
    };
    let (structured, go) = (option(8, &[]), option(7, &go("a", &[])));
    assert_eq!(agreed(&[structured.clone(), set("a"), go.clone()]), Some(0));
    // The empty name selects the first export.
    assert_eq!(agreed(&[structured.clone(), set(""), go.clone()]), Some(0));
    assert_eq!(agreed(&[structured.clone(), set("b"), go.clone()]), None);
    assert_eq!(agreed(&[set("a"), go.clone()]), None);
    let nothing = option(10, &contexts("a", &[]));
    assert_eq!(agreed(&[structured, set("a"), nothing, go]), None);
    let (said, _) = talk(&exports(), &[set("a")], 1000);
    assert_eq!(kinds(&said), [ERROR + 3]);
}

/// Are options that are unknown, invalid, too long or for an unknown export refused with the error
/// numbers of the text, and does the handshake continue?
#[test]
fn refused_options() {
    for (message, kind) in [
        (option(5, &[]), ERROR + 1),
        (option(11, &[]), ERROR + 1),
        (option(77, b"?"), ERROR + 1),
        (option(3, b"?"), ERROR + 3),
        (option(8, b"?"), ERROR + 3),
        (option(6, &go("c", &[])), ERROR + 6),
        (option(7, b"\0\0\0\x09abc"), ERROR + 3),
        (option(7, &[go("a", &[]), vec![0]].concat()), ERROR + 3),
        (option(9, &vec![0; 70_000]), ERROR + 9),
    ] {
        let messages = [message, option(6, &go("a", &[]))];
        let (said, end) = talk(&exports(), &messages, 4096);
        let said = kinds(&said);
        assert_eq!(said[0], kind, "{:?}", &messages[0][..16]);
        assert_eq!(said.last(), Some(&1));
        assert_eq!(end, Next::Continue);
    }
}

/// Are all exports listed, and does an abort end the connection after its reply?
#[test]
fn a_list_and_an_abort() {
    let (said, end) = talk(&exports(), &[option(3, &[]), option(2, &[])], 5);
    let said = replies(&said);
    assert_eq!(said[0], (3, 2, [string("a"), b"drive a".to_vec()].concat()));
    assert_eq!(said[1], (3, 2, [string("b"), b"drive b".to_vec()].concat()));
    assert_eq!((said[2].1, said[3].1), (1, 1));
    assert_eq!(end, Next::Close);
}

/// Does `NBD_OPT_EXPORT_NAME` enter the transmission phase, and does an unknown name close the
/// connection?
#[test]
fn export_names() {
    let (said, end) = talk(&exports(), &[option(1, b"a")], 1000);
    assert_eq!(said.len(), 10, "no zeroes were agreed upon");
    assert!(matches!(end, Next::Transmission(agreed) if agreed.export == 0));
    let (said, end) = talk(&exports(), &[option(1, b"c")], 1000);
    assert_eq!((said.len(), end), (0, Next::Close));
}

/// Do unknown client flags, a wrong magic number and absurd lengths end the connection?
#[test]
fn broken_handshakes() {
    let exports = exports();
    let (mut negotiation, _) = Negotiation::new(&exports);
    assert_eq!(negotiation.step(&[0, 0, 0, 4]).next, Next::Close);
    assert_eq!(negotiation.step(&option(3, &[])).next, Next::Close);
    let mut wrong = option(3, &[]);
    wrong[0] = b'J';
    assert_eq!(talk(&exports, &[wrong], 1000).1, Next::Close);
    let mut long = option(3, &[]);
    long[12] = 0xff;
    assert_eq!(talk(&exports, &[long], 1000).1, Next::Close);
}

fn request(flags: u16, kind: u16, offset: u64, length: u32) -> Request {
    let mut header = 0x2560_9513_u32.to_be_bytes().to_vec();
    header.extend(flags.to_be_bytes());
    header.extend(kind.to_be_bytes());
    header.extend(7_u64.to_be_bytes());
    header.extend(offset.to_be_bytes());
    header.extend(length.to_be_bytes());
    let request = Request::decode(&header.try_into().unwrap());
    request.expect("it begins with the magic number")
}

/// Are requests accepted and refused by command, flags, range and permission as the text requires,
/// and is a header without the magic number refused?
#[test]
fn requests_are_checked() {
    let exports = exports();
    let (writable, read_only) = (&exports[0], &exports[1]);
    let ok = |flags, kind, offset, length| request(flags, kind, offset, length).command(writable);
    let error = |flags, kind, offset, length| {
        let refused = request(flags, kind, offset, length).command(writable);
        refused.unwrap_err().error_number()
    };
    assert_eq!(ok(0, 0, 0, 1 << 20), Ok(Command::Read));
    assert_eq!(ok(1, 1, 512, 512), Ok(Command::Write { fua: true }));
    assert_eq!(ok(0, 3, 0, 0), Ok(Command::Flush));
    assert_eq!(ok(1 | 2, 6, 0, 512), Ok(Command::WriteZeroes { fua: true }));
    assert_eq!(ok(8, 7, 1, 1), Ok(Command::BlockStatus));
    // FUA is valid for every command, but only if it was advertised.
    let without_fua = ExportInfo {
        flags: writable.flags & !flag::SEND_FUA,
        ..writable.clone()
    };
    for (kind, command) in [
        (0, Command::Read),
        (1, Command::Write { fua: true }),
        (3, Command::Flush),
        (4, Command::Trim { fua: true }),
        (5, Command::Cache),
        (6, Command::WriteZeroes { fua: true }),
        (7, Command::BlockStatus),
    ] {
        assert_eq!(ok(1, kind, 512, 512), Ok(command));
        let refused = request(1, kind, 512, 512).command(&without_fua);
        assert_eq!(refused, Err(Invalid::Flags));
    }
    // Beyond the end: a read and a trim are invalid, a write and a write-zeroes lack space.
    let end = 1 << 20;
    assert_eq!(error(0, 0, end, 512), EINVAL);
    assert_eq!(error(0, 4, end, 512), EINVAL);
    assert_eq!(error(0, 1, end - 512, 1024), ENOSPC);
    assert_eq!(error(0, 6, u64::MAX - 511, 512), ENOSPC);
    // Empty, misaligned, an unknown command, and flags that are unknown or of other commands.
    for (flags, kind, offset, length) in [
        (0, 0, 0, 0),
        (0, 0, 1, 512),
        (0, 1, 0, 511),
        (0, 9, 0, 512),
        (2, 0, 0, 512),
        (1 << 4, 6, 0, 512),
        (1 << 9, 1, 0, 512),
    ] {
        assert_eq!(error(flags, kind, offset, length), EINVAL);
    }
    for kind in [1, 4, 6] {
        let refused = request(0, kind, 0, 512).command(read_only);
        assert_eq!(refused.unwrap_err().error_number(), EPERM);
    }
    assert_eq!(request(0, 0, 0, 512).command(read_only), Ok(Command::Read));
    assert!(Request::decode(&[0; REQUEST_BYTES]).is_none());
}

/// Do replies have the layout that the text specifies?
#[test]
fn replies_are_laid_out() {
    let read = request(0, 0, 1024, 512);
    let cookie = 7_u64.to_be_bytes();
    let simple = [&0x6744_6698_u32.to_be_bytes()[..], &[0; 4], &cookie].concat();
    assert_eq!(reply::success(&read), simple);
    assert_eq!(reply::read_header(&read, false), simple);
    let magic = 0x668e_33ef_u32.to_be_bytes();
    let data = [&magic[..], &[0, 1, 0, 1], &cookie, &520_u32.to_be_bytes()].concat();
    let data = [&data[..], &1024_u64.to_be_bytes()].concat();
    assert_eq!(reply::read_header(&read, true), data);
    let failed = [&magic[..], &[0, 1, 0x80, 1], &cookie, &8_u32.to_be_bytes()].concat();
    let failed = [&failed[..], &[0, 0, 0, 5, 0, 2], b"no"].concat();
    assert_eq!(reply::failure(&read, reply::EIO, "no", true), failed);
    let status = [&magic[..], &[0, 1, 0, 5], &cookie, &12_u32.to_be_bytes()].concat();
    let status = [&status[..], &[0, 0, 0, 1], &512_u32.to_be_bytes(), &[0; 4]].concat();
    assert_eq!(reply::all_allocated(&read), status);
    // A long message is cut at a character boundary.
    let long = "€".repeat(2000);
    let cut = reply::failure(&read, reply::EIO, &long, true);
    assert_eq!(cut.len(), 20 + 6 + 4095);
}
