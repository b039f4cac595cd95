//! The experiments of the papers.

use traxtent_experiments::{Experiment, Selection, Tolerance};

/// A valid experiment is consistent: a published value meets its own claim, unless the claim is an
/// upper bound, and NaN meets no claim.
pub(crate) fn text(input: &[u8]) {
    let Some(text) = super::text(input) else {
        return;
    };
    let experiment = match Experiment::parse("T02", text) {
        Ok(experiment) => experiment,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            return;
        }
    };
    for claim in &experiment.claims {
        assert!(claim.is_named_by("T2") && claim.is_named_by("T") && claim.is_named_by(&claim.id));
        assert!(!claim.allows(f64::NAN), "{claim:?}");
        if !matches!(claim.within, Tolerance::AtMost(_)) {
            assert!(
                claim
                    .published
                    .ends()
                    .into_iter()
                    .all(|end| claim.allows(end)),
                "{claim:?}"
            );
        }
        assert!(!claim.published().is_empty() && !claim.tolerance().is_empty());
    }
}

/// Names select at least one experiment, or are refused.
pub(crate) fn names(input: &[u8]) {
    let Some(text) = super::text(input) else {
        return;
    };
    let names: Vec<&str> = text.lines().collect();
    if let Ok(selection) = Selection::of(&names) {
        assert!(names.is_empty() || !selection.experiments().is_empty());
    }
}
