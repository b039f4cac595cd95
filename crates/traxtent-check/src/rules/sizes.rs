//! The sizes of blocks, chunks, sectors and stripe units, compared with the layers below, and the
//! lengths of layers, compared with the space available.

use super::grid::{array_below, disks, physical_below};
use super::tables::luks_remainder;
use super::{Findings, bytes};
use crate::finding::{Finding, Rule, Severity};
use crate::layers::{Ext, Luks, Unknown, Xfs};
use crate::stack::{Kind, Layer, LayerId, Stack};

/// The largest unit in which XFS writes its log.
const LOG_UNIT_BYTES_MAX: u64 = 256 << 10;

pub(super) fn check(stack: &Stack, findings: &mut Findings) {
    for (id, layer) in stack.iter() {
        let title = stack.title(id);
        let mut say = |rule, what: String| findings.push(Finding::new(rule, id, what));
        if let Some((unit, size)) = checked_unit(&layer.kind)
            && let Some((disk, physical)) = physical_below(stack, id)
            && !size.is_multiple_of(physical)
        {
            let drive = &stack.layer(disk).name;
            let what = format!(
                "{} {} {}, but a physical sector of {drive} is {}",
                title,
                unit.words,
                bytes(size),
                bytes(physical)
            );
            say(unit.rule, what);
        }
        if let Some(end) = stated_end(&layer.kind)
            && end > layer.bytes
            && layer.bytes > 0
        {
            let what = format!(
                "the header of {title} requires {end} bytes, but only {} are available",
                layer.bytes
            );
            say(Rule::BeyondEnd, what);
        }
        match &layer.kind {
            Kind::Disk(disk) => {
                let is_container =
                    |layer: &Layer| matches!(layer.kind, Kind::Unknown(Unknown::Container(_)));
                if let Some(capacity) = disk.capacity_bytes
                    && capacity < layer.bytes
                    && !stack.above(id).any(|(_, above)| is_container(above))
                {
                    let what = format!(
                        "{} has {} bytes, but its drive has {capacity}",
                        title, layer.bytes
                    );
                    say(Rule::DriveSize, what);
                }
            }
            Kind::Luks(luks) => luks_end(&title, layer.bytes, luks, &mut say),
            Kind::PhysicalVolume(volume) => {
                if let Some((array, _, stripe)) = array_below(stack, id)
                    && volume.extent_bytes > 0
                    && stripe > 0
                    && !volume.extent_bytes.is_multiple_of(stripe)
                {
                    let what = format!(
                        "{title} has extents of {}, not a multiple of the full stripe of {} ({}); volumes may begin within a stripe",
                        bytes(volume.extent_bytes),
                        stack.layer(array).name,
                        bytes(stripe)
                    );
                    findings.push(
                        Finding::new(Rule::ChunkSize, id, what).with_severity(Severity::Info),
                    );
                }
            }
            Kind::Ext(ext) => ext_stride(stack, id, &title, ext, findings),
            Kind::Xfs(xfs) => xfs_units(stack, id, &title, xfs, findings),
            _ => {}
        }
        mixed(stack, id, layer, findings);
    }
}

/// The rule for a layer's unit, and the words before the unit's size in the finding.
struct UnitRule {
    rule: Rule,
    words: &'static str,
}

/// Returns the unit that must be a multiple of the physical sector; `None` if the layer states
/// none.
fn checked_unit(kind: &Kind) -> Option<(UnitRule, u64)> {
    let (rule, words, size) = match kind {
        Kind::Array(array) => (Rule::ChunkSize, "has chunks of", array.chunk_bytes),
        Kind::PhysicalVolume(volume) => (Rule::ChunkSize, "has extents of", volume.extent_bytes),
        Kind::LogicalVolume(volume) => (Rule::ChunkSize, "has chunks of", volume.chunk_bytes),
        Kind::ThinPool(pool) => (Rule::ChunkSize, "has chunks of", pool.chunk_bytes),
        Kind::Luks(luks) => (
            Rule::LuksSector,
            "encrypts in sectors of",
            luks.sector_bytes,
        ),
        Kind::Ext(ext) => (Rule::FsBlock, "has blocks of", ext.block_bytes),
        Kind::Xfs(xfs) if xfs.block_bytes < 4096 => {
            (Rule::FsBlock, "has blocks of", xfs.block_bytes)
        }
        Kind::Xfs(xfs) => (
            Rule::XfsSector,
            "writes its log and headers in sectors of",
            xfs.sector_bytes,
        ),
        Kind::Btrfs(btrfs) => (Rule::FsBlock, "has sectors of", btrfs.sector_bytes),
        Kind::Zfs(zfs) => (
            Rule::ZfsAshift,
            "has an ashift that selects sectors of",
            1 << zfs.ashift?,
        ),
        Kind::Swap(swap) => (Rule::SwapPage, "has pages of", swap.page_bytes),
        _ => return None,
    };
    (size > 0).then_some((UnitRule { rule, words }, size))
}

/// Returns the number of bytes that a layer needs according to its own header. If the header states
/// no length, this is the start of the data.
fn stated_end(kind: &Kind) -> Option<u64> {
    match kind {
        Kind::Ext(ext) => Some(ext.blocks.saturating_mul(ext.block_bytes)),
        Kind::Xfs(xfs) => Some(xfs.blocks.saturating_mul(xfs.block_bytes)),
        Kind::Btrfs(btrfs) => Some(btrfs.device_bytes),
        Kind::Swap(swap) => Some(swap.pages.saturating_mul(swap.page_bytes)),
        Kind::MdMember(member) => Some(member.data_start.saturating_add(member.used_bytes)),
        Kind::PhysicalVolume(volume) => Some(volume.data_start),
        Kind::Luks(luks) => Some(luks.data_start.saturating_add(luks.data_bytes.unwrap_or(0))),
        _ => None,
    }
}

fn luks_end(name: &str, below_bytes: u64, luks: &Luks, say: &mut impl FnMut(Rule, String)) {
    let left = luks_remainder(luks, below_bytes);
    if left != 0 {
        let what = format!(
            "{} encrypts in sectors of {} and has {left} extra bytes after the last one: it cannot be opened",
            name,
            bytes(luks.sector_bytes)
        );
        say(Rule::LuksEnd, what);
    }
}

fn ext_stride(stack: &Stack, id: LayerId, name: &str, ext: &Ext, findings: &mut Findings) {
    let Some((array, chunk, stripe)) = array_below(stack, id) else {
        return;
    };
    let array = &stack.layer(array).name;
    let mut say = |severity, what| {
        findings.push(Finding::new(Rule::ExtStride, id, what).with_severity(severity))
    };
    let (stride, width) = (
        ext.stride_blocks.saturating_mul(ext.block_bytes),
        ext.stripe_blocks.saturating_mul(ext.block_bytes),
    );
    if stride == 0 && width == 0 {
        let what = format!(
            "{name} has no stripe parameters for {array}, whose chunk is {}",
            bytes(chunk)
        );
        return say(Severity::Info, what);
    }
    if stride != chunk {
        let what = format!(
            "{name} has a stride of {}, but a chunk of {array} is {}",
            bytes(stride),
            bytes(chunk)
        );
        say(Severity::Warning, what);
    }
    if width != stripe {
        let what = format!(
            "{name} has a stripe width of {}, but a full stripe of {array} is {}",
            bytes(width),
            bytes(stripe)
        );
        say(Severity::Warning, what);
    }
}

fn xfs_units(stack: &Stack, id: LayerId, name: &str, xfs: &Xfs, findings: &mut Findings) {
    let mut say =
        |rule, severity, what| findings.push(Finding::new(rule, id, what).with_severity(severity));
    let (unit, width) = (xfs.unit_bytes, xfs.width_bytes);
    if unit > 0 && !width.is_multiple_of(unit) {
        let what = format!(
            "{name} has a stripe width of {}, not a multiple of its unit of {}",
            bytes(width),
            bytes(unit)
        );
        say(Rule::XfsUnit, Severity::Warning, what);
    }
    if let Some((array, chunk, stripe)) = array_below(stack, id) {
        let array = &stack.layer(array).name;
        if unit == 0 {
            let what = format!(
                "{name} has no stripe parameters for {array}, whose chunk is {}",
                bytes(chunk)
            );
            say(Rule::XfsUnit, Severity::Info, what);
        } else if unit != chunk || width != stripe {
            let what = format!(
                "{name} has a stripe unit of {} and a width of {}; {array} has {} and {}",
                bytes(unit),
                bytes(width),
                bytes(chunk),
                bytes(stripe)
            );
            say(Rule::XfsUnit, Severity::Warning, what);
        }
    }
    let log = xfs.log_unit_bytes;
    let Some((disk, physical)) = physical_below(stack, id) else {
        return;
    };
    if log > LOG_UNIT_BYTES_MAX {
        let what = format!(
            "{name} writes its log in units of {}; the maximum is {}",
            bytes(log),
            bytes(LOG_UNIT_BYTES_MAX)
        );
        say(Rule::XfsLogUnit, Severity::Warning, what);
    } else if log > 0 && !log.is_multiple_of(physical) {
        let what = format!(
            "{name} writes its log in units of {}, but a physical sector of {} is {}",
            bytes(log),
            stack.layer(disk).name,
            bytes(physical)
        );
        say(Rule::XfsLogUnit, Severity::Warning, what);
    }
}

/// Reports an array, a volume or a thin pool on drives with different sector sizes.
fn mixed(stack: &Stack, id: LayerId, layer: &Layer, findings: &mut Findings) {
    if !matches!(
        layer.kind,
        Kind::Array(_) | Kind::LogicalVolume(_) | Kind::ThinPool(_)
    ) || layer.on.len() < 2
    {
        return;
    }
    let drives: Vec<_> = disks(stack, id)
        .into_iter()
        .filter_map(|id| match &stack.layer(id).kind {
            Kind::Disk(disk) => Some((
                &stack.layer(id).name,
                disk.logical_bytes,
                disk.physical_bytes,
            )),
            _ => None,
        })
        .collect();
    let Some((first, rest)) = drives.split_first() else {
        return;
    };
    if let Some(other) = rest
        .iter()
        .find(|other| (other.1, other.2) != (first.1, first.2))
    {
        let what = format!(
            "{} lies on {} with sectors of {} (physical {}) and on {} with sectors of {} (physical {})",
            layer.name,
            first.0,
            bytes(first.1),
            bytes(first.2),
            other.0,
            bytes(other.1),
            bytes(other.2)
        );
        let severity = if other.1 == first.1 {
            Severity::Warning
        } else {
            Severity::Fault
        };
        findings.push(Finding::new(Rule::MixedSectors, id, what).with_severity(severity));
    }
}
