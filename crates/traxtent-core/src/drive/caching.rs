//! What a host may order of a drive's buffer: the switches of SCSI's caching mode page (RCD, DRA
//! or DPTL = 0, WCE).

use std::sync::Arc;

use super::Drive;
use crate::profile::{ReadAheadUntil, WriteBack};

/// Orders to a drive's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Whether reads may be served from the buffer.
    pub read: bool,
    /// Whether the drive may read beyond a request, as far as it does so by its profile.
    pub read_ahead: bool,
    /// Whether a write is complete in the buffer.
    pub write_back: bool,
}

impl Caching {
    /// Every read comes from the media, every write goes there, and nothing else is done.
    pub const OFF: Caching = Caching {
        read: false,
        read_ahead: false,
        write_back: false,
    };
}

impl Drive {
    /// Orders the buffer to work so from now on; until then it works as the profile says. A drive that reads ahead whatever its host
    /// orders (`cache.read_ahead.ignores_host`) obeys as to writes only.
    pub fn set_caching(&mut self, caching: Caching) {
        let mut profile = self.made.as_ref().clone();
        let cache = &mut profile.cache;
        if !cache.read_ahead.ignores_host {
            cache.enabled = caching.read;
            if !caching.read_ahead {
                cache.read_ahead.until = ReadAheadUntil::None;
            }
        }
        cache.write_back = if caching.write_back {
            WriteBack::Full
        } else {
            WriteBack::None
        };
        self.cache.obey(&profile.cache);
        self.profile = Arc::new(profile);
    }
}
