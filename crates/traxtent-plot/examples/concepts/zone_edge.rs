//! The tracks around a zone's edge, with chunks of a fixed size, and the time of chunks and tracks.

use traxtent_model::geometry::Track;
use traxtent_plot::colours::{ALIGNED, AXIS, CONVENTIONAL, Colour, DATA, GRID, INK};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Span};

use crate::requests::Bench;
use crate::sheet::{Anchor, Chart, MARGIN, Sheet, WIDTH, grouped};

const DRIVE: &str = "atlas10k2";

/// The numbers of tracks that are drawn before and after the edge.
const BEFORE: u64 = 3;
const AFTER: u64 = 8;

/// The edges of the strips.
const LEFT: f64 = 120.0;
const RIGHT: f64 = WIDTH - MARGIN;
const TOP: f64 = 318.0;
/// The height of a strip.
const STRIP: f64 = 16.0;
/// The distance from one strip to the next.
const ROW: f64 = 22.0;

/// The step between the angles of successive requests, in revolutions: the fractional part of the
/// golden ratio, which spreads the angles evenly.
const ANGLE_STEP: f64 = 0.618_033_988_749_895;

pub(crate) fn picture() -> String {
    let bench = Bench::new(DRIVE);
    let zones = bench.geometry.zones();
    let edge = bench.geometry.track_of(zones[1].first_lbn);
    let edge = edge.expect("the drive has two zones");
    let last = bench
        .geometry
        .track(edge.index - 1)
        .expect("a track before it");
    let chunk = last.sectors;

    let rows = (BEFORE + AFTER) as f64;
    let bottom = TOP + ROW * rows;
    let mut sheet = Sheet::new(
        bottom + 138.0,
        &[
            &bench.profile.model,
            "its zones, and chunks of a fixed size",
        ],
        "Above: the sectors per track of each zone. Below: the tracks around the first zone's end. \
         Chunks of as many sectors as a track of the first zone are each one track there, and \
         straddle tracks in the next.",
    );
    draw_zones(&mut sheet, &bench);

    let at = (MARGIN, TOP - 32.0);
    sheet.bold(
        at,
        Anchor::Start,
        "the edge between its first two zones",
        INK,
    );
    let label = format!("chunks of {chunk} sectors:");
    sheet.text((MARGIN, TOP - 12.0), Anchor::Start, &label);
    sheet.legend(
        (MARGIN + 176.0, TOP - 12.0),
        &[
            (DATA[ALIGNED], "one track"),
            (DATA[CONVENTIONAL], "two tracks"),
        ],
    );
    let first = edge.index - BEFORE;
    // In the first zone, a chunk begins with every track, and thus with the first drawn one.
    let begin = bench.geometry.track(first).expect("a track").first_lbn;
    for row in 0..BEFORE + AFTER {
        let track = bench.geometry.track(first + row).expect("a track");
        let top = TOP + ROW * row as f64;
        draw_track(&mut sheet, &bench, top, &track, (begin, chunk));
    }
    let y = TOP + ROW * BEFORE as f64 - (ROW - STRIP) / 2.0;
    sheet.dashes(&[(MARGIN, y), (WIDTH - MARGIN, y)], INK, 1.5);

    let [tracks, chunks] = [None, Some(chunk)].map(|chunk| mean_ms(&bench, &edge, chunk));
    sheet.note(
        bottom + 26.0,
        &["Mean time of a read in the second zone, without seek:"],
    );
    for (row, (name, ms, colour)) in (0..).zip([
        (
            format!("a track, {} sectors", edge.sectors),
            tracks,
            ALIGNED,
        ),
        (format!("a chunk, {chunk} sectors"), chunks, CONVENTIONAL),
    ]) {
        let top = bottom + 40.0 + 40.0 * f64::from(row);
        let width = (WIDTH - 2.0 * MARGIN) * ms / chunks.max(tracks);
        sheet.text(
            (MARGIN, top + 13.0),
            Anchor::Start,
            &format!("{name}: {ms:.2} ms"),
        );
        sheet.bar((MARGIN, top + 19.0), (width, 12.0), DATA[colour], 1.0);
    }
    sheet.finish()
}

/// Draws the sectors per track against the LBN.
fn draw_zones(sheet: &mut Sheet, bench: &Bench) {
    let zones = bench.geometry.zones();
    let capacity = bench.geometry.capacity().0 as f64 / 1e6;
    let chart = Chart {
        x: (50.0, WIDTH - 16.0),
        y: (66.0, 220.0),
        most: (capacity, 600.0),
    };
    let sectors = [(0.0, "0"), (200.0, "200"), (400.0, "400"), (600.0, "600")];
    let lbns = [
        (0.0, "0"),
        (5.0, "5"),
        (10.0, "10"),
        (15.0, "15"),
        (20.0, "20"),
    ];
    chart.axes(sheet, [&lbns, &sectors]);
    let line: Vec<(f64, f64)> = zones
        .iter()
        .flat_map(|zone| {
            let ends = [zone.first_lbn, zone.end_lbn];
            ends.map(|lbn| chart.at((lbn.0 as f64 / 1e6, f64::from(zone.slots))))
        })
        .collect();
    sheet.line(&line, DATA[ALIGNED], 2.5);
    let (x, y) = chart.at((zones[1].first_lbn.0 as f64 / 1e6, f64::from(zones[0].slots)));
    sheet.line(&[(x, y - 14.0), (x, y + 18.0)], INK, 1.5);
    sheet.text((x + 5.0, y - 6.0), Anchor::Start, "the edge below");
    sheet.text((60.0, 212.0), Anchor::Start, "sectors per track");
    sheet.text((WIDTH - MARGIN, 258.0), Anchor::End, "LBN, millions");
}

/// Draws a track as a strip, in parts that belong to different chunks.
fn draw_track(
    sheet: &mut Sheet,
    bench: &Bench,
    top: f64,
    track: &Track,
    (begin, chunk): (Lbn, u32),
) {
    let label = format!("LBN {}", grouped(track.first_lbn.0));
    sheet.text((MARGIN, top + 13.0), Anchor::Start, &label);
    let x = |lbn: u64| {
        let share = (lbn - track.first_lbn.0) as f64 / f64::from(chunk);
        LEFT + (RIGHT - LEFT) * share
    };
    let size = u64::from(chunk);
    let mut lbn = track.first_lbn.0;
    while lbn < track.end_lbn().0 {
        let number = (lbn - begin.0) / size;
        let (from, until) = (begin.0 + number * size, begin.0 + (number + 1) * size);
        let end = until.min(track.end_lbn().0);
        let whole = bench.geometry.track_of(Lbn(from)) == bench.geometry.track_of(Lbn(until - 1));
        let colour: Colour = DATA[if whole { ALIGNED } else { CONVENTIONAL }];
        // Successive chunks differ in shade.
        let opacity = if number.is_multiple_of(2) { 0.9 } else { 0.55 };
        sheet.bar((x(lbn), top), (x(end) - x(lbn), STRIP), colour, opacity);
        lbn = end;
    }
    let end = x(track.end_lbn().0);
    if end < RIGHT {
        sheet.frame((end, top), (RIGHT - end, STRIP), GRID, 0.8);
    }
    sheet.frame((LEFT, top), (end - LEFT, STRIP), AXIS, 0.8);
}

/// Returns the mean time that reads of the second zone's chunks, or of its tracks if `chunk` is
/// `None`, need for rotational latency, transfer and head switches.
fn mean_ms(bench: &Bench, edge: &Track, chunk: Option<u32>) -> f64 {
    let zone = bench.geometry.zones()[1];
    let (mut sum, mut count) = (0.0, 0);
    let mut lbn = edge.first_lbn;
    while let Some(track) = bench.geometry.track_of(lbn) {
        let sectors = chunk.unwrap_or(track.sectors);
        let end = Lbn(lbn.0 + u64::from(sectors));
        if end > zone.end_lbn {
            break;
        }
        let turned = (f64::from(count) * ANGLE_STEP).fract();
        let turned = Span((turned * bench.revolution.0 as f64) as u64);
        let parts = bench
            .serve(lbn, turned, Request::read(lbn, sectors))
            .done
            .breakdown;
        sum += (parts.rotation + parts.transfer + parts.head_switch).as_ms();
        count += 1;
        lbn = end;
    }
    sum / f64::from(count)
}
