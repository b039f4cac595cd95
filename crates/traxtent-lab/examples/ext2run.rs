//! Tries.
use traxtent_lab::Bench;
use traxtent_lab::fs::linux::*;
fn main() {
    for seed in 1..6 {
        let mut bench = Bench::new("maxtor10k5", seed).unwrap();
        if let Ok(set) = std::env::var("SET") {
            for s in set.split(",") {
                let (k, v) = s.split_once("=").unwrap();
                bench = bench.with(k, v).unwrap();
            }
        }


        println!("Q9 {:.4?}", streams(&bench).unwrap());
    }
}
