//! The blocks of a file system that span two tracks, for `mke2fs -l` (paper T, section 4.2.2).

use std::io::Write;

use traxtent_layout::sectors_of_block;
use traxtent_map::MapFile;
use traxtent_units::Lbn;

use crate::failure::{Failure, Result};

/// The location of the file system, and the size of its blocks.
#[derive(clap::Args, Debug)]
pub(super) struct Partition {
    /// The size of a file-system block in bytes, for --format badblocks [default: 4096]
    #[arg(long, value_name = "BYTES", value_parser = block_size)]
    block_size: Option<u32>,
    /// The first LBN of the partition, for --format badblocks [default: that of the map]
    #[arg(long, value_name = "LBN")]
    partition_start: Option<u64>,
    /// The first LBN after the partition, for --format badblocks [default: that of the map]
    #[arg(long, value_name = "LBN")]
    partition_end: Option<u64>,
}

/// Parses the size of a block.
fn block_size(text: &str) -> Result<u32, String> {
    let expected = "expected a size below 4G, such as 4K";
    let bytes = crate::parse::bytes_if(text, |bytes| u32::try_from(bytes).is_ok(), expected)?;
    Ok(bytes as u32)
}

impl Partition {
    /// Refuses these options unless the output is the list of blocks.
    pub(super) fn check(&self, wanted: bool) -> Result<()> {
        let given = [
            ("--block-size", self.block_size.is_some()),
            ("--partition-start", self.partition_start.is_some()),
            ("--partition-end", self.partition_end.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) if !wanted => {
                Err(Failure::input(format!("{name} needs --format badblocks")))
            }
            _ => Ok(()),
        }
    }
}

/// Writes the numbers of the blocks, one per line.
pub(super) fn write(file: &MapFile, partition: &Partition, out: &mut impl Write) -> Result<()> {
    let bytes = partition.block_size.unwrap_or(4096);
    let block_sectors = sectors_of_block(bytes, file.identity.logical_bytes)
        .map_err(|error| Failure::at("--block-size", error))?;
    let start = partition.partition_start.map_or(file.tracks.first(), Lbn);
    let end = partition.partition_end.map_or(file.tracks.end(), Lbn);
    let partition = traxtent_layout::Partition::new(file.tracks.clone(), start..end, block_sectors)
        .map_err(Failure::input)?;
    for block in partition.excluded() {
        writeln!(out, "{block}")?;
    }
    Ok(())
}
