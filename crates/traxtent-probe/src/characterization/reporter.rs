//! The figures, notes and progress of a characterization while it runs.

use super::measurement::Measurement;

/// The progress of a characterization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CharacterizeProgress {
    /// The current stage.
    pub stage: &'static str,
    /// The completed share of the stage, from 0 to 1.
    pub done: f64,
}

/// Collects figures and notes, and reports the progress.
pub(super) struct Reporter<'a> {
    pub(super) figures: Vec<Measurement>,
    pub(super) notes: Vec<String>,
    progress: &'a mut dyn FnMut(CharacterizeProgress),
}

impl<'a> Reporter<'a> {
    pub(super) fn new(progress: &'a mut dyn FnMut(CharacterizeProgress)) -> Reporter<'a> {
        Reporter {
            figures: Vec::new(),
            notes: Vec::new(),
            progress,
        }
    }

    /// Reports that a stage begins.
    pub(super) fn stage(&mut self, stage: &'static str) {
        self.progress(stage, 0.0);
    }

    /// Reports the completed share of a stage.
    pub(super) fn progress(&mut self, stage: &'static str, done: f64) {
        (self.progress)(CharacterizeProgress { stage, done });
    }
}
