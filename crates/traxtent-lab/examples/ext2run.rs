//! Tries.
use traxtent_lab::Bench;
use traxtent_lab::fs::{Ext2, Machine, apps::*, streams::Streams};
fn main() {
    let which: Vec<String> = std::env::args().skip(1).collect();
    let on = |n: &str| which.is_empty() || which.iter().any(|w| w == n);
    for pf in [true, false] {
        for e in Ext2::ALL {
            let mut bench = Bench::new("maxtor10k5", 1).unwrap();
            if let Ok(set) = std::env::var("SET") {
                for s in set.split(",") {
                    let (k, v) = s.split_once("=").unwrap();
                    bench = bench.with(k, v).unwrap();
                }
            }
            if !pf {
                bench = bench.with("cache.read_ahead.until", "\"none\"").unwrap();
            }
            let show = |name: &str, r: Run| {
                let t = &r.traffic;
                let n = t.requests().max(1) as f64;
                println!(
                    "{name:8} {e:?} prefetch {pf} {:8.2}s cpu {:6.2}s reads {:6} x {:6.1}KB ms/req {:.2}  parts q{:.2} o{:.2} seek{:.2} set{:.2} hs{:.2} rot{:.2} xfer{:.2} bus{:.2}",
                    r.seconds(),
                    r.busy.as_ms() / 1e3,
                    t.reads,
                    t.sectors_read as f64 / 2.0 / t.reads.max(1) as f64,
                    r.elapsed.as_ms() / n,
                    t.part_ms("queue"),
                    t.part_ms("overhead"),
                    t.part_ms("seek"),
                    t.part_ms("settle"),
                    t.part_ms("head_switch"),
                    t.part_ms("rotation"),
                    t.part_ms("transfer"),
                    t.part_ms("bus")
                );
            };
            if on("scan") {
                let mut m = Machine::new(&bench, e.config(1144, 128)).unwrap();
                let d = m.directory(0);
                let f = m.existing(d, 1 << 30);
                show("scan", timed(&mut m, |m| scan(m, f, 1 << 30)));
            }
            if on("diff") {
                let mut m = Machine::new(&bench, e.config(1144, 128)).unwrap();
                let d = m.directory(0);
                let f = [m.existing(d, 512 << 20), m.existing(d, 512 << 20)];
                show("diff", timed(&mut m, |m| diff(m, f, 512 << 20)));
            }
            if on("streams") {
                let mut m = Machine::new(&bench, e.config(1144, 2048)).unwrap();
                let mut l = vec![];
                show("streams", timed(&mut m, |m| l = Streams::PAPER.run(m, 1)));
                println!(
                    "{} {:.2?}",
                    l.len(),
                    l.iter().step_by(10).collect::<Vec<_>>()
                );
            }
        }
    }
}
