//! The list of all experiments, and their names.

use std::sync::LazyLock;

use crate::claim::Claim;
use crate::experiment::Experiment;
use crate::finding::Finding;

macro_rules! texts {
    ($($folder:literal)+) => {
        &[$(($folder, include_str!(concat!("../", $folder, "/experiment.toml")))),+]
    };
}

/// Every experiment's directory and text, in the order of listings.
static TEXTS: &[(&str, &str)] = texts![
    "T01" "T02" "T03" "T04" "T05" "T06" "T07" "T08" "T09" "T10" "T11" "T12" "T13" "T14" "T15" "T16" "T17" "T18" "T19"
    "T20" "T21" "T22" "T23" "T24" "T25" "T26" "T27" "T28" "T29" "T30" "T31" "T32" "T33"
    "Q01" "Q02" "Q03" "Q04" "Q05" "Q06" "Q07" "Q08" "Q09" "Q10" "Q11" "Q12" "Q13" "Q14"
    "P01" "P02" "P03" "P04" "P05" "P06" "P07"
    "A01" "A05" "A07" "A08"
    "M01" "M02" "M03" "M04" "M05"
    "F01" "F02" "F03" "F04"
];

/// A paper, or another source of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// The first letter of its claims' IDs.
    pub letter: char,
    /// An alternative to the letter in names of claims.
    pub name: &'static str,
    /// The authors, the title, and where it appeared, if known; for other sources, a description.
    pub title: &'static str,
}

/// The papers and other sources, in the order of listings.
pub static PAPERS: [Paper; 6] = [
    Paper {
        letter: 'T',
        name: "traxtents",
        title: "Schindler, Griffin, Lumb, Ganger, Track-Aligned Extents, FAST 2002",
    },
    Paper {
        letter: 'Q',
        name: "linux",
        title: "Qian, Meyers, Wang, A Linux Implementation Validation of Track-Aligned Extents and Track-Aligned RAIDs",
    },
    Paper {
        letter: 'P',
        name: "tpl",
        title: "Li, Tan, TPL: a data layout method for reducing rotational latency of modern hard disk drives",
    },
    Paper {
        letter: 'A',
        name: "4k",
        title: "Smith, Linux on 4 KB sector disks: practical advice",
    },
    Paper {
        letter: 'M',
        name: "modern",
        title: "drives made after 2010: measurements and published rates",
    },
    Paper {
        letter: 'F',
        name: "files",
        title: "files of ext4 of Linux 6.18 on served drives, measured with cargo xtask bench files",
    },
];

/// Returns all experiments, in the order of listings.
///
/// # Panics
/// Panics if a text is not a valid experiment, which a test would have found.
pub fn experiments() -> &'static [Experiment] {
    static EXPERIMENTS: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
        let read = |&(folder, text)| match Experiment::parse(folder, text) {
            Ok(experiment) => experiment,
            Err(error) => panic!("{error}"),
        };
        TEXTS.iter().map(read).collect()
    });
    &EXPERIMENTS
}

/// The error for a name that no claim has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no claim is named {0:?}")]
pub struct UnknownClaim(pub String);

/// Claims chosen by name.
#[derive(Clone, Debug)]
pub struct Selection {
    names: Vec<String>,
}

impl Selection {
    /// Selects claims (T9a), groups (T9), papers (T, traxtents), or the claims of
    /// [`Selection::all`] (all). Letters may be lower or upper case.
    ///
    /// # Errors
    /// Returns an error for the first name that no claim has.
    pub fn of<S: AsRef<str>>(names: &[S]) -> Result<Selection, UnknownClaim> {
        let mut known = Vec::new();
        for name in names.iter().map(AsRef::as_ref) {
            let normalized = normalized_name(name);
            let mut claims = experiments()
                .iter()
                .flat_map(|experiment| &experiment.claims);
            if normalized != ALL && !claims.any(|claim| claim.is_named_by(&normalized)) {
                return Err(UnknownClaim(name.to_owned()));
            }
            known.push(normalized);
        }
        Ok(Selection { names: known })
    }

    /// Selects all claims that need only the model and, for some, DiskSim's traces.
    pub fn all() -> Selection {
        Selection {
            names: vec![ALL.to_owned()],
        }
    }

    /// Returns whether a claim of an experiment is selected.
    pub fn includes(&self, experiment: &Experiment, claim: &Claim) -> bool {
        let needs_more = experiment.measurement.missing.is_some();
        let names = self.names.iter();
        names
            .into_iter()
            .any(|name| (name == ALL && !needs_more) || claim.is_named_by(name))
    }

    /// The experiments with a selected claim.
    pub fn experiments(&self) -> Vec<&'static Experiment> {
        let chosen = |experiment: &&Experiment| {
            let mut claims = experiment.claims.iter();
            claims.any(|claim| self.includes(experiment, claim))
        };
        experiments().iter().filter(chosen).collect()
    }

    /// Keeps only the findings for selected claims.
    pub fn retain(&self, findings: &mut Vec<Finding>) {
        let chosen = self.experiments();
        let of_chosen = |finding: &Finding| {
            let mut own = chosen
                .iter()
                .filter(|experiment| experiment.claims.contains(finding.claim));
            own.any(|experiment| self.includes(experiment, finding.claim))
        };
        findings.retain(of_chosen);
    }
}

/// Normalizes a name: the letter may be in lower case, and a paper may be given by its alternative
/// name.
fn normalized_name(name: &str) -> String {
    let lower = name.to_lowercase();
    if lower == ALL {
        return lower;
    }
    match PAPERS.iter().find(|paper| paper.name == lower) {
        Some(paper) => paper.letter.to_string(),
        None => lower
            .chars()
            .take(1)
            .flat_map(char::to_uppercase)
            .chain(lower.chars().skip(1))
            .collect(),
    }
}

/// The name that selects the claims of [`Selection::all`].
const ALL: &str = "all";
