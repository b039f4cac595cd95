//! The reasons why a stack cannot be planned.

use traxtent_layout::LayoutError;
use traxtent_units::Count;

use crate::rules::bytes;

/// The reason why a stack cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackPlanError {
    /// The file-system block is smaller than a physical sector.
    #[error(
        "blocks of {block_bytes} bytes on physical sectors of {physical_bytes}: each small write would be a read, a revolution and a write; use block={physical_bytes}"
    )]
    BlockBelowSector {
        /// The block size of the file system.
        block_bytes: u32,
        /// The physical sector size of the drive.
        physical_bytes: u32,
    },
    /// The sector of LUKS is smaller than a physical sector.
    #[error(
        "encrypted sectors of {sector_bytes} bytes on physical sectors of {physical_bytes}: each small write would be a read, a revolution and a write; use luks={}",
        physical_bytes.min(&4096)
    )]
    LuksBelowSector {
        /// The sector size of LUKS.
        sector_bytes: u32,
        /// The physical sector size of the drive.
        physical_bytes: u32,
    },
    /// The file-system block is smaller than a sector of LUKS.
    #[error(
        "blocks of {block_bytes} bytes on encrypted sectors of {sector_bytes}: use luks={block_bytes}"
    )]
    BlockBelowLuks {
        /// The block size of the file system.
        block_bytes: u32,
        /// The sector size of LUKS.
        sector_bytes: u32,
    },
    /// The partition ends beyond the sector numbers of an MBR.
    #[error("an MBR can address only sectors below {}, but the partition ends before LBN {end}; use table=gpt", 1_u64 << 32)]
    MbrTooShort {
        /// The first LBN after the partition.
        end: u64,
    },
    /// There is no room for a partition.
    #[error("has {}, too few for a partition of 1 MiB", Count(*lbns, "sector"))]
    TooSmall {
        /// The number of the drive's LBNs.
        lbns: u64,
    },
    /// There is no room for a layer.
    #[error(
        "has {}, too few for this stack: {layer} needs {}, but {} are left for it",
        Count(*lbns, "sector"), bytes(*needed_bytes), bytes(*left_bytes)
    )]
    LayerTooSmall {
        /// The number of the drive's LBNs.
        lbns: u64,
        /// The layer.
        layer: &'static str,
        /// The minimum size of the device that the layer lies on.
        needed_bytes: u64,
        /// The size of that device.
        left_bytes: u64,
    },
    /// The number of device names differs from the number of drives.
    #[error("the stack needs {}, but {named} named; name each with --device, or change disks= or raid=", Count(*disks, "disk"), named = if *named == 1 { "1 is".to_owned() } else { format!("{named} are") })]
    Devices {
        /// The number of drives that the stack needs.
        disks: u32,
        /// The number of devices that were named.
        named: usize,
    },
    /// The partition cannot be divided into blocks on the tracks of the map.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}
