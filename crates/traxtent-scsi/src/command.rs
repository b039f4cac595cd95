//! The commands that a host can send to a drive.
//!
//! They suffice to time and characterize a block device and to query the layout of its sectors.
//! Left out: protection information, and control bytes, because no command is linked.

use super::address::AddressFormat;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// TEST UNIT READY.
    TestUnitReady,
    /// REQUEST SENSE.
    RequestSense {
        /// Whether the sense data is requested in descriptor format.
        descriptors: bool,
        /// The allocation length in bytes.
        allocation: u8,
    },
    /// INQUIRY: standard data, or a page of vital product data.
    Inquiry {
        /// The page, if one is requested.
        page: Option<u8>,
        /// The allocation length in bytes.
        allocation: u16,
    },
    /// READ CAPACITY(10).
    ReadCapacity10,
    /// READ CAPACITY(16).
    ReadCapacity16 {
        /// The allocation length in bytes.
        allocation: u32,
    },
    /// READ, WRITE or VERIFY.
    Blocks(Blocks),
    /// SYNCHRONIZE CACHE.
    SynchronizeCache {
        /// Ten or sixteen bytes.
        width: Width,
        /// The first LBN.
        lbn: u64,
        /// The number of sectors. 0 means all sectors from the first LBN to the end of the drive.
        sectors: u32,
        /// Whether the response is sent before the operation is complete.
        immediate: bool,
    },
    /// SEND DIAGNOSTIC.
    SendDiagnostic {
        /// Whether the data is a page (PF).
        page_format: bool,
        /// Whether the drive runs a self-test.
        self_test: bool,
        /// The number of bytes that the host sends.
        length: u16,
    },
    /// RECEIVE DIAGNOSTIC RESULTS.
    ReceiveDiagnostic {
        /// The page, if one is named (PCV). Otherwise the response to the last SEND DIAGNOSTIC is
        /// requested.
        page: Option<u8>,
        /// The allocation length in bytes.
        allocation: u16,
    },
    /// READ DEFECT DATA.
    ReadDefectData(ReadDefectData),
    /// MODE SENSE.
    ModeSense(ModeSense),
    /// MODE SELECT.
    ModeSelect {
        /// Six or ten bytes.
        width: ModeWidth,
        /// Whether the data consists of pages (PF).
        page_format: bool,
        /// Whether the values are saved across power cycles (SP).
        save: bool,
        /// The number of bytes that the host sends.
        length: u16,
    },
}

/// The width of a command on sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 10 bytes: a 32-bit LBN and a 16-bit count.
    #[default]
    Ten,
    /// 16 bytes: a 64-bit LBN and a 32-bit count.
    Sixteen,
}

/// The width of a command on mode pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModeWidth {
    /// 6 bytes: at most 255 bytes of data.
    Six,
    /// 10 bytes: at most 65,535 bytes of data.
    #[default]
    Ten,
}

/// The width of a READ DEFECT DATA command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefectWidth {
    /// 10 bytes: at most 65,535 bytes of data, starting at the first descriptor.
    Ten,
    /// 12 bytes: starting at any descriptor.
    #[default]
    Twelve,
}

/// An operation on sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOp {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// VERIFY.
    Verify(Compare),
}

/// The comparison that a VERIFY makes (BYTCHK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// None. The sectors are only read.
    #[default]
    Nothing,
    /// Each sector with the corresponding one from the host.
    Each,
    /// All sectors with a single one from the host.
    WithOne,
}

/// A READ, WRITE or VERIFY command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The operation.
    pub op: BlockOp,
    /// Ten or sixteen bytes.
    pub width: Width,
    /// The first LBN.
    pub lbn: u64,
    /// The number of sectors.
    pub sectors: u32,
    /// Whether the buffer does not need to keep the sectors (DPO).
    pub dpo: bool,
    /// Whether the media must be accessed (FUA). VERIFY does not have this bit.
    pub fua: bool,
}

/// A READ DEFECT DATA command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadDefectData {
    /// Ten or twelve bytes.
    pub width: DefectWidth,
    /// Whether the primary list, made during manufacture, is requested (REQ_PLIST).
    pub primary: bool,
    /// Whether the grown list is requested (REQ_GLIST).
    pub grown: bool,
    /// The requested format of addresses.
    pub format: AddressFormat,
    /// The index of the first requested descriptor. 0 in a command of ten bytes.
    pub index: u32,
    /// The allocation length in bytes.
    pub allocation: u32,
}

/// A MODE SENSE command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSense {
    /// Six or ten bytes.
    pub width: ModeWidth,
    /// The page, or 3Fh for all.
    pub page: u8,
    /// The subpage. 0 if the page has none.
    pub subpage: u8,
    /// The kind of values.
    pub values: PageValues,
    /// Whether the block descriptor is omitted (DBD).
    pub no_block_descriptor: bool,
    /// The allocation length in bytes.
    pub allocation: u16,
}

/// The kind of values of a mode page (PC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageValues {
    /// The current values.
    #[default]
    Current,
    /// A mask of the bits that the host can change.
    Changeable,
    /// The default values.
    Default,
    /// The values saved across power cycles.
    Saved,
}

impl Width {
    /// Returns the width of the narrowest command that can address these sectors.
    pub fn needed(lbn: u64, sectors: u32) -> Width {
        if u32::try_from(lbn).is_ok() && u16::try_from(sectors).is_ok() {
            Width::Ten
        } else {
            Width::Sixteen
        }
    }
}
