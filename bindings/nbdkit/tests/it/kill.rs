//! Is what was flushed there when the server is killed?

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use traxtent_core::profile::{WriteBack, builtin};
use traxtent_core::workload::Rng;

use crate::nbdkit::{Server, key, write};

/// Kills the server while a client writes: what was flushed before is in the file, and of what was not
/// each sector is old or new.
#[test]
fn what_was_flushed_survives() {
    let (_, qemu_io) = (testkit::tool!("nbdkit"), testkit::tool!("qemu-io"));
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    for seed in 0..testkit::repeats(4) {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data.img");
        let server = Server::start(&[
            key("drive", write(folder.path(), &profile)),
            key("file", data.display()),
            key("speed", 10),
        ]);
        let mut client = Command::new(&qemu_io)
            .args(["-f", "raw", "-t", "writeback", &server.uri()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut orders = client.stdin.take().unwrap();
        // Flushed; then written anew, here and elsewhere, until the server is gone.
        writeln!(orders, "write -P 1 0 256k\nflush").unwrap();
        let mut answers = BufReader::new(client.stdout.take().unwrap());
        let mut seen = String::new();
        while !seen.contains("wrote") {
            answers.read_line(&mut seen).unwrap();
        }
        // Flushes answer nothing; the next answer comes after.
        writeln!(orders, "read -P 1 0 512").unwrap();
        while !seen.contains("read 512") {
            answers.read_line(&mut seen).unwrap();
        }
        assert!(!seen.contains("fail"), "{seen}");
        for round in 0..50 {
            let _ = writeln!(orders, "aio_write -P 2 {}k 4k", round * 8);
        }
        let mut rng = Rng::new(seed);
        thread::sleep(Duration::from_micros(rng.below(20_000)));
        server.kill();
        // It would wait for the server to come back.
        client.kill().unwrap();
        client.wait().unwrap();
        let mut left = vec![0; 512 << 10];
        File::open(&data).unwrap().read_exact(&mut left).unwrap();
        for (number, sector) in left.chunks(512).enumerate() {
            let flushed = u8::from(number < 512);
            let rewritten = (number / 8).is_multiple_of(2) && number / 16 < 50;
            let old = sector.iter().all(|byte| *byte == flushed);
            let new = rewritten && sector.iter().all(|byte| *byte == 2);
            assert!(
                old || new,
                "seed {seed}, sector {number}: {:?}",
                &sector[..8]
            );
        }
    }
}
