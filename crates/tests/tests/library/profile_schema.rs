//! The schema of profiles, compared key by key with the parser.

use std::collections::BTreeSet;

use toml::{Table, Value};
use traxtent_model::profile::Profile;
use traxtent_model::profile::schema::{Absent, Key, Kind, Section, sections};

/// A profile with every table except the seek curve. Its geometry is impossible, because it has
/// both zones and a tree.
const FULL: &str = r#"
[sector]
logical_bytes = 512
physical_bytes = 4096
[mechanics]
rpm = 7200
[overheads.extra_write_disconnect]
command_ms = 0
disconnect_ms = 0
off_bus_ms = 0
second_disconnect_ms = 0
seek_delay_ms = 0
start_after_sectors = 0
large_start_after_sectors = 0
large_sectors = 0
[access]
[queue]
[host]
[cache]
segments = 1048576
[cache.read_ahead]
[bus.hold]
[scsi]
[geometry]
surfaces = 2
cylinders = 10
zones = [{ first_cylinder = 0, last_cylinder = 9, sectors_per_track = 100 }]
moved = [{ lbn = 0, cylinder = 0, surface = 0, slot = 99 }]
[geometry.tree]
tracks = [{ slots = 100, sectors = 100 }]
nodes = [[{ of = { track = 0 } }]]
slips = [{ position = 0 }]
"#;

/// The seek curves, each with its other required keys.
const SEEKS: [(&str, &str); 5] = [
    ("constant", "ms = 1"),
    (
        "three-point-line",
        "single_ms = 1, average_ms = 2, full_ms = 3",
    ),
    (
        "three-point-curve",
        "single_ms = 1, average_ms = 2, full_ms = 3",
    ),
    (
        "hpl",
        "division = 5, root_constant_ms = 1, root_factor_ms = 0, line_constant_ms = 1, line_factor_ms = 0",
    ),
    ("table", "read = [[1, 1.0]]"),
];

/// Returns a profile with every table, and with the seek curve of a section.
fn full(section: &Section) -> Table {
    let mut root: Table = toml::from_str(FULL).unwrap();
    let curve = section.curve.unwrap_or("constant");
    let (_, keys) = SEEKS.iter().find(|(name, _)| *name == curve).unwrap();
    let seek = format!("seek = {{ curve = \"{curve}\", {keys} }}");
    let mut seek: Table = toml::from_str(&seek).unwrap();
    let mechanics = root["mechanics"].as_table_mut().unwrap();
    mechanics.insert("seek".to_owned(), seek.remove("seek").unwrap());
    root
}

/// Returns the first table of a section.
fn table_of<'a>(root: &'a mut Table, section: &Section) -> &'a mut Table {
    let mut table = root;
    for name in section.path.split('.').filter(|name| !name.is_empty()) {
        let mut value = &mut table[name.trim_end_matches("[]")];
        while let Value::Array(items) = value {
            value = &mut items[0];
        }
        table = value.as_table_mut().unwrap();
    }
    table
}

fn parse(root: &Table) -> Result<Profile, String> {
    let parsed = Value::Table(root.clone()).try_into::<Profile>();
    parsed.map_err(|error: toml::de::Error| error.message().to_owned())
}

/// Returns the text of a profile with only zones or only a tree, whichever the section belongs to.
fn possible(mut root: Table, section: &Section) -> String {
    let geometry = root["geometry"].as_table_mut().unwrap();
    let unwanted = if section.path.starts_with("geometry.tree") {
        vec!["zones", "moved"]
    } else if section.path.starts_with("geometry.moved") {
        vec!["tree"]
    } else {
        vec!["tree", "moved"]
    };
    for name in unwanted {
        geometry.remove(name);
    }
    toml::to_string(&root).unwrap()
}

/// Does every section of the schema have exactly the keys that the parser knows?
#[test]
fn keys_are_those_of_the_parser() {
    for section in sections() {
        let mut root = full(section);
        table_of(&mut root, section).insert("zzz".to_owned(), Value::Integer(1));
        let message = parse(&root).unwrap_err();
        assert!(
            message.contains("unknown field `zzz`"),
            "{}: {message}",
            section.path
        );
        let expected = message.split_once("expected").unwrap().1;
        let parser: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
        let curve = section.curve.map(|_| "curve");
        let schema: BTreeSet<&str> = section
            .keys
            .iter()
            .map(|key| key.name)
            .filter(|name| Some(*name) != curve)
            .collect();
        assert_eq!(schema, parser, "[{}] {:?}", section.path, section.curve);
    }
}

/// Does an absent key have the stated default, and is a missing required key reported?
#[test]
fn defaults_are_those_of_the_parser() {
    for section in sections() {
        for key in section.keys {
            let mut without = full(section);
            table_of(&mut without, section).remove(key.name);
            let place = format!("{}.{} {:?}", section.path, key.name, section.curve);
            match (key.default, parse(&without)) {
                (Absent::Refused, result) => {
                    let message = result
                        .err()
                        .unwrap_or_else(|| panic!("{place} is not required"));
                    assert!(message.contains("missing"), "{place}: {message}");
                }
                (Absent::Means(_), result) => {
                    assert!(result.is_ok(), "{place}: {:?}", result.err())
                }
                (Absent::Is(default), result) => {
                    let mut with = full(section);
                    let value: Table = toml::from_str(&format!("v = {default}")).unwrap();
                    table_of(&mut with, section).insert(key.name.to_owned(), value["v"].clone());
                    assert!(
                        result == parse(&with),
                        "{place}: {default} is not the default"
                    );
                }
            }
        }
    }
}

/// Is every word of a choice accepted, and none that the schema does not list? The host's scheduler
/// is an exception: the parser also knows the positional policies, which only drives have.
#[test]
fn words_are_those_of_the_parser() {
    for section in sections() {
        for key in section.keys {
            let (Kind::Choice(words), false) = (key.kind, key.name == "curve") else {
                continue;
            };
            let with = |word: &str| {
                let mut root = full(section);
                table_of(&mut root, section).insert(key.name.to_owned(), word.into());
                parse(&root)
            };
            for (word, _) in words {
                assert!(with(word).is_ok(), "{}.{}: {word}", section.path, key.name);
            }
            let message = with("zzz").unwrap_err();
            let expected = message.split_once("expected").unwrap().1;
            for word in expected.split('`').skip(1).step_by(2) {
                let listed = words.iter().any(|(known, _)| *known == word);
                let positional = section.path == "host" && word.ends_with("sptf");
                assert_ne!(listed, positional, "{}.{}: {word}", section.path, key.name);
            }
        }
    }
}

/// Values at the bounds of a number, and values just outside them with the bound.
type AtBounds = ([Value; 2], [(Value, f64); 2]);

/// Returns values at the bounds of a number, and values just outside them with the bound.
fn at_bounds(key: &Key) -> Option<AtBounds> {
    match key.kind {
        Kind::Whole(min, max) | Kind::PerSurface(min, max) => {
            let whole = |value: f64| Value::Integer(value as i64);
            let outside = [(whole(min - 1.0), min), (whole(max + 1.0), max)];
            Some(([whole(min), whole(max)], outside))
        }
        Kind::Number(min, max) => {
            let outside = [
                (Value::Float(min - 0.5), min),
                (Value::Float(max + 0.5), max),
            ];
            Some(([Value::Float(min), Value::Float(max)], outside))
        }
        _ => None,
    }
}

/// Returns the result of parsing a profile with one value changed, and with the values that it
/// requires.
fn changed(section: &Section, key: &Key, value: &Value) -> Result<Profile, String> {
    let mut root = full(section);
    let table = table_of(&mut root, section);
    table.insert(key.name.to_owned(), value.clone());
    match key.name {
        "sparing_range_cylinders" => {
            table.insert("sparing".to_owned(), "sectors-per-cylinder-range".into());
        }
        "width_tracks" => {
            table.insert("order".to_owned(), "seek-forward-surface-forward".into());
        }
        _ => {}
    }
    Profile::from_toml(&possible(root, section)).map_err(|error| error.to_string())
}

/// Is a number at a bound accepted, and one just outside it refused with that bound?
///
/// A value at a bound may contradict other values, such as the number of surfaces. It is then
/// refused for another reason. In a layout, and for the lowest aligned LBN, the other values often
/// set a narrower bound, which the message then states. The upper bound of LBNs, 2^53, is the limit
/// of exact numbers, so no value just above it is tried.
#[test]
fn bounds_are_those_of_the_parser() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for section in sections() {
        for key in section.keys {
            let Some((inside, outside)) = at_bounds(key) else {
                continue;
            };
            let place = format!("{}.{}", section.path, key.name);
            let narrower =
                section.path.starts_with("geometry") || place == "sector.lowest_aligned_lbn";
            for value in inside {
                let refused = format!("{place} = {value}: must be {}", key.bounds());
                match changed(section, key, &value) {
                    Err(message) if message.starts_with(&refused) => wrong.push(message),
                    _ => {}
                }
            }
            for (value, bound) in outside {
                if bound == (1_u64 << 53) as f64 {
                    continue;
                }
                tried += 1;
                match changed(section, key, &value) {
                    Ok(_) => wrong.push(format!("{place} = {value} is accepted")),
                    Err(message) if narrower || message.contains(&bound.to_string()) => {}
                    Err(message) => {
                        wrong.push(format!("{place} = {value}, bound {bound}: {message}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 100, "{tried}");
}
