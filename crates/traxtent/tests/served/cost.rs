//! Does the modelled cost of a misaligned block agree with a client's measurement?
//!
//! fio observes only response times. It accesses a served drive twice: with every block aligned to
//! physical sectors, and with every block shifted by two logical sectors. The modelled costs are
//! computed without a server.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use traxtent_check::cost::{Load, typical, work_cost};
use traxtent_model::profile::Profile;

use crate::server::{Server, argument, option, write};

/// The relative tolerance of a cost.
const TOLERANCE: f64 = 0.15;
/// The seconds before fio measures, during which the drive's buffer fills.
const RAMP_S: u32 = 2;
/// The seconds of measurement.
const MEASURED_S: u32 = 5;
/// The maximum number of rounds, each of which measures both accesses with fio. Other load on the
/// machine makes the drive look slower, so the shortest times of all rounds count.
const ROUNDS_MAX: usize = 3;
/// The factor by which a drive is slowed down if its next sectors pass under the head while the
/// host prepares the next request. The pauses of a busy host are then short compared with a
/// revolution.
const SLOWDOWN: u32 = 8;

/// Is the cost right for random writes of 4 KiB on a drive with 4 KiB physical and 512 B logical
/// sectors, as in a partition at sector 34?
#[test]
fn small_writes() {
    assert_agrees(Load::SmallWrites, typical(), 2, "randwrite", 4096, 1);
}

/// Is the cost of large sequential writes right? It is a few percent.
#[test]
fn large_writes() {
    assert_agrees(Load::LargeWrites, typical(), 2, "write", 512 << 10, 1);
}

/// Is the cost of large writes right if each one reaches the media before the next arrives?
#[test]
fn large_writes_through() {
    let profile = typical().with_value("cache.write_back", "none").unwrap();
    assert_agrees(Load::LargeWrites, profile, 2, "write", 512 << 10, SLOWDOWN);
}

/// Is the cost of reads right? It is almost zero.
#[test]
fn reads() {
    assert_agrees(Load::Reads, typical(), 2, "randread", 4096, 1);
}

/// Compares a cost with fio's measurements until they agree, at most [`ROUNDS_MAX`] times.
fn assert_agrees(
    load: Load,
    profile: Profile,
    shift_sectors: u32,
    pattern: &str,
    block_bytes: u32,
    slowdown: u32,
) {
    let _ = testkit::tool!("fio");
    let modelled = work_cost(&profile, load, shift_sectors).unwrap();
    let job = Job {
        profile: &profile,
        pattern,
        block_bytes,
        slowdown: f64::from(slowdown),
    };
    let (mut aligned_ms, mut actual_ms) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS_MAX {
        aligned_ms = aligned_ms.min(job.ms(0));
        actual_ms = actual_ms.min(job.ms(shift_sectors));
        let difference_ms = (actual_ms - aligned_ms - modelled.extra_ms()).abs();
        eprintln!(
            "{}: {:.2} and {:.2} ms by the model, {aligned_ms:.2} and {actual_ms:.2} ms by fio",
            load.name(),
            modelled.aligned_ms,
            modelled.actual_ms
        );
        // A cost near zero is compared relative to the aligned time.
        let scale = if modelled.percent().abs() < 10.0 {
            modelled.aligned_ms
        } else {
            modelled.extra_ms()
        };
        if difference_ms <= TOLERANCE * scale {
            return;
        }
    }
    panic!("{}: the model and fio do not agree", load.name());
}

/// A job for fio.
struct Job<'a> {
    profile: &'a Profile,
    pattern: &'a str,
    block_bytes: u32,
    slowdown: f64,
}

impl Job<'_> {
    /// Returns the milliseconds per request, in the drive's time.
    fn ms(&self, shift_sectors: u32) -> f64 {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&[
            argument(write(folder.path(), self.profile)),
            option("speed", 1.0 / self.slowdown),
        ]);
        let offset = shift_sectors * self.profile.sector.logical_bytes;
        let output = Command::new("fio")
            .args(["--name=cost", "--ioengine=nbd", "--output-format=json"])
            .args(["--norandommap", "--time_based", "--randseed=1"])
            .arg(format!("--uri={}", server.uri()))
            .arg(format!("--rw={}", self.pattern))
            .arg(format!("--bs={}", self.block_bytes))
            .arg("--iodepth=1")
            .arg(format!("--size={}", self.size()))
            .arg(format!("--offset={offset}"))
            .arg(format!("--ramp_time={RAMP_S}"))
            .arg(format!("--runtime={MEASURED_S}"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // fio can print a message before the JSON.
        let json = text.find('{').map_or("", |start| &text[start..]);
        let report: Value = serde_json::from_str(json).unwrap();
        let direction = if self.pattern.ends_with("read") {
            "read"
        } else {
            "write"
        };
        1000.0 / (report["jobs"][0][direction]["iops"].as_f64().unwrap() * self.slowdown)
    }

    /// Returns the size of the tested range in bytes: 16 GiB, as in the model, rounded down to a
    /// whole number of blocks.
    fn size(&self) -> u64 {
        const RANGE_BYTES: u64 = 16 << 30;

        RANGE_BYTES - RANGE_BYTES % u64::from(self.block_bytes)
    }
}
