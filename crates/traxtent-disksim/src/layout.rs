//! Conversion of the layout of a `dm_disk` block to a [`GeometrySpec`].

mod g1;
mod g2;
mod g4;

use std::rc::Rc;

use super::params::{Block, ParamError, Sources};
use traxtent_model::geometry::GeometrySpec;

/// A layout, with notes on how it was read.
#[derive(Clone, Debug)]
pub struct ImportedLayout {
    /// The layout.
    pub spec: GeometrySpec,
    /// Contradictions within the file or between DiskSim's code and its manual, and peculiarities
    /// of DiskSim that the import reproduces.
    pub notes: Vec<String>,
}

/// The properties of the disk that the layout models need.
pub(super) struct DiskSize {
    pub(super) surfaces: u16,
    pub(super) cylinders: u32,
    pub(super) blocks: u64,
}

/// Reads the layout of a `dm_disk` block. `sources` supplies the map file of layout g2.
///
/// # Errors
/// Returns an error if the block is not a `dm_disk` block, if a parameter is missing, invalid or
/// out of bounds, if the layout model is not g1, g2 or g4, if a list of slips or defects is too
/// long to process, or if the map file is not available or invalid.
pub fn disk_geometry(disk: &Block, sources: &Sources<'_>) -> Result<ImportedLayout, ParamError> {
    if disk.kind != "dm_disk" {
        return Err(disk.error(format!("expected a dm_disk block, found {}", disk.kind)));
    }
    let layout: &Rc<Block> = disk.require_block("Layout Model")?;
    let size = DiskSize {
        surfaces: disk
            .require_bounded("Number of data surfaces", 1u8, 64)?
            .into(),
        cylinders: disk.require_bounded("Number of cylinders", 1u32, 1 << 24)?,
        blocks: disk.require_bounded("Block count", 0i64, 1 << 53)? as u64,
    };
    match layout.kind.as_str() {
        "dm_layout_g1" => g1::layout(layout, &size),
        "dm_layout_g2" => g2::layout(layout, &size, sources),
        "dm_layout_g4" => g4::layout(layout, &size),
        other => Err(layout.error(format!(
            "layout model {other} is not one of dm_layout_g1, _g2 and _g4"
        ))),
    }
}

/// Returns the numbers of a list, which must be whole and not negative. Returns an empty list if
/// the parameter is absent.
pub(super) fn numbers(block: &Block, key: &str) -> Result<Vec<u64>, ParamError> {
    let list = block.get_list(key)?.unwrap_or_default();
    list.iter()
        .map(|node| match node.int()? {
            value @ 0.. => Ok(value as u64),
            value => Err(node.error(format!("{key}: {value} is negative"))),
        })
        .collect()
}

/// Returns whether a block gives its skews in revolutions rather than sectors.
pub(super) fn in_revolutions(block: &Block, default: bool) -> Result<bool, ParamError> {
    match block.get_str("Skew units")? {
        None => Ok(default),
        Some("revolutions") => Ok(true),
        Some("sectors") => Ok(false),
        Some(other) => Err(block.require("Skew units")?.error(format!(
            "skew units must be revolutions or sectors, not {other}"
        ))),
    }
}
