//! The part of the test that runs inside the guest.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use traxtent_io::device::{BlockTarget, Device, Interrupt, SgTransport, in_use, open};
use traxtent_probe::ScsiTarget;
use traxtent_probe::{ProbeError, Target, TargetError, qualify};
use traxtent_scsi::mode::CACHING_PAGE;
use traxtent_scsi::{DataTransfer, PageValues, Status, Transport, TransportError};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors};

const GENERIC: &str = "/dev/sg0";
const DISK: &str = "/dev/sda";
/// The capacity of the disk in sectors of 512 bytes.
const SECTORS: u64 = 64 * 2048;
/// The first bad sector of `scsi_debug` when bad sectors are enabled.
const BAD: Lbn = Lbn(0x1234);
/// The attribute that selects the faults of `scsi_debug`.
const OPTIONS: &str = "/sys/bus/pseudo/drivers/scsi_debug/opts";

pub(super) fn run() {
    let end = Instant::now() + Duration::from_secs(20);
    while !(Path::new(GENERIC).exists() && Path::new(DISK).exists()) {
        assert!(Instant::now() < end, "the disk does not appear");
        std::thread::sleep(Duration::from_millis(20));
    }
    for (name, check) in [
        ("inquiry by bytes", inquiry_by_bytes as fn()),
        ("identity", identity),
        ("mode pages", mode_pages),
        ("interrupted probe", interrupted),
        ("verify and translate", verify_and_translate),
        ("bad sectors", bad_sectors),
        ("in use", used_as_swap),
        ("no spindle", no_spindle),
        ("time-out", times_out),
        ("removed", removed),
    ] {
        let begin = Instant::now();
        check();
        println!("{name}: {:.1} s", begin.elapsed().as_secs_f64());
    }
}

fn scsi(path: &str) -> ScsiTarget<SgTransport> {
    match open(Path::new(path)).unwrap() {
        Device::Scsi(target) => *target,
        Device::Block(_) => panic!("{path} was opened as a block device"),
    }
}

/// Is the data of an INQUIRY received, and are refusals returned with their sense data?
fn inquiry_by_bytes() {
    for path in [GENERIC, DISK] {
        let mut transport = SgTransport::open(Path::new(path)).unwrap();
        let before = transport.now();
        let mut room = [0; 96];
        let inquiry = [0x12, 0, 0, 0, 96, 0];
        let reply = transport
            .execute(&inquiry, DataTransfer::In(&mut room))
            .unwrap();
        assert_eq!(reply.status, Status::Good);
        assert!(reply.received >= 36 && reply.received <= 96, "{reply:?}");
        assert_eq!(&room[8..26], b"Linux   scsi_debug");
        assert!(before <= reply.timing.sent && reply.timing.sent < reply.timing.completed);
        // An unknown command: illegal request, invalid operation code.
        let reply = transport
            .execute(&[0xff, 0, 0, 0, 0, 0], DataTransfer::None)
            .unwrap();
        assert_eq!(reply.status, Status::CheckCondition);
        assert_eq!((reply.sense[2] & 0x0f, reply.sense[12]), (5, 0x20));
    }
}

/// Are model, capacity and sector sizes those with which the disk was created, and is there a
/// serial number, both by SCSI and through the block device?
fn identity() {
    let by_scsi = scsi(GENERIC).identity().clone();
    assert_eq!(
        (by_scsi.vendor.as_str(), by_scsi.product.as_str()),
        ("Linux", "scsi_debug")
    );
    assert!(!by_scsi.serial.is_empty());
    assert_eq!(by_scsi.capacity, Sectors(SECTORS));
    assert_eq!((by_scsi.logical_bytes, by_scsi.physical_bytes), (512, 4096));
    let by_block = BlockTarget::open(Path::new(DISK)).unwrap();
    assert_eq!(*by_block.identity(), by_scsi);
    assert!(by_block.rotational().is_some());
}

fn caching_page(target: &mut ScsiTarget<SgTransport>) -> Vec<u8> {
    target.mode_page(CACHING_PAGE, PageValues::Current).unwrap()
}

/// Returns the page with its bit WCE inverted, the only bit that this disk declares changeable.
fn changed(page: &[u8]) -> Vec<u8> {
    let mut page = page.to_vec();
    page[2] ^= 0x04;
    page
}

/// Can the caching page be changed, and is it restored on request and when the target is dropped?
/// Is the read cache switched off exactly if the disk declares that a host may do so?
fn mode_pages() {
    let mut target = scsi(GENERIC);
    for page in [0x03, 0x08] {
        let bytes = target.mode_page(page, PageValues::Current).unwrap();
        assert_eq!(bytes[0] & 0x3f, page);
    }
    let found = caching_page(&mut target);
    let other = changed(&found);
    target.change_caching(&other).unwrap();
    assert_eq!(caching_page(&mut target), other);
    target.restore_caching().unwrap();
    assert_eq!(caching_page(&mut target), found);

    target.change_caching(&other).unwrap();
    drop(target);
    let mut target = scsi(DISK);
    assert_eq!(caching_page(&mut target), found);

    let mask = target
        .mode_page(CACHING_PAGE, PageValues::Changeable)
        .unwrap();
    let off = target.suspend_caching().unwrap();
    assert_eq!(off.reads, mask[2] & 0x01 != 0);
    target.restore_caching().unwrap();
    assert_eq!(caching_page(&mut target), found);
}

/// Does a probe that receives SIGINT, SIGTERM or SIGHUP restore the caching page?
fn interrupted() {
    let found = caching_page(&mut scsi(GENERIC));
    for signal in ["INT", "TERM", "HUP"] {
        let mut prober = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", super::TEST, "--nocapture"])
            .env(super::ROLE, "prober")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(prober.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("caching is changed")));
        assert_eq!(caching_page(&mut scsi(DISK)), changed(&found));
        let kill = ["kill", &format!("-{signal}"), &prober.id().to_string()].map(str::to_owned);
        assert!(
            Command::new("/bin/busybox")
                .args(kill)
                .status()
                .unwrap()
                .success()
        );
        assert!(lines.any(|line| line.unwrap().ends_with("interrupted")));
        assert!(prober.wait().unwrap().success());
        assert_eq!(caching_page(&mut scsi(DISK)), found, "after SIG{signal}");
    }
}

/// Runs a probe with caching changed, until a signal arrives.
pub(super) fn prober() {
    let interrupt = Interrupt::catch().unwrap();
    let mut target = scsi(GENERIC);
    let page = caching_page(&mut target);
    target.change_caching(&changed(&page)).unwrap();
    println!("\ncaching is changed");
    std::io::stdout().flush().unwrap();
    let mut lbn = 0;
    while !interrupt.raised() {
        target.request(Request::read(Lbn(lbn), 1)).unwrap();
        lbn = (lbn + 1) % SECTORS;
    }
    println!("\ninterrupted");
}

/// Are VERIFY and READ with force unit access served, is a read beyond the end refused, and are
/// translation and defect lists reported as unsupported?
fn verify_and_translate() {
    let mut target = scsi(GENERIC);
    let verify = |lbn| Request {
        op: Op::Verify,
        ..Request::read(Lbn(lbn), 1)
    };
    target.request(verify(0)).unwrap();
    target.request(verify(SECTORS - 1)).unwrap();
    target
        .request(Request {
            fua: true,
            ..Request::read(Lbn(5), 64)
        })
        .unwrap();
    // This disk does not check the bounds of a VERIFY that compares nothing, so the test uses a
    // read.
    let beyond = target.request(Request::read(Lbn(SECTORS), 1)).unwrap_err();
    assert!(matches!(beyond, TargetError::Refused(_)), "{beyond}");
    let refusal = target.translate(Lbn(0)).unwrap_err();
    assert!(matches!(refusal, TargetError::Unsupported(_)), "{refusal}");
    let refusal = target.defects().unwrap_err();
    assert!(matches!(refusal, TargetError::Unsupported(_)), "{refusal}");
    target.request(verify(0)).unwrap();
}

/// Is a bad sector reported as unreadable, by SCSI and through the block device, and does the disk
/// continue to work?
fn bad_sectors() {
    fs::write(OPTIONS, "2").unwrap();
    let unreadable = TargetError::Unreadable {
        lbn: BAD,
        sectors: 1,
    };
    let mut by_block = BlockTarget::open(Path::new(DISK)).unwrap();
    let targets: [&mut dyn Target; 2] = [&mut scsi(GENERIC), &mut by_block];
    for target in targets {
        target.request(Request::read(Lbn(BAD.0 - 1), 1)).unwrap();
        assert_eq!(
            target.request(Request::read(BAD, 1)),
            Err(unreadable.clone())
        );
        target.request(Request::read(Lbn(BAD.0 + 10), 1)).unwrap();
    }
    fs::write(OPTIONS, "0").unwrap();
    by_block.request(Request::read(BAD, 1)).unwrap();
}

/// Is a disk in use as swap detected, also through its generic node?
fn used_as_swap() {
    let busybox = |words: &[&str]| {
        let status = Command::new("/bin/busybox")
            .args(words)
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{words:?}");
    };
    assert_eq!(in_use(Path::new(GENERIC)), None);
    busybox(&["mkswap", DISK]);
    busybox(&["swapon", DISK]);
    for path in [DISK, GENERIC] {
        assert_eq!(
            in_use(Path::new(path)).as_deref(),
            Some("/dev/sda is swap space")
        );
    }
    busybox(&["swapoff", DISK]);
    assert_eq!(in_use(Path::new(DISK)), None);
}

/// Is the disk refused as not rotating, both when it completes after 20 µs and when it completes
/// at a tick of the kernel's timer?
fn no_spindle() {
    let delay = |name: &str, value: &str| {
        fs::write(format!("/sys/bus/pseudo/drivers/scsi_debug/{name}"), value).unwrap();
    };
    for timer in [false, true] {
        if timer {
            delay("ndelay", "0");
            delay("delay", "1");
        }
        for path in [GENERIC, DISK] {
            let error = match path {
                GENERIC => qualify(&mut scsi(path)),
                _ => qualify(&mut BlockTarget::open(Path::new(path)).unwrap()),
            }
            .unwrap_err();
            assert!(matches!(error, ProbeError::NotRotating(_)), "{error}");
            println!("{path}, timer {timer}: {error}");
        }
    }
    delay("delay", "0");
}

/// Is a command that the disk never completes aborted after the time-out, and does the disk
/// continue to work?
fn times_out() {
    let every = "/sys/bus/pseudo/drivers/scsi_debug/every_nth";
    let mut transport = SgTransport::open(Path::new(GENERIC))
        .unwrap()
        .with_timeout_ms(500);
    let ready = [0; 6];
    fs::write(OPTIONS, "4").unwrap();
    fs::write(every, "-1").unwrap();
    let begin = Instant::now();
    let late = transport.execute(&ready, DataTransfer::None).unwrap_err();
    assert!(begin.elapsed() > Duration::from_millis(400));
    assert!(
        matches!(&late, TransportError::Refused(why) if why.contains("no response within 500 ms"))
    );
    fs::write(every, "0").unwrap();
    fs::write(OPTIONS, "0").unwrap();
    let mut target = scsi(GENERIC);
    target.request(Request::read(Lbn(0), 1)).unwrap();
}

/// Is a disk that is removed during a probe reported as gone, by SCSI and through the block device?
fn removed() {
    let mut by_scsi = scsi(GENERIC);
    let mut by_disk = scsi(DISK);
    let mut by_block = BlockTarget::open(Path::new(DISK)).unwrap();
    fs::write("/sys/block/sda/device/delete", "1").unwrap();
    let targets: [&mut dyn Target; 3] = [&mut by_scsi, &mut by_disk, &mut by_block];
    for target in targets {
        let error = target.request(Request::read(Lbn(7), 1)).unwrap_err();
        assert!(matches!(error, TargetError::Gone(_)), "{error}");
        let error = qualify(target).unwrap_err();
        assert!(
            matches!(error, ProbeError::Target(TargetError::Gone(_))),
            "{error}"
        );
    }
}
