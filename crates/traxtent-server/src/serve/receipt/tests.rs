//! Verdicts of receipts.

use traxtent_model::disk::Tag;
use traxtent_model::drive::Breakdown;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};
use traxtent_workload::{Arrival, Urgency};

use super::*;

/// Returns a request that took `ms` in the model and was delivered `late_us` later.
fn delivered(command: Command, served: ServedBy, ms: f64, late_us: f64) -> Delivered {
    let completed = SimTime::ZERO + Span::from_ms(ms);
    Delivered {
        arrival: Arrival {
            at: SimTime::ZERO,
            tag: 0,
            device: 0,
            urgency: Urgency::default(),
            measured: None,
            request: Request::read(Lbn(0), 8),
        },
        completion: Completion {
            tag: Tag(0),
            command,
            submitted: SimTime::ZERO,
            completed,
            breakdown: Breakdown::default(),
            served: Some(served),
            outcome: Ok(()),
        },
        transport_subtracted: None,
        held_up: Span(0),
        file_time: Duration::ZERO,
        delivered_at: completed + Span::from_ms(late_us / 1000.0),
    }
}

fn write(late_us: f64) -> Delivered {
    let command = Command::Write {
        lbn: Lbn(0),
        sectors: 8,
        fua: false,
    };
    delivered(command, ServedBy::Buffer, 0.114, late_us)
}

fn flush(late_us: f64) -> Delivered {
    delivered(Command::Flush, ServedBy::Media, 8.2, late_us)
}

fn deviations(requests: impl IntoIterator<Item = Delivered>) -> Vec<String> {
    let mut statistics = ReceiptStatistics::default();
    for request in requests {
        statistics.add(&request, Speed::REAL);
    }
    statistics.deviations().0
}

/// Are alternating writes and flushes judged separately, although the median of all requests
/// lies between them?
#[test]
fn writes_and_flushes_are_judged_separately() {
    let turns = |write_us: f64, flush_us: f64| {
        // The lateness of writes varies, as on any machine.
        (0..200).flat_map(move |n| [write(write_us + f64::from(n % 10)), flush(flush_us)])
    };
    assert_eq!(deviations(turns(6.0, 10.0)), [""; 0]);
    let late_writes = deviations(turns(60.0, 10.0));
    assert_eq!(late_writes.len(), 1, "{late_writes:?}");
    assert!(late_writes[0].starts_with("delivered p50 of writes to the buffer is 5"));
    let late_flushes = deviations(turns(6.0, 170.0));
    assert_eq!(
        late_flushes,
        [
            "delivered p50 of flushes is 2.08 % above the model's",
            "delivered p99 of flushes is 2.08 % above the model's"
        ]
    );
}

/// Is a kind that is too rare for the bounds of the others still judged by the bound on the
/// lateness of all requests, and is a smaller deviation noted?
#[test]
fn rare_kinds_are_judged() {
    let load = |flushes: u64, late_us: f64| {
        let writes = std::iter::repeat_n(6.0, 20_000).map(write);
        let flushes = (0..flushes).map(move |_| flush(late_us));
        let mut statistics = ReceiptStatistics::default();
        for request in writes.chain(flushes) {
            statistics.add(&request, Speed::REAL);
        }
        statistics.deviations()
    };
    assert_eq!(load(2, 80.0), (vec![], vec![]));
    let (reasons, notes) = load(2, 999.0);
    assert_eq!((reasons.len(), notes.len()), (0, 1), "{reasons:?}");
    assert!(notes[0].starts_with("delivered p50 of flushes is 12.19 % above the model's; "));
    assert_eq!(
        load(2, 40_000.0),
        (
            vec![
                "delivered p50 of flushes is 487.81 % above the model's (2 of 20002 requests)"
                    .to_owned()
            ],
            vec![]
        )
    );
    // With a hundred requests or more, the bounds are those of any other kind.
    assert_eq!(load(RARE_COUNT - 1, 170.0).0, [""; 0]);
    assert_eq!(load(RARE_COUNT, 170.0).0.len(), 2);
}

fn receipt_of(statistics: &mut ReceiptStatistics, clock: &Clock) -> Receipt {
    let subject = Subject {
        drive: "atlas10k2",
        sha256: "",
        seed: 1,
        scheduler: Scheduler::Fcfs,
        has_write_back: false,
        file: None,
    };
    statistics.receipt(&subject, clock, &Load::now())
}

/// Does a receipt mention that a drive without a write cache loses no completed write, but only if
/// a fault tests that?
#[test]
fn faults_without_a_write_cache_are_noted() {
    let clock = Clock::start(Speed::REAL);
    let notes = |fault: &str| {
        let mut statistics = ReceiptStatistics::default();
        statistics.add_event(&FaultEvent {
            at: SimTime(0),
            fault: fault.parse().unwrap(),
            outcome: Ok(None),
        });
        receipt_of(&mut statistics, &clock).notes
    };
    assert_eq!(notes("stall,for=1s"), [""; 0]);
    for fault in ["power-cut", "lying-flush", "lying-fua"] {
        assert_eq!(notes(fault), [NO_WRITE_CACHE]);
    }
}

/// Is the lateness bounded in the drive's time, so that the same real delay matters less at a
/// lower speed?
#[test]
fn lateness_is_bounded_in_drive_time() {
    let mut clock = Clock::start("0.1".parse().unwrap());
    clock.restart();
    let verdict = |late_us: f64| {
        let mut statistics = ReceiptStatistics::default();
        statistics.add(&flush(late_us), clock.speed());
        let receipt = receipt_of(&mut statistics, &clock);
        (receipt.verdict, receipt.lateness_us.p50.round() as u64)
    };
    assert_eq!(verdict(49.0), (ReceiptVerdict::Trustworthy, 490));
    assert_eq!(verdict(51.0), (ReceiptVerdict::NotTrustworthy, 510));
}

/// Does the time before a request could enter the model count as lateness?
#[test]
fn requests_that_are_held_up_are_late() {
    let mut held_up = flush(10.0);
    held_up.held_up = Span::from_ms(64.0);
    let mut statistics = ReceiptStatistics::default();
    statistics.add(&held_up, Speed::REAL);
    let [.., flushes] = &mut statistics.operations;
    assert!((flushes.times().delivered_ms.percentiles.max - 72.21).abs() < 1e-6);
    assert_eq!(statistics.lateness.at(1.0), Some(Span::from_ms(64.01)));
}

/// Is the data file named as a cause only if it accounts for most of the lateness?
#[test]
fn a_slow_data_file_is_named() {
    let mut statistics = ReceiptStatistics::default();
    statistics.add(&flush(8000.0), Speed::REAL);
    let mut read = flush(1000.0);
    // Most of the time of this read overlaps with its time in the model.
    read.file_time = Duration::from_millis(7);
    statistics.add(&read, Speed::REAL);
    let remark = |sync_us: f64| {
        let syncs = crate::serve::FileOperations {
            count: 1,
            total_us: sync_us,
            max_us: sync_us,
        };
        let times = FileTimes {
            syncs,
            ..FileTimes::default()
        };
        statistics.with_lateness_share(times, Speed::REAL).remark()
    };
    assert_eq!(remark(3000.0), None);
    assert_eq!(
        remark(7100.0).unwrap(),
        "the data file accounts for 90 % of the lateness: its longest read took 0.0 ms, write 0.0 ms, fdatasync 7.1 ms"
    );
}

/// Are the figures of reads, writes and flushes separate, and does a kind's line state them?
#[test]
fn kinds_have_figures_of_their_own() {
    let mut statistics = ReceiptStatistics::default();
    for request in [write(6.0), write(16.0), flush(100.0)] {
        statistics.add(&request, Speed::REAL);
    }
    let [reads, writes, flushes] = statistics.operations.each_mut().map(OperationTimes::times);
    assert_eq!(reads, KindTimes::default());
    let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-6, "{value}");
    near(writes.modelled_ms.mean, 0.114);
    near(writes.delivered_ms.mean, 0.125);
    near(writes.delivered_ms.percentiles.max, 0.130);
    near(writes.modelled_ms.percentiles.p50, 0.114);
    near(flushes.modelled_ms.percentiles.max, 8.2);
    assert_eq!(
        flushes.line("flushes"),
        "flushes     mean 8.300, p99 8.300, max 8.300 ms; in the model mean 8.200, p99 8.200, max 8.200 ms"
    );
}

/// Is the last error of the storage kept, and is no other error counted as one?
#[test]
fn errors_of_the_storage_are_kept() {
    use traxtent_model::disk::{DiskError, MediaError};
    let mut statistics = ReceiptStatistics::default();
    statistics.add_error(&ServiceError::Stopped);
    assert_eq!((statistics.errors, statistics.storage_errors), (1, 0));
    let full = ServiceError::Disk(DiskError::Media(MediaError::NoSpace));
    statistics.add_error(&full);
    assert_eq!((statistics.errors, statistics.storage_errors), (2, 1));
    assert_eq!(statistics.storage_error, Some(full.to_string()));
}

/// Is a response that takes no time in the model judged by its lateness alone?
#[test]
fn immediate_responses_are_judged_by_lateness() {
    let read = |late_us| {
        let command = Command::Read {
            lbn: Lbn(0),
            sectors: 8,
        };
        delivered(command, ServedBy::Buffer, 0.0, late_us)
    };
    assert_eq!(deviations([read(49.0)]), [""; 0]);
    assert_eq!(
        deviations([read(74.0)]),
        ["delivered p50 of reads from the buffer is 74 us above the model's"]
    );
}

/// Are flushes that have nothing to write judged by what they add to the time of all requests,
/// as on a drive without a write cache?
#[test]
fn immediate_flushes_are_judged_by_their_share() {
    let commits = |late_us: f64| {
        let write = |late_us| {
            let command = Command::Write {
                lbn: Lbn(0),
                sectors: 8,
                fua: false,
            };
            delivered(command, ServedBy::Media, 8.3, late_us)
        };
        let flush = |late_us| delivered(Command::Flush, ServedBy::Buffer, 0.0, late_us);
        let mut statistics = ReceiptStatistics::default();
        for request in (0..200).flat_map(|_| [write(10.0), flush(late_us)]) {
            statistics.add(&request, Speed::REAL);
        }
        let mut clock = Clock::start(Speed::REAL);
        clock.restart();
        let late_p50 = receipt_of(&mut statistics, &clock).reasons;
        let late_p50 = late_p50
            .iter()
            .any(|reason| reason.starts_with("lateness p50"));
        assert!(!late_p50, "the writes are punctual");
        statistics.deviations()
    };
    let (reasons, notes) = commits(110.0);
    assert_eq!((reasons.len(), notes.len()), (0, 2), "{reasons:?}");
    assert!(notes[0].starts_with("delivered p50 of flushes is 110 us above the model's; "));
    let (reasons, notes) = commits(200.0);
    assert_eq!((reasons.len(), notes.len()), (2, 0), "{notes:?}");
}

/// Are writes with forced unit access counted, so that a user sees that a program sends them
/// instead of flushes? Are the bounds printed only if they are not met?
#[test]
fn forced_writes_are_counted_and_bounds_printed_if_missed() {
    let mut statistics = ReceiptStatistics::default();
    let clock = Clock::start(Speed::REAL);
    for fua in [true, false, true] {
        let command = Command::Write {
            lbn: Lbn(0),
            sectors: 8,
            fua,
        };
        statistics.add(&delivered(command, ServedBy::Media, 8.3, 0.0), Speed::REAL);
    }
    let punctual = receipt_of(&mut statistics, &clock).lines();
    assert!(
        punctual[0].contains("3 writes (2 with FUA)"),
        "{punctual:?}"
    );
    let has_bounds = |lines: &[String]| lines.iter().any(|line| line.starts_with("bounds"));
    assert!(!has_bounds(&punctual), "{punctual:?}");
    statistics.add(&write(90_000.0), Speed::REAL);
    let late = receipt_of(&mut statistics, &clock).lines();
    assert!(has_bounds(&late), "{late:?}");
}

/// Does the reason say that the 99th percentile of a few requests is the slowest one?
#[test]
fn the_slowest_of_a_few_is_named() {
    let late = |count: u32| {
        let late_us = move |n| if n == 0 { 6_600.0 } else { 10.0 };
        deviations((0..count).map(move |n| flush(late_us(n))))
    };
    assert_eq!(
        late(60),
        [
            "delivered p99 of flushes is 80.49 % above the model's (the slowest of only 60; of 100 or more, one may be late)"
        ]
    );
    assert_eq!(late(100), [""; 0]);
}

/// Does a receipt note starved requests only if the scheduler permits starvation?
#[test]
fn starvation_is_noted() {
    let mut waited = flush(0.0);
    waited.completion.breakdown.queue = Span::from_ms(1500.0);
    let mut statistics = ReceiptStatistics::default();
    statistics.add(&flush(0.0), Speed::REAL);
    assert_eq!(statistics.starvation(Scheduler::Sptf), None);
    statistics.add(&waited, Speed::REAL);
    let note = statistics.starvation(Scheduler::Sptf).unwrap();
    assert!(
        note.starts_with("requests that waited more than 1 s for others: 1, the longest 1.5 s")
    );
    assert_eq!(statistics.starvation(Scheduler::Fcfs), None);
}
