//! Prints the reads of a RAID-5 array for one sector, with all members and with one missing.
//!
//! `cargo run -p traxtent-layout --example degraded_read`

use std::sync::Arc;

use traxtent_layout::raid::{
    Array, ArrayShape, ChunkRule, Level, Member, MemberSet, RaidError, StripeHealth, StripePlan,
    StripePlanner,
};
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};

fn main() -> Result<(), RaidError> {
    // Three drives of 100 tracks. Each track is a chunk.
    let map = Arc::new(TrackMap::from_sizes([334; 100]));
    let member = Member {
        data: map.first()..map.end(),
        map,
    };
    let shape = ArrayShape {
        level: Level::Raid5,
        chunks: ChunkRule::Tracks,
        granule: 1,
        spares: 0,
    };
    let array = Array::new(shape, vec![member; 3])?;
    let planner = StripePlanner {
        positioning: Sectors(1024),
        dummy_reads: false,
    };
    let sector = Lbn(1000);
    let location = array.locate(sector).expect("the array has this sector");
    let owner = location.stripe.data(location.chunk).member;
    for failed in [MemberSet::NONE, MemberSet::only(owner)] {
        let mut plan = StripePlan::default();
        let health = StripeHealth::without(failed);
        planner.read(&location.stripe, sector..Lbn(1001), health, &mut plan)?;
        match failed.iter().next() {
            None => println!("LBN {sector}, with all members:"),
            Some(member) => println!("LBN {sector}, without member {member}:"),
        }
        for read in &plan.reads {
            println!("  read member {} at LBN {}", read.member, read.lbn);
        }
        for sum in &plan.sums {
            println!("  XOR them into the chunk of member {}", sum.member);
        }
    }
    Ok(())
}
