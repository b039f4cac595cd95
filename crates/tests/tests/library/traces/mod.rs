//! Are traces of every format recognized, read, and refused if they are wrong?

mod columns;
mod completions;
mod damage;
mod replay;

use std::process::Command;

use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::trace::{BlkparseEvent, LOG_COLUMNS, detect};
use traxtent_workload::{TraceFormat, TraceOptions, TraceReader, TraceRecord};

const ASCII: &str = "0.500000 0 1000 8 1\n12.25 2 2000 16 0\n\n# a remark\n13 2 0 1 1\n";
const VALIDATE: &str = "R Hit  4583176   4    663.50000  45422.00000\nW Doub 100 2 7000 0\n";
const SPC: &str = "0,20941264,8192,W,0.551706\n1,10,512,r,0.9\n1,10,1024,R,1.25,extra\n";
const MSR: &str = "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,1,Write,1517657088,513,1963\n";
const FIO_V2: &str = "fio version 2 iolog\n/dev/sd a add\n/dev/sd a open\n/dev/sd a read 4096 8192\n/b add\n/b wait 500\n\
                      /b write 0 512\n/b wait 1000 0\n/b datasync\n/dev/sd a trim 0 4096\n/dev/sd a close\n";
const FIO_V3: &str = "fio version 3 iolog\n15 /dev/sda add\n101 /dev/sda open\n106 /dev/sda write 0 4096\n\
                      132 /dev/sda sync 8192 0\n1011 /dev/sda read 12288 1000\n5057 /dev/sda close\n";
const FIO_LATENCY: &str =
    "4, 3500000, 0, 4096, 8192, 0\n9, 200000, 1, 512, 4096, 0\n9, 50, 2, 4096, 0, 0\n";
const BLKPARSE: &str = "\
  8,0    0        3     0.100000000   697  Q   R 223490 + 8 [journal]
  8,0    0        4     0.101500000   697  G   R 223490 + 8 [journal]
  8,0    0        5     0.101501000   697  D   R 223490 + 8 [journal]
  8,0    0        6     0.105501000   697  C   R 223490 + 8 [0]
  8,16   1       13     0.112504554   697  D FWFS 5000 + 1 [a process]
  8,0    0       17     0.118006331   697  D  WF 6000 + 2 [journal]
  8,0    0       21     0.123508108   697  D  FW [journal]
  8,0    0       25     0.129009885   697  D   D 8000 + 8 [journal]
  8,0    0       35     0.144014216   697  D   N 0 (12 34) [journal]
  8,0    0        0     0.144014221     0  m   N a message + 3
  8,0    0       37     0.144014221   697  D   R 36 (12 00 00 00 24 00 ..) [journal]
CPU0 (x):
 Reads Queued:           2,       68KiB\t Writes Queued:           6,       17KiB
";

/// Returns an SRT trace: a header that specifies 1,024-byte sectors, and two I/O records with a
/// suspect one between them, all of version 4.
fn srt() -> Vec<u8> {
    let mut bytes = b"$$TR_IOREC-1.3 (made up)\ntracedate = \"Sat May 30 00:03:06 1992\";\n\t\tsectorsize  = 1024,\n\x0c".to_vec();
    let record = |kind: u32, words: [u32; 12]| {
        let size = 56 + 4 * u32::from(kind == 4);
        let mut record = vec![size, 0x4_0000 | kind];
        record.extend(words);
        record.extend(vec![0; usize::from(kind == 4)]);
        record
            .into_iter()
            .flat_map(u32::to_be_bytes)
            .collect::<Vec<u8>>()
    };
    bytes.extend(record(
        1,
        [
            0,
            0,
            174,
            19_687,
            4096,
            1056,
            0x0800_0107,
            4,
            1,
            0x1b,
            0x7_0000,
            1,
        ],
    ));
    bytes.extend(record(4, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    bytes.extend(record(1, [2, 500_000, 100, 100, 1024, 3, 8, 4, 0, 0, 0, 1]));
    bytes
}

/// Returns a log of three requests in order of completion, which is not the order of their issue.
fn request_log() -> String {
    let row = |number, what: &str, issued: &str, measured: &str| {
        format!("{number},0,{what},{issued},0,0,0,0,0,0,0,0,0,0,0,media,{measured},ok\n")
    };
    [
        format!("{LOG_COLUMNS}\n"),
        row(1, "write,1,7,8", "2.000000001", "3.5"),
        row(0, "read,0,4096,1", "0.5", ""),
        row(2, "flush,0,0,0", "2.000000001", "0"),
    ]
    .concat()
}

fn samples() -> Vec<(TraceFormat, Vec<u8>)> {
    vec![
        (TraceFormat::DiskSimAscii, ASCII.into()),
        (TraceFormat::DiskSimValidate, VALIDATE.into()),
        (TraceFormat::HpSrt, srt()),
        (TraceFormat::Spc, SPC.into()),
        (TraceFormat::Msr, MSR.into()),
        (TraceFormat::Blkparse, BLKPARSE.into()),
        (TraceFormat::FioV2, FIO_V2.into()),
        (TraceFormat::FioV3, FIO_V3.into()),
        (TraceFormat::RequestLog, request_log().into_bytes()),
        (TraceFormat::FioLatency, FIO_LATENCY.into()),
    ]
}

fn read(format: TraceFormat, bytes: &[u8]) -> Vec<TraceRecord> {
    TraceReader::new(format, bytes, TraceOptions::default())
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{format}: {error}"))
}

fn failure(format: TraceFormat, bytes: &[u8]) -> String {
    let error = TraceReader::new(format, bytes, TraceOptions::default()).find_map(Result::err);
    error
        .unwrap_or_else(|| panic!("{format}: {:?} is accepted", String::from_utf8_lossy(bytes)))
        .to_string()
}

/// Returns a record with an arrival time and without a measured time.
fn arriving(arrival_us: u64, device: u32, request: Request) -> TraceRecord {
    TraceRecord {
        arrival: Some(SimTime(arrival_us * 1_000_000)),
        pause: None,
        completed: None,
        measured: None,
        device,
        request,
    }
}

/// Is every format recognized by its content, and by its name?
#[test]
fn formats_are_distinguished() {
    for format in TraceFormat::all() {
        let mut samples = samples().into_iter();
        assert!(
            samples.any(|(known, _)| known == format),
            "{format}: `samples` has no trace of it"
        );
    }
    assert_eq!(
        samples().len(),
        TraceFormat::all().count(),
        "a format has several traces in `samples`"
    );
    for (format, bytes) in samples() {
        assert_eq!(detect(&bytes).unwrap(), format);
        assert_eq!(format.to_string().parse::<TraceFormat>().unwrap(), format);
        // A truncated last line does not matter if there is another line.
        assert_eq!(detect(&bytes[..bytes.len() - 1]).unwrap(), format);
    }
    let msr_with_heading =
        format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{MSR}");
    assert_eq!(
        detect(msr_with_heading.as_bytes()).unwrap(),
        TraceFormat::Msr
    );
    assert_eq!(
        read(TraceFormat::Msr, msr_with_heading.as_bytes()),
        read(TraceFormat::Msr, MSR.as_bytes())
    );
    let srt = srt();
    let bare = &srt[srt.iter().position(|&byte| byte == 0x0c).unwrap() + 1..];
    assert_eq!(detect(bare).unwrap(), TraceFormat::HpSrt);
}

/// Is a file that is not a trace refused in one line that describes it?
#[test]
fn other_files_are_not_traces() {
    for (bytes, expected) in [
        (&b""[..], "the file is empty"),
        (b"\x1f\x8b\x08\0", "the file is gzip-compressed"),
        (b"\x28\xb5\x2f\xfd\0", "the file is zstd-compressed"),
        (b"hello world\n", "it begins with \"hello world\""),
        (
            b"disksim_global Global {\n",
            "it begins with \"disksim_global Global {\"",
        ),
        (b"\0\0\0\0\0\0\0\0\0", "it begins with \"\\0\\0"),
        (
            b"1.0 0 5 8\n",
            "it begins with \"1.0 0 5 8\"; --columns reads text with other columns",
        ),
        (
            b"1.0, 0, 5, 8, 1\n",
            "where op 0 is a read; for the columns of disksim-ascii between commas, whose flags are \
             1 for a read, add --columns time=1,device=2,lbn=3,sectors=4,op=5 --units ms --reads 1 --writes 0",
        ),
        // These columns are not those of the MSR traces, which also begin with a timestamp.
        (
            b"timestamp,op,lbn,size\n0.0,R,100,8\n",
            "it begins with \"timestamp,op,lbn,size\"; --columns reads",
        ),
        (
            b"Timestamp,Response,IOType,LUN,Offset,Size,Queue\n0.0,1,R,0,4096,4096,0\n",
            "; --columns reads",
        ),
    ] {
        let message = detect(bytes).unwrap_err().to_string();
        assert!(
            message.contains(expected)
                && message.contains("disksim-ascii")
                && !message.contains('\n'),
            "{message}"
        );
    }
    let error = "hpl".parse::<TraceFormat>().unwrap_err().to_string();
    assert!(
        error.contains("\"hpl\" is not a trace format; expected one of disksim-ascii, "),
        "{error}"
    );
}

/// Do DiskSim's formats give times, addresses and operations unchanged?
#[test]
fn disksim_formats() {
    let format = TraceFormat::DiskSimAscii;
    assert_eq!(
        read(format, ASCII.as_bytes()),
        [
            arriving(500, 0, Request::read(Lbn(1000), 8)),
            arriving(12_250, 2, Request::write(Lbn(2000), 16)),
            arriving(13_000, 2, Request::read(Lbn(0), 1)),
        ]
    );
    let prefixed = ASCII
        .replace("16 0\n", "16 0x0\n")
        .replace("1 1\n", "1 0X3\n");
    assert_ne!(prefixed, ASCII);
    assert_eq!(
        read(format, prefixed.as_bytes()),
        read(format, ASCII.as_bytes())
    );
    let semi = |think: u64, measured, request| TraceRecord {
        arrival: None,
        pause: Some(Span(think * 1_000_000)),
        completed: None,
        measured: Some(Span(measured)),
        device: 0,
        request,
    };
    assert_eq!(
        read(TraceFormat::DiskSimValidate, VALIDATE.as_bytes()),
        [
            semi(45_422, 663_500_000, Request::read(Lbn(4_583_176), 4)),
            semi(0, 7_000_000_000, Request::write(Lbn(100), 2))
        ]
    );
}

/// Are bytes and 512-byte sectors converted to the drive's sectors, and absolute times to relative
/// ones?
#[test]
fn byte_formats() {
    let format = TraceFormat::Spc;
    assert_eq!(
        read(format, SPC.as_bytes()),
        [
            arriving(551_706, 0, Request::write(Lbn(20_941_264), 16)),
            arriving(900_000, 1, Request::read(Lbn(10), 1)),
            arriving(1_250_000, 1, Request::read(Lbn(10), 2)),
        ]
    );
    let msr = read(TraceFormat::Msr, MSR.as_bytes());
    assert_eq!(msr[0].arrival, Some(SimTime::ZERO));
    assert_eq!(msr[1].arrival, Some(SimTime(13_320_526 * 100_000)));
    assert_eq!(msr[0].measured, Some(Span(41_286 * 100_000)));
    assert_eq!(
        msr.iter().map(|record| record.device).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(msr[0].request, Request::read(Lbn(13_700_410), 48));
    assert_eq!(msr[1].request.sectors, 2);
    // On a drive with 4 KiB sectors, a request covers the sectors that it touches.
    let options = TraceOptions {
        sector_bytes: 4096,
        ..TraceOptions::default()
    };
    let large: Vec<_> = TraceReader::new(format, SPC.as_bytes(), options)
        .map(|record| record.unwrap().request)
        .collect();
    assert_eq!(
        large,
        [
            Request::write(Lbn(2_617_658), 2),
            Request::read(Lbn(1), 1),
            Request::read(Lbn(1), 1)
        ]
    );
}

/// Do fio's logs give requests, flushes and times, and are their files numbered?
#[test]
fn fio_formats() {
    let format = TraceFormat::FioV2;
    assert_eq!(
        read(format, FIO_V2.as_bytes()),
        [
            arriving(0, 0, Request::read(Lbn(8), 16)),
            arriving(500, 1, Request::write(Lbn(0), 1)),
            arriving(1500, 1, Request::flush()),
        ]
    );
    let format = TraceFormat::FioV3;
    assert_eq!(
        read(format, FIO_V3.as_bytes()),
        [
            arriving(106, 0, Request::write(Lbn(0), 8)),
            arriving(132, 0, Request::flush()),
            arriving(1011, 0, Request::read(Lbn(24), 2)),
        ]
    );
}

/// Can a log that the installed fio writes be read request by request?
#[test]
fn fio_itself() {
    let folder = std::env::temp_dir().join(format!("traxtent-fio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ran = Command::new("fio")
        .args([
            "--name=a",
            "--filename=data",
            "--size=1m",
            "--rw=randrw",
            "--bs=4k",
            "--number_ios=20",
            "--fsync=3",
        ])
        .args(["--write_iolog=log", "--output=out"])
        .current_dir(&folder)
        .status();
    if !ran.is_ok_and(|status| status.success()) {
        eprintln!("skipped: fio is not installed or cannot run here");
        return;
    }
    let log = std::fs::read(folder.join("log")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let records = read(detect(&log).unwrap(), &log);
    let transfers = records
        .iter()
        .filter(|record| record.request.op != Op::Flush);
    assert_eq!(transfers.clone().count(), 20);
    assert!(
        transfers
            .clone()
            .all(|record| record.request.sectors == 8 && record.request.end().0 <= 2048)
    );
}

/// Are dispatches read from blkparse output, with flushes and force unit access, and queue events
/// on request?
#[test]
fn blkparse_events() {
    let format = TraceFormat::Blkparse;
    let (sda, sdb) = (8 << 20, 8 << 20 | 16);
    let forced = |lbn, sectors| Request {
        fua: true,
        ..Request::write(Lbn(lbn), sectors)
    };
    let at = |ns: u64, device, request| TraceRecord {
        arrival: Some(SimTime(ns * 1000)),
        ..arriving(0, device, request)
    };
    let measured = |ns: u64, record| TraceRecord {
        measured: Some(Span(ns * 1000)),
        ..record
    };
    let first = at(0, sda, Request::read(Lbn(223_490), 8));
    assert_eq!(
        read(format, BLKPARSE.as_bytes()),
        [
            measured(4_000_000, first),
            at(11_003_554, sdb, Request::flush()),
            at(11_003_554, sdb, forced(5000, 1)),
            at(16_505_331, sda, forced(6000, 2)),
            at(22_007_108, sda, Request::flush()),
        ]
    );
    let options = TraceOptions {
        blkparse_event: BlkparseEvent::Queue,
        ..TraceOptions::default()
    };
    let queued: Vec<_> = TraceReader::new(format, BLKPARSE.as_bytes(), options)
        .map(Result::unwrap)
        .collect();
    assert_eq!(queued, [measured(5_501_000, first)]);
}

/// Are SRT records read with the header's sector size, and suspect ones skipped?
#[test]
fn srt_records() {
    let record = |arrival, measured, device, request| TraceRecord {
        arrival: Some(SimTime(arrival)),
        pause: None,
        completed: None,
        measured: Some(Span(measured)),
        device,
        request,
    };
    assert_eq!(
        read(TraceFormat::HpSrt, &srt()),
        [
            record(0, 19_513_000_000, 1, Request::read(Lbn(2112), 8)),
            record(2_500_000_000_000, 0, 0, Request::write(Lbn(6), 2)),
        ]
    );
}

/// Is a log of version 1, which has no column `status`, recognized and read like one of version 2?
/// Is a row refused that has the columns of the other version? Is the log of several runs refused?
#[test]
fn request_logs_of_version_1() {
    let format = TraceFormat::RequestLog;
    let text = request_log();
    let old = text.replace(",status\n", "\n").replace(",ok\n", "\n");
    let head = "request,device,op,fua,lbn,sectors,issued_ms,submitted_ms,completed_ms,response_ms,\
        queue_ms,overhead_ms,seek_ms,settle_ms,head_switch_ms,rotation_ms,transfer_ms,bus_ms,\
        served,measured_ms\n";
    assert!(old.starts_with(head), "{old}");
    assert_eq!(
        format!("{},status\n", head.trim_end()),
        format!("{LOG_COLUMNS}\n")
    );
    let records = read(format, text.as_bytes());
    assert_eq!(read(format, old.as_bytes()), records);
    // A failed request is replayed like the others.
    let failed = text.replacen(",ok\n", ",unreadable\n", 1);
    assert_eq!(read(format, failed.as_bytes()), records);
    for text in [&text, &old] {
        assert_eq!(detect(text.as_bytes()).unwrap(), format);
        let several = format!(
            "drive,{}",
            text.replace('\n', "\na,").trim_end_matches("a,")
        );
        assert!(detect(several.as_bytes()).is_err());
        assert!(
            failure(format, several.as_bytes()).contains("several runs"),
            "{several}"
        );
    }
    let mixed = old.replacen("3.5\n", "3.5,ok\n", 1);
    let refused = failure(format, mixed.as_bytes());
    assert!(refused.contains("expected 20 fields"), "{refused}");
    let mixed = text.replacen(",ok\n", "\n", 1);
    let refused = failure(format, mixed.as_bytes());
    assert!(refused.contains("expected 21 fields"), "{refused}");
}

/// Is our own log read exactly, in order of issue, and is an impossible row reported?
#[test]
fn request_logs() {
    let format = TraceFormat::RequestLog;
    let text = request_log();
    let records = read(format, text.as_bytes());
    let arrivals: Vec<_> = records.iter().map(|record| record.arrival).collect();
    let second = Some(SimTime(2_000_000_001));
    assert_eq!(arrivals, [Some(SimTime(500_000_000)), second, second]);
    let fua = Request {
        fua: true,
        ..Request::write(Lbn(7), 8)
    };
    assert_eq!(
        records
            .iter()
            .map(|record| record.request)
            .collect::<Vec<_>>(),
        [Request::read(Lbn(4096), 1), fua, Request::flush()]
    );
    let measured: Vec<_> = records.iter().map(|record| record.measured).collect();
    assert_eq!(measured, [None, Some(Span::from_ms(3.5)), Some(Span::ZERO)]);
    // Numbers of requests that do not begin at 0, as after a warm-up.
    let late = text
        .replace("\n1,0,", "\n11,0,")
        .replace("\n0,0,", "\n10,0,");
    assert_eq!(read(format, late.as_bytes()).len(), 3);
    for (from, to, what) in [
        ("read,", "trim,", "op"),
        ("\n0,0,", "\n1,0,", "request"),
        ("flush,0,0,0", "flush,0,0,8", "sectors"),
        ("write,1", "write,2", "fua"),
        ("7,8,", "7,0,", "sectors"),
    ] {
        let failure = failure(format, text.replacen(from, to, 1).as_bytes());
        assert!(failure.contains(what), "{failure}");
    }
}
