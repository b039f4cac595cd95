//! Tests with clients that are silent, send garbage, stop in the middle of a request, read their
//! replies slowly or not at all, or disconnect.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use traxtent_model::profile::builtin;

use crate::client::{Client, READ, WRITE, request};
use crate::server::{Server, argument, option, write};

/// The number of ill-behaved clients.
const CLIENTS: usize = 200;

const MIB: usize = 1 << 20;

/// Serves two drives: one whose requests complete at once, in the thread that reads them, and one
/// with mechanics, which needs a thread for each outstanding request.
fn servers(folder: &TempDir) -> [Server; 2] {
    let quick = Server::start(&[argument("instant"), option("transport", "off")]);
    let profile = write(folder.path(), &builtin("atlas10k2").unwrap());
    let mechanical = [
        argument(profile),
        option("speed", 1000),
        option("transport", "off"),
    ];
    [quick, Server::start(&mechanical)]
}

/// Returns the number of threads for clients, and the number of open files.
fn threads_and_files(server: &Server) -> (usize, usize) {
    let process = format!("/proc/{}", server.id());
    let tasks = fs::read_dir(format!("{process}/task")).unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let threads = names.filter(|name| name == "client\n").count();
    (
        threads,
        fs::read_dir(format!("{process}/fd")).unwrap().count(),
    )
}

/// Waits until no thread for clients is left; returns the number of open files.
fn files_without_clients(server: &Server) -> usize {
    let begun = Instant::now();
    loop {
        match threads_and_files(server) {
            (0, files) => return files,
            (threads, _) => assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{threads} threads for clients are left"
            ),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns a connection in the handshake, after sending `sent`.
fn greeted(server: &Server, sent: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(server.socket()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(sent).unwrap();
    stream
}

/// A connection that stays open.
enum Kept {
    Handshake { _stream: UnixStream },
    Transmission { _client: Client },
}

/// Starts a client that behaves badly, in one of eight ways.
fn ill_behaved(server: &Server, way: usize) -> Kept {
    let option = [&[0, 0, 0, 3][..], b"IHAVEOPT", &7_u32.to_be_bytes()].concat();
    let handshake = |sent: &[u8]| Kept::Handshake {
        _stream: greeted(server, sent),
    };
    let transmission = |sent: &[u8]| {
        let mut client = Client::new(server);
        client.send(sent).unwrap();
        Kept::Transmission { _client: client }
    };
    match way % 8 {
        // Silent, before and within an option.
        0 => handshake(&[]),
        1 => handshake(&option),
        // Garbage: instead of flags, as an option's length, and instead of a request.
        2 => handshake(&[0xa5; 64]),
        3 => handshake(&[&option[..], &[0xff; 64]].concat()),
        4 => transmission(&[0xa5; 64]),
        // Half a header; half of the data.
        5 => transmission(&request(0, READ, 0, 512)[..13]),
        6 => transmission(&[request(0, WRITE, 0, MIB as u32), vec![1; MIB / 2]].concat()),
        // Large requests whose replies are not read.
        _ => transmission(&request(0, READ, 0, MIB as u32).repeat(8)),
    }
}

/// While 200 clients behave badly, is an ordinary one served? Afterwards, are all their threads and
/// files gone, and have incomplete writes changed nothing?
#[test]
fn two_hundred_at_once() {
    let folder = TempDir::new().unwrap();
    for server in servers(&folder) {
        let files = files_without_clients(&server);
        let kept: Vec<Kept> = (0..CLIENTS).map(|way| ill_behaved(&server, way)).collect();
        let mut client = Client::new(&server);
        let begun = Instant::now();
        for number in 0..50_u8 {
            let (offset, mut back) = (u64::from(number + 8) << 20, [0; 4096]);
            client.write(offset, &[number; 4096]).unwrap().unwrap();
            client.read(offset, &mut back).unwrap().unwrap();
            assert_eq!(back, [number; 4096]);
        }
        client.flush().unwrap().unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "101 requests took {took:?}");
        drop(kept);
        client.read(0, &mut [0; 512]).unwrap().unwrap();
        drop(client);
        assert_eq!(files_without_clients(&server), files);
        // An incomplete write has changed nothing.
        let mut back = vec![1; MIB];
        Client::new(&server).read(0, &mut back).unwrap().unwrap();
        assert!(back == vec![0; MIB]);
        assert!(!server.output().contains("panic"), "{}", server.output());
    }
}

/// If a client reads its replies slowly, does it get all of them intact while another client is
/// served?
#[test]
fn a_slow_reader() {
    let folder = TempDir::new().unwrap();
    for server in servers(&folder) {
        let mut other = Client::new(&server);
        let data: Vec<u8> = (0..MIB).map(|byte| (byte / 256) as u8).collect();
        other.write(0, &data).unwrap().unwrap();
        let mut slow = Client::new(&server);
        slow.send(&request(0, READ, 0, MIB as u32).repeat(4))
            .unwrap();
        for _ in 0..4 {
            let mut header = [0; 16];
            slow.receive(&mut header).unwrap();
            assert_eq!(header[4..8], [0; 4]);
            for part in data.chunks(MIB / 8) {
                thread::sleep(Duration::from_millis(5));
                let mut back = vec![0; part.len()];
                slow.receive(&mut back).unwrap();
                assert!(back == part);
                other.read(0, &mut [0; 512]).unwrap().unwrap();
            }
        }
    }
}

/// If clients disconnect in the middle of the reply to a large read, is the next client served, and
/// are all threads and files of clients gone afterwards?
#[test]
fn disconnected_within_a_large_read() {
    let folder = TempDir::new().unwrap();
    for server in servers(&folder) {
        let files = files_without_clients(&server);
        for _ in 0..8 {
            let mut client = Client::new(&server);
            client.send(&request(0, READ, 0, 32 << 20)).unwrap();
            client.receive(&mut vec![0; MIB]).unwrap();
        }
        let mut client = Client::new(&server);
        client.write(0, &[1; 512]).unwrap().unwrap();
        drop(client);
        assert_eq!(files_without_clients(&server), files);
    }
}
