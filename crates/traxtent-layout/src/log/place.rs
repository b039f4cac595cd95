//! The place of a block in the log.

use traxtent_units::Lbn;

/// The place of a block, and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// The block's first LBN.
    pub lbn: Lbn,
    /// The CRC-32 of the block's bytes.
    pub crc: u32,
}

impl LogPlace {
    /// The place of a block that was never written, or that was trimmed.
    pub(super) const NOWHERE: LogPlace = LogPlace {
        lbn: Lbn(u64::MAX),
        crc: 0,
    };

    pub(super) fn as_written(self) -> Option<LogPlace> {
        (self != LogPlace::NOWHERE).then_some(self)
    }
}
