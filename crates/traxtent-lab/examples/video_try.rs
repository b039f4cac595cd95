fn main() {
    let name = std::env::args().nth(1).unwrap();
    for seed in 1..=std::env::args().nth(2).map_or(1, |n| n.parse().unwrap()) {
        let b = traxtent_lab::Bench::new(&name, seed).unwrap();
        let t = std::time::Instant::now();
        println!("T28 {:?}", traxtent_lab::video::hard_streams(&b).unwrap());
        println!(
            "T29 {:?} {:?}",
            traxtent_lab::video::hard_equal(&b).unwrap(),
            t.elapsed()
        );
        println!(
            "T26 {:?} {:?}",
            traxtent_lab::video::soft_streams(&b).unwrap(),
            t.elapsed()
        );
        println!(
            "T27 {:?} {:?}",
            traxtent_lab::video::soft_startup(&b).unwrap(),
            t.elapsed()
        );
        let f = traxtent_lab::video::startup_figure(&b).unwrap();
        for s in &f.panels[0].series {
            println!("{} {:?}", s.name, s.points);
        }
        println!("{:?}", t.elapsed());
    }
}
