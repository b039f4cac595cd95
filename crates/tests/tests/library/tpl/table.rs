//! The table: damage to it, changes of the map, and its memory.

use traxtent_layout::tpl::{Config, DeviceStep, Tpl, TplError};
use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::builtin;
use traxtent_units::Lbn;
use traxtent_units::Rng;

use super::device::{Device, SECTOR_BYTES};
use super::{bounds, config, lbns, map_of};

/// Returns a layout with room for its first three blocks, its device, and the LBNs of the pages of
/// its table.
fn formatted(map: &TrackMap) -> (Tpl, Device, Vec<u64>) {
    let (mut tpl, steps) = Tpl::format(map.clone(), lbns(map), &config(bounds(1, 32))).unwrap();
    let mut device = Device::default();
    let mut places = Vec::new();
    for step in &steps {
        if let DeviceStep::Table { lbn, .. } = step {
            places.push(lbn.0);
        }
        device.perform(step, |_| ());
    }
    while let Some(plan) = tpl.prepare(0..3).unwrap() {
        for step in plan.steps() {
            device.perform(step, |_| ());
        }
        for step in tpl.commit(plan) {
            device.perform(&step, |_| ());
        }
    }
    device.flush();
    (tpl, device, places)
}

fn open(map: &TrackMap, device: &Device) -> Result<(Tpl, usize), TplError> {
    let mut read = |lbn, sectors| Some(device.bytes(lbn, sectors));
    let opened = Tpl::open(map.clone(), lbns(map), SECTOR_BYTES as u32, &mut read)?;
    Ok((opened.tpl, opened.repairs.len()))
}

/// If any one sector of the table is damaged, is its content found in the second copy, and is the
/// damage repaired?
#[test]
fn one_damaged_sector_loses_nothing() {
    let map = map_of(150, 90);
    let (tpl, device, places) = formatted(&map);
    for place in places.iter().flat_map(|place| [*place, place + 1]) {
        let mut damaged = device.clone();
        damaged.damage(place);
        let (opened, repairs) = open(&map, &damaged).unwrap();
        for track in tpl.shape().tracks() {
            assert_eq!(opened.track(track), tpl.track(track));
        }
        // The second half of a header's page is not read.
        assert!(
            repairs >= 2 || place % 2 == 1 && repairs == 0,
            "{place}: {repairs}"
        );
    }
}

/// Are a page with both copies damaged, a device without a layout, a changed map, and a map that is
/// too small refused with the reason?
#[test]
fn refused() {
    let map = map_of(150, 90);
    let (_, device, places) = formatted(&map);
    let mut damaged = device.clone();
    let half = places.len() / 2;
    damaged.damage(places[1]);
    damaged.damage(places[half + 1]);
    let error = open(&map, &damaged).unwrap_err();
    assert_eq!(
        error.to_string(),
        "page 1 of the table: both copies are unusable (its checksum is wrong; its checksum is wrong)"
    );
    let error = open(&map, &Device::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the header of a track partition layout: its magic number is missing"
    );

    // A track that lost a sector to the next one.
    let mut csv = Vec::new();
    map.write_csv(&mut csv).unwrap();
    let text = String::from_utf8(csv).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let track = map.track(100).unwrap();
    let row = |first: u64, sectors: u64| format!("{first},{sectors}");
    let next = map.track(101).unwrap();
    lines[101] = row(track.first_lbn.0, track.sectors.0 - 1);
    lines[102] = row(next.first_lbn.0 - 1, next.sectors.0 + 1);
    let changed = TrackMap::read_csv(lines.join("\n").as_bytes()).unwrap();
    let error = open(&changed, &device).unwrap_err();
    assert!(matches!(error, TplError::OtherMap { .. }), "{error}");
    assert!(
        error.to_string().starts_with("the map has changed: "),
        "{error}"
    );

    let small = map_of(2, 90);
    let none = Tpl::format(small.clone(), lbns(&small), &config(bounds(1, 2))).unwrap_err();
    assert_eq!(
        none.to_string(),
        "LBNs 0..180 of the map are too few for the table and a track of data"
    );
}

/// Is splitting refused, with the reason, for a track whose data leaves no room?
#[test]
fn not_split() {
    let map = map_of(150, 90);
    let (mut tpl, ..) = formatted(&map);
    let all = tpl.shape().blocks();
    while let Some(plan) = tpl.prepare(all - 1..all).unwrap() {
        tpl.commit(plan);
    }
    let track = tpl.shape().home(all - 1).unwrap().track;
    let error = tpl.fill(track).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "track {track} with 1 partition cannot be split: its data leaves too little free space"
        )
    );
}

/// Does the table of a drive of 20 TB take less than 2 bytes per track while its tracks are alike,
/// and less than 8 when one track in each page of the table differs?
#[test]
fn memory() {
    let profile = builtin("generic-20tb").unwrap();
    let map = TrackMap::from_sizes(Geometry::build(&profile.geometry).unwrap().track_sizes());
    let config = Config {
        id: 1,
        sector_bytes: profile.sector.logical_bytes,
        page_sectors: profile.sector.physical_bytes / profile.sector.logical_bytes,
        block_sectors: 8,
        bounds: bounds(1, 32),
        regions: 1,
    };
    let tracks = map.len() as f64;
    let end = map.end();
    let (mut tpl, _) = Tpl::format(map, Lbn(0)..end, &config).unwrap();
    let alike = tpl.memory() as f64 / tracks;
    assert!(alike < 2.0, "{alike} bytes per track");
    // One track in each page differs, so all pages are kept track by track.
    let mut rng = Rng::new(1);
    let first = tpl.shape().tracks().start;
    let each = tpl.header().tracks_of_page();
    for page in 0..tpl.header().pages() as usize {
        let left = (tpl.shape().tracks().len() - page * each).min(each) as u64;
        let track = first + page * each + rng.below(left) as usize;
        let plan = tpl.merge(track).unwrap();
        tpl.commit(plan);
    }
    let worst = tpl.memory() as f64 / tracks;
    assert!(worst > alike && worst < 8.0, "{worst} bytes per track");
}
