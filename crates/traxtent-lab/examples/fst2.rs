use traxtent_lab::fs::table2::*;
use traxtent_lab::{Bench, LabError};
fn main() {
    for seed in 1..=5 {
        let b = Bench::new("atlas10k", seed).unwrap();
        let f: [(&str, fn(&Bench) -> Result<Vec<f64>, LabError>); 8] = [
            ("T19", excluded_blocks),
            ("T20", scans),
            ("T21", diffs),
            ("T22", copies),
            ("T23", postmark),
            ("T24", builds),
            ("T25", heads),
            ("T33", remedies),
        ];
        for (n, f) in f {
            println!("{seed} {n} {:.4?}", f(&b).unwrap());
        }
    }
    println!(
        "T19b {:?}",
        excluded_blocks(&Bench::new("atlas10k2", 1).unwrap())
    );
}
