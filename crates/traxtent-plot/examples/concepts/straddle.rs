//! A write of 4 KiB on a drive with physical sectors of 4 KiB, aligned and not.

use traxtent_plot::colours::{ALIGNED, AXIS, CONVENTIONAL, DATA, GRID, INK};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime, Span};

use crate::requests::{Bench, Served};
use crate::sheet::{Anchor, MARGIN, Sheet, WIDTH, grouped};
use crate::timeline::{ANGLES, TimeScale, legend};

const DRIVE: &str = "wd10ears";

/// The size of the write in logical sectors: 4 KiB.
const SECTORS: u32 = 8;

/// The distance of the unaligned write from the beginning of a physical sector, in logical sectors:
/// 1 KiB.
const OFFSET: u32 = 2;

/// The number of physical sectors that are drawn.
const PHYSICAL: u32 = 3;

pub(crate) fn picture() -> String {
    let bench = Bench::new(DRIVE);
    let ratio = bench.profile.sector.ratio();
    let track = bench.track_in_first_zone();
    let ratio_lbns = u64::from(ratio);
    let first = (track.first_lbn.0 + u64::from(track.sectors / 2)) / ratio_lbns * ratio_lbns;
    let from = bench.inwards(&track, bench.seek_cylinders());
    let write = |offset: u32| Request::write(Lbn(first + u64::from(ratio + offset)), SECTORS);

    // The angle of the platter at which the aligned write's rotational latency is nearest to half a
    // revolution.
    let serve = |k, offset| bench.serve(from, Span(bench.revolution.0 * k / ANGLES), write(offset));
    let half = bench.revolution.0 / 2;
    let turned = (0..ANGLES)
        .min_by_key(|&k| serve(k, 0).done.breakdown.rotation.0.abs_diff(half))
        .expect("there are angles");
    let mean = |offset| {
        bench.mean_ms(from, write(offset), ANGLES, |served: &Served| {
            served.done.response()
        })
    };

    let mut sheet = Sheet::new(
        524.0,
        &[
            &bench.profile.model,
            "a write of 4 KiB to sectors of 4 KiB (512e)",
        ],
        "Above: a write of 4 KiB that covers one physical sector, and one that begins 1 KiB into \
         a physical sector and covers two in part. Below: the time line of each. The second reads \
         both sectors and waits a revolution before it can write them.",
    );
    let rows = [(0, "aligned", ALIGNED), (OFFSET, "at 1 KiB", CONVENTIONAL)];
    let cell = (WIDTH - 2.0 * MARGIN) / f64::from(PHYSICAL * ratio);
    let x = |sector: u32| MARGIN + cell * f64::from(sector);
    for physical in 0..PHYSICAL {
        let lbn = grouped(first + u64::from(physical * ratio));
        sheet.text(
            (x(physical * ratio) + 3.0, 72.0),
            Anchor::Start,
            &format!("LBN {lbn}"),
        );
    }
    for (row, (offset, name, colour)) in (0..).zip(rows) {
        let top = 80.0 + 66.0 * f64::from(row);
        for sector in 0..PHYSICAL * ratio {
            let written = (ratio + offset..ratio + offset + SECTORS).contains(&sector);
            let size = (cell, 26.0);
            let fill = if written { DATA[colour] } else { GRID };
            sheet.bar(
                (x(sector), top),
                size,
                fill,
                if written { 0.9 } else { 0.5 },
            );
            sheet.frame((x(sector), top), size, AXIS, 0.6);
        }
        for physical in 0..PHYSICAL {
            let size = (cell * f64::from(ratio), 26.0);
            sheet.frame((x(physical * ratio), top), size, INK, 1.6);
        }
        let served = serve(turned, offset);
        let reads = served.passes.len() - 1;
        let label = match reads {
            0 => format!("{name}: writes 1 physical sector"),
            reads => format!("{name}: reads {reads} physical sectors, then writes"),
        };
        sheet.bold((MARGIN, top + 45.0), Anchor::Start, &label, DATA[colour]);
    }

    let served = rows.map(|(offset, ..)| serve(turned, offset));
    let longest = served.iter().map(|served| served.done.response()).max();
    let scale = TimeScale {
        ms_max: longest.expect("two requests").as_ms().ceil(),
    };
    for (row, ((offset, _, colour), served)) in (0..).zip(rows.into_iter().zip(&served)) {
        let top = 240.0 + 86.0 * f64::from(row);
        let response = served.done.response().as_ms();
        let label = format!(
            "{response:.2} ms; mean over all angles {:.2} ms",
            mean(offset)
        );
        sheet.bold((MARGIN, top - 6.0), Anchor::Start, &label, DATA[colour]);
        scale.draw(&mut sheet, top + 24.0, served, DATA[colour]);
        let since = |time: SimTime| scale.x(time.since(served.done.submitted));
        let (write, reads) = served.passes.split_last().expect("a pass");
        let written = since(write.begun);
        if let [first, .., last] = reads {
            let read = since(last.end);
            sheet.text((since(first.begun), top + 18.0), Anchor::End, "read");
            sheet.text(
                ((read + written) / 2.0, top + 12.0),
                Anchor::Middle,
                "one revolution",
            );
            sheet.arrow((read, top + 18.0), written, INK);
        }
        let (at, anchor) = match written > WIDTH / 2.0 {
            true => (written - 6.0, Anchor::End),
            false => (written + 3.0, Anchor::Start),
        };
        sheet.text((at, top + 12.0), anchor, "write");
    }
    scale.axis(&mut sheet, 394.0, 5);
    let phases = legend(&served.each_ref());
    let (above, below) = phases.split_at(2);
    sheet.phases((MARGIN, 442.0), above);
    sheet.phases((MARGIN, 464.0), below);
    sheet.note(
        490.0,
        &[
            "The sectors come under the head again for the write one",
            &format!(
                "revolution, {:.2} ms, after the read. The write cache is off.",
                bench.revolution.as_ms()
            ),
        ],
    );
    sheet.finish()
}
