//! Do blkparse's completions and fio's latency logs give measured times, in order of arrival?

use std::process::Command;

use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::trace::{BlkparseEvent, detect};
use traxtent_workload::{TraceFormat, TraceOptions, TraceReader, TraceRecord};

use super::{failure, read};

/// Returns the first sector of each record, and its arrival and measured time in µs.
fn times(records: &[TraceRecord]) -> Vec<(u64, u64, Option<u64>)> {
    let us = |ps: u64| ps / 1_000_000;
    let one = |record: &TraceRecord| {
        let arrival = record.arrival.unwrap();
        let measured = record.measured.map(|span| us(span.0));
        (record.request.lbn.0, us(arrival.0), measured)
    };
    records.iter().map(one).collect()
}

/// Reads events that are one millisecond apart.
fn blkparse(event: BlkparseEvent, lines: &[&str]) -> Vec<(u64, u64, Option<u64>)> {
    let text: String = lines
        .iter()
        .enumerate()
        .map(|(index, line)| format!("8,0 0 {index} 0.00{index} 7 {line}\n"))
        .collect();
    let options = TraceOptions {
        blkparse_event: event,
        ..TraceOptions::default()
    };
    let reader = TraceReader::new(TraceFormat::Blkparse, text.as_bytes(), options);
    times(&reader.map(Result::unwrap).collect::<Vec<_>>())
}

/// Is each dispatch measured by its completion, in any order, in parts, for equal ranges and after
/// a requeue? Is it not measured if the completion failed, is absent or has the other direction?
#[test]
fn blkparse_dispatches_and_completions() {
    use BlkparseEvent::Dispatch;
    for (lines, expected) in [
        // Out of order: the records keep the order of dispatch.
        (
            &[
                "D R 8 + 8 [x]",
                "D R 64 + 8 [x]",
                "C R 64 + 8 [0]",
                "C R 8 + 8 [0]",
            ][..],
            &[(8, 0, Some(3000)), (64, 1000, Some(1000))][..],
        ),
        // Two requests for the same sectors complete in their order.
        (
            &[
                "D R 8 + 8 [x]",
                "D R 8 + 8 [x]",
                "C R 8 + 8 [0]",
                "C R 8 + 8 [0]",
            ],
            &[(8, 0, Some(2000)), (8, 1000, Some(2000))],
        ),
        // A request in two parts is complete with the second.
        (
            &["D W 8 + 8 [x]", "C W 8 + 2 [0]", "C W 10 + 6 [0]"],
            &[(8, 0, Some(2000))],
        ),
        // The first dispatch is withdrawn.
        (
            &[
                "D W 8 + 8 [x]",
                "R W 8 + 8 [0]",
                "D W 8 + 8 [x]",
                "C W 8 + 8 [0]",
            ],
            &[(8, 2000, Some(1000))],
        ),
        // A failed one, the other direction, other sectors, and a completion without a dispatch.
        (
            &[
                "D R 8 + 8 [x]",
                "C R 8 + 8 [5]",
                "D R 8 + 8 [x]",
                "C W 8 + 8 [0]",
                "C R 99 + 8 [0]",
            ],
            &[(8, 0, None), (8, 2000, None)],
        ),
        // A flush is measured by its own completion.
        (
            &["D FN [x]", "D R 8 + 8 [x]", "C FN 0 [0]", "C R 8 + 8 [0]"],
            &[(0, 0, Some(2000)), (8, 1000, Some(2000))],
        ),
    ] {
        assert_eq!(blkparse(Dispatch, lines), expected, "{lines:?}");
    }
}

/// Does a completion end every queued request that was merged into the completed one, and no other?
#[test]
fn blkparse_queued_requests_that_were_merged() {
    let found = blkparse(
        BlkparseEvent::Queue,
        &[
            "Q W 8 + 8 [x]",
            "Q W 16 + 8 [x]",
            "Q W 24 + 8 [x]",
            "M W 16 + 8 [x]",
            "D W 8 + 16 [x]",
            "C W 8 + 16 [0]",
            "C W 24 + 8 [0]",
        ],
    );
    let expected = [
        (8, 0, Some(5000)),
        (16, 1000, Some(4000)),
        (24, 2000, Some(4000)),
    ];
    assert_eq!(found, expected);
}

/// Is a trace without completions, with more requests than the reader holds, read completely and in
/// order?
#[test]
fn blkparse_without_completions() {
    let lines: String = (0..40_000)
        .map(|index| format!("8,0 0 1 {index}.0 7 D R {index} + 1 [x]\n"))
        .collect();
    let records = read(TraceFormat::Blkparse, lines.as_bytes());
    assert_eq!(records.len(), 40_000);
    let lbns = records.iter().map(|record| record.request.lbn.0);
    assert!(lbns.eq(0..40_000));
    assert!(records.iter().all(|record| record.measured.is_none()));
}

/// Is each arrival in fio's latency log its completion minus its latency, within the millisecond
/// that fio records? With one request outstanding, are the arrivals in order, without overlap?
#[test]
fn fio_latencies() {
    let format = TraceFormat::FioLatency;
    let record = |at_us: u64, measured_us: u64, request| TraceRecord {
        arrival: Some(SimTime(at_us * 1_000_000)),
        pause: None,
        completed: None,
        measured: Some(Span(measured_us * 1_000_000)),
        device: 0,
        request,
    };
    let (first, second) = (Request::read(Lbn(16), 8), Request::write(Lbn(8), 1));
    assert_eq!(
        read(format, super::FIO_LATENCY.as_bytes()),
        [record(500, 3500, first), record(8800, 200, second)]
    );
    // Reads of 300 µs, of which three complete in one millisecond: one after the other.
    let sequential = "5, 300000, 0, 4096, 0, 0\n5, 300000, 0, 4096, 4096, 0\n\
                      5, 300000, 0, 4096, 8192, 0\n6, 300000, 0, 4096, 12288, 0\n";
    let found = times(&read(format, sequential.as_bytes()));
    let at = |index: u64| (8 * index, 4700 + 300 * index, Some(300));
    assert_eq!(found, [at(0), at(1), at(2), (24, 5700, Some(300))]);
    // With the time of issue, and out of order.
    let issued = "5, 300000, 0, 4096, 0, 0, 4690000\n5, 900000, 0, 4096, 4096, 0, 4100000\n";
    let found = times(&read(format, issued.as_bytes()));
    assert_eq!(found, [(8, 4100, Some(900)), (0, 4690, Some(300))]);
}

/// Does the error for an unusable log of fio name the cause, and say how to record a usable one?
#[test]
fn other_logs_of_fio() {
    let format = TraceFormat::FioLatency;
    for (text, expected) in [
        (
            "0, 62033, 0, 4096, 0\n",
            "line 1: the log has no offsets; record it with log_offset=1",
        ),
        (
            "1000, 62033, 0, 0, 0, 0\n",
            "line 1: the log holds averages, not requests; record it without log_avg_msec",
        ),
        (
            "1, 62033, 3, 4096, 0, 0\n",
            "line 1: direction: \"3\": expected 0 (read), 1 (write) or 2 (trim)",
        ),
    ] {
        let message = failure(format, text.as_bytes());
        assert!(message.contains(expected), "{text:?}: {message}");
    }
    assert_eq!(detect(b"0, 62033, 0, 4096, 0\n").unwrap(), format);
}

/// Is a latency log written by the installed fio read, request by request, as in its iolog?
#[test]
fn fio_itself() {
    let folder = std::env::temp_dir().join(format!("traxtent-fio-lat-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ran = Command::new("fio")
        .args(["--name=a", "--filename=data", "--size=1m", "--rw=randrw"])
        .args(["--bssplit=4k/50:16k/50", "--number_ios=50", "--output=out"])
        .args(["--log_offset=1", "--write_lat_log=log", "--write_iolog=log"])
        .current_dir(&folder)
        .status();
    if !ran.is_ok_and(|status| status.success()) {
        eprintln!("skipped: fio is not installed or cannot run here");
        return;
    }
    let latencies = std::fs::read(folder.join("log_clat.1.log")).unwrap();
    let requests = std::fs::read(folder.join("log")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(detect(&latencies).unwrap(), TraceFormat::FioLatency);
    let latencies = read(TraceFormat::FioLatency, &latencies);
    let requests = read(detect(&requests).unwrap(), &requests);
    let transfers = requests
        .iter()
        .map(|record| record.request)
        .filter(|request| request.op != Op::Flush);
    assert!(latencies.iter().map(|record| record.request).eq(transfers));
    assert!(latencies.iter().all(|record| record.measured.is_some()));
}
