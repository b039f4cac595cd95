//! A small NBD client that times its reads: the fixed newstyle handshake, and one read after another.
//!
//! From the protocol's description, <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// The client speaks the fixed handshake and wants no padding.
const CLIENT_FLAGS: u32 = 0b11;
/// The option that names the export and ends the handshake.
const EXPORT_NAME: u32 = 1;
const READ: u16 = 0;

/// A connection.
pub(crate) struct Client {
    stream: UnixStream,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> io::Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        let mut hello = CLIENT_FLAGS.to_be_bytes().to_vec();
        hello.extend(OPTION_MAGIC.to_be_bytes());
        hello.extend(EXPORT_NAME.to_be_bytes());
        // The default export has no name.
        hello.extend(0_u32.to_be_bytes());
        stream.write_all(&hello)?;
        let mut size_and_flags = [0; 10];
        stream.read_exact(&mut size_and_flags)?;
        Ok(Client { stream })
    }

    /// Reads so many bytes at an offset; returns when the last of them had come.
    pub(crate) fn read(&mut self, offset: u64, length: u32) -> io::Result<Instant> {
        let mut request = REQUEST_MAGIC.to_be_bytes().to_vec();
        request.extend(0_u16.to_be_bytes());
        request.extend(READ.to_be_bytes());
        // Its name; there is one at a time.
        request.extend(0_u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        self.stream.write_all(&request)?;
        let mut reply = vec![0; 16 + length as usize];
        self.stream.read_exact(&mut reply[..16])?;
        assert_eq!(&reply[..4], REPLY_MAGIC.to_be_bytes());
        assert_eq!(reply[4..8], [0; 4], "the read fails");
        self.stream.read_exact(&mut reply[16..])?;
        Ok(Instant::now())
    }
}
