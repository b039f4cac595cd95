//! The rest of a drive, found through a simulated one.

use std::sync::Arc;

use traxtent_core::geometry::Geometry;
use traxtent_core::probe::character::{Fit, Options, characterize, residuals};
use traxtent_core::profile::{Profile, builtin};
use traxtent_core::trackmap::TrackMap;
use traxtent_exec::{Noise, SimTarget};

fn drive(name: &str) -> (Arc<Profile>, Arc<Geometry>) {
    let profile = builtin(name).unwrap();
    let geometry = Geometry::build(&profile.geometry).unwrap();
    (Arc::new(profile), Arc::new(geometry))
}

fn fitted(name: &str, noise: bool, options: Options) -> Fit {
    let (profile, geometry) = drive(name);
    let map = TrackMap::of(&geometry);
    let mut target = SimTarget::new(profile, geometry);
    if std::env::var("BLIND").is_ok() {
        target = target.without_translation();
    }
    let mut clean = target.clone();
    if noise {
        target = target.with_noise(Noise::TYPICAL, 11);
    }
    let character = characterize(&mut target, &map, options, &mut |_| ()).unwrap();
    let profile = character.to_profile();
    let residuals = residuals(&mut clean, &profile, options, &mut |_| ()).unwrap();
    Fit {
        character,
        profile,
        residuals,
    }
}

#[test]
fn look() {
    for name in std::env::var("DRIVES")
        .unwrap_or("atlas10k2".to_owned())
        .split(',')
    {
        for noise in [false, true] {
            if std::env::var("CLEAN").is_ok() && noise {
                continue;
            }
            let begun = std::time::Instant::now();
            let fit = fitted(
                name,
                noise,
                Options {
                    destructive: std::env::var("WRITE").is_ok(),
                    ..Options::default()
                },
            );
            let c = &fit.character;
            println!(
                "{name} noise {noise}: {:?} {:?} requests {} translations {} drive {:.1} s host {:?}",
                c.layout_order(),
                c.zero_latency(),
                c.requests,
                c.translations,
                c.drive_ms / 1e3,
                begun.elapsed()
            );
            for f in c.figures() {
                println!("  {}: {f}", f.name);
            }
            println!("{:?}", c.notes());
            for r in &fit.residuals {
                println!(
                    "  {:12} {:5} source {:8.4} twin {:8.4}  mean {:+.3} %  demerit {:.3} %",
                    r.workload,
                    r.requests,
                    r.source_ms,
                    r.twin_ms,
                    100.0 * r.mean_error(),
                    100.0 * r.relative_demerit()
                );
            }
        }
    }
}

#[test]
fn bias() {
    for name in ["hp-c3323a", "atlas10k2"] {
        let (profile, geometry) = drive(name);
        let map = TrackMap::of(&geometry);
        for seed in 0..12 {
            let mut target = SimTarget::new(profile.clone(), geometry.clone())
                .with_noise(Noise::TYPICAL, 100 + seed);
            let c = characterize(
                &mut target,
                &map,
                Options {
                    seed,
                    ..Options::default()
                },
                &mut |_| (),
            )
            .unwrap();
            for f in c.figures() {
                if f.name.contains("read_miss")
                    || f.name.contains("switch")
                    || f.name.contains("read_hit")
                    || f.name.contains("rpm")
                {
                    print!(
                        "{} {:.5} {:.5} {:.5}  ",
                        &f.name[10..],
                        f.value,
                        f.low,
                        f.high
                    );
                }
            }
            println!();
        }
    }
}

#[test]
fn trace() {
    let name = std::env::var("TRACE").unwrap_or("hp-c3323a".to_owned());
    let (profile, geometry) = drive(&name);
    let map = TrackMap::of(&geometry);
    let mut target = SimTarget::new(profile.clone(), geometry.clone());
    if std::env::var("NOISE").is_ok() {
        target = target.with_noise(Noise::TYPICAL, 11);
    }
    let write = std::env::var("WRITE").is_ok();
    let c = characterize(
        &mut target,
        &map,
        Options {
            destructive: write,
            ..Options::default()
        },
        &mut |_| (),
    )
    .unwrap();
    let twin = c.to_profile();
    println!("{:?}\n{:?}", profile.cache, twin.cache);
    println!("{:?}\n{:?}", profile.access, twin.access);
    println!("{:?}\n{:?}", profile.overheads, twin.overheads);
    println!("{:?}\n{:?}", profile.bus, twin.bus);
    use traxtent_core::probe::Target;
    use traxtent_core::request::Request;
    use traxtent_core::units::Lbn;
    let mut a = SimTarget::new(profile, geometry);
    let g = Geometry::build(&twin.geometry).unwrap();
    let mut b = SimTarget::new(Arc::new(twin), Arc::new(g));
    for k in 0..60u64 {
        let w = write && (k * 7919 % 13) < 4;
        let r = (if w { Request::write } else { Request::read })(
            Lbn(std::env::var("LBN").map_or(300_000, |l| l.parse().unwrap()) + 128 * k),
            128,
        );
        let (x, y) = (
            a.request(r).unwrap().response().as_ms(),
            b.request(r).unwrap().response().as_ms(),
        );
        println!("{k} {w} {x:.4} {y:.4} {:.4}", y - x);
    }
}
