//! Are traces with specified columns read, and is a wrong specification or line reported?

use proptest::prelude::*;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::trace::{ColumnSpec, ColumnText, ResponseWarning};
use traxtent_workload::{TraceOptions, TraceReader, TraceRecord};

const OPTIONS: TraceOptions = TraceOptions {
    sector_bytes: 512,
    capacity_sectors: 1 << 31,
    blkparse_event: traxtent_workload::trace::BlkparseEvent::Dispatch,
    check_order: true,
};

fn reader<'a>(columns: &ColumnText<'_>, text: &'a str) -> TraceReader<&'a [u8]> {
    let spec = ColumnSpec::parse(columns).unwrap_or_else(|error| panic!("{columns:?}: {error}"));
    TraceReader::with_columns(spec, text.as_bytes(), OPTIONS)
}

fn read(columns: &ColumnText<'_>, text: &str) -> Vec<TraceRecord> {
    reader(columns, text)
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Returns columns with units, and with defaults for everything else.
fn text<'a>(columns: &'a str, units: &'a [&'a str]) -> ColumnText<'a> {
    ColumnText {
        columns,
        units,
        ..ColumnText::default()
    }
}

fn record(arrival_ns: u64, measured_ns: Option<u64>, device: u32, request: Request) -> TraceRecord {
    TraceRecord {
        arrival: Some(SimTime(arrival_ns * 1000)),
        pause: None,
        completed: None,
        measured: measured_ns.map(|ns| Span(ns * 1000)),
        device,
        request,
    }
}

/// Do the specifications in the documentation read lines in the layout of each public collection?
/// The lines are made up.
#[test]
fn public_collections() {
    // MSR Cambridge: timestamp, host, disk, type, offset, size, response time.
    let msr = ColumnText {
        filters: &["2=usr"],
        ..text(
            "time=1,device=3,op=4,offset=5,bytes=6,response=7",
            &["100ns"],
        )
    };
    assert_eq!(
        read(
            &msr,
            "130000000000000000,usr,1,Read,4096,8192,50000\n130000000000000001,web,0,Read,0,512,1\n\
             130000000000010000,usr,0,Write,512,512,9\n"
        ),
        [
            record(0, Some(5_000_000), 1, Request::read(Lbn(8), 16)),
            record(1_000_000, Some(900), 0, Request::write(Lbn(1), 1)),
        ]
    );
    // Alibaba: device_id, opcode, offset, length, timestamp.
    let alibaba = text("device=1,op=2,offset=3,bytes=4,time=5", &["us"]);
    assert_eq!(
        read(
            &alibaba,
            "419,W,4096,16384,1577808000000500\n7,R,0,4096,1577808000000750\n"
        ),
        [
            record(0, None, 419, Request::write(Lbn(8), 32)),
            record(250_000, None, 7, Request::read(Lbn(0), 8)),
        ]
    );
    // Tencent CBS: Timestamp, Offset, Size, IOType, VolumeID; sectors of 512 bytes.
    let tencent = text(
        "time=1,lbn=2,sectors=3,op=4,device=5",
        &["s", "lbn=512,sectors=512"],
    );
    assert_eq!(
        read(
            &tencent,
            "1538323200,4096,8,0,1063\n1538323201,64,16,1,1063\n"
        ),
        [
            record(0, None, 1063, Request::read(Lbn(4096), 8)),
            record(1_000_000_000, None, 1063, Request::write(Lbn(64), 16)),
        ]
    );
    // Thesios: names in the first line; requests that the disk did not serve are left out.
    let thesios = ColumnText {
        filters: &["cache_hit=0"],
        ..text(
            "time=simulated_disk_start_time,op=op_type,file=filename,offset=file_offset,\
             bytes=disk_io_size_bytes,response=disk_time",
            &["s"],
        )
    };
    let found = read(
        &thesios,
        "filename,application,file_offset,c_time,io_zone,redundancy_type,op_type,service_class,\
         from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,\
         start_time,disk_time,simulated_disk_start_time,simulated_latency\n\
         aa,spanner,8192,1700000000,WARM,REPLICATED,READ,OTHER,0,0,4096,4096,4096,1705276800.5,0.0125,1705276800.75,0.02\n\
         aa,spanner,0,1700000000,WARM,REPLICATED,WRITE,OTHER,0,-1,4096,0,0,1705276800.6,0,0,0.001\n\
         aa,spanner,12288,1700000000,WARM,REPLICATED,READ,OTHER,0,0,4096,8192,4096,1705276801,0.001,1705276801,0.02\n\
         bb,spanner,0,1700000000,WARM,REPLICATED,READ,OTHER,0,0,4096,8192,4096,1705276802,0.001,1705276802,0.02\n",
    );
    let times: Vec<_> = found
        .iter()
        .map(|record| {
            (
                record.arrival.unwrap().as_ms(),
                record.measured.unwrap().as_ms(),
            )
        })
        .collect();
    assert_eq!(times, [(0.0, 12.5), (250.0, 1.0), (1250.0, 1.0)]);
    // Two requests of one file keep their distance; another file is elsewhere.
    let lbns: Vec<u64> = found.iter().map(|record| record.request.lbn.0).collect();
    assert_eq!(lbns[1] - lbns[0], 8);
    assert_eq!((lbns[0] - 16) % 2048, 0);
    assert_ne!(lbns[2], lbns[0] - 16);
    // Baleen: block_id io_offset io_size op_time op_name …, separated by blanks.
    let baleen = ColumnText {
        reads: &["1,2,5"],
        writes: &["3,4,6"],
        ..text("file=1,offset=2,bytes=3,time=4,op=5", &["s"])
    };
    let found = read(
        &baleen,
        "310 262144 4096 1572074461.5 1 24 3 5\n311 0 8192 1572074461.75 4 24 3 5\n",
    );
    let requests: Vec<_> = found
        .iter()
        .map(|record| {
            (
                record.arrival.unwrap().as_ms(),
                record.request.op,
                record.request.sectors,
            )
        })
        .collect();
    assert_eq!(requests, [(0.0, Op::Read, 8), (250.0, Op::Write, 16)]);
}

/// Does the specification in the documentation read the output of BCC's biosnoop?
#[test]
fn biosnoop() {
    let columns = text(
        "completed=TIME(s),op=T,lbn=SECTOR,bytes=BYTES,response=LAT(ms)",
        &["completed=s,response=ms,lbn=512"],
    );
    let found = read(
        &columns,
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)\n\
         0.500000    dd             7       sda       R 4096       4096       10.50\n",
    );
    let request = Request::read(Lbn(4096), 8);
    assert_eq!(found, [record(489_500_000, Some(10_500_000), 0, request)]);
}

/// Are names, quotes, separators, headings, comments, empty values, completion times, device names,
/// flushes and forced writes understood?
#[test]
fn layouts() {
    let expected = [
        record(1_000_000, Some(500_000), 0, Request::read(Lbn(8), 8)),
        record(2_000_000, None, 0, Request::write(Lbn(64), 16)),
    ];
    let by_number = "time=1,op=2,lbn=3,sectors=4,response=5";
    let by_name = "time=at,op=kind,lbn=first,sectors=n,response=took";
    for (columns, delimiter, lines) in [
        (by_number, None, "1,R,8,8,0.5\n2,W,64,16,\n"),
        (
            by_number,
            None,
            "at,kind,first,n,took\n1,read,8,8,.5\n\n# x\n2,WRITE,64,16,\n",
        ),
        (
            by_name,
            None,
            "at,kind,first,n,took\n1,0,8,8,0.50\n2,1,64,16,\n",
        ),
        (
            by_name,
            None,
            "took;\"n\";first;\"kind\";at\n0.5;8;8;\"R\";\"1\"\n;16;64;W;2\n",
        ),
        (by_number, None, "1\tR\t8\t8\t0.5\n2\tW\t64\t16\t\n"),
        (
            by_number,
            Some("tab"),
            "1\tR\t8\t8\t0.5\tx\n2\tW\t64\t16\t\tx\n",
        ),
        (by_number, Some("|"), "1 | R | 8 | 8 | 0.5\n2|W|64|16|\n"),
        (
            by_name,
            Some("blanks"),
            "  at kind  first n took\n 1 R   8 8 0.5\n2 W 64\t16 \"\"\n",
        ),
    ] {
        let columns = ColumnText {
            delimiter,
            ..text(columns, &["ms"])
        };
        assert_eq!(read(&columns, lines), expected, "{lines:?}");
    }
    // Completions and responses, in order of completion; a value with the separator in quotes.
    let completed = text("completed=2,response=3,op=4,offset=5,bytes=6", &["ms"]);
    let found = read(&completed, "\"a,b\",4,3.5,R,0,512\nc,3,1,R,512,512\n");
    assert_eq!(
        found,
        [
            record(500_000, Some(3_500_000), 0, Request::read(Lbn(0), 1)),
            record(2_000_000, Some(1_000_000), 0, Request::read(Lbn(1), 1)),
        ]
    );
    // Arrivals and completions.
    let both = text("time=1,completed=2,op=3,lbn=4,sectors=5", &["ms"]);
    let found = read(&both, "2,4.5,R,8,1\n");
    assert_eq!(
        found,
        [record(
            2_000_000,
            Some(2_500_000),
            0,
            Request::read(Lbn(8), 1)
        )]
    );
    // Devices with names, flushes, and forced writes.
    let named = text("time=1,device=2,op=3,lbn=4,sectors=5,fua=6", &["s"]);
    let found = read(&named, "0,sdb,W,8,1,1\n0,sda,flush,0,0,0\n0,sdb,W,8,1,0\n");
    let devices: Vec<u32> = found.iter().map(|record| record.device).collect();
    assert_eq!(devices, [0, 1, 0]);
    assert!(found[0].request.fua && !found[2].request.fua);
    assert_eq!(found[1].request, Request::flush());
}

/// Do times count from the earliest record if it is later than 3,600 s, and are they unchanged
/// otherwise?
#[test]
fn origins() {
    let columns = text("time=1,op=2,lbn=3,sectors=4", &["s"]);
    let arrivals = |lines: &str| -> Vec<f64> {
        let records = read(&columns, lines);
        let arrivals = records.iter().map(|record| record.arrival.unwrap());
        arrivals.map(|at| at.as_ms() / 1e3).collect()
    };
    assert_eq!(arrivals("3600,R,0,1\n3601,R,0,1\n"), [3600.0, 3601.0]);
    assert_eq!(arrivals("3601,R,0,1\n3602,R,0,1\n"), [0.0, 1.0]);
    assert_eq!(arrivals("1700000002,R,0,1\n1700000001,R,0,1\n"), [0.0, 1.0]);
}

/// Is a wrong unit noticed, where measured times or arrivals show it?
#[test]
fn wrong_units() {
    // Measured times of 12 ms, stated as 12,000.
    let lines: String = (0..100)
        .map(|index| format!("{},R,8,8,12000\n", index * 15_000))
        .collect();
    let warnings = |units: &[&str]| {
        let columns = text("time=1,op=2,lbn=3,sectors=4,response=5", units);
        let mut reader = reader(&columns, &lines);
        assert!(reader.by_ref().all(|record| record.is_ok()));
        (reader.gap_warning(), reader.response_warning())
    };
    assert!(matches!(warnings(&["us"]), (None, None)));
    let (gaps, responses) = warnings(&["ms"]);
    assert!(gaps.is_some() && matches!(responses, Some(ResponseWarning::TooLong { .. })));
    let message = responses.unwrap().to_string();
    assert_eq!(
        message,
        "the median of the first 100 measured times is 12000 ms, which is long for a disk; check their unit"
    );
    let (_, responses) = warnings(&["100ns", "response=ns"]);
    assert_eq!(
        responses, None,
        "12 µs, which is possible, causes a warning"
    );
    let lines = lines.replace("12000", "4000");
    let columns = text(
        "time=1,op=2,lbn=3,sectors=4,response=5",
        &["us", "response=ms"],
    );
    let mut reader = reader(&columns, &lines);
    assert!(reader.by_ref().all(|record| record.is_ok()));
    let found = reader.response_warning();
    assert!(
        matches!(found, Some(ResponseWarning::TooManyOutstanding { outstanding, .. }) if outstanding == 269),
        "{found:?}"
    );
}

/// Does the error for a wrong line name the line, the column and the bound?
#[test]
fn wrong_lines() {
    let columns = "time=1,op=2,lbn=3,sectors=4,response=5";
    for (lines, expected) in [
        (
            "1,R,8,8,2\n1,R,8,8\n",
            "csv trace, line 2: expected at least 5 columns, for response; found 4",
        ),
        (
            "1,R,8,8,x\n",
            "csv trace, line 1: response (column 5): \"x\": expected a time from 0 to 9223372036 ms",
        ),
        (
            "1,R,8,8,-1\n",
            "line 1: response (column 5): \"-1\": expected a time from 0 to",
        ),
        (
            "x,R,8,8,1\n",
            "line 1: time (column 1): \"x\": expected a time from 0 to 18446744073709551615 ms",
        ),
        (
            "1,R,8,8,1\n1,T,8,8,1\n",
            "line 2: op (column 2): \"T\": expected R, read or 0 (read), W, write or 1 (write), flush or verify; \
             --where skips other lines",
        ),
        (
            "1,R,-8,8,1\n",
            "line 1: lbn (column 3): \"-8\": expected a whole number from 0 to 9223372036854775807",
        ),
        ("1,R,8,0,1\n", "line 1: the request has 0 sectors"),
        (
            "1,R,8,4294967296,1\n",
            "line 1: offset and length: \"4096 + 2199023255552\": expected a range below sector",
        ),
        (
            "0,R,8,8,1\n9300000000,R,8,8,1\n",
            "line 2: the request arrives 9300000 s after the first one; expected at most 9223372 s",
        ),
    ] {
        let mut reader = reader(&text(columns, &["ms"]), lines);
        let error = reader.find_map(Result::err);
        let message = error
            .unwrap_or_else(|| panic!("{lines:?} is accepted"))
            .to_string();
        assert!(message.contains(expected), "{lines:?}: {message}");
        assert!(!message.contains('\n'), "{message:?}");
    }
    let named = text("time=t,op=kind,lbn=3,sectors=4", &["ms"]);
    let error = reader(&named, "t,type,l,n\n").next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "csv trace, line 1: the first line has no column \"kind\"; its columns are t, type, l, n"
    );
}

/// Does the error for a wrong specification name the part and what to write?
#[test]
fn wrong_specifications() {
    let good = "time=1,op=2,lbn=3,sectors=4";
    let with = |columns, units| text(columns, units);
    for (columns, expected) in [
        (
            with("time", &["s"]),
            "columns: time: expected KEY=COLUMN, such as time=1",
        ),
        (with("", &["s"]), "columns: : expected KEY=COLUMN"),
        (
            with("when=1", &["s"]),
            "columns: when=1: expected one of time, completed, ",
        ),
        (
            with("time=0", &["s"]),
            "columns: time=0: expected a number from 1 to 1000, or a name",
        ),
        (
            with("time=1001", &["s"]),
            "columns: time=1001: expected a number from 1",
        ),
        (
            with("time=1,time=2", &["s"]),
            "columns: time=2: time= is given twice",
        ),
        (
            with("time=1,lbn=3,sectors=4", &["s"]),
            "columns: op= is missing",
        ),
        (
            with("time=1,op=2,sectors=4", &["s"]),
            "columns: lbn= or offset= is missing",
        ),
        (
            with("time=1,op=2,lbn=1,offset=2,bytes=4", &["s"]),
            "lbn= and offset= give the same value twice",
        ),
        (
            with("completed=1,op=2,lbn=3,sectors=4", &["s"]),
            "completed= gives arrivals only with response=",
        ),
        (
            with("time=1,pause=1,op=2,lbn=3,sectors=4", &["s"]),
            "pause= replaces time=",
        ),
        (
            with(good, &[]),
            "units: time= has no unit; add --units time=UNIT, or --units UNIT for all times (s, ms, us, 100ns, ns)",
        ),
        (
            with(good, &["sec"]),
            "units: sec: expected s, ms, us, 100ns, ns",
        ),
        (with(good, &["time=sec"]), "units: time=sec: expected s, ms"),
        (
            with(good, &["s,ms"]),
            "units: ms: a second unit for all times",
        ),
        (
            with(good, &["s", "response=s"]),
            "units: response=s: there is no column response=",
        ),
        (with(good, &["s", "op=s"]), "units: op=s: op= has no unit"),
        (
            with(good, &["s", "lbn=0"]),
            "units: lbn=0: expected a block size from 1 byte to 1 GiB",
        ),
        (
            ColumnText {
                delimiter: Some("ab"),
                ..with(good, &["s"])
            },
            "delimiter: \"ab\": expected one character",
        ),
        (
            ColumnText {
                filters: &["usr"],
                ..with(good, &["s"])
            },
            "where: usr: expected COLUMN=VALUE, such as 2=usr",
        ),
        (
            ColumnText {
                reads: &["1,,2"],
                ..with(good, &["s"])
            },
            "reads: expected values separated by commas",
        ),
    ] {
        let error = ColumnSpec::parse(&columns).expect_err(expected).to_string();
        assert!(error.contains(expected), "{columns:?}: {error}");
        assert!(!error.contains('\n'), "{error:?}");
    }
}

proptest! {
    /// Do records written in order of completion come back in order of arrival, each with its
    /// values?
    #[test]
    fn columns_round_trip(mut records in prop::collection::vec((0..1u64 << 40, 0..1u64 << 30, 0..1u64 << 50, 1..=u32::MAX, any::<bool>()), 1..50)) {
        records.sort_by_key(|&(arrival, response, ..)| arrival + response);
        let lines: String = records.iter().map(|&(arrival, response, lbn, sectors, read)| {
            let completed = arrival + response;
            format!("{}.{:03},{},{lbn},{sectors},{response}\n", completed / 1000, completed % 1000, if read { "R" } else { "W" })
        }).collect();
        let found = read(&text("completed=1,op=2,lbn=3,sectors=4,response=5", &["us", "response=ns"]), &lines);
        records.sort_by_key(|record| record.0);
        let expected: Vec<TraceRecord> = records.iter().map(|&(arrival, response, lbn, sectors, read)| {
            let request = if read { Request::read(Lbn(lbn), sectors) } else { Request::write(Lbn(lbn), sectors) };
            record(arrival, Some(response), 0, request)
        }).collect();
        prop_assert_eq!(found, expected);
    }

    /// Are damaged lines and arbitrary specifications read or refused, without a panic or an
    /// endless stream?
    #[test]
    fn damaged_columns_are_read_or_refused(
        spec in "(time|completed|response|pause|op|lbn|offset|bytes|device|file|fua|=|,|[0-9]|x){1,12}",
        units in "(s|ms|100ns|lbn=512|time=us|,){0,4}",
        at in prop::collection::vec((0..400usize, any::<u8>()), 0..6), cut in 0..200usize,
    ) {
        let units: &[&str] = if units.is_empty() { &[] } else { &[&units] };
        let specs = [
            ColumnSpec::parse(&text(&spec, units)),
            ColumnSpec::parse(&text("completed=1,response=2,op=3,offset=4,bytes=5,device=6,file=7,fua=8", &["us"])),
            ColumnSpec::parse(&text("pause=end,op=op,lbn=lbn,sectors=n", &["100ns"])),
        ];
        let mut bytes = b"end,took,op,lbn,n,dev,file,fua\n\"1\",1,R,512,512,sda,a,0\n2.5,1.25,W,0,4096,sdb,b,1\n".to_vec();
        for (place, byte) in at {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        for spec in specs.into_iter().flatten() {
            let records = TraceReader::with_columns(spec, &bytes[..], OPTIONS).count();
            prop_assert!(records <= bytes.len() + 1);
        }
    }
}
