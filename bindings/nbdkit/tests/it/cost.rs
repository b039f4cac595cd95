//! Does the modelled cost of a misaligned block agree with a client's measurement?
//!
//! fio uses only the clock. It writes and reads on a served drive with every block at a boundary,
//! and then with every block after one. The costs are computed without a server.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use traxtent_check::cost::{Load, typical, work_cost};
use traxtent_model::profile::Profile;

use crate::nbdkit::{Server, key, write};

/// The relative tolerance of a cost.
const TOLERANCE: f64 = 0.15;
/// The seconds before fio measures, so that the drive's buffer is full, and the seconds of
/// measurement.
const RAMP: u32 = 2;
const COUNTED: u32 = 5;
/// The greatest number of measurements with fio: other work on the machine makes the drive look
/// slower.
const ROUNDS: usize = 3;
/// How many times slower than real time a drive runs if its next sectors pass while the host
/// prepares the next request. A busy host's pauses are then short compared with the revolution.
const SLOWER: u32 = 8;

/// Is the cost right for random writes of 4 KiB on a drive with 4 KiB physical and 512 B logical
/// sectors, as in a partition at sector 34?
#[test]
fn small_writes() {
    agrees(Load::SmallWrites, typical(), 2, "randwrite", 4096, 1);
}

/// Is it right for large sequential writes? The cost is zero if the buffer merges them.
#[test]
fn large_writes() {
    agrees(Load::LargeWrites, typical(), 2, "write", 512 << 10, 1);
}

/// Is it right if each write goes to the media before the next one comes?
#[test]
fn large_writes_through() {
    let profile = typical().with_value("cache.write_back", "none").unwrap();
    agrees(Load::LargeWrites, profile, 2, "write", 512 << 10, SLOWER);
}

/// Is it right for reads, whose cost is zero?
#[test]
fn reads() {
    agrees(Load::Reads, typical(), 2, "randread", 4096, 1);
}

/// Compares a cost with fio's measurements until they agree.
fn agrees(load: Load, profile: Profile, behind: u32, pattern: &str, block: u32, slower: u32) {
    let _ = (testkit::tool!("nbdkit"), testkit::tool!("fio"));
    let modelled = work_cost(&profile, load, behind).unwrap();
    let job = Job {
        profile: &profile,
        pattern,
        block,
        slower: f64::from(slower),
    };
    let (mut aligned_ms, mut actual_ms) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        aligned_ms = aligned_ms.min(job.ms(0));
        actual_ms = actual_ms.min(job.ms(behind));
        let off = (actual_ms - aligned_ms - modelled.extra_ms()).abs();
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
        if off <= TOLERANCE * scale {
            return;
        }
    }
    panic!("{}: they do not agree", load.name());
}

/// The job of fio.
struct Job<'a> {
    profile: &'a Profile,
    pattern: &'a str,
    block: u32,
    slower: f64,
}

impl Job<'_> {
    /// Returns the milliseconds per request, in the drive's time.
    fn ms(&self, behind: u32) -> f64 {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&[
            key("drive", write(folder.path(), self.profile)),
            key("speed", 1.0 / self.slower),
        ]);
        let offset = behind * self.profile.sector.logical_bytes;
        let output = Command::new("fio")
            .args(["--name=cost", "--ioengine=nbd", "--output-format=json"])
            .args(["--norandommap", "--time_based", "--randseed=1"])
            .arg(format!("--uri={}", server.uri()))
            .arg(format!("--rw={}", self.pattern))
            .arg(format!("--bs={}", self.block))
            .arg("--iodepth=1")
            .arg(format!("--size={}", self.size()))
            .arg(format!("--offset={offset}"))
            .arg(format!("--ramp_time={RAMP}"))
            .arg(format!("--runtime={COUNTED}"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // fio may print a message before the JSON.
        let json = text.find('{').map_or("", |start| &text[start..]);
        let report: Value = serde_json::from_str(json).unwrap();
        let way = if self.pattern.ends_with("read") {
            "read"
        } else {
            "write"
        };
        1000.0 / (report["jobs"][0][way]["iops"].as_f64().unwrap() * self.slower)
    }

    /// Returns the range of the work in bytes: 16 GiB as in the model, in whole blocks, or the
    /// first zone of a drive, where a track has this size.
    fn size(&self) -> u64 {
        let zone = &self.profile.geometry.zones[0];
        let tracks = u64::from(zone.last_cylinder) * u64::from(self.profile.geometry.surfaces);
        let room = match self.profile.sector.ratio() {
            1 => tracks * u64::from(self.block),
            _ => 16 << 30,
        };
        room - room % u64::from(self.block)
    }
}
