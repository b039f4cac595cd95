//! The track partition layout: locations of replicas, survival of damage to its table, and absence
//! of stale reads.

mod crashes;
mod device;
mod model;
mod shape;
mod table;

use traxtent_layout::tpl::{Config, PartitionBounds, PartitionCount};
use traxtent_map::TrackMap;
use traxtent_units::Lbn;

/// Returns a map of `tracks` tracks with `sectors` LBNs, or up to 8 fewer.
fn map_of(tracks: u64, sectors: u64) -> TrackMap {
    let mut csv = "first_lbn,sectors\n".to_owned();
    let mut first = 0;
    for track in 0..tracks {
        let sectors = sectors - track / 20 % 8 - u64::from(track % 11 == 3);
        csv += &format!("{first},{sectors}\n");
        first += sectors;
    }
    TrackMap::read_csv(csv.as_bytes()).unwrap()
}

fn bounds(least: u32, most: u32) -> PartitionBounds {
    PartitionBounds::new(
        PartitionCount::new(least).unwrap(),
        PartitionCount::new(most).unwrap(),
    )
    .unwrap()
}

/// Returns a configuration with pages of 160 bytes, which hold 64 tracks. A page has two sectors,
/// so that its write can be torn.
fn config(bounds: PartitionBounds) -> Config {
    Config {
        id: 77,
        sector_bytes: 80,
        page_sectors: 2,
        block_sectors: 2,
        bounds,
        regions: 3,
    }
}

fn lbns(map: &TrackMap) -> std::ops::Range<Lbn> {
    map.first()..map.end()
}
