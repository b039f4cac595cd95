//! Neighbouring tracks, unrolled, with the skew between them.

use traxtent_model::geometry::Track;
use traxtent_plot::colours::{ALIGNED, AXIS, DATA, GRID, INK};

use crate::requests::Bench;
use crate::sheet::{Anchor, MARGIN, Sheet, WIDTH, grouped};

const DRIVE: &str = "atlas10k2";

/// The edges of the strips.
const LEFT: f64 = 96.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 96.0;
/// The height of a strip.
const STRIP: f64 = 26.0;
/// The distance from one strip to the next.
const ROW: f64 = 58.0;

/// A generous estimate of the width of a letter.
const LETTER: f64 = 7.4;

pub(crate) fn picture() -> String {
    let bench = Bench::new(DRIVE);
    let tracks: Vec<Track> = bench
        .geometry
        .tracks()
        .take_while(|track| track.cylinder.0 < 2)
        .collect();
    let rows = tracks.len() as f64;
    let bottom = TOP + ROW * rows - (ROW - STRIP);
    let mut sheet = Sheet::new(
        bottom + 98.0,
        &[
            &bench.profile.model,
            "the tracks of its two outermost cylinders",
        ],
        "Tracks as strips from 0 to 360 degrees, one below the other. Each begins later on the \
         platter than the one before, by the skew.",
    );
    let x = |turns: f64| LEFT + (RIGHT - LEFT) * turns;
    for quarter in 0..=4 {
        let at = x(f64::from(quarter) / 4.0);
        sheet.line(&[(at, TOP - 8.0), (at, bottom + 4.0)], GRID, 1.0);
        let label = format!("{}°", quarter * 90);
        sheet.text((at, TOP - 14.0), Anchor::Middle, &label);
    }
    for (row, track) in tracks.iter().enumerate() {
        let top = TOP + ROW * row as f64;
        let origin = x(track.origin.as_turns());
        let label = [
            format!("cylinder {}", track.cylinder),
            format!("surface {}", track.surface),
        ];
        sheet.text((MARGIN, top + 9.0), Anchor::Start, &label[0]);
        sheet.text((MARGIN, top + 26.0), Anchor::Start, &label[1]);
        sheet.bar((LEFT, top), (RIGHT - LEFT, STRIP), DATA[ALIGNED], 0.22);
        // The last LBNs of the track, which continue at 0 degrees, are fainter.
        sheet.bar((origin, top), (RIGHT - origin, STRIP), DATA[ALIGNED], 0.22);
        sheet.frame((LEFT, top), (RIGHT - LEFT, STRIP), AXIS, 1.0);
        sheet.line(
            &[(origin, top - 4.0), (origin, top + STRIP + 4.0)],
            DATA[ALIGNED],
            3.0,
        );
        let baseline = top + 18.0;
        let first = format!("LBN {}", grouped(track.first_lbn.0));
        sheet.text((origin + 7.0, baseline), Anchor::Start, &first);
        let last = format!("… {}", grouped(track.end_lbn().0 - 1));
        if origin - LEFT > LETTER * last.chars().count() as f64 + 10.0 {
            sheet.text((origin - 7.0, baseline), Anchor::End, &last);
        }
    }
    for (row, pair) in tracks.windows(2).enumerate() {
        let middle = TOP + ROW * row as f64 + (STRIP + ROW) / 2.0;
        let skew = (pair[1].origin - pair[0].origin).as_turns();
        let name = match pair[0].cylinder == pair[1].cylinder {
            true => "track skew",
            false => "cylinder skew",
        };
        let figures = format!(
            "{:.1}°, {:.2} ms",
            skew * 360.0,
            skew * bench.revolution.as_ms()
        );
        let [from, to] = [0, 1].map(|k| x(pair[k].origin.as_turns()));
        sheet.arrow((from, middle), to, INK);
        sheet.text((from - 8.0, middle + 5.0), Anchor::End, name);
        sheet.text((to + 8.0, middle + 5.0), Anchor::Start, &figures);
    }
    let mechanics = bench.profile.mechanics.as_ref();
    let head_switch = mechanics.expect("a drive that rotates").head_switch_ms;
    let seeks = [false, true].map(|write| {
        let from = (&tracks[0]).into();
        let to = tracks.last().expect("there are tracks").into();
        bench.mechanics().reposition(from, to, write).total()
    });
    let skews = [0, tracks.len() / 2 - 1].map(|k| {
        let skew = (tracks[k + 1].origin - tracks[k].origin).as_turns();
        (skew * f64::from(tracks[k].slots)).round()
    });
    sheet.note(
        bottom + 30.0,
        &[
            &format!(
                "{} sectors pass in a revolution of {:.2} ms. The track skew",
                tracks[0].slots,
                bench.revolution.as_ms()
            ),
            &format!(
                "is {} sectors: a head switch takes {head_switch:.2} ms. The cylinder",
                skews[0]
            ),
            &format!(
                "skew is {} sectors: a seek of one cylinder takes {:.2} ms,",
                skews[1],
                seeks[0].as_ms()
            ),
            &format!("and before a write {:.2} ms.", seeks[1].as_ms()),
        ],
    );
    sheet.finish()
}
