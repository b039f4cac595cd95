//! The features that client and server agree upon, and the choice of an export.

use super::{ExportInfo, flag};

/// The features that client and server have agreed upon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// The index of the export.
    pub export: usize,
    /// Whether structured replies are used.
    pub structured: bool,
    /// The index of the export for which the context `base:allocation` was chosen, if any.
    pub allocation: Option<usize>,
}

/// Returns the index of an export. The empty name is that of the default export, the first one.
pub(super) fn find(exports: &[ExportInfo], name: &str) -> Option<usize> {
    if name.is_empty() && !exports.is_empty() {
        return Some(0);
    }
    exports.iter().position(|export| export.name == name)
}

/// Returns the transmission flags of an export for a client.
pub(super) fn flags(export: &ExportInfo, agreed: &Agreed) -> u16 {
    if agreed.structured {
        export.flags | flag::SEND_DF
    } else {
        export.flags
    }
}
