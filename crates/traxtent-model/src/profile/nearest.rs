//! The suggestion for a misspelt name.

/// The similarity (Jaro-Winkler, from 0 to 1) above which a name is suggested. Chosen by trying
/// misspelt names of drives.
const SIMILARITY_MIN: f64 = 0.75;

/// Returns the known name that is most similar to `name`, if it is similar enough for a message to
/// suggest it. The case of the names does not matter.
pub fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    known
        .map(|known| (strsim::jaro_winkler(&known.to_lowercase(), &name), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity > SIMILARITY_MIN)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::super::builtin::names;
    use super::*;

    /// Is a misspelt name corrected, whatever its case, and is nothing suggested for a text unlike
    /// any name?
    #[test]
    fn misspelt_names_are_corrected() {
        assert_eq!(nearest_name("Atlas10k22", names()), Some("atlas10k2"));
        assert_eq!(nearest_name("wd10eras", names()), Some("wd10ears"));
        assert_eq!(nearest_name("/", names()), None);
        let disks = ["HP_C2247A", "HP_C3323A"].into_iter();
        assert_eq!(nearest_name("HP_C3323B", disks), Some("HP_C3323A"));
    }
}
