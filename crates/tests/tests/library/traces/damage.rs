//! Are errors in a trace reported, and is a damaged trace harmless?

use proptest::prelude::*;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};
use traxtent_workload::trace::{TracePosition, detect};
use traxtent_workload::{TraceFormat, TraceOptions, TraceReader, TraceRecord};

use super::{failure, read, samples, srt};

/// Does the error for each kind of damage name the line or record, the field, the value and the
/// bound?
#[test]
fn damage_is_named() {
    use TraceFormat::{Blkparse, DiskSimAscii, DiskSimValidate, FioV2, FioV3, HpSrt, Msr, Spc};
    for (format, text, expected) in [
        (
            DiskSimAscii,
            "1 0 5 8 1\n2 0 5 8\n",
            "disksim-ascii trace, line 2: expected 5 fields (arrival in ms, device, block, blocks, flags), found 4",
        ),
        (
            DiskSimAscii,
            "x 0 5 8 1\n",
            "line 1: arrival: \"x\": expected a time from 0 to 9223372036 ms",
        ),
        (
            DiskSimAscii,
            "-1 0 5 8 1\n",
            "line 1: arrival: \"-1\": expected a time from 0 to",
        ),
        (
            DiskSimAscii,
            "1 0 -5 8 1\n",
            "line 1: block: \"-5\": expected a whole number from 0 to 9223372036854775807",
        ),
        (
            DiskSimAscii,
            "1 0 5 0 1\n",
            "disksim-ascii trace, line 1: the request has 0 sectors; expected at least 1",
        ),
        (
            DiskSimAscii,
            "1 0 5 4294967296 1\n",
            "line 1: sectors: \"4294967296\": expected a whole number from 0 to 4294967295",
        ),
        (
            DiskSimAscii,
            "1 0 5 8 g\n",
            "line 1: flags: \"g\": expected a hexadecimal number of 32 bits, such as 0 for a write or 1 for a read",
        ),
        (
            DiskSimValidate,
            "X Hit 1 1 1 1\n",
            "line 1: operation: \"X\": expected R or W",
        ),
        (
            DiskSimValidate,
            "R Hit 1 1 1 -1\n",
            "line 1: pause: \"-1\": expected a time",
        ),
        (
            Spc,
            "0,1,512,Q,1\n",
            "spc trace, line 1: opcode: \"Q\": expected R or W",
        ),
        (
            Spc,
            "0,1,0,R,1\n",
            "spc trace, line 1: the request has 0 bytes; expected at least 1",
        ),
        (
            Spc,
            "0,9223372036854775807,9000000000000,R,1\n",
            "line 1: offset and length: ",
        ),
        (
            Msr,
            "1,h,0,Read,0,512\n",
            "line 1: expected 7 fields (timestamp, host, disk, type, offset, size, response time), found 6",
        ),
        (
            Msr,
            "1,h,0,Erase,0,512,3\n",
            "line 1: type: \"Erase\": expected Read or Write",
        ),
        (
            Msr,
            "1,h,0,Read,0,512,3\n99999999999999999,h,0,Read,0,512,3\n",
            "line 2: timestamp: \"99999999999999999\": expected at most 92233720368547 x 100 ns after the first timestamp",
        ),
        (
            Blkparse,
            "8,0 0 3 0.1 697 D R 223490 +\n",
            "line 1: range: \"223490 +\": expected SECTOR + SECTORS",
        ),
        (
            Blkparse,
            "8,0 0 3 0.1 697 D R 223490 + 0 [x]\n",
            "blkparse trace, line 1: the request has 0 sectors; expected at least 1",
        ),
        (
            Blkparse,
            "8:0 0 3 0.1 697 D R 223490 + 8 [x]\n",
            "line 1: device: \"8:0\": expected major,minor",
        ),
        (
            Blkparse,
            "8,0 0 3 0.1\n",
            "line 1: expected device, processor, sequence, seconds, process, action, RWBS",
        ),
        (
            FioV2,
            "fio version 3 iolog\n",
            "line 1: expected \"fio version 2 iolog\" as the first line",
        ),
        (FioV2, "", "line 1: the file ends within its first line"),
        (
            FioV2,
            "fio version 2 iolog\n/a read 5\n",
            "line 2: length: \"\": expected a whole number",
        ),
        (
            FioV2,
            "fio version 2 iolog\n/a read\n",
            "line 2: read needs an offset and a length",
        ),
        (
            FioV3,
            "fio version 3 iolog\n5 /a wait 5\n",
            "line 2: action: \"wait\": expected add, open",
        ),
        (
            FioV3,
            "fio version 3 iolog\n5\n",
            "line 2: expected timestamp, filename, action",
        ),
        (
            HpSrt,
            "",
            "hp-srt trace, record 1 at byte 0: the file ends within its header",
        ),
        (
            HpSrt,
            "$$TR_IOREC-1.3\nx\n",
            "the file ends within its header, without a form feed",
        ),
        (
            HpSrt,
            "$$TR_IOREC-1.3\nx\n\x0c",
            "record 1 at byte 18: the file ends within a record",
        ),
        (
            HpSrt,
            "abcdefghijkl",
            "record 1 at byte 0: expected a short or suspect I/O record of version 1 to 4, found type 0x6768, version 25958, 1633837924 bytes",
        ),
    ] {
        let message = failure(format, text.as_bytes());
        assert!(message.contains(expected), "{text:?}: {message}");
        assert!(!message.contains('\n'), "{message:?}");
    }
    let whole = srt();
    for (cut, expected) in [
        (1, "record 3 at byte"),
        (60, "record 2 at byte"),
        (115, "record 2 at byte"),
    ] {
        let message = failure(TraceFormat::HpSrt, &whole[..whole.len() - cut]);
        assert!(
            message.contains(expected) && message.contains("the file ends within a record"),
            "{cut}: {message}"
        );
    }
    let endless = [&b"$$TR_IOREC-1.3\n"[..], &[b'x'; 1 << 20]].concat();
    let message = failure(TraceFormat::HpSrt, &endless);
    let expected = "the header has no form feed in its first 1048576 bytes";
    assert!(message.ends_with(expected), "{message}");
    let long = "1 ".repeat(40_000);
    assert!(
        failure(DiskSimAscii, long.as_bytes())
            .contains("line 1: the line is longer than 65536 bytes")
    );
    assert!(
        failure(DiskSimAscii, b"1 0 5 8 1\n\xff\n").contains("line 2: byte 0 is not valid UTF-8")
    );
}

/// Is a trace recognized, so that the reader reports the line, even if its first line is an empty
/// request or a later one is damaged?
#[test]
fn a_damaged_line_does_not_hide_the_format() {
    use TraceFormat::{Blkparse, DiskSimAscii, DiskSimValidate, Msr, Spc};
    for (format, text, expected) in [
        (
            DiskSimAscii,
            "1 0 5 0 1\n",
            "line 1: the request has 0 sectors",
        ),
        (
            DiskSimAscii,
            "1 0 5 8 1\n2 0 5 0 1\n3 0 5 8 1\n",
            "line 2: the request has 0 sectors",
        ),
        (
            DiskSimAscii,
            "1 0 5 8 1\nx 0 5 8 1\n",
            "line 2: arrival: \"x\"",
        ),
        (
            DiskSimValidate,
            "R Hit 1 0 1 1\n",
            "line 1: the request has 0 sectors",
        ),
        (Spc, "0,1,0,R,1\n", "line 1: the request has 0 bytes"),
        (Msr, "1,h,0,Read,0,0,3\n", "line 1: the request has 0 bytes"),
        (
            Blkparse,
            "8,0 0 3 0.1 697 D R 223490 + 0 [x]\n",
            "line 1: the request has 0 sectors",
        ),
    ] {
        assert_eq!(detect(text.as_bytes()).unwrap(), format, "{text:?}");
        let message = failure(format, text.as_bytes());
        assert!(message.contains(expected), "{text:?}: {message}");
    }
    let mut nothing = srt();
    let first = nothing.iter().position(|&byte| byte == 0x0c).unwrap() + 1;
    nothing[first + 24..first + 28].fill(0);
    let message = failure(TraceFormat::HpSrt, &nothing);
    let expected = format!("record 1 at byte {first}: the request has 0 bytes");
    assert!(message.contains(&expected), "{message}");
}

/// Is an arrival before that of an earlier record refused with its position, if the format orders
/// its records? Is it accepted if the order is not checked?
#[test]
fn steps_back_are_refused() {
    use TraceFormat::{DiskSimAscii, FioV3, Spc};
    for (format, text, place) in [
        (
            DiskSimAscii,
            "5 0 1 8 1\n\n# a comment\n4.5 0 1 8 1\n",
            "line 4",
        ),
        (
            Spc,
            "0,1,512,R,2\n0,1,512,R,2\n0,1,512,R,1.9995\n",
            "line 3",
        ),
        (
            FioV3,
            "fio version 3 iolog\n1000 /a add\n1000 /a read 0 4096\n500 /a read 0 4096\n",
            "line 4",
        ),
    ] {
        let expected = format!(
            "{format} trace, {place}: the request arrives 0.5 ms before an earlier one in the file; sort the trace by time"
        );
        assert_eq!(failure(format, text.as_bytes()), expected);
    }
    // Two joined traces, the second earlier than the first.
    let mut joined = srt();
    let first = joined.iter().position(|&byte| byte == 0x0c).unwrap() + 1;
    joined[first + 8..first + 12].copy_from_slice(&9_u32.to_be_bytes());
    let last = joined.len() - 56;
    let expected = format!("record 3 at byte {last}: the request arrives 6500 ms before");
    let message = failure(TraceFormat::HpSrt, &joined);
    assert!(message.contains(&expected), "{message}");
    // Times are not checked if the replay does not use them.
    let options = TraceOptions {
        check_order: false,
        ..TraceOptions::default()
    };
    let text = "5 0 1 8 1\n4.5 0 1 8 1\n";
    let reader = TraceReader::new(DiskSimAscii, text.as_bytes(), options);
    assert_eq!(reader.filter(Result::is_ok).count(), 2);
}

/// In formats that do not order their records, are steps back counted, with the first position and
/// the largest distance?
#[test]
fn steps_back_are_counted() {
    use TraceFormat::{Blkparse, Msr, RequestLog};
    let log = super::request_log();
    let late = log.replace(",0.5,", ",7.000000001,");
    assert_ne!(log, late);
    for (format, text, counted) in [
        // The second precedes the first, which is the origin of the times.
        (
            Msr,
            "70000,h,0,Read,0,512,3\n10000,h,0,Read,0,512,3\n80000,h,0,Read,0,512,3\n79000,h,0,Read,0,512,3\n",
            Some((2, TracePosition::Line(2), 6.0)),
        ),
        (
            Blkparse,
            "8,0 0 1 0.100 7 D R 8 + 8 [x]\n8,0 1 1 0.101 7 D R 8 + 8 [x]\n8,0 0 2 0.0995 7 D R 8 + 8 [x]\n",
            Some((1, TracePosition::Line(3), 1.5)),
        ),
        (RequestLog, &log, None),
        (RequestLog, &late, Some((2, TracePosition::Line(2), 5.0))),
    ] {
        let mut reader = TraceReader::new(format, text.as_bytes(), TraceOptions::default());
        assert!(reader.by_ref().all(|record| record.is_ok()), "{text}");
        let found = reader.order_warning();
        let found = found.map(|it| (it.count, it.first, it.step_back_max.as_ms()));
        assert_eq!(found, counted, "{text}");
    }
}

/// Does a reader end at its first error?
#[test]
fn reading_ends_at_an_error() {
    let mut reader = TraceReader::new(
        TraceFormat::DiskSimAscii,
        &b"1 0 5 8 1\nx\n2 0 5 8 1\n"[..],
        TraceOptions::default(),
    );
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

proptest! {
    /// Is any damaged trace read or refused, without a panic or an endless stream?
    #[test]
    fn damaged_traces_are_read_or_refused(
        sample in 0..TraceFormat::all().count(), at in prop::collection::vec((0..2000usize, any::<u8>()), 0..6), cut in 0..400usize, raw: bool,
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut samples = samples();
        let (format, mut bytes) = samples.swap_remove(sample % samples.len());
        for (place, byte) in at {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        let bytes = if raw { noise } else { bytes };
        let _ = detect(&bytes);
        for format in TraceFormat::all().filter(|&other| raw || other == format) {
            let records = TraceReader::new(format, &bytes[..], TraceOptions::default()).count();
            prop_assert!(records <= bytes.len() + 1);
        }
    }

    /// Does a DiskSim ascii trace parse to the records from which it was written?
    #[test]
    fn ascii_round_trips(mut records in prop::collection::vec((0..1u64 << 50, 0..99u32, 0..1u64 << 60, 1..=u32::MAX, any::<bool>()), 1..20)) {
        records.sort_unstable();
        let text: String = records.iter().map(|&(ps, device, lbn, sectors, read)| {
            format!("{}.{:09} {device} {lbn} {sectors} {}\n", ps / 1_000_000_000, ps % 1_000_000_000, u8::from(read))
        }).collect();
        let expected = records.iter().map(|&(ps, device, lbn, sectors, read)| TraceRecord {
            arrival: Some(SimTime(ps)),
            pause: None,
            completed: None,
            measured: None,
            device,
            request: if read { Request::read(Lbn(lbn), sectors) } else { Request::write(Lbn(lbn), sectors) },
        });
        prop_assert!(read(TraceFormat::DiskSimAscii, text.as_bytes()).into_iter().eq(expected));
    }
}
