//! The results of `parted align-check` and `sgdisk --verify` for the same images, and the page
//! about them.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use super::{Case, CreatedCase, findings_of};

/// The text of the page before its table.
const HEAD: &str = "# Findings of each tool\n
Correct and faulty images made by real tools, and the findings for each: by `traxtent check` for the
drive that the image is meant for, by `parted align-check` (`min` and `opt`) for each partition, and
by `sgdisk --verify`. parted and sgdisk accept no drive, and read only partition tables. *no table*
means that parted found no partition table, or sgdisk no GPT; it counts as an image without
findings.

The column of `traxtent check` shows warnings and faults, each with its rule and layer. A test
asserts exactly these findings. For the other tools, every complaint counts, regardless of its
subject: parted's `opt` expects multiples of 1 MiB in any image, and sgdisk also reports partition
ends that are not a multiple of the alignment that it infers.

Written by `TRAXTENT_GALLERY_PAGE=docs/reference/check-gallery.md cargo test -p traxtent-check
--test it gallery`";

/// Returns the page.
pub(super) fn page(cases: &[(&Case, CreatedCase)]) -> String {
    let mut page = format!(
        "{HEAD}, with {} and {}.\n\n",
        version("parted"),
        version("sgdisk")
    );
    let made = cases.iter().filter_map(|(case, made)| match made {
        CreatedCase::Images(images) => Some((case, images)),
        CreatedCase::Unavailable(_) => None,
    });
    let mut rows = String::new();
    let mut score = Score::default();
    for (case, images) in made {
        let ours = findings_of(images, case.drive);
        let others = [
            parted(&images[0], "minimal"),
            parted(&images[0], "optimal"),
            sgdisk(&images[0]),
        ];
        let wrong = !case.findings.is_empty();
        score.add(
            wrong,
            &[Some(ours.is_empty()), others[0], others[1], others[2]],
        );
        let ours: Vec<String> = ours
            .iter()
            .map(|(rule, layer)| format!("`{rule}` at {layer}"))
            .collect();
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {} | {} |",
            case.name,
            case.drive.name(),
            if wrong { "faulty" } else { "correct" },
            if ours.is_empty() {
                "nothing".to_owned()
            } else {
                ours.join(", ")
            },
            others.map(word).join(" | "),
        );
    }
    score.write(&mut page);
    page += "| image | drive (sizes in bytes) | image is | traxtent check | parted min | parted opt | sgdisk |\n|---|---|---|---|---|---|---|\n";
    page + &rows
}

fn word(accepted: Option<bool>) -> &'static str {
    match accepted {
        Some(true) => "nothing",
        Some(false) => "problems",
        None => "no table",
    }
}

/// The numbers of images, and of those for which each tool reports something.
#[derive(Default)]
struct Score {
    /// All faulty images.
    wrong: u32,
    /// All correct images.
    right: u32,
    /// The faulty images that each tool reports.
    found: [u32; 4],
    /// The correct images that each tool reports.
    flagged: [u32; 4],
}

impl Score {
    fn add(&mut self, wrong: bool, accepted: &[Option<bool>; 4]) {
        let (all, reported) = if wrong {
            (&mut self.wrong, &mut self.found)
        } else {
            (&mut self.right, &mut self.flagged)
        };
        *all += 1;
        for (count, _) in reported
            .iter_mut()
            .zip(accepted)
            .filter(|(_, accepted)| **accepted == Some(false))
        {
            *count += 1;
        }
    }

    fn write(&self, page: &mut String) {
        let _ = writeln!(
            page,
            "| | traxtent check | parted min | parted opt | sgdisk |\n|---|---|---|---|---|"
        );
        for (name, counts, all) in [
            ("faulty images with findings", self.found, self.wrong),
            ("correct images with findings", self.flagged, self.right),
        ] {
            let counts = counts.map(|count| format!("{count} of {all}"));
            let _ = writeln!(page, "| {name} | {} |", counts.join(" | "));
        }
        page.push('\n');
    }
}

fn output(program: &str, arguments: &[&str]) -> (bool, String) {
    let program = testkit::tool(program).expect("parted and sgdisk are installed");
    let output = Command::new(program)
        .env("LC_ALL", "C")
        .args(arguments)
        .output()
        .unwrap();
    let says = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&says).into_owned(),
    )
}

/// Returns the name and version of a tool, such as `parted 3.5`.
fn version(program: &str) -> String {
    let (_, says) = output(program, &["--version"]);
    let number = says
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    format!("{program} {}", number.expect("a version number"))
}

/// Returns whether parted accepts every partition, or `None` if it finds none.
fn parted(image: &Path, kind: &str) -> Option<bool> {
    let image = image.to_str().unwrap();
    let (read, table) = output("parted", &["-s", "-m", image, "unit", "s", "print"]);
    let first = |line: &str| {
        line.split(':')
            .next()
            .and_then(|number| number.parse::<u32>().ok())
    };
    let content = |line: &str| line.split(':').nth(4).map(str::to_owned);
    // A file system on the whole drive appears as one partition of a table called loop.
    if !read || table.lines().any(|line| line.contains(":loop:")) {
        return None;
    }
    let extended = |line: &str| content(line).is_some_and(|text| text == "extended");
    let mut partitions = table
        .lines()
        .filter(|line| !extended(line))
        .filter_map(first)
        .peekable();
    partitions.peek()?;
    Some(partitions.all(|number| {
        output(
            "parted",
            &["-s", image, "align-check", kind, &number.to_string()],
        )
        .0
    }))
}

/// Returns whether sgdisk finds no problem, or `None` if there is no GPT.
fn sgdisk(image: &Path) -> Option<bool> {
    let (_, says) = output("sgdisk", &["--verify", image.to_str().unwrap()]);
    let gpt = !says.contains("Creating new GPT entries")
        && !says.contains("converting MBR to GPT format");
    gpt.then(|| says.contains("No problems found") && !says.contains("Caution"))
}
