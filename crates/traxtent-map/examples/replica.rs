//! Which of two replicas of a block passes under the head first?
//!
//! `cargo run -p traxtent-map --example replica`

use traxtent_map::TrackMap;
use traxtent_map::head::{HeadTracker, PositioningCurve, Survey};
use traxtent_units::{Lbn, SimTime};

fn main() {
    // Two tracks of a 10,000 rpm drive, both beginning at angle 0. A read completes at least 0.1
    // revolutions after it is sent; a seek takes another 0.2.
    let map = TrackMap::from_sizes([100, 100]);
    let survey = Survey {
        first_track: 0,
        angles: vec![0, 0],
        reach: PositioningCurve::new(vec![(0, 0.1), (1, 0.3)]),
        period: 6e9,
        phase: (SimTime::ZERO, 0.0),
    };
    let head = HeadTracker::new(map, survey);

    // The replicas of a block are half a revolution apart.
    let replicas = [Lbn(120), Lbn(170)];
    for ms in [0.0, 1.5, 3.0, 4.5] {
        let now = SimTime::from_ms(ms);
        let choice = head
            .choose(now, replicas)
            .expect("both tracks were surveyed");
        println!(
            "at {ms} ms: LBN {}, in {:.2} ms",
            replicas[choice.index],
            choice.due.as_ms()
        );
    }
}
