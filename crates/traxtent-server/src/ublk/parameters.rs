//! The parameters of a block device, derived from the export.

use super::abi::{
    BasicParameters, DiscardParameters, FUA, Parameters, READ_ONLY, ROTATIONAL, TYPES,
    VOLATILE_CACHE,
};
use super::error::UblkError;
use crate::service::Export;

/// The maximum size of a read or write in bytes. The kernel splits larger ones. Its own default
/// limit (`max_sectors_kb`) is 1280 KiB.
pub(super) const IO_BYTES_MAX: u32 = 1 << 20;

/// The maximum size of a request to write zeros in bytes. A drive writes zeros at the rate of its
/// media, and other requests wait meanwhile. The limit is about that of a SCSI disk's WRITE SAME
/// (10) with sectors of 512 bytes.
const ZERO_BYTES_MAX: u32 = 32 << 20;

/// The maximum size of a discard in bytes. It is large because a discard takes a drive little time.
const DISCARD_BYTES_MAX: u32 = 1 << 31;

/// The maximum size of a logical sector in bytes, which is that of a memory page
/// (`ublk_validate_params`).
const LOGICAL_BYTES_MAX: u32 = 4096;
/// The maximum size of a physical sector that the kernel accepts, in bytes.
const PHYSICAL_BYTES_MAX: u32 = 1 << 30;

/// The size of the kernel's sectors in bytes, which does not depend on the drive's.
pub(super) const SECTOR: u32 = 512;

/// Returns the parameters of the block device for an export.
///
/// # Errors
/// Returns an error if block devices cannot have the export's sector sizes.
pub(super) fn parameters(export: &Export) -> Result<Parameters, UblkError> {
    let service = &export.service;
    let sizes = service.block_sizes();
    let logical_bs_shift = shift("logical sectors", sizes.minimum, LOGICAL_BYTES_MAX)?;
    let physical_bs_shift = shift("physical sectors", sizes.preferred, PHYSICAL_BYTES_MAX)?;
    let attributes = [
        (export.read_only, READ_ONLY),
        (service.is_rotational(), ROTATIONAL),
        (service.has_write_cache(), VOLATILE_CACHE | FUA),
    ];
    let attributes = attributes.iter().filter(|(is_set, _)| *is_set);
    let sectors_if_writable = |bytes: u32| if export.read_only { 0 } else { bytes / SECTOR };
    let can_trim = service.can_trim();
    Ok(Parameters {
        len: size_of::<Parameters>() as u32,
        types: TYPES,
        basic: BasicParameters {
            attrs: attributes.fold(0, |all, (_, one)| all | one),
            logical_bs_shift,
            physical_bs_shift,
            io_opt_shift: optimal_shift(service.optimal_bytes(), physical_bs_shift),
            io_min_shift: physical_bs_shift,
            max_sectors: IO_BYTES_MAX.min(sizes.maximum) / SECTOR,
            dev_sectors: service.bytes() / u64::from(SECTOR),
            ..BasicParameters::default()
        },
        discard: DiscardParameters {
            discard_granularity: sizes.preferred,
            max_discard_sectors: if can_trim {
                sectors_if_writable(DISCARD_BYTES_MAX)
            } else {
                0
            },
            max_write_zeroes_sectors: sectors_if_writable(ZERO_BYTES_MAX),
            max_discard_segments: 1,
            ..DiscardParameters::default()
        },
        rest: 0,
    })
}

/// Returns the binary logarithm of a sector size, if block devices can have it.
fn shift(what: &'static str, bytes: u32, maximum: u32) -> Result<u8, UblkError> {
    if bytes.is_power_of_two() && (SECTOR..=maximum).contains(&bytes) {
        return Ok(bytes.ilog2() as u8);
    }
    Err(UblkError::SectorSize {
        what,
        bytes,
        maximum,
    })
}

/// Returns the binary logarithm of the optimal request size; 0 if there is none, if it is smaller
/// than a physical sector, or if it is not a power of two, which the driver cannot represent. For
/// 0, the kernel rounds 1 byte down to whole physical sectors and reports no optimal size (tested
/// with Linux 6.12).
fn optimal_shift(bytes: Option<u32>, physical_bs_shift: u8) -> u8 {
    let bytes = bytes.filter(|bytes| bytes.is_power_of_two());
    let shift = bytes.map_or(0, |bytes| bytes.ilog2() as u8);
    // A size below the physical sector cannot be optimal.
    if shift < physical_bs_shift { 0 } else { shift }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::recorder::Recorder;
    use super::*;

    fn of(service: Recorder, read_only: bool) -> Result<Parameters, UblkError> {
        parameters(&Export {
            name: String::new(),
            description: String::new(),
            service: Arc::new(service),
            read_only,
        })
    }

    /// Are the reported properties exactly those of the device?
    #[test]
    fn properties_are_reported() {
        let disk = of(Recorder::default(), false).unwrap();
        assert_eq!(disk.basic.attrs, ROTATIONAL | VOLATILE_CACHE | FUA);
        assert_eq!(disk.basic.dev_sectors, 2048);
        assert_eq!(
            (disk.basic.logical_bs_shift, disk.basic.physical_bs_shift),
            (9, 12)
        );
        assert_eq!((disk.basic.io_min_shift, disk.basic.io_opt_shift), (12, 0));
        assert_eq!(disk.discard.max_discard_sectors, 1 << 22);
        let other = Recorder {
            is_disk: false,
            ..Recorder::default()
        };
        let other = of(other, true).unwrap();
        assert_eq!(other.basic.attrs, READ_ONLY);
        assert_eq!(other.discard.max_discard_sectors, 0);
        assert_eq!(other.discard.max_write_zeroes_sectors, 0);
    }

    /// Is an optimal size reported only if it is a power of two and not below the physical sector?
    #[test]
    fn optimal_sizes_are_powers_of_two() {
        for (bytes, shift) in [
            (65_536, 16),
            (196_608, 0),
            (4096, 12),
            (512, 0),
            (0, 0),
            (1 << 31, 31),
        ] {
            let stripe = Recorder {
                optimal: Some(bytes),
                ..Recorder::default()
            };
            assert_eq!(
                of(stripe, false).unwrap().basic.io_opt_shift,
                shift,
                "{bytes}"
            );
        }
    }

    /// Are sector sizes that block devices cannot have refused, with an error that states them?
    #[test]
    fn impossible_sectors_are_refused() {
        for (logical, physical, shown) in [
            (520, 520, "logical sectors of 520 bytes"),
            (8192, 8192, "logical sectors of 8192 bytes"),
            (512, 3000, "physical sectors of 3000 bytes"),
            (256, 512, "logical sectors of 256 bytes"),
        ] {
            let service = Recorder {
                logical,
                physical,
                ..Recorder::default()
            };
            let error = of(service, false).unwrap_err().to_string();
            assert!(error.starts_with(shown), "{error}");
        }
        let largest = Recorder {
            logical: 4096,
            ..Recorder::default()
        };
        assert_eq!(of(largest, false).unwrap().basic.logical_bs_shift, 12);
    }
}
