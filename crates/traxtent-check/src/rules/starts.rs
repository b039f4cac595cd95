//! Starts: partitions and the data of layers, compared with every grid at or below them.
//!
//! A misaligned layer misaligns everything in it. This is reported once, for the lowest such layer.
//! If the content of a layer compensates for the misalignment, the finding is for information only.

use super::grid::{self, Grid, GridUnit};
use super::{Findings, bytes};
use crate::finding::{Finding, Misalignment, Rule, Severity};
use crate::layers::PartitionRole;
use crate::stack::{Kind, LayerId, Stack};

/// Returns the start of a layer's data in the layer's own addresses; `None` if it does not matter.
fn data_start(kind: &Kind) -> Option<u64> {
    match kind {
        // An extended partition holds tables of one sector, which cannot be aligned (paper A).
        Kind::Partition(partition) => (partition.role != PartitionRole::Extended).then_some(0),
        Kind::MdMember(member) => Some(member.data_start),
        Kind::PhysicalVolume(volume) => Some(volume.data_start),
        Kind::Luks(luks) => Some(luks.data_start),
        Kind::Zfs(zfs) => Some(zfs.data_start),
        Kind::Ext(_) | Kind::Xfs(_) | Kind::Btrfs(_) | Kind::Swap(_) => Some(0),
        _ => None,
    }
}

fn rule(kind: &Kind, unit: GridUnit) -> Rule {
    match (kind, unit) {
        (Kind::Partition(_), GridUnit::Physical) => Rule::PartitionStart,
        (Kind::Partition(_), GridUnit::Chunk) => Rule::PartitionChunk,
        (Kind::Partition(_), GridUnit::Stripe) => Rule::PartitionStripe,
        (Kind::Partition(_), GridUnit::Erase) => Rule::PartitionErase,
        (Kind::Ext(_) | Kind::Xfs(_) | Kind::Btrfs(_) | Kind::Swap(_), GridUnit::Physical) => {
            Rule::FsStart
        }
        (_, GridUnit::Physical) => Rule::DataStart,
        (_, GridUnit::Chunk) => Rule::DataChunk,
        (_, GridUnit::Stripe) => Rule::DataStripe,
        (_, GridUnit::Erase) => Rule::DataErase,
    }
}

/// Checks the start of every layer.
pub(super) fn check(stack: &Stack, findings: &mut Findings) {
    let mut reported: Vec<(LayerId, Grid)> = Vec::new();
    for (id, layer) in stack.iter() {
        let Some(start) = data_start(&layer.kind) else {
            continue;
        };
        let grids = grid::below(stack, id, start);
        for &(grid, at) in &grids {
            let by = grid.offset(at);
            let is_inherited = || {
                start.is_multiple_of(grid.period_bytes)
                    && reported
                        .iter()
                        .any(|&(below, of)| of == grid && lies_on(stack, id, below))
            };
            if by == 0 || is_reported_by_finer(&grids, grid, by) || is_inherited() {
                continue;
            }
            reported.push((id, grid));
            findings.push(finding(stack, id, grid, at));
        }
    }
}

/// Returns whether an address is also off a finer grid of the same layer. Only the finest is
/// reported.
fn is_reported_by_finer(grids: &[(Grid, u64)], grid: Grid, by: u64) -> bool {
    grids.iter().any(|(finer, at)| {
        finer.layer == grid.layer
            && finer.unit < grid.unit
            && finer.period_bytes < grid.period_bytes
            && grid.period_bytes.is_multiple_of(finer.period_bytes)
            && finer.offset(*at) != 0
            && by != 0
    })
}

fn lies_on(stack: &Stack, id: LayerId, below: LayerId) -> bool {
    let mut seen = vec![false; stack.layers.len()];
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        if id == below {
            return true;
        }
        // A layer comes after the layers that it lies on.
        if id > below && !std::mem::replace(&mut seen[id.0], true) {
            waiting.extend(stack.layer(id).on.iter().map(|place| place.layer));
        }
    }
    false
}

fn finding(stack: &Stack, id: LayerId, grid: Grid, at: u64) -> Finding {
    let layer = stack.layer(id);
    let rule = rule(&layer.kind, grid.unit);
    let by = grid.offset(at);
    let line = match grid.unit {
        GridUnit::Physical => "a physical sector",
        GridUnit::Chunk => "a chunk",
        GridUnit::Stripe => "a full stripe",
        GridUnit::Erase => "an erase block",
    };
    let begins = if matches!(layer.kind, Kind::Partition(_)) {
        "begins"
    } else {
        "has its data"
    };
    let mut what = format!(
        "{} {begins} at byte {at} of {}, {} into {line} of {}",
        stack.title(id),
        stack.layer(grid.layer).name,
        bytes(by),
        bytes(grid.period_bytes),
    );
    if let Kind::Partition(partition) = &layer.kind {
        what.push_str(&format!(" (sector {})", partition.first_sector));
    }
    let severity = match compensated_by(stack, id, grid) {
        Some(above) => {
            what.push_str(&format!("; the data of {above} is aligned nevertheless"));
            Severity::Info
        }
        None => rule.severity(),
    };
    let off = Misalignment {
        grid: grid.layer,
        at,
        every: grid.period_bytes,
        by,
    };
    Finding::new(rule, id, what)
        .with_severity(severity)
        .with_misalignment(off)
}

/// Returns the title of a layer directly on a misaligned one, if all layers there are aligned
/// again.
fn compensated_by(stack: &Stack, id: LayerId, grid: Grid) -> Option<String> {
    let mut name = None;
    for (above, layer) in stack.above(id) {
        let start = data_start(&layer.kind)?;
        let on_grid = grid::below(stack, above, start);
        if on_grid
            .iter()
            .any(|(found, at)| *found == grid && found.offset(*at) != 0)
        {
            return None;
        }
        name = Some(stack.title(above));
    }
    name
}
