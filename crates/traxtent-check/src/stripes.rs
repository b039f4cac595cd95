//! The bytes of a striped array, assembled from those of its members.
//!
//! Source: drivers/md/raid0.c, raid5.c (`raid5_compute_sector`) and raid10.c of the Linux kernel;
//! the layouts are identified by their numbers there. The data of a missing member is absent, even
//! if parity could restore it.

use std::rc::Rc;

use crate::layers::RaidLevel;
use crate::source::{JoinedSource, Source, SourceError};

/// The layout of a RAID 0 in which the number of a chunk in the array selects its member.
const RAID0_ORIGINAL: u32 = 1;
/// The layout of a RAID 0 in which the number of a chunk in its zone selects its member.
const RAID0_ALTERNATE: u32 = 2;

/// A member of a RAID 0.
#[derive(Clone)]
pub(crate) struct Raid0Member {
    /// Its bytes, if they are available.
    pub(crate) source: Option<Rc<dyn Source>>,
    /// The offset of its data.
    pub(crate) start: u64,
    /// The length of its data in bytes.
    pub(crate) bytes: u64,
}

/// Returns the bytes of a RAID 0 over members that may differ in length.
///
/// The first zone has stripes over all members, up to the end of the shortest. Each further zone
/// has stripes over the members that are longer. The bytes of such a zone are absent if `layout`
/// does not state the order of the chunks in it.
pub(crate) fn raid_0(members: &[Raid0Member], chunk_bytes: u64, layout: u32) -> JoinedSource {
    let chunks = |member: &Raid0Member| member.bytes / chunk_bytes;
    let mut zones = JoinedSource::new();
    // The row of the members and the chunk of the array at which the zone begins.
    let (mut row, mut first) = (0, 0_u64);
    loop {
        let mut longer: Vec<&Raid0Member> = members
            .iter()
            .filter(|member| chunks(member) > row)
            .collect();
        let Some(end) = longer.iter().map(|member| chunks(member)).min() else {
            return zones;
        };
        let count = longer.len() as u64;
        let zone_chunks = (end - row).saturating_mul(count);
        let is_known =
            first == 0 || count == 1 || matches!(layout, RAID0_ORIGINAL | RAID0_ALTERNATE);
        if layout == RAID0_ORIGINAL {
            longer.rotate_left((first % count) as usize);
        }
        let place = |member: &&Raid0Member| {
            let source = Rc::clone(member.source.as_ref()?);
            Some((source, member.start.checked_add(row * chunk_bytes)?))
        };
        let bytes = zone_chunks.saturating_mul(chunk_bytes);
        let zone = Stripes {
            level: RaidLevel::Raid0,
            layout,
            chunk_bytes,
            bytes,
            members: longer.iter().map(place).collect(),
        };
        let source: Rc<dyn Source> = Rc::new(zone);
        zones = zones.with(is_known.then_some(source), 0, bytes);
        first = first.saturating_add(zone_chunks);
        row = end;
    }
}

/// A striped array.
pub(crate) struct Stripes {
    pub(crate) level: RaidLevel,
    pub(crate) layout: u32,
    pub(crate) chunk_bytes: u64,
    pub(crate) bytes: u64,
    /// The members by role: the bytes of each, and the offset of its data.
    pub(crate) members: Vec<Option<(Rc<dyn Source>, u64)>>,
}

impl Stripes {
    /// Returns the members that hold a chunk, each with its row; empty if the layout is not known.
    fn places(&self, chunk: u64) -> Vec<(u64, u64)> {
        let n = self.members.len() as u64;
        if n == 0 {
            return Vec::new();
        }
        // The row, the position in it, and the member with parity, which moves from row to row.
        let in_rows_of = |data: u64| (chunk / data.max(1), chunk % data.max(1));
        let moving = |row: u64| match self.layout {
            0 | 2 => n - 1 - row % n,
            _ => row % n,
        };
        match self.level {
            RaidLevel::Raid0 => vec![(chunk % n, chunk / n)],
            RaidLevel::Raid4 => {
                let (row, at) = in_rows_of(n - 1);
                vec![(at, row)]
            }
            RaidLevel::Raid5 => {
                let (row, at) = in_rows_of(n - 1);
                let parity = moving(row);
                match self.layout {
                    0 | 1 => vec![(at + u64::from(at >= parity), row)],
                    2 | 3 => vec![((parity + 1 + at) % n, row)],
                    4 => vec![(at + 1, row)],
                    5 => vec![(at, row)],
                    _ => Vec::new(),
                }
            }
            RaidLevel::Raid6 => {
                let (row, at) = in_rows_of(n.saturating_sub(2));
                let parity = moving(row);
                match self.layout {
                    0 | 1 if parity == n - 1 => vec![(at + 1, row)],
                    0 | 1 => vec![(if at >= parity { at + 2 } else { at }, row)],
                    2 | 3 => vec![((parity + 2 + at) % n, row)],
                    4 => vec![(at + 2, row)],
                    5 => vec![(at, row)],
                    _ => Vec::new(),
                }
            }
            RaidLevel::Raid10 => {
                let near = u64::from(self.layout & 0xff).max(1);
                let far = u64::from(self.layout >> 8 & 0xff).max(1);
                // Only near copies are read. Far copies lie in another part of the members or, in
                // the offset layout, in the next rows, which moves the first copies of different
                // rows apart.
                let apart = if self.layout & 0x1_0000 != 0 { far } else { 1 };
                let copy = |copy: u64| {
                    let slot = chunk.checked_mul(near)?.checked_add(copy)?;
                    Some((slot % n, (slot / n).checked_mul(apart)?))
                };
                (0..near.min(n)).filter_map(copy).collect()
            }
            _ => Vec::new(),
        }
    }

    fn read_chunk(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let inside = offset % self.chunk_bytes;
        let absent = SourceError::Absent { offset };
        for (member, row) in self.places(offset / self.chunk_bytes) {
            let Some(Some((source, start))) = self.members.get(member as usize) else {
                continue;
            };
            let at = row
                .checked_mul(self.chunk_bytes)
                .and_then(|at| at.checked_add(inside)?.checked_add(*start));
            return source.read_at(at.ok_or(absent)?, buffer);
        }
        Err(absent)
    }
}

impl Source for Stripes {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let wanted = buffer.len() as u64;
        if offset
            .checked_add(wanted)
            .is_none_or(|end| end > self.bytes)
        {
            return Err(SourceError::Beyond {
                offset,
                wanted,
                bytes: self.bytes,
            });
        }
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let left = self.chunk_bytes - at % self.chunk_bytes;
            let count = left.min((buffer.len() - done) as u64) as usize;
            self.read_chunk(at, &mut buffer[done..done + count])?;
            done += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the member and row of the first copy of chunks 0 to 7, with four members.
    fn members(level: RaidLevel, layout: u32) -> Vec<(u64, u64)> {
        let stripes = Stripes {
            level,
            layout,
            chunk_bytes: 4096,
            bytes: 1 << 20,
            members: (0..4).map(|_| None).collect(),
        };
        (0..8).map(|chunk| stripes.places(chunk)[0]).collect()
    }

    /// Do chunks of the default layouts of RAID 5, 6 and 10 lie where the tables in md(4) and in
    /// SNIA's DDF put them?
    #[test]
    fn default_layouts() {
        let left_symmetric = [
            (0, 0),
            (1, 0),
            (2, 0),
            (3, 1),
            (0, 1),
            (1, 1),
            (2, 2),
            (3, 2),
        ];
        assert_eq!(members(RaidLevel::Raid5, 2), left_symmetric);
        let six = [
            (1, 0),
            (2, 0),
            (0, 1),
            (1, 1),
            (3, 2),
            (0, 2),
            (2, 3),
            (3, 3),
        ];
        assert_eq!(members(RaidLevel::Raid6, 2), six);
        let near_two = [
            (0, 0),
            (2, 0),
            (0, 1),
            (2, 1),
            (0, 2),
            (2, 2),
            (0, 3),
            (2, 3),
        ];
        assert_eq!(members(RaidLevel::Raid10, 0x102), near_two);
    }
}
