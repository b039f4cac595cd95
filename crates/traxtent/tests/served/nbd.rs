//! The NBD front end: exports by name, ports, permissions, and the requests of common clients.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use traxtent_model::profile::{WriteBack, builtin};

use crate::client::{Client, EPERM, FUA, TRIM, WRITE_ZEROES};
use crate::server::{Server, TRAXTENT, argument, option, run, small, write};

/// The path of libnbd's module for Debian's Python.
const LIBNBD: &str = "/usr/lib/python3/dist-packages/nbd.py";

fn uri_of(server: &Server, export: &str) -> String {
    let socket = server.socket();
    format!("nbd+unix:///{export}?socket={}", socket.display())
}

/// Is each of several drives chosen by its name, is the first the default, are all listed, and is
/// an unknown name refused?
#[test]
fn several_exports() {
    let folder = TempDir::new().unwrap();
    let drive = small(folder.path(), 512, 4096);
    let server = Server::start(&[argument("a=instant"), argument(format!("b={drive}"))]);
    for (export, byte) in [("a", 1), ("b", 2)] {
        let mut client = Client::of(&server, export).unwrap();
        client.write(0, &[byte; 512]).unwrap().unwrap();
    }
    for (export, byte) in [("", 1), ("a", 1), ("b", 2)] {
        let mut back = [0; 512];
        let mut client = Client::of(&server, export).unwrap();
        client.read(0, &mut back).unwrap().unwrap();
        assert_eq!(back, [byte; 512], "{export:?}");
    }
    assert!(Client::of(&server, "c").is_none());
    let nbdinfo = testkit::tool!("nbdinfo");
    let listed = run(&nbdinfo, &["--json", "--list", &server.uri()]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let exports = listed["exports"].as_array().unwrap();
    let shown = |key| {
        exports
            .iter()
            .map(|export| &export[key])
            .collect::<Vec<_>>()
    };
    assert_eq!(shown("export-name"), ["a", "b"]);
    assert_eq!(shown("export-size"), [64_u64 << 30, 64 << 20]);
    let unknown = Command::new(&nbdinfo)
        .arg(uri_of(&server, "c"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(
        !unknown.status.success() && said.contains("export: c"),
        "{said}"
    );
}

/// Are writes, trims and zeroes on a read-only export refused as not permitted, with or without
/// FUA, and is nothing changed? Is the export announced as read-only?
#[test]
fn read_only() {
    let folder = TempDir::new().unwrap();
    let drive = small(folder.path(), 512, 512);
    let keys = [drive, option("file", folder.path().join("data").display())];
    let server = Server::start(&keys);
    Client::new(&server)
        .write_with(FUA, 0, &[7; 4096])
        .unwrap()
        .unwrap();
    server.signal("TERM");
    server.wait();
    let [drive, file] = keys;
    let server = Server::start(&[drive, file, "--read-only".to_owned()]);
    let mut client = Client::new(&server);
    for flags in [0, FUA] {
        assert_eq!(client.write_with(flags, 0, &[1; 4096]).unwrap(), Err(EPERM));
        for kind in [TRIM, WRITE_ZEROES] {
            assert_eq!(client.command(flags, kind, 0, 4096).unwrap(), Err(EPERM));
        }
    }
    let mut back = [0; 4096];
    client.read(0, &mut back).unwrap().unwrap();
    assert_eq!(back, [7; 4096]);
    client.flush().unwrap().unwrap();
    let nbdinfo = testkit::tool!("nbdinfo");
    let shown = run(&nbdinfo, &["--json", &server.uri()]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let export = &shown["exports"][0];
    for (key, value) in [
        ("is_read_only", true),
        ("can_trim", false),
        ("can_zero", false),
    ] {
        assert_eq!(export[key], value, "{key}");
    }
}

/// Is the data of a write with FUA on the media when the response arrives, without a flush and
/// despite the drive's write-back cache? The server is killed at once.
#[test]
fn fua_writes_survive_a_kill() {
    let folder = TempDir::new().unwrap();
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    let image = folder.path().join("data");
    // Slow, so that a write that is only cached would reach the media long after the kill.
    let server = Server::start(&[
        argument(write(folder.path(), &profile)),
        option("file", image.display()),
        option("speed", 0.02),
    ]);
    const FAR: u64 = 1 << 30;
    let mut client = Client::new(&server);
    client.write_with(FUA, FAR, &[7; 4096]).unwrap().unwrap();
    server.kill();
    let mut kept = [0; 4096];
    let file = fs::File::open(&image).unwrap();
    file.read_exact_at(&mut kept, FAR).unwrap();
    assert_eq!(kept, [7; 4096]);
}

/// Does `--port 0` choose a free port, and is it the one in `$uri` and `$port`? Is a client's
/// connection closed when the command ends?
#[test]
fn any_free_port() {
    let mut serving = Command::new(TRAXTENT)
        .args(["serve", "instant", "--port", "0"])
        .args(["--", "sh", "-c", "echo $port; echo $uri; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let port = lines.next().unwrap().unwrap();
    assert_eq!(
        lines.next().unwrap().unwrap(),
        format!("nbd://127.0.0.1:{port}/")
    );
    let mut client = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let mut greeting = [0; 8];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"NBDMAGIC");
    // The client is still connected when the command ends.
    drop(serving.stdin.take());
    assert!(serving.wait().unwrap().code().is_some());
    assert_eq!(
        client.read(&mut [0; 64]).unwrap(),
        10,
        "the rest of the greeting"
    );
    assert_eq!(client.read(&mut [0; 64]).unwrap(), 0);
}

/// Is a port in use reported in one line, with exit status 3, and is no receipt written?
#[test]
fn a_busy_port() {
    let folder = TempDir::new().unwrap();
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port();
    let refused = Command::new(TRAXTENT)
        .args(["serve", "instant", "--receipt", "receipt.json", "--port"])
        .args([&port.to_string(), "--", "true"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(
        said.contains(&format!("port {port} of 127.0.0.1: in use")),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Do QEMU's tools list the export with its sizes, and see all blocks as allocated? Do they read
/// back what they have written or zeroed, with or without FUA? Are discards accepted?
#[test]
fn by_qemu() {
    let (qemu_io, qemu_img) = (testkit::tool!("qemu-io"), testkit::tool!("qemu-img"));
    let folder = TempDir::new().unwrap();
    let server = Server::start(&[small(folder.path(), 512, 4096)]);
    let uri = server.uri();
    let commands = [
        "write -P 5 0 1M",
        "write -f -P 6 1M 64k",
        "write -z 0 64k",
        "write -z -u 64k 64k",
        "write -z -f 128k 64k",
        "discard 192k 64k",
        "flush",
        "read -P 0 0 192k",
        "read -P 5 256k 768k",
        "read -P 6 1M 64k",
        // Four outstanding, then all are awaited.
        "aio_write -P 7 2M 512k",
        "aio_write -P 8 3M 512k",
        "aio_read 0 1M",
        "aio_write -z 4M 512k",
        "aio_flush",
        "read -P 7 2M 512k",
        "read -P 8 3M 512k",
    ];
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    let arguments: Vec<&str> = ["-f", "raw"]
        .into_iter()
        .chain(commands)
        .chain([&*uri])
        .collect();
    // qemu-nbd as a client: does it list the export with its sizes?
    let socket = format!("--socket={}", server.socket().display());
    let listed = run(&testkit::tool!("qemu-nbd"), &["--list", &socket]).stdout;
    let listed = String::from_utf8_lossy(&listed);
    for line in ["size:  67108864", "min block: 512", "opt block: 4096"] {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    let done = run(&qemu_io, &arguments);
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(!said.contains("fail") && !said.contains("rror"), "{said}");
    let map = run(&qemu_img, &["map", "-f", "raw", "--output=json", &uri]);
    let map: Value = serde_json::from_slice(&map.stdout).unwrap();
    let extents = map.as_array().unwrap();
    let lengths = extents
        .iter()
        .map(|extent| extent["length"].as_u64().unwrap());
    assert_eq!(lengths.sum::<u64>(), 64 << 20);
    for extent in extents {
        assert_eq!(
            (&extent["data"], &extent["zero"]),
            (&Value::from(true), &Value::from(false))
        );
    }
}

/// Runs a Python script with libnbd. The script's arguments are URIs.
fn python(script: &str, uris: &[&str]) -> String {
    let arguments = [&["-c", script], uris].concat();
    let output = run(Path::new("/usr/bin/python3"), &arguments);
    String::from_utf8(output.stdout).unwrap()
}

/// Requests of libnbd: first valid ones; then, without libnbd's own checks, mostly invalid ones,
/// each with the error that the server returns.
const REQUESTS: &str = r"
import nbd, sys
h = nbd.NBD()
h.add_meta_context('base:allocation')
h.connect_uri(sys.argv[1])
assert h.get_structured_replies_negotiated() and h.can_df() and h.can_cache() and h.can_fua()
size, extents = h.get_size(), []
assert h.can_meta_context('base:allocation')
h.block_status(size, 0, lambda name, at, entries, error: extents.extend(entries))
assert extents == [size, 0], extents
h.pwrite(b'a' * 4096, 0, nbd.CMD_FLAG_FUA)
h.cache(1 << 20, 0)
chunks = []
h.pread_structured(4096, 0, lambda part, at, status, error: chunks.append((bytes(part), at)), nbd.CMD_FLAG_DF)
assert chunks == [(b'a' * 4096, 0)]
h.zero(512, 512, nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE)
h.trim(1024, 1024, nbd.CMD_FLAG_FUA)
assert h.pread(4096, 0)[:1024] == b'a' * 512 + bytes(512)
h.flush()
h.set_strict_mode(0)
h.block_status(1, 77, lambda *_: None, nbd.CMD_FLAG_REQ_ONE)
def refused(errno_name, call, *arguments):
    try:
        call(*arguments)
    except nbd.Error as error:
        assert error.errno == errno_name, (error, arguments)
        return str(error)
    raise AssertionError(arguments)
refused('EINVAL', h.pread, 512, size)
refused('EINVAL', h.pread, 511, 0)
refused('EINVAL', h.pread, 0, 0)
refused('ENOSPC', h.pwrite, bytes(512), size)
refused('ENOSPC', h.zero, 1024, size - 512)
refused('EINVAL', h.trim, 512, size)
refused('EINVAL', h.cache, 512, size)
refused('EINVAL', h.block_status, 512, size, lambda *_: None)
refused('EINVAL', h.zero, 512, 0, nbd.CMD_FLAG_FAST_ZERO)
assert h.pread(512, 0) == b'a' * 512
h.shutdown()
";

/// Are libnbd's valid requests carried out, and its invalid ones refused with the protocol's
/// errors? Can the connection be used afterwards?
#[test]
fn by_libnbd() {
    if !Path::new(LIBNBD).exists() {
        testkit::skip!("python3-libnbd is not installed");
    }
    let folder = TempDir::new().unwrap();
    let server = Server::start(&[small(folder.path(), 512, 4096)]);
    python(REQUESTS, &[&server.uri()]);
}

/// Options of libnbd, negotiated step by step: names, contexts, and an abort before an export is
/// chosen. Then connections that end with requests outstanding.
const OPTIONS: &str = r"
import nbd, sys
def begun(uri):
    h = nbd.NBD()
    h.set_opt_mode(True)
    h.add_meta_context('base:allocation')
    h.connect_uri(uri)
    return h
def unknown(call):
    try:
        call()
    except nbd.Error as error:
        return
    raise AssertionError('an unknown name is accepted')
a, b, c = sys.argv[1:]
h, names = begun(a), []
h.opt_list(lambda name, text: names.append(name))
assert names == ['a', 'b'], names
h.set_export_name('c')
unknown(h.opt_info)
unknown(h.opt_go)
h.set_export_name('b')
h.opt_info()
assert h.get_size() == 64 << 20 and h.can_meta_context('base:allocation')
h.opt_go()
assert h.pread(512, 0) == bytes(512)
h.shutdown()
h = begun(a)
h.opt_abort()
assert h.aio_is_closed()
# Disconnect with requests outstanding: alternately without and with NBD_CMD_DISC.
for turn in range(20):
    h = nbd.NBD()
    h.connect_uri(a)
    buffers = [nbd.Buffer(1 << 20) for _ in range(16)]
    for at, buffer in enumerate(buffers):
        h.aio_pread(buffer, at << 20)
    if turn % 2:
        h.aio_disconnect()
    del h
assert nbd.NBD().connect_uri(b) is None
";

/// Are libnbd's options answered, and does the server outlive clients that leave with requests
/// outstanding?
#[test]
fn options_and_disconnects_of_libnbd() {
    if !Path::new(LIBNBD).exists() {
        testkit::skip!("python3-libnbd is not installed");
    }
    let folder = TempDir::new().unwrap();
    let drive = small(folder.path(), 512, 4096);
    let server = Server::start(&[argument("a=instant"), argument(format!("b={drive}"))]);
    let uris = ["a", "b", "c"].map(|name| uri_of(&server, name));
    python(OPTIONS, &uris.each_ref().map(String::as_str));
    Client::new(&server)
        .read(0, &mut [0; 512])
        .unwrap()
        .unwrap();
    assert!(!server.output().contains("panic"), "{}", server.output());
}
