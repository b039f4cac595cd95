//! A gallery of correct and faulty images made by real tools. Is each faulty one reported at the
//! right layer, and no correct one? What do other tools report for them?

mod arrays;
pub(crate) mod cases;
mod peers;
mod workshop;

use std::path::Path;

use traxtent_check::drive::StatedDrive;
use traxtent_check::report::ReportRow;
use traxtent_check::target::{HostPaths, examine_targets};
use traxtent_check::{Kind, Severity, findings};

pub(crate) use workshop::{CreatedCase, ImageMaker, is_root};

/// An image or the members of an array, how they are created, and what is wrong with them.
pub(crate) struct Case {
    /// A description of the image.
    pub(crate) name: &'static str,
    /// The commands that make `disk.img` or the members; see [`workshop`].
    pub(crate) made_by: &'static str,
    /// The drive that the image is meant for.
    pub(crate) drive: Drive,
    /// Every finding of severity warning or higher: the rule and the layer.
    pub(crate) findings: &'static [(&'static str, &'static str)],
}

/// The stated properties of a drive. Zero means that a property is not stated.
#[derive(Clone, Copy, Default)]
pub(crate) struct Drive {
    logical_bytes: u64,
    physical_bytes: u64,
    chunk_bytes: u64,
    stripe_bytes: u64,
    erase_bytes: u64,
    first_aligned_byte: u64,
}

impl Drive {
    pub(crate) fn stated(self) -> StatedDrive {
        let some = |bytes: u64| Some(bytes).filter(|&bytes| bytes > 0);
        StatedDrive {
            logical_bytes: some(self.logical_bytes),
            physical_bytes: some(self.physical_bytes),
            chunk_bytes: some(self.chunk_bytes),
            stripe_bytes: some(self.stripe_bytes),
            erase_bytes: some(self.erase_bytes),
            first_aligned_byte: some(self.first_aligned_byte),
            ..StatedDrive::default()
        }
    }

    /// Returns a short description.
    fn name(self) -> String {
        let mut words = vec![format!("physical {}", self.physical_bytes)];
        for (name, bytes) in [
            ("logical", self.logical_bytes),
            ("chunk", self.chunk_bytes),
            ("stripe", self.stripe_bytes),
            ("erase block", self.erase_bytes),
            ("first aligned byte", self.first_aligned_byte),
        ] {
            if bytes > 0 {
                words.push(format!("{name} {bytes}"));
            }
        }
        words.join(", ")
    }
}

/// Returns the rule and the layer of each finding of severity warning or higher, sorted and without
/// duplicates. Asserts that each finding has a fix.
pub(crate) fn findings_of(images: &[std::path::PathBuf], drive: Drive) -> Vec<(String, String)> {
    let stack = examine_targets(images, &drive.stated(), &HostPaths::default()).unwrap();
    let mut found: Vec<_> = findings(&stack, None, None, &[])
        .into_iter()
        .filter(|row| row.finding.severity >= Severity::Warning)
        .map(|ReportRow { finding, fix, .. }| {
            assert!(fix.is_some(), "no fix for {finding:?}");
            let layer = stack.layer(finding.layer);
            let name = match layer.kind {
                Kind::Disk(_) => "drive".to_owned(),
                _ => layer.name.clone(),
            };
            (finding.rule.id().to_owned(), name)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Creates the images of all cases, as far as this host can.
fn create_all(folder: &Path) -> Vec<(&'static Case, CreatedCase)> {
    let workshop = ImageMaker::new(folder);
    let without_guest = cases::CASES
        .iter()
        .map(|case| (case, workshop.make(case.name, case.made_by)));
    let mut all: Vec<_> = without_guest.collect();
    all.extend(arrays::make(&workshop));
    all
}

/// Is each faulty image reported at the right layer, with a fix, and no correct one?
#[test]
fn findings_are_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    let mut skipped = Vec::new();
    let mut checked = 0;
    let all = create_all(folder.path());
    for (case, made) in &all {
        let images = match made {
            CreatedCase::Images(images) => images,
            CreatedCase::Unavailable(why) => {
                skipped.push(format!("{}: {why}", case.name));
                continue;
            }
        };
        checked += 1;
        let found = findings_of(images, case.drive);
        let found: Vec<_> = found
            .iter()
            .map(|(rule, layer)| (rule.as_str(), layer.as_str()))
            .collect();
        let mut wrong = case.findings.to_vec();
        wrong.sort_unstable();
        if found != wrong {
            failures.push(format!("{}: {found:?} instead of {wrong:?}", case.name));
        }
    }
    println!(
        "{checked} images checked, {} not made: {skipped:#?}",
        skipped.len()
    );
    assert!(failures.is_empty(), "{failures:#?}");
    if let Ok(page) = std::env::var("TRAXTENT_GALLERY_PAGE") {
        std::fs::write(testkit::workspace().join(page), peers::page(&all)).unwrap();
    }
    if checked == 0 {
        testkit::skip!("no image could be made: {skipped:?}");
    }
}
