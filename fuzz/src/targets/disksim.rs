//! Files of DiskSim.

use traxtent_disksim::{Document, disk_geometry, load_system, parse_seeks};
use traxtent_model::geometry::Geometry;
use traxtent_units::Lbn;
use traxtent_units::request::Request;
use traxtent_workload::{NextStep, RequestSource, Synthio, TraceRecord};

use super::drive::{check_profile, check_round_trip};

/// The name of the file that holds the input.
const INPUT: &str = "input";

/// Returns the content of a file that an input may name. The names `one` and `two` stand for the
/// input itself.
fn source(input: &[u8], path: &str) -> Result<Vec<u8>, String> {
    let text: &[u8] = match path {
        "one" | "two" => input,
        "curve" => b"Seek distances measured: 2\n1, 1.5\n9, 4.0, 0.1, 4.5\n",
        "layout" => {
            b"dm_layout_g1 { LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0, Zones = [
              dm_layout_g1_zone { First cylinder number = 0, Last cylinder number = 9,
              Blocks per track = 20 } ] }"
        }
        "mechanics" => {
            b"dm_mech_g1 { Seek type = extracted, Full seek curve = curve,
              Head switch time = 0.5, Rotation speed (in rpms) = 10000 }"
        }
        _ => return Err("no such file".to_owned()),
    };
    Ok(text.to_vec())
}

/// A parameter file: its disks serve requests, its workload starts, and requests to its devices are
/// mapped to LBNs.
pub(crate) fn params(input: &[u8]) {
    /// The largest number of disks, and of devices, that are tried.
    const TRIED_MAX: usize = 2;
    /// The number of requests that are taken from the workload.
    const REQUESTS: usize = 20;

    let sources = |path: &str| {
        assert_ne!(path, INPUT, "a file that includes itself is read");
        source(input, path)
    };
    if let Err(error) = load_system(INPUT, input, Some("d1"), &sources) {
        drop(error.to_string());
    }
    let Ok(system) = load_system(INPUT, input, None, &sources) else {
        return;
    };
    for disk in system.disks.iter().take(TRIED_MAX) {
        check_profile(&disk.profile);
    }
    for device in system.devices.iter().take(TRIED_MAX) {
        for lbn in [0, 1 << 40] {
            let placed = system.map_record(TraceRecord {
                arrival: None,
                pause: None,
                completed: None,
                measured: None,
                device: device.trace_device,
                request: Request::read(Lbn(lbn), 8),
            });
            let request = placed.expect("the device is in the list").request;
            // Must not overflow.
            request.end();
        }
    }
    let synthio = system
        .synthio
        .as_ref()
        .and_then(|spec| Synthio::new(spec, 1).ok());
    if let Some(mut synthio) = synthio {
        for _ in 0..REQUESTS {
            let Ok(NextStep::At(now)) = synthio.due() else {
                break;
            };
            if let Some(arrival) = synthio.take(now) {
                arrival.request.end();
                synthio.complete(arrival.tag, now);
            }
        }
    }
}

/// A block that describes a layout, in any of DiskSim's formats. The text after a line with a
/// single `%` is the file called `map`.
pub(crate) fn layout(input: &[u8]) {
    const MARK: &[u8] = b"\n%\n";

    let mark = input.windows(MARK.len()).position(|bytes| bytes == MARK);
    let (block, map) = match mark {
        Some(at) => (&input[..at], &input[at + MARK.len()..]),
        None => (input, &[][..]),
    };
    let sources = |path: &str| match path {
        "map" => Ok(map.to_vec()),
        _ => source(block, path),
    };
    let Ok(document) = Document::parse(INPUT, block, &sources) else {
        return;
    };
    let disks = document.blocks().filter(|block| block.kind == "dm_disk");
    for disk in disks.take(1) {
        let Ok(imported) = disk_geometry(disk, &sources) else {
            continue;
        };
        if let Ok(geometry) = Geometry::build(&imported.spec) {
            check_round_trip(&geometry, imported.spec.shared_places);
        }
    }
}

/// A seek curve: distances ascend, and times of reads are not negative.
pub(crate) fn seek_file(input: &[u8]) {
    match parse_seeks(INPUT, input) {
        Ok(points) => {
            assert!(
                points
                    .windows(2)
                    .all(|pair| pair[0].distance < pair[1].distance)
            );
            assert!(points.iter().all(|point| point.read_ms >= 0.0));
        }
        Err(error) => drop(error.to_string()),
    }
}
