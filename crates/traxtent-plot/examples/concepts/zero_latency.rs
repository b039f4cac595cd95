//! The time of a read on its track against the angle at which the head arrives there.

use traxtent_model::profile::builtin;
use traxtent_plot::colours::{Colour, DATA, INK, OTHER};
use traxtent_units::Span;
use traxtent_units::request::Request;

use crate::requests::Bench;
use crate::sheet::{Anchor, Chart, Sheet, WIDTH};

const DRIVE: &str = "atlas10k2";

/// The number of angles of the platter at which a read is submitted.
const ANGLES: u64 = 360;

/// The height of a panel.
const PANEL: f64 = 270.0;

const ZERO_LATENCY: Colour = DATA[OTHER];
const IN_ORDER: Colour = DATA[OTHER + 1];

pub(crate) fn picture() -> String {
    let mut profile = builtin(DRIVE).expect("a built-in drive");
    let benches = [true, false].map(|zero_latency| {
        profile.access.zero_latency_read = zero_latency;
        Bench::of(profile.clone())
    });
    let mut sheet = Sheet::new(
        76.0 + 2.0 * PANEL,
        &[
            &benches[0].profile.model,
            "time on the track until a read is complete",
        ],
        "Two charts of the time of a read against the angle at which the head arrives: a whole \
         track, and half a track. With zero-latency access a whole track always takes one \
         revolution. Without, it takes between one and two.",
    );
    sheet.legend(
        (50.0, 70.0),
        &[
            (ZERO_LATENCY, "with zero-latency access"),
            (IN_ORDER, "without"),
        ],
    );
    let sectors = benches[0].track_in_first_zone().sectors;
    for (row, (name, sectors)) in [("a track", sectors), ("half a track", sectors / 2)]
        .into_iter()
        .enumerate()
    {
        draw(&mut sheet, PANEL * row as f64, &benches, name, sectors);
    }
    sheet.finish()
}

fn draw(sheet: &mut Sheet, top: f64, benches: &[Bench; 2], name: &str, sectors: u32) {
    let chart = Chart {
        x: (50.0, WIDTH - 24.0),
        y: (top + 112.0, top + PANEL + 22.0),
        most: (360.0, 13.0),
    };
    let title = format!("{name}: {sectors} sectors, {} KiB", benches[0].kib(sectors));
    sheet.bold((50.0, top + 100.0), Anchor::Start, &title, INK);
    let ms = [0.0, 3.0, 6.0, 9.0, 12.0];
    let labels = ["0", "3", "6", "9", "12 ms"];
    let times: Vec<(f64, &str)> = ms.into_iter().zip(labels).collect();
    let degrees = [
        (0.0, "0°"),
        (90.0, "90°"),
        (180.0, "180°"),
        (270.0, "270°"),
        (360.0, "360°"),
    ];
    chart.axes(sheet, [&degrees, &times]);
    for (bench, colour) in benches.iter().zip([ZERO_LATENCY, IN_ORDER]) {
        let mut points = points(bench, sectors);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
        let line: Vec<(f64, f64)> = points.into_iter().map(|point| chart.at(point)).collect();
        sheet.line(&line, colour, 2.5);
        let [left, right] = [0.0, 360.0].map(|x| chart.at((x, mean)));
        sheet.dashes(&[left, right], colour, 1.2);
        let label = format!("mean {mean:.2} ms");
        match colour == ZERO_LATENCY {
            true => sheet.bold((left.0 + 6.0, left.1 + 16.0), Anchor::Start, &label, colour),
            false => sheet.bold((right.0 - 6.0, right.1 - 6.0), Anchor::End, &label, colour),
        }
    }
    if name == "half a track" {
        let at = (chart.x.1, chart.y.1 + 40.0);
        sheet.text(
            at,
            Anchor::End,
            "angle from the first sector to the head's arrival",
        );
    }
}

/// Returns, for each of the platter's angles, the angle from the first sector to the place where
/// the head arrives, in degrees, and the sum of rotational latency and transfer time, in
/// milliseconds.
fn points(bench: &Bench, sectors: u32) -> Vec<(f64, f64)> {
    let track = bench.track_in_first_zone();
    let request = Request::read(track.first_lbn, sectors);
    let point = |k| {
        let turned = Span(bench.revolution.0 * k / ANGLES);
        let served = bench.serve(track.first_lbn, turned, request);
        let landed = served.passes[0].landed.0 % bench.revolution.0;
        let origin = track.origin.at_period(bench.revolution).0;
        let after = (landed + bench.revolution.0 - origin) % bench.revolution.0;
        let parts = served.done.breakdown;
        (
            after as f64 / bench.revolution.0 as f64 * 360.0,
            (parts.rotation + parts.transfer).as_ms(),
        )
    };
    (0..ANGLES).map(point).collect()
}
