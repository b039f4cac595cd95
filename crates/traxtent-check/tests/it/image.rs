//! Images on which real tools run, and helpers for their stacks and findings.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use traxtent_check::drive::StatedDrive;
use traxtent_check::rules;
use traxtent_check::target::{HostPaths, examine_targets};
use traxtent_check::{Finding, Kind, Layer, Rule, Stack};

/// An image in its own directory.
pub(crate) struct Image {
    folder: TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) const MIB: u64 = 1 << 20;

impl Image {
    /// Creates a sparse image of zeros.
    pub(crate) fn new(bytes: u64) -> Image {
        let folder = TempDir::new().expect("there is room");
        let path = folder.path().join("disk.img");
        let file = File::create(&path).expect("there is room");
        file.set_len(bytes).expect("files may be sparse");
        Image { folder, path }
    }

    /// Creates another image in the same directory.
    pub(crate) fn sibling(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.folder.path().join(name);
        let file = File::create(&path).expect("there is room");
        file.set_len(bytes).expect("files may be sparse");
        path
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) {
        let file = File::options()
            .write(true)
            .open(&self.path)
            .expect("the image can be written");
        file.write_all_at(bytes, at).expect("there is room");
    }

    /// Runs a tool, which must succeed, and returns its standard output. `@` is replaced by the
    /// image's path.
    pub(crate) fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        let file = File::open(&self.path).unwrap();
        file.read_exact_at(&mut buffer, at).unwrap();
        buffer
    }

    pub(crate) fn run(&self, tool: &Path, arguments: &[&str], input: &str) -> String {
        run(tool, &self.path, arguments, input)
    }

    pub(crate) fn stack(&self) -> Stack {
        self.stack_for(&StatedDrive::default())
    }

    pub(crate) fn stack_for(&self, stated: &StatedDrive) -> Stack {
        examine_images(std::slice::from_ref(&self.path), stated)
    }

    /// Returns the rule ID of each finding that is at least a warning, for the default drive.
    pub(crate) fn wrong(&self) -> Vec<&'static str> {
        wrong(&self.stack())
    }
}

pub(crate) fn examine_images(paths: &[PathBuf], stated: &StatedDrive) -> Stack {
    examine_targets(paths, stated, &HostPaths::default()).expect("the images are there")
}

/// Returns the rule ID of each finding that is at least a warning.
pub(crate) fn wrong(stack: &Stack) -> Vec<&'static str> {
    let findings = rules::check(stack, None).into_iter();
    let bad = findings.filter(|finding| finding.severity > traxtent_check::Severity::Info);
    bad.map(|finding| finding.rule.id()).collect()
}

/// Returns the first finding of a rule.
pub(crate) fn finding(stack: &Stack, rule: Rule) -> Finding {
    let mut findings = rules::check(stack, None).into_iter();
    findings
        .find(|finding| finding.rule == rule)
        .unwrap_or_else(|| panic!("no finding {}: {stack:#?}", rule.id()))
}

/// Returns the first layer for which `pick` returns something.
pub(crate) fn first<T>(stack: &Stack, pick: impl Fn(&Kind) -> Option<&T>) -> (&Layer, &T) {
    let mut layers = stack.layers.iter();
    let found = layers.find_map(|layer| pick(&layer.kind).map(|inside| (layer, inside)));
    found.unwrap_or_else(|| panic!("no such layer: {stack:#?}"))
}

pub(crate) fn run(tool: &Path, image: &Path, arguments: &[&str], input: &str) -> String {
    let image = image.to_str().expect("the path is UTF-8");
    let mut child = Command::new(tool)
        .args(arguments.iter().map(|word| word.replace('@', image)))
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool runs");
    let mut stdin = child.stdin.take().expect("the pipe was requested");
    // A tool that reads no input may end before it is written.
    if let Err(error) = stdin.write_all(input.as_bytes()) {
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("the tool ends");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}{}",
        tool.display(),
        text(&output.stderr),
        text(&output.stdout)
    );
    text(&output.stdout)
}

/// Returns the first number after `word`, which begins a line of a tool's output, as in
/// `Block size:  4096`.
pub(crate) fn number(text: &str, word: &str) -> u64 {
    let mut lines = text.lines();
    let line = lines
        .find_map(|line| line.trim_start().strip_prefix(word))
        .unwrap_or_else(|| panic!("no {word} in {text}"));
    let digits: String = line
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no number after {word} in {text}"))
}
