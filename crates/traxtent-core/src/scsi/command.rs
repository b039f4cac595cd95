//! What a host may ask of a drive.
//!
//! Commands of a block device that is timed, characterized and asked where its sectors lie. Left
//! out are protection information, and control bytes: no command is linked.

use super::address::Format;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// TEST UNIT READY.
    TestUnitReady,
    /// REQUEST SENSE.
    RequestSense {
        /// Whether sense data are wanted as descriptors.
        descriptors: bool,
        /// Bytes that the host has room for.
        allocation: u8,
    },
    /// INQUIRY: standard data, or a page of vital product data.
    Inquiry {
        /// The page, if it is one.
        page: Option<u8>,
        /// Bytes that the host has room for.
        allocation: u16,
    },
    /// READ CAPACITY(10).
    ReadCapacity10,
    /// READ CAPACITY(16).
    ReadCapacity16 {
        /// Bytes that the host has room for.
        allocation: u32,
    },
    /// READ, WRITE or VERIFY.
    Blocks(Blocks),
    /// SYNCHRONIZE CACHE.
    SynchronizeCache {
        /// Ten bytes, or sixteen.
        width: Width,
        /// The first LBN.
        lbn: u64,
        /// How many; 0 for all from there on.
        sectors: u32,
        /// Whether the answer comes before the work is done.
        immediate: bool,
    },
    /// SEND DIAGNOSTIC.
    SendDiagnostic {
        /// Whether the data are a page (PF).
        page_format: bool,
        /// Whether the drive is to test itself.
        self_test: bool,
        /// Bytes that the host sends.
        length: u16,
    },
    /// RECEIVE DIAGNOSTIC RESULTS.
    ReceiveDiagnostic {
        /// The page, where one is named (PCV); else the answer to what was sent last.
        page: Option<u8>,
        /// Bytes that the host has room for.
        allocation: u16,
    },
    /// READ DEFECT DATA.
    ReadDefectData(ReadDefectData),
    /// MODE SENSE.
    ModeSense(ModeSense),
    /// MODE SELECT.
    ModeSelect {
        /// Six bytes, or ten.
        width: ModeWidth,
        /// Whether the data are pages (PF).
        page_format: bool,
        /// Whether they are to outlive a loss of power (SP).
        save: bool,
        /// Bytes that the host sends.
        length: u16,
    },
}

/// How wide a command on sectors is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 10 bytes: an LBN of 32 bits, a count of 16.
    #[default]
    Ten,
    /// 16 bytes: an LBN of 64 bits, a count of 32.
    Sixteen,
}

/// How wide a command on mode pages is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModeWidth {
    /// 6 bytes: at most 255 bytes of data.
    Six,
    /// 10 bytes: at most 65,535 bytes of data.
    #[default]
    Ten,
}

/// How wide a READ DEFECT DATA is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefectWidth {
    /// 10 bytes: at most 65,535 bytes of data, from the first descriptor on.
    Ten,
    /// 12 bytes: from any descriptor on.
    #[default]
    Twelve,
}

/// What is done with sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOp {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// VERIFY.
    Verify(Compare),
}

/// What a VERIFY compares (BYTCHK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// Nothing: the sectors are read and that is all.
    #[default]
    Nothing,
    /// Each sector with one that the host sends.
    Each,
    /// All sectors with the one that the host sends.
    WithOne,
}

/// A READ, WRITE or VERIFY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// What is done.
    pub op: BlockOp,
    /// Ten bytes, or sixteen.
    pub width: Width,
    /// The first LBN.
    pub lbn: u64,
    /// How many sectors.
    pub sectors: u32,
    /// Whether the buffer need not keep them (DPO).
    pub dpo: bool,
    /// Whether the media must be accessed (FUA); a VERIFY has no such bit.
    pub fua: bool,
}

/// A READ DEFECT DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadDefectData {
    /// Ten bytes, or twelve.
    pub width: DefectWidth,
    /// Whether the list of manufacture is wanted (REQ_PLIST).
    pub primary: bool,
    /// Whether the list grown since is wanted (REQ_GLIST).
    pub grown: bool,
    /// The wanted form of addresses.
    pub format: Format,
    /// The first descriptor wanted; 0 in ten bytes.
    pub index: u32,
    /// Bytes that the host has room for.
    pub allocation: u32,
}

/// A MODE SENSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSense {
    /// Six bytes, or ten.
    pub width: ModeWidth,
    /// The page, or 3Fh for all.
    pub page: u8,
    /// The subpage; 0 where there are none.
    pub subpage: u8,
    /// Which values.
    pub values: PageValues,
    /// Whether the block descriptor is left out (DBD).
    pub no_block_descriptor: bool,
    /// Bytes that the host has room for.
    pub allocation: u16,
}

/// Which values of a mode page are asked for (PC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageValues {
    /// Those in force.
    #[default]
    Current,
    /// A mask of what the host may change.
    Changeable,
    /// Those of manufacture.
    Default,
    /// Those that outlive a loss of power.
    Saved,
}

impl Width {
    /// The narrowest command that can address these sectors.
    pub fn needed(lbn: u64, sectors: u32) -> Width {
        if u32::try_from(lbn).is_ok() && u16::try_from(sectors).is_ok() {
            Width::Ten
        } else {
            Width::Sixteen
        }
    }
}
