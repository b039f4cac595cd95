//! NBD: the handshake and the requests of a client.

use traxtent_server::nbd::protocol::{
    Command, ExportInfo, Negotiation, Next, REQUEST_BYTES, Request, flag, reply,
};
use traxtent_server::service::BlockSizes;

fn exports() -> Vec<ExportInfo> {
    [("a", flag::READ_ONLY), ("b", flag::SEND_TRIM)]
        .map(|(name, flags)| ExportInfo {
            name: name.to_owned(),
            description: String::new(),
            bytes: 1 << 30,
            flags: flag::HAS_FLAGS | flags,
            sizes: BlockSizes {
                minimum: 512,
                preferred: 4096,
                maximum: 32 << 20,
            },
        })
        .into()
}

/// A handshake: the replies and the end do not depend on how the client's bytes are split.
pub(crate) fn handshake(input: &[u8]) {
    let Some((&piece, input)) = input.split_first() else {
        return;
    };
    let exports = exports();
    let whole = talk(&exports, input, input.len().max(1));
    assert_eq!(talk(&exports, input, usize::from(piece).max(1)), whole);
}

fn talk(exports: &[ExportInfo], input: &[u8], piece: usize) -> (Vec<u8>, Next) {
    let (mut negotiation, mut said) = Negotiation::new(exports);
    let mut received = Vec::new();
    for bytes in input.chunks(piece) {
        received.extend_from_slice(bytes);
        loop {
            let step = negotiation.step(&received);
            assert!(step.consumed <= received.len());
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

/// A request: if it is accepted, it lies within the export, and every refusal has a reply.
pub(crate) fn request(input: &[u8]) {
    let Some(header) = input.first_chunk::<REQUEST_BYTES>() else {
        return;
    };
    let Some(request) = Request::decode(header) else {
        return;
    };
    for export in exports() {
        match request.command(&export) {
            Ok(Command::Flush | Command::Disconnect) => {}
            Ok(_) => {
                let end = request.offset.checked_add(u64::from(request.length));
                assert!(end.is_some_and(|end| end <= export.bytes));
            }
            Err(invalid) => {
                let text = invalid.to_string();
                assert!(reply::failure(&request, invalid.error_number(), &text, true).len() > 26);
            }
        }
    }
}
