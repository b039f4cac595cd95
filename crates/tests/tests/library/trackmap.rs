//! Track maps as files.

use proptest::prelude::*;
use traxtent_map::{
    MapBuilder, MapFile, MapSource, ProbeCost, ResumeMismatch, TrackMap, lbn_ranges, seal,
};
use traxtent_model::geometry::{Geometry, PerSurface};
use traxtent_model::profile;
use traxtent_probe::{Algorithm, Confirm, Found, Identity, Region, Verify};
use traxtent_units::{Lbn, Sectors, Span};

use crate::disksim_files;
use crate::random::Random;
use crate::shared::shared;

fn geometry(name: &str) -> Geometry {
    Geometry::build(&profile::builtin(name).unwrap().geometry).unwrap()
}

fn map_file(name: &str, geometry: &Geometry) -> MapFile {
    let identity = Identity {
        vendor: "TRAXTENT".to_owned(),
        product: name.to_owned(),
        capacity: geometry.capacity(),
        logical_bytes: 512,
        physical_bytes: 4096,
        ..Identity::default()
    };
    MapFile::new(
        identity,
        MapSource::Model,
        TrackMap::from_sizes(geometry.track_sizes()),
    )
}

/// Returns a map file of four tracks, with every field set except the serial number.
fn small() -> MapFile {
    let mut tracks = MapBuilder::default();
    let mut next = 100;
    for (sectors, confirm) in [
        (50, Confirm::Tested),
        (50, Confirm::Sampled),
        (48, Confirm::Sampled),
        (1, Confirm::Predicted),
    ] {
        let track = Found {
            first_lbn: Lbn(next),
            sectors,
            confirm,
        };
        tracks.push(track).unwrap();
        next += u64::from(sectors);
    }
    let (tracks, confidence) = tracks.finish().unwrap();
    MapFile {
        identity: Identity {
            vendor: "QUANTUM".to_owned(),
            product: "ATLAS 10K II: a: b".to_owned(),
            serial: String::new(),
            capacity: Sectors(1000),
            logical_bytes: 512,
            physical_bytes: 512,
        },
        method: MapSource::Probe(Algorithm::Angle, Verify::Sample),
        complete: false,
        region: Some(Region {
            first: Lbn(90),
            end: Lbn(900),
            aligned: false,
        }),
        cost: ProbeCost {
            reads: 17,
            translations: 0,
            drive_time: Span(123_456_000_000),
        },
        tracks,
        confidence,
        unreadable: lbn_ranges([5, 3, 4, 9, 120, 4].map(Lbn)),
        remapped: lbn_ranges([Lbn(101)]),
        notes: vec!["one: note".to_owned(), "another".to_owned()],
    }
}

/// Is the text of a map file the same as in the documentation, byte for byte, and does it parse to
/// the same map file?
#[test]
fn golden() {
    let expected = "\
traxtent track map 1
state: incomplete
vendor: QUANTUM
product: ATLAS 10K II: a: b
serial:
capacity: 1000
logical-bytes: 512
physical-bytes: 512
method: angle sample
region: 90..900 unaligned
reads: 17
translations: 0
drive-time-us: 123456
tracks: 4
lbns: 100..249
predicted: 1
sampled: 2
tested: 1
note: one: note
note: another
sizes:
50*2 48 1
confidence:
t s*2 p
unreadable:
3..6 9 120
moved:
101
checksum: ";
    let text = small().to_text();
    assert_eq!(&text[..text.len() - 9], expected);
    assert_eq!(MapFile::read(text.as_bytes()).unwrap(), small());
    let document = include_str!("../../../../docs/reference/trackmap.md");
    assert!(
        document.contains(&text),
        "docs/reference/trackmap.md does not show this file"
    );
}

proptest! {
    /// Does the text of any map file, with arbitrary notes, parse to the same map file?
    #[test]
    fn written_and_read(
        first in 0..1_000_000_u64,
        groups in prop::collection::vec((prop::collection::vec((1..2000_u32, 0..3_usize), 1..6), 1..9_usize), 1..30),
        unreadable in prop::collection::vec(0..5000_u64, 0..50),
        notes in prop::collection::vec("[ -~]{0,40}", 0..3),
    ) {
        let mut tracks = MapBuilder::default();
        let mut next = first;
        let each = groups.iter().flat_map(|(tracks, times)| tracks.repeat(*times));
        for (sectors, confirm) in each {
            let confirm = Confirm::ALL[confirm];
            tracks.push(Found { first_lbn: Lbn(next), sectors, confirm }).unwrap();
            next += u64::from(sectors);
        }
        let (tracks, confidence) = tracks.finish().unwrap();
        let notes = notes.iter().map(|note| note.trim().to_owned()).collect();
        let unreadable = lbn_ranges(unreadable.into_iter().map(Lbn));
        let mut file = MapFile { tracks, confidence, unreadable, notes, ..small() };
        file.identity.capacity = Sectors(next);
        let text = file.to_text();
        prop_assert_eq!(MapFile::read(text.as_bytes()).unwrap(), file);
    }

    /// Is any altered byte, and any truncation, within the first 400 bytes detected?
    #[test]
    fn damage_is_noticed(at in 0..400_usize, flip in 1..=255_u8) {
        let text = small().to_text();
        let mut bytes = text.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        prop_assert!(MapFile::read(&bytes).is_err());
        prop_assert!(MapFile::read(&text.as_bytes()[..at]).is_err());
    }
}

/// Does the error for an unusable file give the reason in one line?
#[test]
fn errors() {
    let text = small().to_text();
    let body = &text[..text.rfind("checksum").unwrap()];
    let with = |from: &str, to: &str| {
        assert!(body.contains(from), "{from}");
        let mut text = body.replace(from, to);
        seal(&mut text);
        text
    };
    let ends_before = |section: &str| {
        let mut text = body[..body.find(section).unwrap()].to_owned();
        seal(&mut text);
        text
    };
    let long = format!("note: {}", "x".repeat(5000));
    let deep = format!("{}1{}", "(".repeat(40), ")".repeat(40));
    for (text, says) in [
        (
            String::new(),
            "is not a track map: its first line must be `traxtent track map` and a version",
        ),
        (
            "first_lbn,sectors\n0,1\n".to_owned(),
            "is not a track map: its first line must be `traxtent track map` and a version",
        ),
        (
            text.replace("map 1", "map 2"),
            "has format version 2; this program reads version 1",
        ),
        (
            text[..text.len() - 1].to_owned(),
            "is truncated: its last line is not the checksum",
        ),
        (
            body.to_owned(),
            "is truncated: its last line is not the checksum",
        ),
        (
            text.replace("50*2", "50*3"),
            "was altered or damaged: its checksum line states ",
        ),
        (
            with("note: another", &long),
            "line 20: is longer than 4096 bytes",
        ),
        (
            with("state: incomplete", "state: done"),
            "line 2: state: \"done\": expected complete",
        ),
        (
            with("state: incomplete\n", ""),
            "line 20: the key state is missing before this line",
        ),
        (
            with("note: another", "reads: 5"),
            "line 20: reads: occurs twice",
        ),
        (
            with("note: another", "colour: red"),
            "line 20: \"colour\": unknown key",
        ),
        (
            with("note: another", "another"),
            "line 20: expected a key, a colon",
        ),
        (
            with("capacity: 1000", "capacity: 10x"),
            "line 6: capacity: \"10x\": expected a whole number",
        ),
        (
            with("angle sample", "angel sample"),
            "line 9: method: \"angel sample\"",
        ),
        (with("90..900", "900..90"), "line 10: region"),
        (
            with("tracks: 4", "tracks: 5"),
            "line 21: the counts of tracks differ from those in the header",
        ),
        (
            with("lbns: 100..249", "lbns: 100..250"),
            "line 21: the tracks do not match the LBNs",
        ),
        (
            with("capacity: 1000", "capacity: 248"),
            "line 21: the tracks do not match the LBNs",
        ),
        (
            with("t s*2 p", "t s p"),
            "line 21: the counts of tracks differ from those in the header",
        ),
        (
            with("50*2 48 1", "50*2 0 1"),
            "line 22: sizes: \"0\": expected 1 to 4294967295",
        ),
        (
            with("50*2 48 1", "50*0 48 1"),
            "line 22: sizes: *0: expected 1 to 268435456",
        ),
        (
            with("50*2 48 1", "(50*2 48 1"),
            "line 22: sizes: a group is not closed",
        ),
        (
            with("50*2 48 1", "50*2 48) 1"),
            "line 22: sizes: a closing parenthesis has no opening one",
        ),
        (
            with("50*2 48 1", "50*2 () 1"),
            "line 22: sizes: a group is empty",
        ),
        (with("50*2 48 1", ""), "line 22: sizes: there are no tracks"),
        (
            with("50*2 48 1", "((50*2)*200000000)*9"),
            "line 22: sizes: more than 268435456 tracks",
        ),
        (
            with("50*2 48 1", "1*268435456 1"),
            "line 22: sizes: more than 268435456 tracks",
        ),
        (
            with("50*2 48 1", &deep),
            "line 22: sizes: groups are nested more than 32 deep",
        ),
        (
            ends_before("sizes:\n"),
            "line 21: expected the section sizes",
        ),
        (
            ends_before("confidence:\n"),
            "line 23: expected the section confidence",
        ),
        (
            with("confidence:", "certainty:"),
            "line 23: expected the section confidence",
        ),
        (
            with("t s*2 p", "t s*2 q"),
            "line 24: confidence: \"q\": expected p, s or t",
        ),
        (
            with("3..6 9", "3..6 6"),
            "line 26: unreadable: \"6\": expected an LBN",
        ),
        (
            with("moved:\n101\n", "moved:\n101\nlost:\n"),
            "line 29: unexpected text after the last section",
        ),
    ] {
        let error = MapFile::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error:?}, not {says:?}");
        assert!(!error.contains('\n'), "{error}");
    }
}

/// Does a search resume after the last track of its checkpoint, and only if the checkpoint is
/// incomplete and belongs to the same drive and the same search?
#[test]
fn resuming() {
    let file = small();
    let (method, region) = (file.method, file.region.unwrap());
    let (tracks, left) = file.resume(&file.identity, method, region).unwrap();
    assert_eq!((tracks.len(), tracks.end()), (4, Some(Lbn(249))));
    let rest = Region {
        first: Lbn(249),
        end: Lbn(900),
        aligned: true,
    };
    assert_eq!(left, rest);

    let mut other = file.identity.clone();
    other.serial = "5".to_owned();
    let error = file.resume(&other, method, region).unwrap_err();
    let says = "belongs to another drive: its serial number is unknown, this drive's is 5";
    assert_eq!(error.to_string(), says);
    let mut larger = file.identity.clone();
    larger.capacity = Sectors(1001);
    let error = file.resume(&larger, method, region).unwrap_err();
    assert!(
        error.to_string().contains("its capacity is 1000 sectors"),
        "{error}"
    );

    let scan = MapSource::Probe(Algorithm::Scan, Verify::Full);
    let error = file.resume(&file.identity, scan, region).unwrap_err();
    let says = "belongs to a search of LBNs 90..900 by angle sample; this search is of LBNs 90..900 by scan full";
    assert_eq!(error.to_string(), says);
    let complete = MapFile {
        complete: true,
        ..file
    };
    let error = complete
        .resume(&complete.identity, method, region)
        .unwrap_err();
    assert_eq!(error, ResumeMismatch::Complete);
}

/// Are the tracks of every built-in drive the same in the map, in its file and in the geometry, and
/// is the track of any LBN found? Is each file smaller than 4 KiB?
#[test]
fn builtin_drives() {
    for name in profile::builtin::names() {
        let geometry = geometry(name);
        let map = map_file(name, &geometry);
        let text = map.to_text();
        let read = MapFile::read(text.as_bytes()).unwrap();
        assert!(read.tracks == map.tracks, "{name}");
        assert_eq!(map.tracks.len() as u64, geometry.track_count());
        let mut random = Random(1);
        for _ in 0..1000 {
            let lbn = Lbn(random.pick(0..geometry.capacity().0));
            let track = geometry.track_of(lbn).unwrap();
            let mapped = read.tracks.track_of(lbn).unwrap();
            assert_eq!(mapped.index as u64, track.index, "{name}, LBN {lbn}");
            assert_eq!(mapped.first_lbn, track.first_lbn, "{name}, LBN {lbn}");
            assert_eq!(
                mapped.sectors.0,
                u64::from(track.sectors),
                "{name}, LBN {lbn}"
            );
            assert_eq!(read.tracks.track(mapped.index), Some(mapped));
        }
        println!("{name}: {} tracks, {} bytes", map.tracks.len(), text.len());
        // No built-in drive has slipped sectors, which would make track sizes irregular.
        assert!(text.len() < 4096, "{name}: {} bytes", text.len());
    }
}

/// Is the file of a 20 TB drive smaller than 10 MiB, even with about 100,000 slipped sectors, and
/// does it parse to the same tracks?
#[test]
fn twenty_terabytes() {
    const SLIPS: u64 = 100_000;
    let mut spec = profile::builtin("generic-20tb").unwrap().geometry;
    spec.capacity_sectors = None;
    let surfaces = u64::from(spec.surfaces);
    let zones = spec.zones.len() as u64;
    let mut random = Random(20);
    for zone in &mut spec.zones {
        let PerSurface::Same(slots) = zone.sectors_per_track else {
            panic!("the surfaces of a zone differ");
        };
        let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
        let positions = cylinders * surfaces * u64::from(slots);
        zone.slips = (0..SLIPS / zones)
            .map(|_| random.pick(0..positions))
            .collect();
        zone.slips.sort_unstable();
        zone.slips.dedup();
    }
    let geometry = Geometry::build(&spec).unwrap();
    let file = map_file("generic-20tb", &geometry);
    let text = file.to_text();
    println!("{} tracks, {} bytes", file.tracks.len(), text.len());
    assert!(text.len() < 10 << 20, "{} bytes", text.len());
    assert!(MapFile::read(text.as_bytes()).unwrap() == file);
    assert!(
        file.tracks
            .tracks()
            .map(|track| track.first_lbn)
            .eq(geometry.tracks().map(|track| track.first_lbn))
    );
}

/// Is the file of a real drive with 21,620 changes of track size smaller than 300 kB?
#[test]
fn maxtor_300_gb() {
    let Some(model) = shared("data/disksim/maxtor300g/maxtor300g.model") else {
        return;
    };
    let geometry = Geometry::build(&disksim_files::import(&model).spec).unwrap();
    let file = map_file("maxtor300g", &geometry);
    assert_eq!(file.tracks.len(), 643_921);
    let text = file.to_text();
    println!("{} bytes", text.len());
    assert!(text.len() < 300_000, "{} bytes", text.len());
    assert!(MapFile::read(text.as_bytes()).unwrap() == file);
}

/// Is a map without tracks refused?
#[test]
#[should_panic(expected = "a map has at least one track")]
fn a_map_has_a_track() {
    TrackMap::from_sizes([]);
}
