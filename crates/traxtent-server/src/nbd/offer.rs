//! The exports of a server.

use parking_lot::Mutex;

use super::protocol::{ExportInfo, flag};
use crate::service::{BlockService, Export};

/// The exports of a server: their services, and the information about them for clients.
#[derive(Debug)]
pub(super) struct Offer {
    exports: Vec<Export>,
    infos: Vec<ExportInfo>,
    /// The last failure that was logged.
    reported: Mutex<String>,
}

impl Offer {
    pub(super) fn new(exports: Vec<Export>) -> Offer {
        Offer {
            infos: exports.iter().map(info).collect(),
            exports,
            reported: Mutex::default(),
        }
    }

    /// Returns the information about the exports for clients.
    pub(super) fn infos(&self) -> &[ExportInfo] {
        &self.infos
    }

    /// Returns the service of an export.
    pub(super) fn service(&self, export: usize) -> &dyn BlockService {
        &*self.exports[export].service
    }

    /// Logs a failure, unless it is the same as the last one.
    pub(super) fn report(&self, failure: &str) {
        let mut reported = self.reported.lock();
        if *reported != failure {
            tracing::warn!("{failure}");
            failure.clone_into(&mut reported);
        }
    }
}

fn info(export: &Export) -> ExportInfo {
    let service = &export.service;
    let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA;
    flags |= flag::CAN_MULTI_CONN | flag::SEND_CACHE;
    for (is_set, value) in [
        (service.is_rotational(), flag::ROTATIONAL),
        (export.read_only, flag::READ_ONLY),
        (!export.read_only, flag::SEND_WRITE_ZEROES),
        (!export.read_only && service.can_trim(), flag::SEND_TRIM),
    ] {
        if is_set {
            flags |= value;
        }
    }
    ExportInfo {
        name: export.name.clone(),
        description: export.description.clone(),
        bytes: service.bytes(),
        flags,
        sizes: service.block_sizes(),
    }
}
