//! A minimal client for the NBD protocol
//! (<https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>), which sends exactly the
//! requests of a test, one at a time. Common clients round requests to sectors, split them, and
//! retry.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::server::Server;

/// A connection to one export.
#[derive(Debug)]
pub(crate) struct Client(UnixStream);

/// Error numbers of the protocol, which are the same as those of Linux.
pub(crate) const EPERM: u32 = 1;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;

/// The result of a request: success, or an error number. A missing response is a connection error.
pub(crate) type Response = io::Result<Result<(), u32>>;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const WRITE_ZEROES: u16 = 6;

/// The flag FUA of a request: its effect must be on the media before the response.
pub(crate) const FUA: u16 = 1;

const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
const EXPORT_NAME: u32 = 1;
/// The client's flags: fixed new style, and no padding after the server's response.
const CLIENT_FLAGS: u32 = 3;
const REQUEST_MAGIC: u32 = 0x2560_9513;

impl Client {
    pub(crate) fn new(server: &Server) -> Client {
        Client::of(server, "").expect("it has an export")
    }

    /// Connects to an export by name; `None` if the server closes the connection instead.
    pub(crate) fn of(server: &Server, export: &str) -> Option<Client> {
        let mut stream = UnixStream::connect(server.socket()).expect("it listens");
        // If the server hangs, the test fails instead of waiting forever.
        let patience = Some(Duration::from_secs(100));
        stream.set_read_timeout(patience).expect("it is not zero");
        let greeting: [u8; 18] = receive(&mut stream).expect("it greets");
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        let hello = [
            &CLIENT_FLAGS.to_be_bytes(),
            &OPTION_MAGIC[..],
            &EXPORT_NAME.to_be_bytes(),
            &(export.len() as u32).to_be_bytes(),
            export.as_bytes(),
        ]
        .concat();
        stream.write_all(&hello).expect("it listens");
        let _size_and_flags: [u8; 10] = receive(&mut stream).ok()?;
        Some(Client(stream))
    }

    pub(crate) fn read(&mut self, offset: u64, into: &mut [u8]) -> Response {
        let header = request(0, READ, offset, into.len() as u32);
        self.send(&header)?;
        let response = self.response()?;
        if response.is_ok() {
            self.0.read_exact(into)?;
        }
        Ok(response)
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Response {
        self.write_with(0, offset, data)
    }

    pub(crate) fn write_with(&mut self, flags: u16, offset: u64, data: &[u8]) -> Response {
        let header = request(flags, WRITE, offset, data.len() as u32);
        self.send(&[&header, data].concat())?;
        self.response()
    }

    pub(crate) fn flush(&mut self) -> Response {
        self.command(0, FLUSH, 0, 0)
    }

    /// Sends a request without data.
    pub(crate) fn command(&mut self, flags: u16, kind: u16, offset: u64, count: u32) -> Response {
        self.send(&request(flags, kind, offset, count))?;
        self.response()
    }

    /// Sends bytes, such as a part of a request.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Receives bytes, such as a part of a response.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(into)
    }

    fn response(&mut self) -> Response {
        let header: [u8; 16] = receive(&mut self.0)?;
        let error = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        Ok(if error == 0 { Ok(()) } else { Err(error) })
    }
}

/// Returns the header of a request.
pub(crate) fn request(flags: u16, kind: u16, offset: u64, count: u32) -> Vec<u8> {
    let cookie = 0_u64;
    [
        &REQUEST_MAGIC.to_be_bytes()[..],
        &flags.to_be_bytes(),
        &kind.to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &count.to_be_bytes(),
    ]
    .concat()
}

fn receive<const N: usize>(stream: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
