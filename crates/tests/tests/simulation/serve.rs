//! Does a served drive have the times of the model, to the picosecond, and the right data?

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use traxtent_model::disk::Fault;
use traxtent_model::drive::Drive;
use traxtent_model::profile::{
    OriginKind, Profile, Provenance, Scheduler, Unmap, WriteBack, builtin,
};
use traxtent_server::control::send_order;
use traxtent_server::serve::{DriveServer, ReceiptVerdict, Settings};
use traxtent_server::service::{BlockService, ServiceError};
use traxtent_sim::{Host, simulate};
use traxtent_units::Rng;
use traxtent_units::SimTime;
use traxtent_workload::{Replay, ReplayPace, TraceFormat, TraceOptions, TraceReader, TraceRecord};

/// Returns the settings of a drive that is served with a request log.
fn settings(profile: Profile, speed: &str, folder: &TempDir) -> Settings {
    Settings {
        speed: speed.parse().unwrap(),
        log: Some(folder.path().join("log.csv")),
        ..Settings::of("test", profile)
    }
}

fn started(settings: Settings) -> DriveServer {
    let server = DriveServer::open(settings).unwrap();
    server.start().unwrap();
    server
}

/// Returns the records of a log, in order of issue.
fn records(log: &Path) -> Vec<TraceRecord> {
    let log = BufReader::new(File::open(log).unwrap());
    TraceReader::new(TraceFormat::RequestLog, log, TraceOptions::default())
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Returns a column of a log, row by row, with the number of the request.
fn column(log: &Path, name: &str) -> Vec<(u64, String)> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut lines = text.lines();
    let place = lines
        .next()
        .unwrap()
        .split(',')
        .position(|head| head == name);
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (
                fields[0].parse().unwrap(),
                fields[place.unwrap()].to_owned(),
            )
        })
        .collect()
}

/// Returns the completion time of each request in a replay at the recorded arrivals on the virtual
/// clock.
fn replayed(profile: &Profile, log: &Path) -> Vec<(u64, SimTime)> {
    let reader = TraceReader::new(
        TraceFormat::RequestLog,
        BufReader::new(File::open(log).unwrap()),
        TraceOptions::default(),
    );
    let mut source = Replay::new(reader, ReplayPace::Recorded { speed: 1.0 });
    let mut host = Host::new(vec![Drive::new(profile).unwrap()]);
    let mut completed = Vec::new();
    simulate(&mut host, &mut source, |outcome| {
        completed.push((outcome.arrival.tag, outcome.completion.completed));
        true
    })
    .unwrap();
    completed.sort_unstable();
    completed
}

/// Returns the path of a data file that does not exist yet.
fn data_file(folder: &TempDir) -> PathBuf {
    folder.path().join("disk.img")
}

/// Does the log of a served drive, replayed at its arrivals on the virtual clock, give the modelled
/// completions to the picosecond: reads, writes, flushes, force unit access, several at a time,
/// more than the drive has room for, and with arrivals moved back by the transport time?
#[test]
fn replays_to_the_picosecond() {
    let mut shallow = builtin("atlas10k2").unwrap();
    shallow.queue.depth = 3;
    let mut caching = builtin("cheetah15k7").unwrap();
    caching.cache.write_back = WriteBack::Full;
    for (profile, subtract_transport) in [
        (shallow.clone(), false),
        (shallow, true),
        (caching.clone(), false),
        (caching, true),
    ] {
        let folder = TempDir::new().unwrap();
        let settings = Settings {
            subtract_transport,
            ..settings(profile.clone(), "20", &folder)
        };
        let log = settings.log.clone().unwrap();
        let server = started(settings);
        let sectors = server.bytes() / 512 - 64;
        let each = testkit::repeats(150);
        thread::scope(|scope| {
            for seed in 0..8 {
                let server = &server;
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    for _ in 0..each {
                        // Half of the requests begin in a small range, so that some hit the buffer.
                        let lbn = if rng.chance(0.5) {
                            rng.below(2000)
                        } else {
                            rng.below(sectors)
                        };
                        let mut data = vec![0; 512 * (1 + rng.below(32) as usize)];
                        match rng.below(10) {
                            0 => server.flush(),
                            1..=3 => server.write(data.clone(), lbn * 512, rng.chance(0.3)),
                            _ => server.read(&mut data, lbn * 512),
                        }
                        .unwrap();
                    }
                });
            }
        });
        server.stop().unwrap();
        let mut served: Vec<(u64, SimTime)> = column(&log, "completed_ms")
            .into_iter()
            .map(|(number, ms)| (number, exact(&ms)))
            .collect();
        served.sort_unstable();
        assert_eq!(served.len() as u64, 8 * each);
        assert!(served == replayed(&profile, &log), "{}", profile.name);
        let receipt = server.receipt().unwrap();
        assert_eq!(receipt.requests, 8 * each);
        assert_eq!(receipt.transport_us.max > 0.0, subtract_transport);
    }
}

/// Is the transport time subtracted from the client's wait, and does no response precede its
/// request? Without sockets, does a client that sends one request at a time wait at least the
/// model's time minus the largest subtracted time?
#[test]
fn transport_is_subtracted() {
    let folder = TempDir::new().unwrap();
    let settings = Settings {
        subtract_transport: true,
        ..settings(builtin("atlas10k2").unwrap(), "1", &folder)
    };
    let log = settings.log.clone().unwrap();
    let server = started(settings);
    let mut rng = Rng::new(1);
    let mut waited = Vec::new();
    for _ in 0..20 {
        let offset = 512 * rng.below(server.bytes() / 512 - 8);
        let begun = Instant::now();
        server.read(&mut [0; 4096], offset).unwrap();
        waited.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    // The second read hits the buffer. With its arrival moved back, it could complete in the model
    // before it really arrives.
    server.read(&mut [0; 512], 0).unwrap();
    server.read(&mut [0; 512], 0).unwrap();
    server.stop().unwrap();
    // Most requests come just after the preceding response, so almost nothing is subtracted. How
    // late a request comes depends on the machine.
    let subtracted_ms = server.receipt().unwrap().transport_us.max / 1000.0;
    assert!(subtracted_ms > 0.0 && subtracted_ms <= 1.0);
    let ms = |name| {
        column(&log, name)
            .into_iter()
            .map(|(_, ms)| ms.parse::<f64>().unwrap())
    };
    let modelled = ms("completed_ms")
        .zip(ms("submitted_ms"))
        .map(|(end, start)| end - start);
    for (waited, modelled) in waited.iter().zip(modelled) {
        assert!(
            waited + subtracted_ms + 1e-6 >= modelled,
            "{waited} of {modelled} ms"
        );
    }
    assert!(ms("measured_ms").all(|measured| measured >= 0.0));
}

/// Parses a time in milliseconds with nine decimals, as written in a log.
fn exact(ms: &str) -> SimTime {
    SimTime(ms.replace('.', "").parse().unwrap())
}

/// Are 32 requests outstanding in the model at once, and does its scheduler reorder them?
#[test]
fn a_full_queue_is_reordered() {
    let mut profile = builtin("atlas10k2").unwrap();
    profile.queue.depth = 32;
    profile.queue.scheduler = Scheduler::Sptf;
    let folder = TempDir::new().unwrap();
    let settings = settings(profile, "1", &folder);
    let log = settings.log.clone().unwrap();
    let server = started(settings);
    let (barrier, sectors) = (Barrier::new(32), server.bytes() / 512 - 8);
    thread::scope(|scope| {
        for seed in 0..32 {
            let (server, barrier) = (&server, &barrier);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                barrier.wait();
                for _ in 0..4 {
                    let mut data = [0; 4096];
                    server.read(&mut data, rng.below(sectors) * 512).unwrap();
                }
            });
        }
    });
    server.stop().unwrap();
    let times = |name| {
        let mut times: Vec<_> = column(&log, name)
            .into_iter()
            .map(|(number, ms)| (exact(&ms), number))
            .collect();
        times.sort_unstable();
        times
    };
    let (submitted, completed) = (times("submitted_ms"), times("completed_ms"));
    let most = completed.iter().enumerate().map(|(done, (at, _))| {
        let begun = submitted.iter().filter(|(submitted, _)| submitted < at);
        begun.count() - done
    });
    assert_eq!(most.max(), Some(32));
    let order: Vec<u64> = completed.iter().map(|(_, number)| *number).collect();
    let overtaken = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(overtaken > 16, "{order:?}");
    assert_eq!(records(&log).len(), 128);
}

/// Does a drive without mechanics respond immediately, and does its receipt have nothing to judge?
#[test]
fn an_instant_drive_takes_no_time() {
    let server = started(Settings::of("instant", builtin("instant").unwrap()));
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| at as u8).collect();
    server.write(data.clone(), 512, false).unwrap();
    server.zero(1024, 512, true).unwrap();
    let mut back = vec![0; 1 << 20];
    server.read(&mut back, 512).unwrap();
    assert!(back[..512] == data[..512] && back[1024..] == data[1024..]);
    assert_eq!(back[512..1024], [0; 512]);
    let receipt = server.receipt().unwrap();
    assert_eq!(receipt.verdict, ReceiptVerdict::NothingToJudge);
    assert_eq!((receipt.reads, receipt.writes), (1, 2));
    assert!(receipt.modelled_ms.max < 1e-6);
}

/// Are invalid requests refused with the reason, and does the server continue? Is a request after
/// its stop refused?
#[test]
fn bad_requests() {
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::None;
    let server = started(Settings {
        speed: "1000".parse().unwrap(),
        ..Settings::of("test", profile)
    });
    let end = server.bytes();
    for (offset, bytes) in [(100, 512), (512, 100), (0, 0)] {
        let error = server.read(&mut vec![0; bytes], offset).unwrap_err();
        assert!(matches!(error, ServiceError::Misaligned { .. }), "{error}");
    }
    for offset in [end, end - 512, 1 << 63] {
        let error = server.write(vec![0; 1024], offset, false).unwrap_err();
        assert!(matches!(error, ServiceError::BeyondEnd { .. }), "{error}");
    }
    server.write(vec![1; 1024], end - 1024, true).unwrap();
    let receipt = server.receipt().unwrap();
    assert_eq!((receipt.errors, receipt.requests), (6, 1));
    server.stop().unwrap();
    let error = server.flush().unwrap_err();
    assert!(matches!(error, ServiceError::Stopped), "{error}");
}

/// After a power cut through the control socket during a stall, does each sector hold flushed data
/// or a later write, and is the drive ready? Is a latent error accepted there within the drive and
/// refused beyond its end, and is the socket removed when the server stops?
#[test]
fn a_power_cut_by_control_socket() {
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    let folder = TempDir::new().unwrap();
    let control = folder.path().join("control");
    let server = started(Settings {
        control: Some(control.clone()),
        file: Some(data_file(&folder)),
        ..Settings::of("test", profile.clone())
    });
    server.write(vec![1; 4096], 0, false).unwrap();
    server.flush().unwrap();
    server.write(vec![2; 4096], 0, false).unwrap();
    let stall: Fault = "stall,for=20 s".parse().unwrap();
    send_order(&control, &stall).unwrap().unwrap();
    thread::scope(|scope| {
        let reads = scope.spawn(|| server.read(&mut [0; 512], 1 << 30));
        while server.receipt().unwrap().errors == 0 {
            // The read has arrived, or is about to. After the cut it fails or is served.
            let cut: Fault = "power-cut,seed=3".parse().unwrap();
            let done = send_order(&control, &cut).unwrap().unwrap();
            assert!(done.starts_with("power-cut, seed 3"), "{done}");
            if reads.is_finished() {
                break;
            }
            thread::yield_now();
        }
        let _ = reads.join().unwrap();
    });
    let mut sectors = [0; 4096];
    server.read(&mut sectors, 0).unwrap();
    assert!(
        sectors
            .chunks(512)
            .all(|sector| sector == [1; 512] || sector == [2; 512])
    );
    let beyond: Fault = "latent-error,lbn=99999999999".parse().unwrap();
    let refused = send_order(&control, &beyond).unwrap().unwrap_err();
    assert!(refused.contains("the drive ends"), "{refused}");
    let latent_error: Fault = "latent-error,lbn=8".parse().unwrap();
    send_order(&control, &latent_error).unwrap().unwrap();
    assert!(server.read(&mut [0; 512], 4096).is_err());
    server.stop().unwrap();
    assert!(!control.exists(), "the socket outlives its server");
}

/// Does the log distinguish a read that failed at an unreadable sector from those that succeeded?
#[test]
fn failed_requests_in_the_log() {
    let folder = TempDir::new().unwrap();
    let scenario = folder.path().join("scenario.toml");
    let faults = "faults = [{ at = \"0 s\", fault = \"latent-error\", lbn = 8 }]";
    std::fs::write(&scenario, faults).unwrap();
    let settings = Settings {
        scenario: Some(scenario),
        ..settings(builtin("atlas10k2").unwrap(), "100", &folder)
    };
    let log = settings.log.clone().unwrap();
    let server = started(settings);
    server.read(&mut [0; 512], 0).unwrap();
    assert!(server.read(&mut [0; 512], 8 * 512).is_err());
    server.write(vec![1; 512], 8 * 512, true).unwrap();
    server.read(&mut [0; 512], 8 * 512).unwrap();
    server.stop().unwrap();
    let words: Vec<String> = column(&log, "status")
        .into_iter()
        .map(|(_, word)| word)
        .collect();
    assert_eq!(words, ["ok", "unreadable", "ok", "ok"]);
    assert_eq!(records(&log).len(), 4);
}

/// Is each fault of a scenario either carried out or pending, although the clock goes on after the
/// model has stopped?
#[test]
fn faults_after_the_stop_are_pending() {
    let folder = TempDir::new().unwrap();
    let scenario = folder.path().join("scenario.toml");
    let faults = "faults = [{ at = \"0 s\", fault = \"stall\", for = \"1 ms\" }, { at = \"50 ms\", fault = \"power-cut\" }]";
    std::fs::write(&scenario, faults).unwrap();
    let server = started(Settings {
        scenario: Some(scenario),
        ..Settings::of("test", builtin("atlas10k2").unwrap())
    });
    server.flush().unwrap();
    server.stop().unwrap();
    thread::sleep(Duration::from_millis(60));
    let receipt = server.receipt().unwrap();
    let (occurred, pending) = (receipt.fault_count, receipt.pending_faults);
    assert_eq!(occurred + pending.len() as u64, 2, "{pending:?}");
}

/// On a drive that zeroes trimmed sectors, does a trim with force unit access survive every power
/// cut, and one without it not always?
#[test]
fn a_forced_trim_is_durable() {
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    profile.scsi.unmap = Unmap::Zeroes;
    profile.provenance = Provenance::uniform(OriginKind::Assumed, "a test");
    let trimmed = |fua: bool| {
        let mut kept = 0;
        for seed in 0..20 {
            let folder = TempDir::new().unwrap();
            let control = folder.path().join("control");
            let server = started(Settings {
                control: Some(control.clone()),
                speed: "100".parse().unwrap(),
                ..Settings::of("test", profile.clone())
            });
            server.write(vec![1; 4096], 0, true).unwrap();
            server.trim(0, 4096, fua).unwrap();
            let cut: Fault = format!("power-cut,seed={seed}").parse().unwrap();
            send_order(&control, &cut).unwrap().unwrap();
            let mut sectors = [2; 4096];
            server.read(&mut sectors, 0).unwrap();
            kept += u32::from(sectors == [0; 4096]);
        }
        kept
    };
    assert_eq!(trimmed(true), 20);
    assert!((1..20).contains(&trimmed(false)));
}

/// Is each line on the control socket that is not a fault refused with the reason and without any
/// effect, and is the next client served?
#[test]
fn lines_that_are_not_faults() {
    let folder = TempDir::new().unwrap();
    let control = folder.path().join("control");
    let server = started(Settings {
        control: Some(control.clone()),
        ..Settings::of("test", builtin("instant").unwrap())
    });
    let say = |line: &[u8]| {
        let mut stream = UnixStream::connect(&control).unwrap();
        stream.write_all(line).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    let long = [&b"vanish,for=1h"[..], &[b' '; 20_000]].concat();
    for (line, what) in [
        (&b"melt\n"[..], "melt"),
        (b"\n", "error: "),
        (b"stall,for=soon\n", "for"),
        (b"vanish,for=1h,for=2h\n", "twice"),
        (b"vanish,for=1h,\xff=\xfe\n", "error: "),
        (b"vanish,for=1h\0\n", "error: "),
        // Truncated, as by a client that dies.
        (b"vanish,for=1h", "one line"),
        (&long, "16384 bytes"),
    ] {
        let response = say(line);
        let shown = String::from_utf8_lossy(line);
        assert!(response.starts_with("error: "), "{shown}: {response}");
        assert!(response.contains(what), "{shown}: {response}");
        assert_eq!(response.lines().count(), 1, "{shown}: {response}");
    }
    assert_eq!(say(b""), "");
    server.write(vec![1; 512], 0, true).unwrap();
    assert_eq!(say(b"stall,for=1ms\nlying-flush\n").lines().count(), 2);
}

/// Is a file served by only one server at a time, refused if too small, and unchanged at the next
/// start?
#[test]
fn files() {
    let folder = TempDir::new().unwrap();
    let mut profile = builtin("instant").unwrap();
    profile.geometry.cylinders = 4;
    profile.geometry.zones[0].last_cylinder = 3;
    let settings = Settings {
        file: Some(data_file(&folder)),
        ..Settings::of("small", profile)
    };
    let server = started(settings.clone());
    server.write(vec![7; 512], 512, true).unwrap();
    let second = DriveServer::open(settings.clone()).unwrap_err().to_string();
    assert!(second.contains(": locked by another process"), "{second}");
    server.stop().unwrap();
    drop(server);
    let server = started(settings.clone());
    let mut sector = [0; 512];
    server.read(&mut sector, 512).unwrap();
    assert_eq!(sector, [7; 512]);
    drop(server);
    File::options()
        .write(true)
        .open(data_file(&folder))
        .unwrap()
        .set_len(1000)
        .unwrap();
    let small = DriveServer::open(settings).unwrap_err().to_string();
    assert!(
        small.contains("1000 bytes are too few; the drive needs 4194304"),
        "{small}"
    );
}

/// Does a client receive an error if the file system that holds the data file is full, without
/// losing flushed data, and can it continue once there is room?
#[test]
fn a_full_file_system() {
    let mount = testkit::tool!("mount");
    let folder = TempDir::new().unwrap();
    let small = Mount(folder.path().join("small"));
    std::fs::create_dir(&small.0).unwrap();
    let mut command = Command::new(mount);
    command.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
    if !command.arg(&small.0).output().unwrap().status.success() {
        testkit::skip!("a small file system cannot be mounted here");
    }
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    let server = started(Settings {
        speed: "100".parse().unwrap(),
        file: Some(small.0.join("disk.img")),
        ..Settings::of("test", profile)
    });
    let part = vec![5; 256 << 10];
    server.write(part.clone(), 0, false).unwrap();
    server.flush().unwrap();
    let full = (1..40).find_map(|place| {
        let written = server.write(part.clone(), place << 20, false);
        written.and_then(|()| server.flush()).err()
    });
    let full = full.expect("the file system has room for only 1 MiB");
    assert_eq!(
        full.errno(),
        rustix::io::Errno::NOSPC.raw_os_error(),
        "{full}"
    );
    let mut back = vec![0; 256 << 10];
    server.read(&mut back, 0).unwrap();
    assert!(back == part, "flushed data was lost");
    let more = "remount,size=16m";
    let remounted = Command::new("mount")
        .args(["-o", more])
        .arg(&small.0)
        .status();
    assert!(remounted.unwrap().success());
    server.flush().unwrap();
}

/// A file system that is unmounted when this is dropped.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazy, so that a file left open by a failed test cannot keep the mount.
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
