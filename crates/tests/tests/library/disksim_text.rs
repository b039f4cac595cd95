//! DiskSim's parameter language and seek files.

use traxtent_disksim::{Document, Entry, SeekPoint, Value, parse_seeks};

use crate::disksim_files::read;
use crate::shared::shared;

fn parse(text: &str) -> Result<Document, String> {
    let sources = |path: &str| match path {
        "dir/inner" => Ok(b"x = 1,\ny = [ 2, 3.5, word ]".to_vec()),
        "dir/loop" => Ok(b"source loop".to_vec()),
        "dir/sub/a" => Ok(b"source b".to_vec()),
        "dir/sub/b" => Ok(b"type NAME { }".to_vec()),
        "dir/open" => Ok(b"\nkind B {\n x = 1,".to_vec()),
        "dir/nested" => Ok(b"kind B {\n x = C {\n y = [ 1,".to_vec()),
        _ => Err("no such file".to_string()),
    };
    Document::parse("dir/top", text.as_bytes(), &sources).map_err(|e| e.to_string())
}

/// Are words, numbers, lists, blocks, devices, ranges and included text distinguished?
#[test]
fn values() {
    let document = parse(
        "# a remark\nkind NAME {\n Some key (in ms) = 1.5, Flag = -3, Hex = 0x1f, Name = a.b-c, Text = \"two words\",
         List = [ 1, [ ], inner { a = b } ], [ k1, k2 ] = 7 }\ninstantiate [ disk0 .. disk2, odd ] as NAME
         topology bus b0 [ disk disk0 [ ], disk disk1 [ ] ]",
    )
    .unwrap();
    let block = document.block("NAME").unwrap();
    assert_eq!(block.get_f64("Some key (in ms)").unwrap(), Some(1.5));
    assert_eq!(block.get_f64("Flag").unwrap(), Some(-3.0));
    assert_eq!(block.get_int("Hex").unwrap(), Some(31));
    assert_eq!(block.get_str("Name").unwrap(), Some("a.b-c"));
    assert_eq!(block.get_str("Text").unwrap(), Some("two words"));
    assert_eq!(block.get_int("k2").unwrap(), Some(7));
    assert!(block.get("absent").is_none());
    assert_eq!(block.get_int("absent").unwrap(), None);
    let list = block.get_list("List").unwrap().unwrap();
    assert_eq!(list[2].block().unwrap().get_str("a").unwrap(), Some("b"));
    let unused: Vec<_> = block
        .unused()
        .into_iter()
        .map(|u| (u.key, u.line))
        .collect();
    assert_eq!(unused, [("k1".to_string(), 4)]);
    let Entry::Instances {
        names, of, line, ..
    } = &document.entries[1]
    else {
        panic!()
    };
    assert_eq!(
        (names.join(" "), of.as_str(), *line),
        ("disk0 disk1 disk2 odd".to_string(), "NAME", 5)
    );
    let Entry::Topology(node) = &document.entries[2] else {
        panic!()
    };
    let Value::Device {
        kind,
        name,
        children,
    } = &node.value
    else {
        panic!()
    };
    assert_eq!(
        (kind.as_str(), name.as_str(), children.len()),
        ("bus", "b0", 2)
    );
}

/// Is an included file inserted at its `source` statement, with its own line numbers and directory?
#[test]
fn included_files() {
    let error = parse("kind A {\n source inner\n, z = source nothing\n }").unwrap_err();
    assert_eq!(error, "dir/top:3: source dir/nothing: no such file");
    let document = parse("kind A { source inner }\nsource sub/a").unwrap();
    let block = document.block("A").unwrap();
    assert_eq!(block.get_list("y").unwrap().unwrap().len(), 3);
    assert_eq!(block.require("y").unwrap().line, 2);
    assert_eq!(&*document.block("NAME").unwrap().file, "dir/sub/b");
    assert_eq!(
        block.path("other.seek"),
        "dir/top".replace("top", "other.seek")
    );
}

/// Does a block that is derived from another one inherit the values that it does not set?
#[test]
fn derived_blocks() {
    let document = parse("kind A { x = 1, y = 2 } A B { y = 3 }").unwrap();
    let block = document.block("B").unwrap();
    assert_eq!(
        (block.kind.as_str(), block.get_int("x"), block.get_int("y")),
        ("kind", Ok(Some(1)), Ok(Some(3)))
    );
}

/// Is malformed text refused with its file and line?
#[test]
fn broken_text() {
    for (text, message) in [
        (
            "kind",
            "dir/top:1: expected the name of a block, found the end of the file",
        ),
        (
            "kind A {\n x = }",
            "dir/top:2: expected a value, found \"}\"",
        ),
        (
            "kind A {\n x = 1 y = 2 }",
            "dir/top:2: expected \",\" or \"}\", found \"y\"; the block A at dir/top:1 is still open",
        ),
        // A missing end is noticed later, where the text does not fit the block or list.
        (
            "kind A {\n x = other { y = 1,\n z = 1 }\nkind B { y = 1 }",
            "dir/top:4: expected \",\" or \"}\", found \"kind\"; the block A at dir/top:1 is still open",
        ),
        (
            "kind A { x = 1,\nkind B { y = 1 }",
            "dir/top:2: expected \"=\", found \"{\"; the block A at dir/top:1 is still open",
        ),
        (
            "kind A { x = other {\n y = 1,\n",
            "dir/top:3: expected a key or \"}\", found the end of the file; the block other at dir/top:1 is still open",
        ),
        (
            "kind A {\n x = [ 1, 2 }",
            "dir/top:2: expected \",\" or \"]\", found \"}\"; the list at dir/top:2 is still open",
        ),
        (
            "kind A {\n x = [ 1,\n 2,",
            "dir/top:3: expected \",\" or \"]\", found the end of the file; the list at dir/top:2 is still open",
        ),
        (
            "kind A { x = 1 }\n}",
            "dir/top:2: \"}\" ends nothing: no block or list is open",
        ),
        (
            "kind A {\n x : 1 }",
            "dir/top:2: expected \"=\", found \":\"",
        ),
        (
            "kind A {\n x = [ normal 0.5 1 ] }",
            "dir/top:2: expected \"{\" or \"[\" after \"normal 0.5\", found \"1\"; is a comma missing?",
        ),
        (
            "instantiate [ a0..a9 ] as B",
            "dir/top:1: \"a0..a9\" lacks blanks around \"..\"",
        ),
        (
            "kind A {\n x = 0,5, y = 1 }",
            "dir/top:2: 0,5 is not a number, since it contains a comma; decimals follow a point, as in 0.5",
        ),
        (
            "kind A { x = 1,\n x = 2 }",
            "dir/top:2: \"x\" is given twice",
        ),
        ("source loop", "dir/loop:1: dir/loop includes itself"),
        // A file that is cut off inside a block is named, not the next line of the file after it.
        (
            "source open\ninstantiate [ a ] as B",
            "dir/open:2: the block B is not closed by a \"}\" in this file",
        ),
        (
            "source nested\n",
            "dir/nested:2: the block C is not closed by a \"}\" in this file",
        ),
        ("source", "dir/top:1: a file name must follow \"source\""),
        (
            "instantiate [ a ] like B",
            "dir/top:1: expected \"as\", found \"like\"",
        ),
        (
            "instantiate [ a1 .. b2 ] as B",
            "dir/top:1: \"a1 .. b2\" is not a range of numbered names",
        ),
        (
            "instantiate [ a0 .. a99999999 ] as B",
            "dir/top:1: ranges contain more than 10000 names",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err(), message);
    }
    let deep = format!("kind A {{ x = {}", "[".repeat(1_000_000));
    assert_eq!(
        parse(&deep).unwrap_err(),
        "dir/top:1: blocks and lists are nested more than 64 deep"
    );
    let document = parse("kind A { x = [ ] }").unwrap();
    let error = document.block("A").unwrap().get_f64("x").unwrap_err();
    assert_eq!(error.to_string(), "dir/top:1: x: a list is not a number");
}

/// Can the parameter files, models and seek curves of the reference data be read? Do exactly the
/// seek curves in files `*_dual.seek` have times of writes?
#[test]
fn reference_files() {
    let Some(folder) = shared("data/disksim") else {
        return;
    };
    let mut files_read = 0;
    for folder in [
        folder.clone(),
        folder.join("maxtor300g"),
        folder.join("wd4tb"),
    ] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap();
            let extension = path
                .extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default();
            if ["parv", "diskspecs", "model", "layout"].contains(&extension)
                && !name.ends_with("-layout.model")
            {
                // A layout file is a single value, not a file of statements.
                if extension != "layout" {
                    Document::parse(name, &read(name).unwrap(), &read)
                        .unwrap_or_else(|e| panic!("{e}"));
                    files_read += 1;
                }
            } else if extension.starts_with("seek") {
                let points =
                    parse_seeks(name, &read(name).unwrap()).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(points[0].distance, 1, "{name}");
                assert_eq!(
                    points[0].write_ms.is_some(),
                    name.ends_with("_dual.seek"),
                    "{name}"
                );
                files_read += 1;
            }
        }
    }
    assert!(files_read > 30, "{files_read}");
}

/// Are the columns of a seek file distinguished, and malformed rows reported?
#[test]
fn seek_files() {
    let parse = |text: &str| parse_seeks("x.seek", text.as_bytes()).map_err(|e| e.to_string());
    let points = parse("Seek distances measured: 2\n1, 0.5\n10,\t0.75, 0.01, 0.9\n").unwrap();
    let point = |distance, read_ms, write_ms| SeekPoint {
        distance,
        read_ms,
        write_ms,
    };
    assert_eq!(points, [point(1, 0.5, None), point(10, 0.75, Some(0.9))]);
    for (text, message) in [
        ("", "x.seek:1: no seeks found"),
        (
            "Seek distances measured: 2\n1, 0.5\n",
            "x.seek:2: 1 seek found; the heading announces 2",
        ),
        (
            "Seek distances measured: 1\n1, 0.5\n2, 0.6\n",
            "x.seek:3: 2 seeks found; the heading announces 1",
        ),
        (
            "1, nan\n",
            "x.seek:1: \"nan\" is not a time in milliseconds",
        ),
        (
            "1, 2\n1, 2\n",
            "x.seek:2: distance 1 is not greater than the one before it",
        ),
        ("x, 2\n", "x.seek:1: \"x\" is not a seek distance"),
        ("1\n", "x.seek:1: 1 column; a row must have two to four"),
    ] {
        assert_eq!(parse(text).unwrap_err(), message);
    }
}
