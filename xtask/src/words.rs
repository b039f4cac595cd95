//! The part of the house style that a program can check: the width of comments, the first words of
//! doc comments, and words that the glossary lists as retired.

use std::fmt;
use std::fs;

use anyhow::{Context, Result};

use crate::shell;

/// The largest width of a comment line without a URL, in columns.
const WIDTH_MAX: usize = 100;

/// Words with which a doc comment must not open. A summary is a noun phrase or a verb in the third
/// person.
const OPENINGS: [&str; 7] = [
    "What ",
    "Whose ",
    "Of ",
    "So many ",
    "So often ",
    "So long ",
    "From which ",
];

/// A line that breaks a rule.
struct Fault {
    path: String,
    line: usize,
    problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.problem)
    }
}

/// A retired word, and the term that replaces it.
struct Retired {
    word: String,
    term: String,
}

/// Checks all Rust files of the repository except this one, and prints the faults. Returns whether
/// there are none.
pub(crate) fn check() -> Result<bool> {
    let root = shell::root();
    let glossary = fs::read_to_string(root.join("docs/glossary.md")).context("docs/glossary.md")?;
    let retired = retired_words(&glossary);
    anyhow::ensure!(!retired.is_empty(), "docs/glossary.md retires no word");
    let listed = shell::output(
        "git",
        ["-C", &root.display().to_string(), "ls-files", "*.rs"],
    )?;
    let mut faults = 0;
    for path in listed.lines().filter(|path| !path.ends_with("words.rs")) {
        let Ok(text) = fs::read_to_string(root.join(path)) else {
            // The file was deleted, and the deletion is not committed yet.
            continue;
        };
        for fault in faults_of(path, &text, &retired) {
            println!("{fault}");
            faults += 1;
        }
    }
    Ok(faults == 0)
}

/// Returns the single words in the last column of the glossary's tables. A word with a qualifier in
/// parentheses is correct in other senses, which a program cannot distinguish, and is left out.
fn retired_words(glossary: &str) -> Vec<Retired> {
    let mut retired = Vec::new();
    for row in glossary.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", term, _, replaced, ""] = cells[..] else {
            continue;
        };
        let words = replaced.split(',').map(str::trim);
        retired.extend(
            words
                .filter(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase()))
                .filter(|word| *word != "replaces")
                .map(|word| Retired {
                    word: word.to_owned(),
                    term: term.to_owned(),
                }),
        );
    }
    retired
}

/// Returns the faults of a file. Retired words are faults in code too.
fn faults_of(path: &str, text: &str, retired: &[Retired]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let mut add = |problem: String| {
            faults.push(Fault {
                path: path.to_owned(),
                line: index + 1,
                problem,
            });
        };
        let comment = line.trim_start();
        if comment.starts_with("//") {
            let width = line.chars().count();
            if width > WIDTH_MAX && !comment.contains("://") {
                add(format!("a comment of {width} columns; at most {WIDTH_MAX}"));
            }
            let doc = ["///", "//!"]
                .into_iter()
                .find(|mark| comment.starts_with(mark));
            if let Some(mark) = doc
                && !before.starts_with(mark)
                && let Some(opening) = OPENINGS
                    .into_iter()
                    .find(|opening| comment[mark.len()..].trim_start().starts_with(opening))
            {
                add(format!("a doc comment opens with {:?}", opening.trim_end()));
            }
        }
        for word in words_of(line) {
            let found = retired
                .iter()
                .find(|retired| is_form_of(&word, &retired.word));
            if let Some(found) = found {
                add(format!("{word:?} is retired; write {:?}", found.term));
            }
        }
        before = comment;
    }
    faults
}

/// Returns the words of a line in lower case, with identifiers split into their words.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in line.chars() {
        let begins = c.is_ascii_uppercase() && was_lower;
        if (begins || !c.is_ascii_alphabetic()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Returns whether `word` is `base`, its plural, or a regular form of the verb.
fn is_form_of(word: &str, base: &str) -> bool {
    let stem = base.strip_suffix('e').unwrap_or(base);
    word == base
        || word
            .strip_prefix(base)
            .is_some_and(|end| ["s", "d", "ed"].contains(&end))
        || word.strip_prefix(stem).is_some_and(|end| end == "ing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let retired =
            retired_words("| fix | Commands. | mend |\n| disk | A disk. | platters (for data) |");
        let faults = faults_of("a.rs", text, &retired);
        faults.iter().map(Fault::to_string).collect()
    }

    /// Is a violation of each rule reported, and nothing else?
    #[test]
    fn faults_are_found() {
        assert_eq!(
            problems("/// Returns the fix.\nfn fix(platters: u8) {}\n"),
            [""; 0]
        );
        assert_eq!(
            problems("/// What it is.\n/// What follows is no summary.\n"),
            ["a.rs:1: a doc comment opens with \"What\""]
        );
        assert_eq!(problems(&format!("// {}", "x".repeat(97))), [""; 0]);
        assert_eq!(
            problems(&format!("// {}", "x".repeat(98))),
            ["a.rs:1: a comment of 101 columns; at most 100"]
        );
        assert_eq!(
            problems("fn is_mended() {}\nstruct MendRule;\n// amendments\n"),
            [
                "a.rs:1: \"mended\" is retired; write \"fix\"",
                "a.rs:2: \"mend\" is retired; write \"fix\"",
            ]
        );
    }
}
