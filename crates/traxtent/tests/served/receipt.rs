//! Is a receipt written on request, and when the server stops?

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{Server, argument, option, run};

/// Waits for a receipt and returns its content.
pub(crate) fn read(path: &Path) -> Value {
    let started = Instant::now();
    loop {
        if let Ok(text) = fs::read(path) {
            return serde_json::from_slice(&text)
                .expect("a receipt appears only once it is complete");
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no receipt is written"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// Is a receipt of everything served so far written on SIGUSR1, after which the server continues,
/// and on SIGTERM, when it stops? Are delivered times no shorter than modelled ones?
#[test]
fn on_signals() {
    let qemu_io = testkit::tool!("qemu-io");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("receipt.json");
    let server = Server::start(&[
        argument("atlas10k2"),
        option("seed", 9),
        option("receipt", path.display()),
    ]);
    let uri = server.uri();
    let write = ["-f", "raw", "-c", "write 0 64k", "-c", "flush", &uri];
    run(&qemu_io, &write);
    server.signal("USR1");
    let first = read(&path);
    assert_eq!(
        (&first["drive"], &first["seed"]),
        (&"atlas10k2".into(), &9.into())
    );
    assert_eq!(first["writes"], 1);
    assert_eq!(first["profile_sha256"].as_str().map(str::len), Some(64));
    fs::remove_file(&path).unwrap();
    run(&qemu_io, &["-f", "raw", "-c", "read 0 64k", &uri]);
    server.signal("TERM");
    server.wait();
    let last = read(&path);
    assert_eq!((&last["writes"], &last["reads"]), (&1.into(), &1.into()));
    // A response time is no shorter than the model's.
    let percentile_ms = |times: &str, percentile: &str| last[times][percentile].as_f64().unwrap();
    for percentile in ["p50", "p99", "max"] {
        assert!(
            percentile_ms("delivered_ms", percentile) >= percentile_ms("modelled_ms", percentile),
            "{last}"
        );
    }
    // Each kind of request has its own mean and maximum.
    for (kind, times) in last["kinds"].as_object().unwrap() {
        let ms = |times: &Value, what: &str| times[what].as_f64().unwrap();
        let (modelled, delivered) = (&times["modelled_ms"], &times["delivered_ms"]);
        // A flush of an empty cache takes no time in the model.
        assert!(
            ms(modelled, "mean") > 0.0 || kind == "flushes",
            "{kind}: {last}"
        );
        assert!(
            ms(delivered, "mean") >= ms(modelled, "mean"),
            "{kind}: {last}"
        );
        assert!(
            ms(delivered, "max") >= ms(delivered, "mean"),
            "{kind}: {last}"
        );
    }
    // The transfer of 64 KiB from the media takes more than a millisecond.
    assert!(percentile_ms("modelled_ms", "max") > 1.0, "{last}");
}
