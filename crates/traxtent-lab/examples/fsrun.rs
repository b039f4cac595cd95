use traxtent_lab::Bench;
use traxtent_lab::fs::{Ffs, Machine, apps::*};
fn main() {
    let mut bench = Bench::new("atlas10k", 1)
        .unwrap()
        .with("cache.write_back", "none")
        .unwrap();
    if let Ok(set) = std::env::var("SET") {
        for s in set.split(",") {
            let (k, v) = s.split_once("=").unwrap();
            bench = bench.with(k, v).unwrap();
        }
    }
    let show = |name: &str, v: &str, r: Run| {
        let t = &r.traffic;
        let n = t.requests().max(1) as f64;
        println!(
            "{name:8} {v:12} {:8.2}s cpu {:6.2}s reads {:6} x {:6.1}KB writes {:6} x {:6.1}KB  ms/req {:.2}  parts q{:.2} o{:.2} seek{:.2} set{:.2} hs{:.2} rot{:.2} xfer{:.2} bus{:.2}",
            r.seconds(),
            r.busy.as_ms() / 1e3,
            t.reads,
            t.sectors_read as f64 / 2.0 / t.reads.max(1) as f64,
            t.writes,
            t.sectors_written as f64 / 2.0 / t.writes.max(1) as f64,
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
    let which: Vec<String> = std::env::args().skip(1).collect();
    let on = |n: &str| which.is_empty() || which.iter().any(|w| w == n);
    for ffs in Ffs::ALL {
        let v = format!("{ffs:?}");
        if on("scan") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            let d = m.directory(0);
            let f = m.existing(d, 4 << 30);
            show("scan", &v, timed(&mut m, |m| scan(m, f, 4 << 30)));
        }
        if on("diff") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            let d = m.directory(0);
            let f = [m.existing(d, 512 << 20), m.existing(d, 512 << 20)];
            show("diff", &v, timed(&mut m, |m| diff(m, f, 512 << 20)));
        }
        if on("copy") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            let d = m.directory(0);
            let f = m.existing(d, 1 << 30);
            show(
                "copy",
                &v,
                timed(&mut m, |m| {
                    copy(m, f, d, 1 << 30);
                }),
            );
        }
        if on("head") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            let d = m.directory(0);
            let f: Vec<_> = (0..1000).map(|_| m.existing(d, 200 << 10)).collect();
            show("head", &v, timed(&mut m, |m| head(m, &f)));
        }
        if on("random") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            let d = m.directory(0);
            let f = m.existing(d, 1 << 30);
            show(
                "random",
                &v,
                timed(&mut m, |m| random_reads(m, f, 1 << 30, 2000, 7)),
            );
        }
    }
    for ffs in Ffs::ALL {
        let v = format!("{ffs:?}");
        if on("postmark") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            let mut tps = 0.0;
            show(
                "postmark",
                &v,
                timed(&mut m, |m| {
                    tps = traxtent_lab::fs::postmark::Postmark::PAPER.run(m, 1)
                }),
            );
            println!("  {tps:.3} transactions/s");
        }
        if on("build") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            show(
                "build",
                &v,
                timed(&mut m, |m| traxtent_lab::fs::build::build(m, 1)),
            );
        }
        if on("groups") {
            let mut m = Machine::new(&bench, ffs.config()).unwrap();
            let mut tps = 0.0;
            show(
                "groups",
                &v,
                timed(&mut m, |m| {
                    tps = traxtent_lab::fs::groups::read_groups(m, 1500, 1)
                }),
            );
            println!("  {tps:.3} groups/s");
        }
    }
    if on("partial") {
        let mut m = Machine::new(&bench, Ffs::Traxtent.config().with_partial_blocks()).unwrap();
        let d = m.directory(0);
        let f = m.existing(d, 4 << 30);
        show("scan", "partial", timed(&mut m, |m| scan(m, f, 4 << 30)));
        let mut m = Machine::new(&bench, Ffs::Traxtent.config().with_partial_blocks()).unwrap();
        let d = m.directory(0);
        let f = [m.existing(d, 512 << 20), m.existing(d, 512 << 20)];
        show("diff", "partial", timed(&mut m, |m| diff(m, f, 512 << 20)));
    }
}
