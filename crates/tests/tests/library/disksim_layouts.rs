//! Small DiskSim layouts, compared with the output of DiskSim's own translation, which is quoted in
//! the tests.

use traxtent_disksim::{Document, ImportedLayout, ParamError, disk_geometry};
use traxtent_model::geometry::Geometry;
use traxtent_units::Lbn;

use crate::disksim_files::csv;
use crate::random::Random;

/// Returns the parameters of a drive with two surfaces and four cylinders. Its only zone has three
/// cylinders and five sectors per track.
fn g1(scheme: u8, mapping: u8, spares: u8, slips: &str, defects: &str) -> String {
    format!(
        "dm_disk d {{ Number of data surfaces = 2, Number of cylinders = 4, Block count = 30,
           Layout Model = dm_layout_g1 {{
             LBN-to-PBN mapping scheme = {mapping}, Sparing scheme used = {scheme}, Rangesize for sparing = 2,
             Zones = [ dm_layout_g1_zone {{
               First cylinder number = 0, Last cylinder number = 2, Blocks per track = 5,
               Offset of first block = 1.0, Empty space at zone front = 0, Skew for track switch = 1.0,
               Skew for cylinder switch = 2.0, Number of spares = {spares},
               slips = [ {slips} ], defects = [ {defects} ] }} ] }} }}"
    )
}

fn import_with(text: &str, map: &str) -> Result<ImportedLayout, ParamError> {
    let sources = |_: &str| Ok(map.as_bytes().to_vec());
    let document = Document::parse("test.model", text.as_bytes(), &sources)?;
    let disk = document.blocks().next().unwrap().clone();
    let imported = disk_geometry(&disk, &sources)?;
    assert_eq!(disk.unused(), [], "parameters of the layout are not read");
    Ok(imported)
}

fn rows(text: &str) -> Vec<String> {
    let geometry = Geometry::build(&import_with(text, "").unwrap().spec).unwrap();
    csv(&geometry).lines().skip(1).map(str::to_string).collect()
}

/// Do the sparing schemes 1 to 10 give the tracks that DiskSim's code gives?
#[test]
fn sparing_schemes() {
    let forward = |scheme, spares, slips| rows(&g1(scheme, 0, spares, slips, ""));
    let whole = ["0,5,0,0", "5,5,0,1", "10,5,1,0", "15,5,1,1"];
    assert_eq!(
        forward(1, 2, "1"),
        ["0,5,0,0", "5,5,1,0", "10,5,1,1", "15,5,2,0"]
    );
    assert_eq!(forward(1, 2, ""), whole);
    assert_eq!(
        forward(3, 1, "2"),
        [
            "0,4,0,0", "4,4,0,1", "8,4,1,0", "12,4,1,1", "16,4,2,0", "20,4,2,1"
        ]
    );
    let by_cylinder = [
        "0,5,0,0", "5,3,0,1", "8,5,1,0", "13,3,1,1", "16,5,2,0", "21,3,2,1",
    ];
    for scheme in [2, 4, 5, 6] {
        assert_eq!(forward(scheme, 2, ""), by_cylinder, "scheme {scheme}");
    }
    assert_eq!(
        forward(8, 3, ""),
        [
            "0,5,0,0", "5,5,0,1", "10,5,1,0", "15,2,1,1", "17,5,2,0", "22,5,2,1"
        ]
    );
    assert_eq!(forward(7, 0, "29")[5], "25,4,2,1");
    assert_eq!(
        forward(9, 2, "3"),
        [
            "0,4,0,0", "4,5,0,1", "9,5,1,0", "14,5,1,1", "19,5,2,0", "24,4,2,1"
        ]
    );
    assert_eq!(forward(10, 2, "3")[5], "24,3,2,1");
}

/// Are LBNs that slips push into a cylinder's spares located where DiskSim's translation puts them?
#[test]
fn slips_under_scheme_2_collide() {
    let text = g1(2, 0, 2, "3", "");
    let imported = import_with(&text, "").unwrap();
    assert!(
        imported.notes[0].contains("puts 1 LBN on sectors that hold another"),
        "{:?}",
        imported.notes
    );
    assert_eq!(
        rows(&text)[..4],
        ["0,4,0,0", "4,3,0,1", "7,6,1,0", "13,3,1,1"]
    );
}

/// Do the three mappings change direction where DiskSim's do?
#[test]
fn mappings() {
    let heads = |mapping, first: u8| {
        let last = first + 2;
        let text = g1(9, mapping, 0, "", "").replace("number = 0,", &format!("number = {first},"));
        let text = text.replace(
            "Last cylinder number = 2",
            &format!("Last cylinder number = {last}"),
        );
        let rows = rows(&text);
        rows.iter()
            .map(|row| row[row.len() - 1..].parse::<u8>().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(heads(0, 1), [0, 1, 0, 1, 0, 1]);
    assert_eq!(heads(1, 1), [0, 1, 1, 0, 0, 1]);
    assert_eq!(heads(2, 1), [1, 0, 0, 1, 1, 0]);
    assert_eq!(heads(2, 0), [0, 1, 1, 0, 0, 1]);
}

/// Is a remapped LBN in the row of the track that holds it?
#[test]
fn defects_divide_their_track() {
    assert_eq!(
        rows(&g1(9, 0, 2, "", "7, 29"))[..4],
        ["0,5,0,0", "5,2,0,1", "7,1,2,1", "8,2,0,1"],
    );
    assert_eq!(
        rows(&g1(1, 0, 2, "", "1, 5"))[..3],
        ["0,5,0,0", "5,5,2,1", "10,5,1,0"]
    );
}

/// Do slips rotate the tracks of later cylinders by as much as in DiskSim?
#[test]
fn slips_turn_later_cylinders() {
    let geometry = Geometry::build(&import_with(&g1(4, 0, 1, "3", ""), "").unwrap().spec).unwrap();
    let turns: Vec<_> = geometry
        .tracks()
        .map(|t| (t.origin.as_turns() * 5.0).round() as u8 % 5)
        .collect();
    // Without the slip: 1, 2, 4, 5 (0), 7 (2), 8 (3).
    assert_eq!(turns, [1, 2, 0, 1, 3, 4]);
}

/// A layout g4: a run-length tree with a truncated run, a slip and a remap.
const G4: &str = "dm_disk d { Number of data surfaces = 2, Number of cylinders = 8, Block count = 36,
    Layout Model = dm_layout_g4 {
          TP = [ 0, 4, 5 ],
          IDX = [ [ 0, 1, 0.5, 5, 1, 0.1, 10, -2, TRACK, 0, 0, 10, 0, 0.25, 5, 1, 0.1, 10, 2, TRACK, 0, 1 ],
                  [ 0, 0, 0.0, 20, 2, 0.2, 38, 4, IDX, 0 ] ],
          Slips = [ 7, 2 ], Remaps = [ 2, 1, 7, 1, 0, 5 ] } }";

/// Is a run-length tree with a slip, a truncated run and a remap read as documented?
#[test]
fn layout_g4() {
    let text = G4;
    assert_eq!(
        rows(text),
        [
            "0,2,1,0", "2,1,7,1", "3,2,1,0", "5,3,0,0", "8,5,0,1", "13,5,1,1", "18,5,3,0",
            "23,5,2,0", "28,5,2,1", "33,3,3,1"
        ],
    );
    let geometry = Geometry::build(&import_with(text, "").unwrap().spec).unwrap();
    let turns = geometry.track_of(Lbn(33)).unwrap().origin.as_turns();
    assert!((turns - (0.2 + 0.25 + 0.1)).abs() < 1e-9, "{turns}");
}

/// A layout g2 of two cylinders, whose tracks are in a map file.
const G2: &str = "dm_disk d { Number of data surfaces = 2, Number of cylinders = 2, Block count = 18,
        Layout Model = dm_layout_g2 { Layout Map File = some.map, Zones = [ dm_layout_g2_zone {
          First cylinder number = 0, Last cylinder number = 1, First LBN = 0, Last LBN = 17, Blocks per track = 5,
          Zone Skew = 1.0, Skew for track switch = 1.0, Skew for cylinder switch = 2.0 } ] } }";
/// The map file of [`G2`].
const G2_MAP: &str = "a drive\nremarks\n2 cylinders, 6000 rot, 2 heads
lbn 0 --> cyl 0, head 0, sect 0, seqcnt 1
lbn 2 --> cyl 0, head 0, sect 3, seqcnt 1
lbn 4 --> cyl 0, head 1, sect 0, seqcnt 4
lbn 9 --> cyl 1, head 0, sect 1, len 4
lbn 13 --> cyl 1, head 1, sect 0, seqcnt 4
Defect at cyl 0, head 0, sect 2
";

/// Does the map file of layout g2 give the tracks and slots, and does the error for a malformed
/// line name its file and line?
#[test]
fn layout_g2() {
    let geometry = Geometry::build(&import_with(G2, G2_MAP).unwrap().spec).unwrap();
    assert_eq!(
        csv(&geometry),
        "first_lbn,sectors,cylinder,head\n0,4,0,0\n4,5,0,1\n9,4,1,0\n13,5,1,1\n"
    );
    let slot = |lbn| geometry.locate(Lbn(lbn)).unwrap().slot;
    assert_eq!((slot(1), slot(2), slot(9)), (1, 3, 1));
    let error = import_with(G2, "a\nb\nc\nlbn 0 --> cyl 0, head x\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "some.map:4: expected \"lbn N --> cyl N, head N, sect N, seqcnt N\""
    );
}

/// Is each impossible layout refused with the file, the line and the reason?
#[test]
fn impossible_layouts_are_refused() {
    let good = g1(9, 0, 2, "", "");
    for (from, to, message) in [
        (
            "scheme used = 9",
            "scheme used = 11",
            "test.model:3: Sparing scheme used: 11 is not in 0..=10",
        ),
        (
            "per track = 5",
            "per track = 0",
            "test.model:5: Blocks per track: 0 is not in 1..=1000000",
        ),
        (
            "spares = 2",
            "spares = 30",
            "test.model:4: Number of spares: 30; must be less than the size of a region, 30",
        ),
        (
            "slips = [  ]",
            "slips = [ -1 ]",
            "test.model:8: slips: -1 is negative",
        ),
        (
            "defects = [  ]",
            "defects = [ 1 ]",
            "test.model:8: defects must be pairs, but the list has an odd number of values",
        ),
        (
            "dm_layout_g1 {",
            "dm_layout_g3 {",
            "test.model:2: layout model dm_layout_g3 is not one of dm_layout_g1, _g2 and _g4",
        ),
        (
            "Blocks per track = 5,",
            "",
            "test.model:4: dm_layout_g1_zone has no \"Blocks per track\"",
        ),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good);
        assert_eq!(import_with(&text, "").unwrap_err().to_string(), message);
    }
}

/// Is damaged text either refused or read, from the parser to the geometry, without a panic?
#[test]
fn damaged_layouts_never_panic() {
    let intact = [
        (g1(9, 1, 2, "3, 7", "4, 29"), ""),
        (g1(4, 2, 1, "3, 7, 5", "4, 9"), ""),
        (g1(2, 0, 2, "3, 11", "4, 9"), ""),
        (g1(1, 0, 2, "1", "3, 5"), ""),
        (g1(8, 1, 2, "3", "4, 19"), ""),
        (G4.to_string(), ""),
        (G2.to_string(), G2_MAP),
    ];
    let mut read = 0;
    for seed in 0..20_000 {
        let random = &mut Random(seed);
        let (text, map) = &intact[random.pick(0..intact.len() as u64) as usize];
        let (mut text, mut map) = (text.clone().into_bytes(), map.as_bytes().to_vec());
        for _ in 0..random.pick(1..4) {
            let damaged_text = if !map.is_empty() && random.once_in(2) {
                &mut map
            } else {
                &mut text
            };
            damage(random, damaged_text);
        }
        let sources = |_: &str| Ok(map.clone());
        let Ok(document) = Document::parse("test.model", &text, &sources) else {
            continue;
        };
        for disk in document.blocks() {
            if let Ok(imported) = disk_geometry(disk, &sources)
                && let Ok(geometry) = Geometry::build(&imported.spec)
            {
                let last = Lbn(geometry.capacity().0 - 1);
                let place = geometry
                    .locate(last)
                    .expect("the geometry has its last LBN");
                assert_ne!(
                    geometry.lbn_at(place),
                    traxtent_model::geometry::Occupant::NoSuchPlace
                );
                read += 1;
            }
        }
    }
    assert!(
        read > 2000,
        "only {read} damaged layouts could still be read"
    );
}

fn damage(random: &mut Random, text: &mut Vec<u8>) {
    let at = random.pick(0..text.len() as u64) as usize;
    let digits: Vec<usize> = (0..text.len())
        .filter(|&i| text[i].is_ascii_digit())
        .collect();
    match random.pick(0..6) {
        0 => text[at] = random.next() as u8,
        1 => drop(text.remove(at)),
        2 => text.truncate(at.max(1)),
        3 => text.insert(at, random.of(b"{}[],=-0.9# \n")),
        4 if !digits.is_empty() => text.insert(random.of(&digits), random.of(b"0123456789")),
        _ if !digits.is_empty() => text[random.of(&digits)] = random.of(b"0123456789"),
        _ => {}
    }
}
