//! How long do random requests wait for their sector at 7,200 rpm, on average and at the 99th
//! percentile?
//!
//! `cargo run -p traxtent-units --features statistics --example rotational_latency`

use traxtent_units::stats::{Moments, Quantiles};
use traxtent_units::{Angle, Rng, Span};

fn main() {
    let revolution = Span::from_ms(60_000.0 / 7200.0);
    let mut rng = Rng::new(1);
    let mut waits_ms = Moments::default();
    let mut waits = Quantiles::default();
    for _ in 0..100_000 {
        let (head, sector) = (Angle(rng.bits()), Angle(rng.bits()));
        let wait = (sector - head).at_period(revolution);
        waits_ms.push(wait.as_ms());
        waits.push(wait);
    }
    let p99 = waits.at(0.99).expect("there are waits");
    println!(
        "mean {:.2} ms, 99 % wait {:.2} ms or less",
        waits_ms.mean(),
        p99.as_ms()
    );
}
