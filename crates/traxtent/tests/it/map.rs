//! `traxtent map`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use testkit::shared_data;

use super::command::{json, prints, traxtent, traxtent_in};

/// Is the list of tracks of ten DiskSim models equal, byte for byte, to that of DiskSim's own
/// layout code?
#[test]
fn csv_equals_disksim() {
    let data = shared_data!("disksim");
    for name in [
        "atlas10k",
        "atlas_III",
        "barracuda",
        "cheetah4LP",
        "cheetah9LP",
        "hp_c2247a_validate",
        "hp_c2249a",
        "hp_c3323a_validate",
        "ibm18es",
        "maxtor300g",
    ] {
        let folder = if name == "maxtor300g" {
            data.join(name)
        } else {
            data.clone()
        };
        let model = format!("disksim:{}", folder.join(format!("{name}.model")).display());
        let packed = fs::File::open(data.join(format!("tracks/{name}.csv.gz"))).unwrap();
        let mut expected = String::new();
        flate2::read::GzDecoder::new(packed)
            .read_to_string(&mut expected)
            .unwrap();
        assert!(
            prints(&["map", &model, "--format", "csv"]) == expected,
            "{name} differs"
        );
    }
}

/// Do CSV and JSON describe the same tracks, and does the text have a line for each?
#[test]
fn formats_agree() {
    let csv = prints(&["map", "hp-c2247", "--format", "csv"]);
    let text = prints(&["map", "hp-c2247", "--format", "text"]);
    let tracks = json(&["map", "hp-c2247", "--json"]);
    let tracks = tracks["tracks"].as_array().unwrap();
    assert_eq!(csv.lines().count() - 1, tracks.len());
    assert_eq!(text.lines().count() - 2, tracks.len());
    for (line, track) in csv.lines().skip(1).zip(tracks) {
        let fields = ["first_lbn", "sectors", "cylinder", "head"].map(|key| track[key].to_string());
        assert_eq!(line, fields.join(","));
    }
}

/// Is the track of an LBN found on both sides of a boundary, and is an LBN beyond the end refused?
#[test]
fn one_lbn() {
    let track = |lbn: &str| json(&["map", "atlas10k2", "--json", "--lbn", lbn])["track"].clone();
    assert_eq!((track("527"), track("528")), (0.into(), 1.into()));
    let answer = traxtent(&["map", "atlas10k2", "--lbn", "99999999999"]);
    assert_eq!(answer.status, 2);
    assert!(
        answer.err.contains("atlas10k2 ends before LBN 23086806\n"),
        "{}",
        answer.err
    );
}

/// Is a list of tracks that `map` can print read back, without its cylinders and heads? Is a list
/// with a gap refused?
#[test]
fn reads_its_own_list() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("map.csv");
    fs::write(
        &file,
        "first_lbn,sectors,cylinder,head\n0,200,0,0\n200,199,0,1\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(
        prints(&["map", path, "--format", "csv"]),
        "first_lbn,sectors\n0,200\n200,199\n"
    );
    let track = json(&["map", path, "--json", "--lbn", "398"]);
    assert_eq!((&track["track"], track.get("cylinder")), (&1.into(), None));

    fs::write(&file, "first_lbn,sectors\n0,200\n201,199\n").unwrap();
    let answer = traxtent(&["map", path]);
    assert_eq!(answer.status, 2);
    assert!(
        answer.err.contains("map.csv:3: first_lbn: 201"),
        "{}",
        answer.err
    );
}

/// Is a drive's map the same from its file as from its model? Is a damaged file, or one of another
/// format version, refused?
#[test]
fn map_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.map");
    let path = file.to_str().unwrap();
    let text = prints(&["map", "maxtor10k5", "--format", "map"]);
    assert!(text.len() < 2000, "{} bytes", text.len());
    fs::write(&file, &text).unwrap();
    assert_eq!(prints(&["map", path, "--format", "map"]), text);
    let summary = prints(&["map", path]);
    for says in [
        "159203 tracks, LBNs 0 to 142578124\n",
        "maxtor10k5, sectors of 512 bytes",
        "269 to 1144 sectors, 2503 changes of size",
        "the drive's model",
    ] {
        assert!(summary.contains(says), "{says:?} is not in {summary}");
    }
    let tracks = json(&["map", path, "--json"]);
    assert_eq!(tracks["product"], "maxtor10k5");
    assert_eq!(tracks["tracks"].as_array().unwrap().len(), 159_203);
    assert_eq!(traxtent(&["map", path, "--diff", "maxtor10k5"]).status, 0);

    for (bytes, says) in [
        (&text.as_bytes()[..900], "a.map: is truncated"),
        (
            text.replace("1144*32", "1145*32").as_bytes(),
            "a.map: was altered or damaged",
        ),
        (
            text.replacen("map 1", "map 9", 1).as_bytes(),
            "a.map: has format version 9",
        ),
    ] {
        fs::write(&file, bytes).unwrap();
        let answer = traxtent(&["map", path]);
        assert_eq!(answer.status, 2);
        assert!(answer.err.contains(says), "{}", answer.err);
        assert_eq!(answer.err.lines().count(), 1);
    }
}

/// Are tracks that only one of two maps has reported, with exit status 1?
#[test]
fn diff() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: &str| {
        fs::write(
            folder.path().join(name),
            format!("first_lbn,sectors\n{rows}"),
        )
        .unwrap();
    };
    write("a.csv", "0,10\n10,10\n20,10\n");
    write("b.csv", "0,10\n10,11\n21,9\n");
    let answer = traxtent_in(folder.path(), &["map", "a.csv", "--diff", "b.csv"]);
    assert_eq!(answer.out, "- 10 10\n+ 10 11\n- 20 10\n+ 21 9\n");
    assert_eq!(answer.status, 1);
    assert_eq!(
        answer.err,
        "traxtent: a.csv and b.csv differ: 4 tracks are in only one of them\n"
    );
    let answer = traxtent_in(
        folder.path(),
        &["map", "a.csv", "--diff", "b.csv", "--json"],
    );
    let object: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!((answer.status, &object["count"]), (1, &4.into()));
    assert_eq!(object["differences"][1]["only_in"], "right");
    let answer = traxtent_in(folder.path(), &["map", "a.csv", "--diff", "a.csv"]);
    assert_eq!((answer.status, answer.out.as_str()), (0, ""));
}

/// Does mke2fs accept the list of blocks, and does a file that fills most of the file system use
/// none of them?
#[test]
fn badblocks_for_mke2fs() {
    let (mke2fs, dumpe2fs) = (system_tool("mke2fs"), system_tool("dumpe2fs"));
    let debugfs = system_tool("debugfs");
    let (Some(mke2fs), Some(dumpe2fs), Some(debugfs)) = (mke2fs, dumpe2fs, debugfs) else {
        testkit::skip!("mke2fs, dumpe2fs and debugfs are not installed");
    };
    const BLOCKS: u64 = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("fs.img");
    let list = folder.path().join("list");
    // The partition begins within a track.
    for (start, block_size) in [(63_u64, 4096_u64), (1_000_001, 1024)] {
        let end = start + BLOCKS * block_size / 512;
        let blocks = prints(&[
            "map",
            "atlas10k2",
            "--format",
            "badblocks",
            "--block-size",
            &block_size.to_string(),
            "--partition-start",
            &start.to_string(),
            "--partition-end",
            &end.to_string(),
        ]);
        // Most of the partition's tracks end within a block.
        assert!(
            blocks.lines().count() > 60,
            "{} blocks",
            blocks.lines().count()
        );
        fs::write(&list, &blocks).unwrap();
        fs::File::create(&image)
            .unwrap()
            .set_len(BLOCKS * block_size)
            .unwrap();
        let run = |program: &Path, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().unwrap();
            let says = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{}: {says}", program.display());
            String::from_utf8(output.stdout).unwrap()
        };
        let (image, list) = (image.to_str().unwrap(), list.to_str().unwrap());
        let size = block_size.to_string();
        // The inode table of a group must fit between two of these blocks, so there are few inodes.
        run(
            &mke2fs,
            &[
                "-q", "-F", "-t", "ext2", "-N", "256", "-b", &size, "-l", list, image,
            ],
        );
        assert_eq!(run(&dumpe2fs, &["-b", image]), blocks);
        let large = folder.path().join("large");
        fs::write(&large, vec![7; (BLOCKS * block_size * 9 / 10) as usize]).unwrap();
        let write = format!("write {} large", large.display());
        run(&debugfs, &["-w", "-R", &write, image]);
        let used = run(&debugfs, &["-R", "blocks /large", image]);
        let used: BTreeSet<&str> = used.split_whitespace().collect();
        assert!(used.len() as u64 > BLOCKS * 9 / 10, "{} blocks", used.len());
        assert_eq!(blocks.lines().find(|&block| used.contains(block)), None);
    }
}

/// Returns the path of a system program. Such programs are often not on the path of ordinary users.
fn system_tool(name: &str) -> Option<std::path::PathBuf> {
    let there = Path::new("/usr/sbin").join(name);
    testkit::tool(name).or_else(|| there.exists().then_some(there))
}

/// Are block sizes that are not whole sectors, partitions beyond the map, options without an
/// effect, and invalid names and ranges refused?
#[test]
fn refusals() {
    for (arguments, says) in [
        (
            &["--format", "badblocks", "--block-size", "1000"][..],
            "a block of 1000 bytes is not a multiple of the drive's sector size, 512 bytes",
        ),
        (
            &["--format", "badblocks", "--partition-end", "99999999999"],
            "is not within the map",
        ),
        (
            &["--block-size", "4096"],
            "--block-size needs --format badblocks",
        ),
        (
            &["--format", "csv", "--diff", "atlas10k"],
            "--diff prints text or JSON",
        ),
        (
            &["--draw", "a.gif"],
            "expected a file name that ends in .svg or .png",
        ),
        (
            &["--draw", "a.svg", "--lbn-range", "5..5"],
            "expected FIRST..END",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let answer = traxtent_in(folder.path(), &[&["map", "atlas10k2"], arguments].concat());
        assert_eq!(answer.status, 2, "{arguments:?}");
        assert!(answer.err.contains(says), "{arguments:?}: {}", answer.err);
    }
}

/// Does the picture of a serpentine match paper Q's Figure 2: from cylinder 31 to 0 on the first
/// surface, from 0 to 31 on the second, and then from 63?
#[test]
fn draws_the_serpentine() {
    if !cfg!(feature = "plot") {
        testkit::skip!("this build cannot draw pictures; rebuild it with the feature `plot`");
    }
    let folder = tempfile::tempdir().unwrap();
    let draw = |arguments: &[&str]| {
        let answer = traxtent_in(folder.path(), &[&["map"], arguments].concat());
        assert_eq!(
            (answer.status, answer.out.as_str()),
            (0, ""),
            "{}",
            answer.err
        );
        fs::read_to_string(folder.path().join("a.svg")).unwrap()
    };
    let lbns = ["--lbn-range", "0..144000"];
    let svg = draw(&[&["maxtor10k5", "--draw", "a.svg"], &lbns[..]].concat());
    for text in [
        "cylinder",
        "surface 0",
        "surface 1",
        "LBN",
        "maxtor10k5: the positions of its LBNs",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    // The vertical positions of the tracks in the upper panel, which comes first. A half turn has
    // 32 tracks.
    let heights: Vec<i64> = svg
        .lines()
        .filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"6\""))
        .filter_map(|line| {
            line.split("points=\"")
                .nth(1)?
                .split([',', ' '])
                .nth(1)?
                .parse()
                .ok()
        })
        .skip(2)
        .take(128)
        .collect();
    let falls = |half: &[i64]| half.windows(2).all(|pair| pair[0] < pair[1]);
    let rises = |half: &[i64]| half.windows(2).all(|pair| pair[0] > pair[1]);
    assert_eq!(heights.len(), 128);
    // Pixels count downwards.
    assert!(
        falls(&heights[..32]) && rises(&heights[32..64]),
        "{heights:?}"
    );
    assert!(
        falls(&heights[64..96]) && rises(&heights[96..]),
        "{heights:?}"
    );
    assert!(heights[64] < heights[0], "the second turn is further in");

    let map = prints(&["map", "maxtor10k5", "--format", "map"]);
    fs::write(folder.path().join("a.map"), map).unwrap();
    let svg = draw(&["a.map", "--draw", "a.svg"]);
    assert!(svg.contains("sectors on the track") && !svg.contains("cylinder"));
}

/// Is the picture of every built-in drive smaller than 200 kB, and does it show the zones and an
/// enlarged part?
#[test]
fn draws_whole_drives() {
    const MOST_BYTES: usize = 200_000;
    if !cfg!(feature = "plot") {
        testkit::skip!("this build cannot draw pictures; rebuild it with the feature `plot`");
    }
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for name in traxtent_model::profile::builtin::names() {
            let folder = folder.path();
            scope.spawn(move || {
                let file = format!("{name}.svg");
                let answer = traxtent_in(folder, &["map", name, "--draw", &file]);
                assert_eq!(answer.status, 0, "{name}: {}", answer.err);
                let svg = fs::read_to_string(folder.join(&file)).unwrap();
                assert!(svg.len() < MOST_BYTES, "{name}: {} bytes", svg.len());
                for text in ["sectors on the track", "Enlarged", "surface"] {
                    assert!(svg.contains(text), "{name}: {text}");
                }
            });
        }
    });
}
