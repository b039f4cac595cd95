//! Output options: existing files that are no older outputs are refused before any work, and older
//! outputs are replaced.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::{Arg, Command};

use super::command::traxtent_in;

/// An output of a command.
struct Output {
    /// A command line. Its last option names the output. A command to run can follow.
    line: &'static str,
    /// The file that it writes.
    file: &'static str,
    /// Whether it is so fast that this test runs it to its end.
    quick: bool,
}

const fn quick(line: &'static str, file: &'static str) -> Output {
    Output {
        line,
        file,
        quick: true,
    }
}

const fn slow(line: &'static str, file: &'static str) -> Output {
    Output {
        line,
        file,
        quick: false,
    }
}

/// The outputs of all commands.
const OUTPUTS: &[Output] = &[
    quick("check other.img --collect a.json", "a.json"),
    quick("map atlas10k2 --draw a.svg", "a.svg"),
    quick("map atlas10k2 --draw a.png", "a.png"),
    quick("plan stack atlas10k2 --output dir", "dir/stack.sh"),
    quick("plan stack atlas10k2 --output dir", "dir/badblocks.txt"),
    quick("probe atlas10k2 --region 0..5000 --map a.map", "a.map"),
    quick("sim atlas10k2 random,count=9 --log a.csv", "a.csv"),
    quick("sim atlas10k2 random,count=9 --log log", "log"),
    quick("sim atlas10k2 random,count=9 --log a.gz", "a.gz"),
    quick("sim atlas10k2 random,count=9 --log a.csv.zst", "a.csv.zst"),
    quick(
        "sim atlas10k2 random,count=9 --seeds 2 --log a.csv",
        "a.csv",
    ),
    quick("sim atlas10k2 random,count=9 --summary a.csv", "a.csv"),
    quick("sim atlas10k2 random,count=9 --plot a.svg", "a.svg"),
    quick(
        "validate t.csv --drive atlas10k2 --plot dir",
        "dir/t.csv.svg",
    ),
    slow("demo --out dir", "dir/report.html"),
    slow("demo --out dir", "dir/efficiency.svg"),
    slow("demo --out dir", "dir/tracks.svg"),
    #[cfg(feature = "parquet")]
    quick("sim atlas10k2 random,count=9 --log a.parquet", "a.parquet"),
    #[cfg(feature = "parquet")]
    quick(
        "sim atlas10k2 random,count=9 --summary a.parquet",
        "a.parquet",
    ),
    #[cfg(feature = "lab")]
    quick("lab run Q6b --pictures dir", "dir/q6.svg"),
    #[cfg(feature = "lab")]
    quick("lab report Q6b --markdown --pictures dir", "dir/q6.svg"),
    #[cfg(feature = "lab")]
    quick("lab report Q6b --out a.html", "a.html"),
    #[cfg(feature = "lab")]
    quick("lab report Q6b --out dir", "dir/report.html"),
    #[cfg(feature = "lab")]
    slow("lab today --picture a.svg", "a.svg"),
    quick("serve instant --log a.csv -- true", "a.csv"),
    quick("serve instant --log a.csv.gz -- true", "a.csv.gz"),
    quick("serve instant --receipt a.json -- true", "a.json"),
];

/// Options and arguments with a path that are inputs, or outputs that other tests cover: `--force`
/// replaces existing profiles, a checkpoint is refused without `--resume`, `serve --file` keeps
/// foreign content, sockets and mount points are never replaced, and stored results have names of
/// their own.
const OTHERS: &[&str] = &[
    "calibrate --out",
    "check --file",
    "convert --out",
    "file allocate FILE",
    "file read FILE",
    "file realign PATH",
    "file show PATH",
    "lab report --resume",
    "lab report --traces",
    "lab run --resume",
    "lab run --traces",
    "plan stack --device",
    "probe --checkpoint",
    "probe --profile",
    "serve --control",
    "serve --file",
    "serve --fuse",
    "serve --scenario",
    "serve --socket",
    "validate PATH",
    "volume copies create --map",
    "volume create --map",
    "volume serve --control",
    "volume serve --fuse",
    "volume serve --socket",
];

impl Output {
    fn words(&self) -> Vec<&str> {
        self.line.split(' ').collect()
    }

    /// Returns the option that names the output.
    fn option(&self) -> &str {
        let line = self.line.split(" -- ").next().unwrap();
        let mut words = line.split(' ').rev();
        words.find(|word| word.starts_with("--")).unwrap()
    }

    /// Returns whether the option is one of a command.
    fn is_of(&self, option: &str) -> bool {
        let (verbs, name) = option.rsplit_once(' ').unwrap();
        self.line.starts_with(&format!("{verbs} ")) && self.option() == name
    }

    /// Returns whether this build can write the output.
    fn is_built(&self) -> bool {
        let draws = [".svg", ".png"].iter().any(|end| self.file.ends_with(end));
        cfg!(feature = "plot") || !draws
    }
}

/// The content of an image: zeros, then data.
fn image() -> Vec<u8> {
    [vec![0; 4096], vec![0xa5; 4096]].concat()
}

/// Creates the inputs of the lines.
fn inputs(folder: &Path) {
    fs::create_dir(folder.join("dir")).unwrap();
    fs::write(folder.join("other.img"), vec![0; 1 << 20]).unwrap();
    let words: Vec<&str> = "sim atlas10k2 random,count=9 --log t.csv"
        .split(' ')
        .collect();
    assert_eq!(traxtent_in(folder, &words).status, 0);
    // The simulated times count as measured ones.
    let log = fs::read_to_string(folder.join("t.csv")).unwrap();
    let head: Vec<&str> = log.lines().next().unwrap().split(',').collect();
    let place = |name| head.iter().position(|column| *column == name).unwrap();
    let (simulated, measured) = (place("response_ms"), place("measured_ms"));
    let rows = log.lines().skip(1).map(|row| {
        let mut cells: Vec<&str> = row.split(',').collect();
        cells[measured] = cells[simulated];
        format!("{}\n", cells.join(","))
    });
    let text = format!("{}\n{}", head.join(","), rows.collect::<String>());
    fs::write(folder.join("t.csv"), text).unwrap();
}

/// Is a disk image, or a text of another kind, that is named as an output refused with one line
/// that names the option and the file, and is it unchanged? Does the same command replace an empty
/// file, and its own earlier output?
#[test]
fn only_older_outputs_are_replaced() {
    for output in OUTPUTS.iter().filter(|output| output.is_built()) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        inputs(at);
        let (line, file) = (output.line, at.join(output.file));
        for content in [image(), b"[mine]\nkey = 1\n".to_vec()] {
            fs::write(&file, &content).unwrap();
            let answer = traxtent_in(at, &output.words());
            let err = &answer.err;
            assert_eq!(answer.status, 2, "{line}: {err}");
            assert_eq!(answer.out, "", "{line}");
            // `serve` names the absolute path.
            let begins = format!("traxtent: {} ", output.option());
            let says = format!("{}: exists and is not ", output.file);
            let is_clear = err.starts_with(&begins) && err.contains(&says);
            assert!(is_clear, "{line}: {err}");
            assert_eq!(err.lines().count(), 1, "{line}: {err}");
            assert!(fs::read(&file).unwrap() == content, "{line}: changed");
        }
        if output.quick {
            fs::write(&file, []).unwrap();
            for _ in 0..2 {
                let answer = traxtent_in(at, &output.words());
                assert_eq!(answer.status, 0, "{line}: {}", answer.err);
                assert_ne!(fs::metadata(&file).unwrap().len(), 0, "{line}");
            }
        }
    }
}

/// Is an image refused, with the name of its file system, if the file name of `--collect` was
/// forgotten?
#[test]
fn a_forgotten_file_name() {
    let make = testkit::tool!("mke2fs");
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let mut made = std::process::Command::new(make);
    made.args(["-q", "-t", "ext4", "-F"]).arg(&image);
    assert!(made.status().unwrap().success());
    let before = fs::read(&image).unwrap();
    let answer = traxtent_in(folder.path(), &["check", "--collect", "disk.img"]);
    let says = "traxtent: --collect disk.img: exists and is not a file that --collect wrote (it holds \
        an ext file system); name another file\n";
    assert_eq!((answer.status, answer.err.as_str()), (2, says));
    assert!(fs::read(&image).unwrap() == before);
}

/// Does one of the lists above have every option and argument that takes a path, so that new
/// outputs are tested?
#[test]
fn every_path_is_listed() {
    if !cfg!(all(feature = "lab", feature = "plot", feature = "parquet")) {
        testkit::skip!("this build lacks options; it needs `lab`, `plot` and `parquet`");
    }
    let mut root = traxtent::command().disable_help_subcommand(true);
    root.build();
    let mut found = BTreeSet::new();
    add_paths(&root, "", &mut found);
    let is_output = |name: &str| OUTPUTS.iter().any(|output| output.is_of(name));
    let unlisted = found.iter().filter(|name| !is_output(name));
    let unlisted: Vec<&str> = unlisted.map(String::as_str).collect();
    assert_eq!(unlisted, OTHERS);
    let stale = |output: &&Output| !found.iter().any(|name| output.is_of(name));
    assert!(OUTPUTS.iter().find(stale).is_none());
}

/// Adds the options and arguments that take a path, with the verbs before them.
fn add_paths(command: &Command, verbs: &str, found: &mut BTreeSet<String>) {
    let takes_path = |arg: &&Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        names
            .iter()
            .any(|name| ["FILE", "DIR", "PATH"].contains(&name.as_str()))
    };
    for arg in command.get_arguments().filter(takes_path) {
        let name = match arg.get_long() {
            Some(long) => format!("--{long}"),
            None => arg.get_value_names().unwrap()[0].to_string(),
        };
        found.insert(format!("{verbs}{name}"));
    }
    for verb in command.get_subcommands() {
        add_paths(verb, &format!("{verbs}{} ", verb.get_name()), found);
    }
}
