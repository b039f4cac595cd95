use std::path::Path;
use traxtent_core::disksim::load_system;
use traxtent_core::drive::Drive;
use traxtent_core::workload::*;
use traxtent_exec::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dir = Path::new(&args[1]);
    for name in &args[2..] {
        let file = format!("{name}.parv");
        let sources = |p: &str| std::fs::read(dir.join(p)).map_err(|e| e.to_string());
        let text = sources(&file).unwrap();
        let system = match load_system(&file, &text, None, &sources) { Ok(s) => s, Err(e) => { println!("{name}: {e}"); continue; } };
        if std::env::var("WARN").is_ok() { for w in &system.warnings { println!("  {w}"); } }
        let drive = Drive::new(&system.disks[0].profile).unwrap();
        let mut host = Host::new(vec![drive]);
        let data = std::fs::read(dir.join(format!("{name}.trace"))).unwrap();
        let reader = TraceReader::new(TraceFormat::DiskSimValidate, &data[..], TraceOptions::default());
        let mut src = Replay::new(reader, ReplayPace::SemiClosed);
        let (mut sim, mut meas) = (vec![], vec![]);
        let log = std::env::var("LOG").ok();
        let mut lines = String::new();
        let r = simulate(&mut host, &mut src, |o| {
            sim.push(o.response().as_ms());
            meas.push(o.arrival.measured.unwrap().as_ms());
            if log.is_some() {
                use std::fmt::Write;
                let b = o.completion.breakdown.parts();
                write!(lines, "{:.6} {:.6} {:.6} {} {} {} {:?}", o.arrival.at.as_ms(), o.completion.completed.as_ms(), o.response().as_ms(), o.arrival.request.op, o.arrival.request.lbn, o.arrival.request.sectors, o.completion.served).unwrap();
                for p in b { write!(lines, " {:.4}", p.as_ms()).unwrap(); }
                writeln!(lines, " {:.4}", o.arrival.measured.unwrap().as_ms()).unwrap();
            }
            true
        });
        if let Err(e) = r { println!("{name}: {e}"); continue; }
        if let Some(l) = log { std::fs::write(format!("{l}/{name}.ours"), lines).unwrap(); }
        let n = sim.len() as f64;
        let (ms, mm) = (sim.iter().sum::<f64>() / n, meas.iter().sum::<f64>() / n);
        sim.sort_by(f64::total_cmp); meas.sort_by(f64::total_cmp);
        let rms = (sim.iter().zip(&meas).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / n).sqrt();
        println!("{name:12} n={n} rms={rms:.4} mean={ms:.4} measured={mm:.4}");
    }
}
