//! Are traces replayed at their pace, and are DiskSim's own traces read completely?

use std::fs::File;
use std::io::BufReader;

use traxtent_units::{SimTime, Span};
use traxtent_workload::trace::{DETECT_BYTES, GapSuspicion, LOG_COLUMNS, detect};
use traxtent_workload::{
    NextStep, Replay, ReplayPace, RequestSource, TraceError, TraceFormat, TraceOptions, TraceReader,
};

use super::ASCII;
use crate::reference;

fn gap_suspicion(format: TraceFormat, text: &str) -> Option<GapSuspicion> {
    let mut reader = TraceReader::new(format, text.as_bytes(), TraceOptions::default());
    reader.by_ref().for_each(|record| assert!(record.is_ok()));
    reader.gap_warning().map(|warning| {
        assert!(
            warning
                .to_string()
                .contains(&format!("as in a {format} trace")),
            "{warning}"
        );
        warning.suspicion
    })
}

/// Does a trace whose times are off by a factor of a thousand, in either direction, cause a
/// warning, and a plausible trace none?
#[test]
fn gaps_off_by_a_thousand_cause_a_warning() {
    let ascii = |gap: f64| {
        (0..1500)
            .map(|i| format!("{} 0 {i} 8 1\n", f64::from(i) * gap))
            .collect::<String>()
    };
    assert_eq!(gap_suspicion(TraceFormat::DiskSimAscii, &ascii(10.0)), None);
    assert_eq!(
        gap_suspicion(TraceFormat::DiskSimAscii, &ascii(0.01)),
        Some(GapSuspicion::TooShort)
    );
    assert_eq!(
        gap_suspicion(TraceFormat::DiskSimAscii, &ascii(10_000.0)),
        Some(GapSuspicion::TooLong)
    );
    let validate = |pause: u32| format!("R Hit 1 1 5000 {pause}\n").repeat(100);
    assert_eq!(
        gap_suspicion(TraceFormat::DiskSimValidate, &validate(40_000)),
        None
    );
    assert_eq!(
        gap_suspicion(TraceFormat::DiskSimValidate, &validate(40)),
        Some(GapSuspicion::TooShort)
    );
    assert_eq!(
        gap_suspicion(TraceFormat::DiskSimValidate, &validate(40_000_000)),
        Some(GapSuspicion::TooLong)
    );
    // Neither a log without times nor one with few records causes a warning.
    let untimed = format!("fio version 2 iolog\n{}", "/a read 0 4096\n".repeat(100));
    assert_eq!(gap_suspicion(TraceFormat::FioV2, &untimed), None);
    assert_eq!(
        gap_suspicion(TraceFormat::DiskSimAscii, "0 0 1 8 1\n0 0 1 8 1\n"),
        None
    );
}

/// Runs a replay against a drive that takes 5 ms for each request, one after another.
fn replay(format: TraceFormat, text: &str, pace: ReplayPace) -> Result<Vec<f64>, TraceError> {
    let reader = TraceReader::new(format, text.as_bytes(), TraceOptions::default());
    let mut source = Replay::new(reader, pace);
    let mut queue = std::collections::VecDeque::new();
    let mut free = SimTime::ZERO;
    let mut issued = Vec::new();
    loop {
        let done = queue.front().map(|&(_, done): &(u64, SimTime)| done);
        match source.due()? {
            NextStep::At(at) if done.is_none_or(|done| at <= done) => {
                let arrival = source.take(at).unwrap();
                free = free.max(at) + Span::from_ms(5.0);
                queue.push_back((arrival.tag, free));
                issued.push(at.as_ms());
            }
            _ => match queue.pop_front() {
                Some((tag, done)) => source.complete(tag, done),
                None => return Ok(issued),
            },
        }
    }
}

/// Are records issued at their arrival times, after their pauses, or as fast as they complete,
/// depending on the pace?
#[test]
fn replay_paces() {
    let recorded = ReplayPace::Recorded { speed: 1.0 };
    let ascii = TraceFormat::DiskSimAscii;
    assert_eq!(replay(ascii, ASCII, recorded).unwrap(), [0.5, 12.25, 13.0]);
    assert_eq!(
        replay(ascii, ASCII, ReplayPace::Recorded { speed: 0.5 }).unwrap(),
        [1.0, 24.5, 26.0]
    );
    assert_eq!(
        replay(ascii, ASCII, ReplayPace::Closed { outstanding: 1 }).unwrap(),
        [0.0, 5.0, 10.0]
    );
    assert_eq!(
        replay(ascii, ASCII, ReplayPace::Closed { outstanding: 2 }).unwrap(),
        [0.0, 0.0, 5.0]
    );
    // An arrival out of order is issued with the one before it, in formats that permit it.
    let msr = "0,h,0,Read,0,512,3\n50000,h,0,Read,0,512,3\n30000,h,0,Read,0,512,3\n60000,h,0,Read,0,512,3\n";
    assert_eq!(
        replay(TraceFormat::Msr, msr, recorded).unwrap(),
        [0.0, 5.0, 5.0, 6.0]
    );
    let validate = TraceFormat::DiskSimValidate;
    let text = "R Hit 1 1 1 1000\nR Hit 1 1 1 2500\nR Hit 1 1 1 9\n";
    assert_eq!(
        replay(validate, text, ReplayPace::default_for(validate)).unwrap(),
        [0.0, 6.0, 13.5]
    );
    // Pauses from measured times of 1 ms: 4 ms; none, because the third request arrived before the
    // second one completed; 7 ms.
    let measured = "0,h,0,Read,0,512,10000\n50000,h,0,Read,0,512,10000\n55000,h,0,Read,0,512,10000\n\
                    135000,h,0,Read,0,512,10000\n";
    assert_eq!(
        replay(TraceFormat::Msr, measured, ReplayPace::SemiClosed).unwrap(),
        [0.0, 9.0, 14.0, 26.0]
    );
    // Pauses of a log, whose measured times are those of another drive: 3 ms and 0.5 ms.
    let row = |number, issued, completed| {
        format!("{number},0,read,0,8,8,{issued},0,{completed},0,0,0,0,0,0,0,0,0,media,4,ok\n")
    };
    let rows = [row(0, "0", "2"), row(1, "5", "6"), row(2, "6.5", "7")].concat();
    let log = format!("{LOG_COLUMNS}\n{rows}");
    assert_eq!(
        replay(TraceFormat::RequestLog, &log, ReplayPace::SemiClosed).unwrap(),
        [0.0, 8.0, 13.5]
    );
    // Without measured times: at the recorded distance, but not before the completion.
    assert_eq!(
        replay(ascii, ASCII, ReplayPace::SemiClosed).unwrap(),
        [0.0, 11.75, 16.75]
    );
    let missing = replay(validate, text, recorded).unwrap_err().to_string();
    assert_eq!(
        missing,
        "trace, record 1: no arrival time; choose a replay pace that does not need one"
    );
    // A damaged record gives an error.
    assert!(replay(ascii, "5 0 1 1 1\nx\n", recorded).is_err());
}

/// Are the measured traces that come with DiskSim read completely, with the means that their README
/// states?
#[test]
fn measured_traces() {
    for (name, count, mean_ms) in [
        ("atlas10k", 10_000, 3.893),
        ("atlas_III", 10_000, 6.263),
        ("barracuda", 10_000, 6.627),
        ("cheetah4LP", 10_000, 5.328),
        ("ibm18es", 10_000, 5.261),
        ("hp_c2247a", 9999, 15.298),
        ("hp_c3323a", 9074, 15.765),
    ] {
        let Some(path) = reference::path(&format!("disksim/{name}.trace")) else {
            return;
        };
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(
            detect(&bytes[..DETECT_BYTES]).unwrap(),
            TraceFormat::DiskSimValidate,
            "{name}"
        );
        let mut reader = TraceReader::new(
            TraceFormat::DiskSimValidate,
            &bytes[..],
            TraceOptions::default(),
        );
        let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(reader.gap_warning(), None, "{name}");
        assert_eq!(records.len(), count, "{name}");
        let measured = records
            .iter()
            .filter_map(|record| record.measured)
            .map(Span::as_ms)
            .sum::<f64>();
        assert!(
            (measured / count as f64 - mean_ms).abs() < 0.0006,
            "{name}: {}",
            measured / count as f64
        );
    }
}

/// Are DiskSim's large example traces read completely, and recognized by their content?
#[test]
fn example_traces() {
    let Some(path) = reference::path("disksim/ascii.trace") else {
        return;
    };
    let input = BufReader::new(File::open(&path).unwrap());
    let mut reader = TraceReader::new(TraceFormat::DiskSimAscii, input, TraceOptions::default());
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!((records.len(), reader.gap_warning()), (100_000, None));
    assert_eq!(
        records[99_999].arrival,
        Some(SimTime(1_532_949_045_363_000))
    );
    assert!(records.is_sorted_by_key(|record| record.arrival));
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        detect(&text.as_bytes()[..DETECT_BYTES]).unwrap(),
        TraceFormat::DiskSimAscii
    );
    // The same trace in seconds or in microseconds causes a warning.
    for (factor, expected) in [
        (0.001, GapSuspicion::TooShort),
        (1000.0, GapSuspicion::TooLong),
    ] {
        let scaled: String = text
            .lines()
            .take(1200)
            .map(|line| {
                let (time, rest) = line.trim().split_once(char::is_whitespace).unwrap();
                format!("{} {rest}\n", time.parse::<f64>().unwrap() * factor)
            })
            .collect();
        assert_eq!(
            gap_suspicion(TraceFormat::DiskSimAscii, &scaled),
            Some(expected)
        );
    }

    let bytes = std::fs::read(reference::path("disksim/ajw.1week.srt").unwrap()).unwrap();
    assert_eq!(detect(&bytes[..DETECT_BYTES]).unwrap(), TraceFormat::HpSrt);
    let mut reader = TraceReader::new(TraceFormat::HpSrt, &bytes[..], TraceOptions::default());
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!((records.len(), reader.gap_warning()), (44_519, None));
    let days = records[44_518].arrival.unwrap().as_ms() / 86_400e3;
    assert!((6.9..7.0).contains(&days), "{days}");
    // Two disks of 1,449 cylinders with 8 x 113 sectors of 256 bytes.
    assert!(
        records
            .iter()
            .all(|record| record.device < 2 && record.request.end().0 <= 1449 * 8 * 113 / 2)
    );
}
