//! Track maps.

use traxtent_layout::Partition;
use traxtent_map::{MapFile, TrackMap, differences, seal};
use traxtent_units::Lbn;

/// The largest number of tracks that are checked; a short text may describe very many.
const CHECKED_MAX: usize = 1000;

/// A map file, as it is and, if it is text, with a correct checksum, which hardly any input has.
/// With the checksum, parsed text is written and parsed again.
pub(crate) fn file(input: &[u8]) {
    if let Err(error) = MapFile::read(input) {
        drop(error.to_string());
    }
    let Some(text) = super::text(input) else {
        return;
    };
    let mut text = text.to_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    seal(&mut text);
    let file = match MapFile::read(text.as_bytes()) {
        Ok(file) => file,
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains('\n'), "{line:?}");
            return;
        }
    };
    let again = file.to_text();
    let read = MapFile::read(again.as_bytes()).expect("written input can be read");
    assert_eq!(read.to_text(), again);
    consistent(&file.tracks);
    for index in [0, file.tracks.len() / 2, file.tracks.len() - 1] {
        assert!(file.confidence.of(index).is_some());
    }
}

/// A list of tracks as CSV: parsed input is written and parsed again.
pub(crate) fn csv(input: &[u8]) {
    let map = match TrackMap::read_csv(input) {
        Ok(map) => map,
        Err(error) => return drop(error.to_string()),
    };
    let mut text = Vec::new();
    map.write_csv(&mut text).expect("memory takes all");
    assert_eq!(
        TrackMap::read_csv(&text[..]).expect("written input can be read"),
        map
    );
    assert_eq!(differences(&map, &map).count(), 0);
    consistent(&map);
}

/// Asserts that tracks are consecutive and are found by index and by LBN.
fn consistent(map: &TrackMap) {
    let mut next = map.first();
    for track in map.tracks().take(CHECKED_MAX) {
        assert_eq!(track.first_lbn, next);
        next = track.end();
        assert_eq!(map.track(track.index), Some(track));
        assert_eq!(map.track_of(track.first_lbn), Some(track));
        assert_eq!(map.track_of(Lbn(track.end().0 - 1)), Some(track));
    }
    let last = map.track(map.len() - 1).expect("a map has tracks");
    assert_eq!(last.end(), map.end());
    assert_eq!(map.track_of(map.end()), None);
    if let Ok(partition) = Partition::new(map.clone(), map.first()..next, 8) {
        partition.excluded().for_each(drop);
    }
}
