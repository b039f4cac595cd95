//! Time lines of requests, and the picture of an aligned and an unaligned read.

use traxtent_plot::colours::{ALIGNED, AXIS, CONVENTIONAL, Colour, DATA};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Span};

use crate::requests::{Bench, Phase, Served, Step, sums};
use crate::sheet::{Anchor, MARGIN, PHASE_OPACITY, Sheet, WIDTH};

const DRIVE: &str = "atlas10k2";

/// The height of a time line's bar.
const BAR: f64 = 30.0;

/// The minimum width of a transfer.
const TRANSFER_MIN: f64 = 3.0;

/// The number of angles of the platter over which a mean is taken.
pub(crate) const ANGLES: u64 = 256;

/// A time line's scale, from the left margin to the right.
pub(crate) struct TimeScale {
    /// The time at the right margin.
    pub(crate) ms_max: f64,
}

impl TimeScale {
    pub(crate) fn x(&self, time: Span) -> f64 {
        MARGIN + (WIDTH - 2.0 * MARGIN) * time.as_ms() / self.ms_max
    }

    /// Draws the phases of a request. Transfers have the colour `transfer`, and are at least
    /// [`TRANSFER_MIN`] wide.
    pub(crate) fn draw(&self, sheet: &mut Sheet, top: f64, served: &Served, transfer: Colour) {
        let (passing, other): (Vec<_>, Vec<_>) = spans(&served.steps)
            .into_iter()
            .partition(|(phase, ..)| *phase == Phase::Transfer);
        for (phase, begun, end) in other.into_iter().chain(passing) {
            let (left, right) = (self.x(begun), self.x(end));
            let (colour, width, opacity) = match phase {
                Phase::Transfer => (transfer, (right - left).max(TRANSFER_MIN), 1.0),
                phase => (phase.colour(), right - left, PHASE_OPACITY),
            };
            sheet.bar((left, top), (width, BAR), colour, opacity);
            sheet.frame((left, top), (width, BAR), AXIS, 0.6);
        }
    }

    /// Draws an axis with a label every `step` milliseconds.
    pub(crate) fn axis(&self, sheet: &mut Sheet, y: f64, step: u64) {
        let end = self.x(Span::from_ms(self.ms_max));
        sheet.line(&[(MARGIN, y), (end, y)], AXIS, 1.0);
        for ms in (0..=self.ms_max as u64).step_by(step as usize) {
            let x = self.x(Span(ms * 1_000_000_000));
            sheet.line(&[(x, y), (x, y + 5.0)], AXIS, 1.0);
            let label = if ms == 0 {
                "0 ms".to_owned()
            } else {
                ms.to_string()
            };
            let anchor = if ms == 0 {
                Anchor::Start
            } else {
                Anchor::Middle
            };
            sheet.text((x, y + 20.0), anchor, &label);
        }
    }
}

/// Returns the phases with their beginnings and ends.
fn spans(steps: &[Step]) -> Vec<(Phase, Span, Span)> {
    let mut begun = Span::ZERO;
    let span = |step: &Step| {
        let from = std::mem::replace(&mut begun, step.end);
        (step.phase, from, step.end)
    };
    steps.iter().map(span).collect()
}

/// Returns the legend of the phases that occur, without transfers.
pub(crate) fn legend(served: &[&Served]) -> Vec<(Colour, &'static str)> {
    let occurs = |phase: &Phase| {
        let has = |served: &&Served| sums(&served.steps)[*phase as usize] > Span::ZERO;
        *phase != Phase::Transfer && served.iter().any(has)
    };
    Phase::ALL
        .into_iter()
        .filter(occurs)
        .map(|phase| (phase.colour(), phase.name()))
        .collect()
}

/// A read of a track, aligned and shifted by half a track.
pub(crate) fn picture() -> String {
    let bench = Bench::new(DRIVE);
    let track = bench.track_in_first_zone();
    let from = bench.inwards(&track, bench.seek_cylinders());
    let shifted = track.first_lbn.0 + u64::from(track.sectors / 2);
    let requests = [track.first_lbn.0, shifted].map(|lbn| Request::read(Lbn(lbn), track.sectors));
    let response = |served: &Served| served.done.response();
    let means = requests.map(|request| bench.mean_ms(from, request, ANGLES, response));
    // The angle of the platter at which both take nearly as long as on average.
    let serve = |k| {
        let turned = Span(bench.revolution.0 * k / ANGLES);
        requests.map(|request| bench.serve(from, turned, request))
    };
    let distance = |k| {
        let both = serve(k).into_iter().zip(means);
        both.map(|(served, mean)| (response(&served).as_ms() - mean).abs())
            .sum::<f64>()
    };
    let typical = (0..ANGLES).min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    let [aligned, unaligned] = serve(typical.expect("there are angles"));
    let mut sheet = Sheet::new(
        330.0,
        &[&bench.profile.model, "a read of a track, step by step"],
        "Time lines of two reads of a track: one that begins at the track's first sector, and one \
         that begins in its middle and needs a track switch.",
    );
    let longest = aligned.done.response().max(unaligned.done.response());
    let scale = TimeScale {
        ms_max: longest.as_ms().ceil(),
    };
    let rows = [
        (&aligned, "aligned to a track", ALIGNED),
        (&unaligned, "from a track's middle", CONVENTIONAL),
    ];
    for (row, ((served, name, colour), mean)) in (0..).zip(rows.into_iter().zip(means)) {
        let top = 66.0 + 74.0 * f64::from(row);
        let time = response(served).as_ms();
        let label = format!("{name}: {time:.2} ms (mean {mean:.2} ms)");
        sheet.bold((MARGIN, top + 12.0), Anchor::Start, &label, DATA[colour]);
        scale.draw(&mut sheet, top + 20.0, served, DATA[colour]);
    }
    scale.axis(&mut sheet, 222.0, 2);
    let phases = legend(&[&aligned, &unaligned]);
    let (first, second) = phases.split_at(2);
    sheet.phases((MARGIN, 268.0), first);
    sheet.phases((MARGIN, 290.0), second);
    sheet.legend(
        (MARGIN, 312.0),
        &[
            (DATA[ALIGNED], "transfer, aligned"),
            (DATA[CONVENTIONAL], "unaligned"),
        ],
    );
    sheet.finish()
}
