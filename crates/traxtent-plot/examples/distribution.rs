//! Prints a picture of two distributions as SVG.
//!
//! `cargo run -p traxtent-plot --example distribution >distribution.svg`

use std::io::Write;

use traxtent_plot::{Axes, Distribution, Distributions, Draw, DrawError, Format};

fn main() -> Result<(), DrawError> {
    let distribution = |name: &str, step: f64| Distribution {
        name: name.to_owned(),
        steps: (1..=100)
            .map(|n| (step * f64::from(n), f64::from(n) / 100.0))
            .collect(),
        p99_9_ms: 100.0 * step,
    };
    let picture = Distributions {
        title: "Two even distributions".to_owned(),
        distributions: vec![distribution("fast", 0.1), distribution("slow", 0.2)],
        axes: Axes::default(),
    };
    let svg = picture.file(Format::Svg)?;
    // The reader of a pipe may have closed it.
    let _ = std::io::stdout().write_all(&svg);
    Ok(())
}
