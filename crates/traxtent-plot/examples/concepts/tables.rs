//! The tables of the interactive page, as a script that defines one global object.
//!
//! A request is a list of numbers: for each of its phases in order, the index of the phase and its
//! end in microseconds since the request's submission. The page only interpolates between them, and
//! turns the platter at the drive's speed.

use std::fmt::Write as _;

use traxtent_plot::colours::{self, ALIGNED, CONVENTIONAL, Colour, DATA};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Span};

use crate::requests::{Bench, Phase, Served};
use crate::timeline::ANGLES;

/// The drives: two of paper T, the second without zero-latency access, one of 2015 whose skews were
/// measured, and a generic one of 20 TB.
const DRIVES: [&str; 4] = ["atlas10k2", "cheetahx15", "toshiba-x300", "generic-20tb"];

/// The number of parts into which a track is divided for the starts of requests, and a revolution
/// for the angles at which they arrive.
const EIGHTHS: u32 = 8;

/// The number of tracks that are described: a request of two tracks that begins within one ends on
/// a third.
const TRACKS: u64 = 3;

pub(crate) fn script() -> String {
    let phases = Phase::ALL.map(|phase| {
        let colour = pair(phase.colour());
        format!("{{name: \"{}\", colour: {colour}}}", phase.name())
    });
    let mut text = format!(
        "// Written by `cargo run -p traxtent-plot --example concepts -- docs/concepts`.\n\
         const TRAXTENT_REQUESTS = {{\n\
         phases: [{}],\naligned: {},\nunaligned: {},\neighths: {EIGHTHS},\nangles: {ANGLES},\n\
         drives: [\n",
        phases.join(", "),
        pair(DATA[ALIGNED]),
        pair(DATA[CONVENTIONAL]),
    );
    for drive in DRIVES {
        write_drive(&mut text, drive);
    }
    text + "]};\n"
}

/// Returns a colour on light paper and on dark paper.
fn pair(colour: Colour) -> String {
    let Colour { light, dark } = colour;
    format!("[\"{}\", \"{}\"]", colours::hex(light), colours::hex(dark))
}

fn write_drive(text: &mut String, drive: &str) {
    let bench = Bench::new(drive);
    let track = bench.track_in_first_zone();
    let seek_cylinders = bench.seek_cylinders();
    let from = bench.inwards(&track, seek_cylinders);
    let tracks: Vec<_> = (track.index..track.index + TRACKS)
        .map(|index| {
            bench
                .geometry
                .track(index)
                .expect("a track of the first zone")
        })
        .collect();
    let spec = bench.profile.mechanics.as_ref();
    let _ = writeln!(
        text,
        "{{name: \"{drive}\", model: \"{}\", rpm: {}, zeroLatency: {}, revolution: {:.3}, \
         sectorBytes: {}, seekCylinders: {seek_cylinders},",
        bench.profile.model,
        spec.expect("a drive that rotates").rpm,
        bench.profile.access.zero_latency_read,
        bench.revolution.as_ms() * 1000.0,
        bench.profile.sector.logical_bytes,
    );
    let described = tracks.iter().map(|track| {
        format!(
            "{{lbn: {}, sectors: {}, slots: {}, origin: {:.5}, cylinder: {}, surface: {}}}",
            track.first_lbn,
            track.sectors,
            track.slots,
            track.origin.as_turns(),
            track.cylinder,
            track.surface
        )
    });
    let described: Vec<String> = described.collect();
    let _ = writeln!(text, "tracks: [{}],\nsizes: [", described.join(",\n"));
    let kib = |kib: u32| kib * 1024 / bench.profile.sector.logical_bytes;
    for (name, sectors) in [
        ("4 KiB", kib(4)),
        ("64 KiB", kib(64)),
        ("half a track", track.sectors / 2),
        ("a track", track.sectors),
        ("two tracks", track.sectors + tracks[1].sectors),
    ] {
        write_size(text, &bench, from, (name, sectors));
    }
    text.push_str("]},\n");
}

fn write_size(text: &mut String, bench: &Bench, from: Lbn, (name, sectors): (&str, u32)) {
    let track = bench.track_in_first_zone();
    let ratio = bench.profile.sector.ratio();
    let starts = (0..EIGHTHS).map(|k| {
        // Every request begins at the beginning of a physical sector.
        let offset = track.sectors * k / EIGHTHS / ratio * ratio;
        Request::read(Lbn(track.first_lbn.0 + u64::from(offset)), sectors)
    });
    let _ = writeln!(text, "{{name: \"{name}\", sectors: {sectors}, starts: [");
    for request in starts {
        let mean = bench.mean_ms(from, request, ANGLES, |served| served.done.response());
        let _ = write!(
            text,
            "{{lbn: {}, mean: {:.0}, requests: [",
            request.lbn,
            mean * 1000.0
        );
        for angle in 0..u64::from(EIGHTHS) {
            let turned = Span(bench.revolution.0 * angle / u64::from(EIGHTHS));
            let served = bench.serve(from, turned, request);
            // The page takes each track switch as one to the next of the described tracks.
            let passes = served.passes.iter().zip(0..);
            for (pass, after) in passes {
                assert_eq!(pass.track.index, track.index + after, "{name}");
            }
            write_request(text, &served);
        }
        text.push_str("]},\n");
    }
    text.push_str("]},\n");
}

/// Writes the phases of a request. Those that vanish in the rounding are left out.
fn write_request(text: &mut String, served: &Served) {
    let mut numbers = Vec::new();
    let mut begun = 0;
    for step in &served.steps {
        let end = (step.end.0 + 500_000) / 1_000_000;
        if end > begun {
            numbers.push(format!("{},{end}", step.phase as usize));
            begun = end;
        }
    }
    let _ = write!(text, "[{}],", numbers.join(","));
}
