//! Requests to drives: synthetic workloads and traces.

use std::sync::LazyLock;

use traxtent_model::geometry::{Geometry, GeometrySpec, PerSurface, ZoneSpec};
use traxtent_units::request::Request;
use traxtent_units::{Sectors, SimTime};
use traxtent_workload::trace::{BlkparseEvent, ColumnSpec, ColumnText, detect};
use traxtent_workload::{
    CapacityOnly, NextStep, RequestSource, Synthetic, TraceError, TraceFormat, TraceOptions,
    TraceProblem, TraceReader, TrackSource, WorkloadSpec,
};

use super::text;

/// A workload in one line. Printing and parsing it gives the same workload, and its requests stay
/// within the drive.
pub(crate) fn line(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match text.parse::<WorkloadSpec>() {
        Ok(spec) => check_accepted(&spec),
        Err(error) => drop(error.to_string()),
    }
}

/// A workload as a TOML table.
pub(crate) fn table(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match WorkloadSpec::from_toml(text) {
        Ok(spec) => check_accepted(&spec),
        Err(error) => drop(error.to_string()),
    }
}

/// A trace. The first byte, modulo the number of formats, selects the format. Bits of the
/// second select the sector size, the event of blkparse, and whether the order of arrivals is
/// checked.
pub(crate) fn trace(input: &[u8]) {
    let [format, options, bytes @ ..] = input else {
        return;
    };
    let formats: Vec<TraceFormat> = TraceFormat::all().collect();
    let format = formats[usize::from(*format) % formats.len()];
    let options = TraceOptions {
        capacity_sectors: 0,
        check_order: options & 4 == 0,
        sector_bytes: if options & 1 == 0 { 512 } else { 4096 },
        blkparse_event: if options & 2 == 0 {
            BlkparseEvent::Dispatch
        } else {
            BlkparseEvent::Queue
        },
    };
    read_through(TraceReader::new(format, bytes, options));
}

/// A trace whose columns are specified. The first five lines are the columns, units, delimiter,
/// filter and values of reads; an empty line omits its part. The rest is the trace. Requests within
/// files are placed on the drive, unless they are larger than it.
pub(crate) fn trace_columns(input: &[u8]) {
    const CAPACITY_SECTORS: u64 = 1 << 20;

    let mut parts = input.splitn(6, |&byte| byte == b'\n');
    let mut line = || parts.next().and_then(text).unwrap_or_default();
    let [columns, units, delimiter, filter, reads] = std::array::from_fn(|_| line());
    let spec = ColumnSpec::parse(&ColumnText {
        columns,
        units: &given(units),
        delimiter: (!delimiter.is_empty()).then_some(delimiter),
        filters: &given(filter),
        reads: &given(reads),
        writes: &[],
    });
    let spec = match spec {
        Ok(spec) => spec,
        Err(error) => return drop(error.to_string()),
    };
    let options = TraceOptions {
        capacity_sectors: CAPACITY_SECTORS,
        ..TraceOptions::default()
    };
    let has_file = spec.file.is_some();
    let bytes = parts.next().unwrap_or_default();
    let reader = TraceReader::with_columns(spec, bytes, options);
    for request in read_through(reader) {
        assert!(
            !has_file
                || u64::from(request.sectors) > CAPACITY_SECTORS
                || request.end().0 <= CAPACITY_SECTORS,
            "{request:?}"
        );
    }
}

/// Returns a part of a specification, unless it is empty.
fn given(text: &str) -> Vec<&str> {
    Some(text)
        .filter(|text| !text.is_empty())
        .into_iter()
        .collect()
}

/// Reads a trace to its end, and returns its requests.
fn read_through(mut reader: TraceReader<&[u8]>) -> Vec<Request> {
    let mut requests = Vec::new();
    for record in reader.by_ref() {
        match record {
            Ok(record) => {
                // Must not overflow.
                let _ = record.request.end();
                requests.push(record.request);
            }
            Err(error) => drop(error.to_string()),
        }
    }
    assert!(reader.next().is_none(), "a trace continues after its end");
    if let Some(warning) = reader.gap_warning() {
        drop(warning.to_string());
    }
    if let Some(warning) = reader.order_warning() {
        drop(warning.to_string());
    }
    if let Some(warning) = reader.response_warning() {
        drop(warning.to_string());
    }
    requests
}

/// Detection of a trace's format. If the result is one of DiskSim's formats or SPC, the first
/// record is a request, possibly an empty one.
pub(crate) fn trace_detect(input: &[u8]) {
    let format = match detect(input) {
        Ok(format) => format,
        Err(error) => return drop(error.to_string()),
    };
    let mut reader = TraceReader::new(format, input, TraceOptions::default());
    let first = reader.next();
    if matches!(
        format,
        TraceFormat::DiskSimAscii | TraceFormat::DiskSimValidate | TraceFormat::Spc
    ) {
        assert!(
            matches!(
                first,
                Some(
                    Ok(_)
                        | Err(TraceError::At {
                            problem: TraceProblem::Empty { .. },
                            ..
                        })
                )
            ),
            "{format}: {first:?}"
        );
    }
}

/// Asserts the properties of every accepted workload.
fn check_accepted(spec: &WorkloadSpec) {
    static TRACKS: LazyLock<Geometry> = LazyLock::new(|| {
        let zone = |first_cylinder, sectors| ZoneSpec {
            first_cylinder,
            last_cylinder: first_cylinder + 9,
            sectors_per_track: PerSurface::Same(sectors),
            ..ZoneSpec::default()
        };
        Geometry::build(&GeometrySpec {
            surfaces: 2,
            cylinders: 20,
            zones: vec![zone(0, 300), zone(10, 200)],
            ..GeometrySpec::default()
        })
        .expect("two zones of ten cylinders")
    });

    let printed = spec.to_string();
    assert_eq!(printed.parse().as_ref(), Ok(spec), "{printed}");
    stays_inside(spec, &CapacityOnly(Sectors(10_000)), 512);
    stays_inside(spec, &*TRACKS, 4096);
}

fn stays_inside(spec: &WorkloadSpec, drive: &dyn TrackSource, sector_bytes: u32) {
    const REQUESTS: usize = 50;

    let mut source = match Synthetic::new(spec, sector_bytes, drive) {
        Ok(source) => source,
        Err(error) => return drop(error.to_string()),
    };
    for _ in 0..REQUESTS {
        let Ok(NextStep::At(now)) = source.due() else {
            break;
        };
        let arrival = source.take(now).expect("a request is due");
        let request = arrival.request;
        assert!(
            request.sectors > 0 && request.end().0 <= drive.capacity().0,
            "{request:?}"
        );
        source.complete(arrival.tag, SimTime(now.0.saturating_add(1_000_000)));
    }
}
