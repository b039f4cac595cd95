//! Partition tables: their consistency and sector size, and the ends of partitions.

use super::{Findings, bytes};
use crate::finding::{Finding, Misalignment, Rule};
use crate::layers::{BootSector, Disk, Luks, PartitionRole, Scheme};
use crate::stack::{Kind, Layer, LayerId, Stack};

pub(super) fn check(stack: &Stack, findings: &mut Findings) {
    for (id, layer) in stack.iter() {
        let Kind::Table(table) = &layer.kind else {
            continue;
        };
        let on = layer.on[0].layer;
        for damage in &table.damage {
            let what = format!(
                "the {} of {} is damaged: {damage}",
                layer.name,
                stack.layer(on).name
            );
            findings.push(Finding::new(Rule::TableDamaged, id, what));
        }
        if table.boot_sector == BootSector::ProtectsNothing {
            let what = format!(
                "the MBR of {} protects a GPT, but neither copy of the GPT is there: it is a remnant of a \
                 partition table, and the kernel reads no partitions",
                stack.layer(on).name
            );
            findings.push(Finding::new(Rule::TableRemnant, id, what));
        }
        let mut partitions: Vec<(LayerId, &Layer)> = stack.above(id).collect();
        partitions.sort_by_key(|(_, partition)| partition.on[0].start);
        overlaps(&partitions, layer, findings);
        if let Kind::Disk(disk) = &stack.layer(on).kind {
            sector_size(
                table.scheme,
                table.sector_bytes,
                disk,
                id,
                stack.layer(on),
                findings,
            );
            for (partition_id, partition) in partitions {
                check_end(stack, partition_id, partition, on, disk, findings);
            }
        }
    }
}

fn sector_size(
    scheme: Scheme,
    sector: u64,
    disk: &Disk,
    id: LayerId,
    on: &Layer,
    findings: &mut Findings,
) {
    // An MBR does not state the sector size for which it was written.
    if scheme == Scheme::Gpt && sector != disk.logical_bytes {
        let what = format!(
            "the GPT of {} was written for sectors of {}; the drive has {}, so the table is not found",
            on.name,
            bytes(sector),
            bytes(disk.logical_bytes)
        );
        findings.push(Finding::new(Rule::TableSectorSize, id, what));
    }
}

/// Reports partitions that share bytes or reach beyond the drive. Logical partitions may lie in the
/// extended one.
fn overlaps(partitions: &[(LayerId, &Layer)], table: &Layer, findings: &mut Findings) {
    let role = |layer: &Layer| match &layer.kind {
        Kind::Partition(partition) => partition.role,
        _ => PartitionRole::Primary,
    };
    let end = |layer: &Layer| layer.on[0].start.saturating_add(layer.on[0].bytes);
    for &(id, partition) in partitions {
        if end(partition) > table.bytes {
            let what = format!(
                "{} ends at byte {}, beyond the end of the drive at {}",
                partition.name,
                end(partition),
                table.bytes
            );
            findings.push(Finding::new(Rule::PartitionOverlap, id, what));
        }
    }
    // The first pass checks all but logical partitions, the second all but the extended one.
    for is_in_pass in [
        |role| role != PartitionRole::Logical,
        |role| role != PartitionRole::Extended,
    ] {
        let mut furthest: Option<&(LayerId, &Layer)> = None;
        for entry in partitions
            .iter()
            .filter(|(_, layer)| is_in_pass(role(layer)))
        {
            if let Some(before) = furthest
                && entry.1.on[0].start < end(before.1)
            {
                let what = format!(
                    "{} begins at byte {}, before {} ends at {}",
                    entry.1.name,
                    entry.1.on[0].start,
                    before.1.name,
                    end(before.1)
                );
                let is_new = |finding: &Finding| finding.what != what;
                if findings.iter().all(is_new) {
                    findings.push(Finding::new(Rule::PartitionOverlap, entry.0, what));
                }
            }
            if furthest.is_none_or(|before| end(before.1) < end(entry.1)) {
                furthest = Some(entry);
            }
        }
    }
}

/// Reports a partition that does not end with a physical sector. Most contents round their length
/// down; LUKS with larger sectors cannot.
fn check_end(
    stack: &Stack,
    id: LayerId,
    partition: &Layer,
    on: LayerId,
    disk: &Disk,
    findings: &mut Findings,
) {
    let Kind::Partition(entry) = &partition.kind else {
        return;
    };
    if entry.role == PartitionRole::Extended {
        return;
    }
    let place = partition.on[0];
    let at = place.start.saturating_add(place.bytes);
    let by = (at % disk.physical_bytes + disk.physical_bytes
        - disk.first_aligned_byte % disk.physical_bytes)
        % disk.physical_bytes;
    if by == 0 {
        return;
    }
    let sector = entry.first_sector.saturating_add(entry.sectors);
    let what = format!(
        "{} ends at byte {at} of {} (before sector {sector}), {} into a physical sector",
        partition.name,
        stack.layer(on).name,
        bytes(by)
    );
    let off = Misalignment {
        grid: on,
        at,
        every: disk.physical_bytes,
        by,
    };
    findings.push(Finding::new(Rule::PartitionEnd, id, what).with_misalignment(off));
}

/// Returns the number of bytes after the last whole sector of a LUKS device.
pub(crate) fn luks_remainder(luks: &Luks, below_bytes: u64) -> u64 {
    let data = luks
        .data_bytes
        .unwrap_or_else(|| below_bytes.saturating_sub(luks.data_start));
    data % luks.sector_bytes
}
