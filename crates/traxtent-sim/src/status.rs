//! The status of a served request.

use std::fmt;

use traxtent_model::disk::{DiskError, MediaError};

/// The success of a request, or the kind of its failure. A simulated request without data always
/// succeeds; the request of a served drive can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStatus {
    /// `ok`: the request succeeded.
    Ok,
    /// `unreadable`: a sector cannot be read until it is written again.
    Unreadable,
    /// `no-space`: the storage of the drive's data has no space left.
    NoSpace,
    /// `failed`: any other failure, such as one of the storage of the drive's data.
    Failed,
}

impl RequestStatus {
    /// Returns the status for the result of a command.
    pub fn of(result: &Result<(), DiskError>) -> RequestStatus {
        match result {
            Ok(()) => RequestStatus::Ok,
            Err(DiskError::Unreadable { .. }) => RequestStatus::Unreadable,
            Err(DiskError::Media(MediaError::NoSpace)) => RequestStatus::NoSpace,
            Err(_) => RequestStatus::Failed,
        }
    }

    /// Returns the word of the request log.
    pub const fn name(self) -> &'static str {
        match self {
            RequestStatus::Ok => "ok",
            RequestStatus::Unreadable => "unreadable",
            RequestStatus::NoSpace => "no-space",
            RequestStatus::Failed => "failed",
        }
    }
}

impl fmt::Display for RequestStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does each kind of error have its word?
    #[test]
    fn words() {
        let failed = |what: &str| MediaError::Failed { what: what.into() };
        for (result, word) in [
            (Ok(()), "ok"),
            (Err(DiskError::Unreadable { lbn: 8 }), "unreadable"),
            (Err(MediaError::NoSpace.into()), "no-space"),
            (Err(failed("the file is gone").into()), "failed"),
            (Err(DiskError::Unresponsive), "failed"),
        ] {
            assert_eq!(RequestStatus::of(&result).to_string(), word, "{result:?}");
        }
    }
}
