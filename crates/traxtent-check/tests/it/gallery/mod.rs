//! A gallery of images that real tools have made, right and wrong: is each wrong one found at the right layer, and no
//! right one flagged? And what do other tools say of them?

mod arrays;
pub(crate) mod cases;
mod peers;
mod workshop;

use std::path::Path;

use traxtent_check::drive::Stated;
use traxtent_check::target::{Host, look};
use traxtent_check::{Kind, Severity, judge};

pub(crate) use workshop::{Made, Workshop, is_root};

/// An image, how it is made and what is wrong with it.
pub(crate) struct Case {
    /// What it shows.
    pub(crate) name: &'static str,
    /// The commands that make `disk.img`, or its members; see [`workshop`].
    pub(crate) made_by: &'static str,
    /// The drive that it is to live on.
    pub(crate) lives_on: Drive,
    /// Every finding of a warning or a fault: the rule and the layer it is found at.
    pub(crate) wrong: &'static [(&'static str, &'static str)],
}

/// What is stated of a drive. Zero is nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Drive {
    physical_bytes: u64,
    chunk_bytes: u64,
    stripe_bytes: u64,
    erase_bytes: u64,
    first_aligned_byte: u64,
}

impl Drive {
    pub(crate) fn stated(self) -> Stated {
        let some = |bytes: u64| Some(bytes).filter(|&bytes| bytes > 0);
        Stated {
            physical_bytes: some(self.physical_bytes),
            chunk_bytes: some(self.chunk_bytes),
            stripe_bytes: some(self.stripe_bytes),
            erase_bytes: some(self.erase_bytes),
            first_aligned_byte: some(self.first_aligned_byte),
            ..Stated::default()
        }
    }

    /// In a few words.
    fn name(self) -> String {
        let mut words = vec![format!("physical {}", self.physical_bytes)];
        for (name, bytes) in [
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

/// The findings of a warning or worse: rule and layer.
pub(crate) fn findings(images: &[std::path::PathBuf], drive: Drive) -> Vec<(String, String)> {
    let stack = look(images, &drive.stated(), &Host::default()).unwrap();
    let mut found: Vec<_> = judge(&stack, None, None, &[])
        .into_iter()
        .filter(|finding| finding.severity >= Severity::Warning)
        .map(|finding| {
            assert!(finding.mend.is_some(), "nothing mends {finding:?}");
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

/// All cases with their images, as far as they can be made here.
fn made(folder: &Path) -> Vec<(&'static Case, Made)> {
    let workshop = Workshop::new(folder);
    let alone = cases::CASES
        .iter()
        .map(|case| (case, workshop.make(case.name, case.made_by)));
    let mut all: Vec<_> = alone.collect();
    all.extend(arrays::make(&workshop));
    all
}

/// Is each wrong image found at the right layer, with what mends it, and no right one flagged?
#[test]
fn right_and_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    let mut skipped = Vec::new();
    let mut looked_at = 0;
    let all = made(folder.path());
    for (case, made) in &all {
        let images = match made {
            Made::Images(images) => images,
            Made::Without(why) => {
                skipped.push(format!("{}: {why}", case.name));
                continue;
            }
        };
        looked_at += 1;
        let found = findings(images, case.lives_on);
        let found: Vec<_> = found
            .iter()
            .map(|(rule, layer)| (rule.as_str(), layer.as_str()))
            .collect();
        let mut wrong = case.wrong.to_vec();
        wrong.sort_unstable();
        if found != wrong {
            failures.push(format!("{}: {found:?} instead of {wrong:?}", case.name));
        }
    }
    println!(
        "{looked_at} images, {} not made: {skipped:#?}",
        skipped.len()
    );
    assert!(failures.is_empty(), "{failures:#?}");
    if let Ok(page) = std::env::var("TRAXTENT_GALLERY_PAGE") {
        std::fs::write(testkit::workspace().join(page), peers::page(&all)).unwrap();
    }
    if looked_at == 0 {
        testkit::skip!("no image could be made: {skipped:?}");
    }
}
