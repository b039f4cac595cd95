//! Drives whose reports about themselves are wrong or incomplete. The list is `quirks.toml`; each
//! entry has a source.

use std::sync::LazyLock;

use serde::Deserialize;

/// The facts about the drives of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quirk {
    /// The beginning of the model name; `?` stands for any character.
    pub model: String,
    /// The size of a physical sector in bytes.
    pub physical_bytes: u64,
    /// Whether the tracks are shingled although the drive does not report it.
    #[serde(default)]
    pub shingled: bool,
    /// The source of the facts.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    drive: Vec<Quirk>,
}

static QUIRKS: LazyLock<Vec<Quirk>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("quirks.toml")).expect("a test parses the list");
    file.drive
});

/// Returns the entry for a drive's model.
pub fn find(model: &str) -> Option<&'static Quirk> {
    QUIRKS.iter().find(|quirk| quirk.matches(model))
}

impl Quirk {
    fn matches(&self, model: &str) -> bool {
        let mut letters = model.chars();
        self.model.chars().all(|wanted| {
            letters
                .next()
                .is_some_and(|found| wanted == '?' || wanted == found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the list readable, does each entry have a source and sectors of 4096 bytes, and are
    /// drives found by the model that the kernel reports?
    #[test]
    fn models_match() {
        assert!(
            QUIRKS
                .iter()
                .all(|quirk| !quirk.source.is_empty() && quirk.physical_bytes == 4096)
        );
        assert_eq!(
            find("WDC WD10EARS-00Y5B1").map(|quirk| quirk.shingled),
            Some(false)
        );
        assert_eq!(
            find("ST8000AS0002-1NA").map(|quirk| quirk.shingled),
            Some(true)
        );
        assert_eq!(find("WDC WD740GD-00FL"), None);
        assert_eq!(find("WDC"), None);
    }
}
