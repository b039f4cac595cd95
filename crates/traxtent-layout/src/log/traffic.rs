//! The device traffic that a log causes.

/// The blocks that the user wrote, and the device traffic of the log, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of blocks that the user wrote. A block written twice counts twice.
    pub user_blocks: u64,
    /// The sectors of chunks with new data or trims, including summaries.
    pub new_written: u64,
    /// The sectors read for cleaning.
    pub cleaning_read: u64,
    /// The sectors of chunks with the live blocks of cleaned segments, including summaries.
    pub cleaning_written: u64,
    /// The number of live blocks copied by cleaning.
    pub copied_blocks: u64,
    /// The sectors of chunks with map pages.
    pub map_written: u64,
    /// The sectors written to the checkpoint regions.
    pub checkpoints_written: u64,
}

impl Traffic {
    /// Returns the write cost of paper T, section 5.5: the sectors written for new data, read for
    /// cleaning and written for cleaning, divided by the sectors of the blocks that the user wrote.
    /// Map pages count as written for new data. Checkpoint regions do not count, since they are not
    /// segments.
    pub fn write_cost(&self, block_sectors: u32) -> f64 {
        let moved =
            self.new_written + self.map_written + self.cleaning_read + self.cleaning_written;
        moved as f64 / (self.user_blocks * u64::from(block_sectors)) as f64
    }

    /// Returns the difference from an earlier state.
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        Traffic {
            user_blocks: self.user_blocks - earlier.user_blocks,
            new_written: self.new_written - earlier.new_written,
            cleaning_read: self.cleaning_read - earlier.cleaning_read,
            cleaning_written: self.cleaning_written - earlier.cleaning_written,
            copied_blocks: self.copied_blocks - earlier.copied_blocks,
            map_written: self.map_written - earlier.map_written,
            checkpoints_written: self.checkpoints_written - earlier.checkpoints_written,
        }
    }
}
