//! What a log costs its device.

/// Sectors that went to the device and came from it, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Blocks that the user wrote, replaced ones included.
    pub user_blocks: u64,
    /// Sectors of chunks with new data, summaries included.
    pub new_written: u64,
    /// Sectors read to clean.
    pub cleaning_read: u64,
    /// Sectors of chunks with what lived in cleaned segments, summaries included.
    pub cleaning_written: u64,
    /// Blocks among them.
    pub copied_blocks: u64,
    /// Sectors of chunks with map pages.
    pub map_written: u64,
    /// Sectors written to the checkpoint regions.
    pub checkpoints_written: u64,
}

impl Traffic {
    /// The write cost of paper T, section 5.5: what is written for new data, read to clean and written
    /// to clean, over the new data. Map pages count as written for new data; checkpoint regions,
    /// which are no segments, do not.
    pub fn write_cost(&self, block_sectors: u32) -> f64 {
        let moved =
            self.new_written + self.map_written + self.cleaning_read + self.cleaning_written;
        moved as f64 / (self.user_blocks * u64::from(block_sectors)) as f64
    }

    /// What was added since an earlier state.
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
