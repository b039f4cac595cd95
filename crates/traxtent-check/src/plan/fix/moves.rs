//! Moves of misaligned partitions: forward or backward into free space if there is enough, else
//! forward into their own space.
//!
//! If several misaligned partitions follow one another without space between them, the last one
//! moves first if there is space after it; else the first one, if there is space before it. The
//! last one moves far enough to make room for the others. Without any space, only the last one has
//! to become shorter.

use super::devices::device;
use super::space::{SPACE_SECTORS_MIN, gap};
use super::{FindingContext, contents, note_only};
use crate::finding::{Fix, Severity};
use crate::layers::PartitionRole;
use crate::rules::{CommonLines, common_lines};
use crate::stack::{Kind, Layer};

/// The multiple to which a partition that must become shorter is rounded down, in sectors.
const SHORTENED_SECTORS: u64 = 8;

impl FindingContext<'_> {
    /// Returns the positions at which a partition would begin on all grids of its drive; `None` if
    /// none is found.
    fn common_lines(&self, partition: &Layer) -> Option<CommonLines> {
        let stack = self.stack;
        let id = self.id_of(partition)?;
        let mut drive = id;
        while matches!(stack.layer(drive).kind, Kind::Partition(_) | Kind::Table(_)) {
            drive = stack.layer(drive).on.first()?.layer;
        }
        common_lines(stack, id, drive)
    }

    /// Returns the fix for a misaligned partition.
    pub(super) fn move_partition(&self) -> Option<Fix> {
        let mut fix = self.move_or_advice()?;
        let (_, layer, _) = self.partition()?;
        if !fix.commands.is_empty() {
            let instead = "recreate the partition instead of moving it";
            fix.note += &self.unless_recreated(self.id_of(layer)?, instead);
            let content = self.content_of(layer);
            fix.note += content.map_or("", |(_, content)| contents::if_moved(&content.kind));
        }
        Some(fix)
    }

    fn move_or_advice(&self) -> Option<Fix> {
        let (partition, layer, drive) = self.partition()?;
        let sector = self.sector_bytes();
        let start = layer.on.first()?.start;
        // The partition moves to a byte that is aligned with all grids of the drive. A move to a
        // line of one grid could leave it off another.
        let off = self.finding.off?;
        let lines = self
            .common_lines(layer)
            .filter(|lines| lines.forward > 0 && lines.forward < layer.bytes)
            .unwrap_or(CommonLines {
                forward: off.every - off.by,
                period: off.every,
            });
        let wanted = self.forward_with_room(layer, lines);
        let free = self.space_after(layer, drive).unwrap_or_default();
        let fits = |forward: u64| free.holds(forward.div_ceil(sector));
        let is_free = fits(lines.forward);
        let forward = if is_free && !fits(wanted) {
            lines.forward
        } else {
            wanted
        };
        let moved = (start + forward) / sector;
        let size = self.sector_size();
        let name = &layer.name;
        if partition.role != PartitionRole::Primary {
            return Some(note_only(&format!(
                "sfdisk does not move logical partitions, and deleting one renumbers those after it: copy away the data of {name} and of all logical partitions after it, then recreate them in order, {name} from sector {moved}{size}, each after a free sector for its own table"
            )));
        }
        let content = self
            .id_of(layer)
            .and_then(|id| self.recreated_in(id, Severity::Fault));
        if let Some(content) = content {
            return Some(note_only(&format!(
                "recreate it instead of moving it, because {}: copy the data away, recreate the partition from sector {moved}{size}, {}, copy the data back, check again",
                content.reason(),
                content.anew()
            )));
        }
        let device = device(drive);
        let number = partition.number;
        // If sfdisk is given a new start and a new length at once, it changes the table but does
        // not move the data. The same happens if the first command fails.
        let shorten_and_move = |sectors: u64, moved: u64| {
            vec![format!(
                "echo ',{sectors}' | sfdisk -N {number} {device} && echo '{moved},{sectors}' | sfdisk --move-data -N {number} {device}"
            )]
        };
        let into_space = |moved: u64, place: &str| {
            let first = format!("back up {name} and stop using it first");
            match self.aligned_length(layer) {
                Some(sectors) => Fix {
                    note: format!(
                        "{first}; its content ends before its sector {sectors}, so the commands shorten it to that length, which aligns its end, then move it with its data into the space {place} it"
                    ),
                    commands: shorten_and_move(sectors, moved),
                },
                None => Fix {
                    note: format!(
                        "{first}; the command moves it with its data into the space {place} it"
                    ),
                    commands: vec![format!(
                        "echo '{moved},{}' | sfdisk --move-data -N {number} {device}",
                        layer.bytes / sector
                    )],
                },
            }
        };
        if is_free {
            return Some(into_space(moved, "after"));
        }
        let waits_for = |other: &Layer, place: &str| {
            note_only(&format!(
                "{} {place} it is misaligned too, and makes room when it is moved: follow its advice first, then check again",
                other.name
            ))
        };
        let next = self.misaligned(self.next(layer));
        if let Some(next) = next.filter(|next| self.can_move_forward(next, drive)) {
            return Some(waits_for(next, "after"));
        }
        if let Some(backward) = self.backward(layer) {
            return Some(match self.misaligned(self.previous(layer)) {
                Some(previous) => waits_for(previous, "before"),
                None => into_space((start - backward) / sector, "before"),
            });
        }
        if let Some(next) = next {
            return Some(waits_for(next, "after"));
        }
        let needed = forward.div_ceil(sector).max(free.sectors_min);
        let room = (layer.bytes / sector).saturating_add(free.sectors);
        let left = room.saturating_sub(needed);
        let sectors = left / SHORTENED_SECTORS * SHORTENED_SECTORS;
        if let Some(fix) = self.too_long(layer, sectors, moved) {
            return Some(fix);
        }
        Some(Fix {
            note: format!(
                "back up {name} and stop using it first; its content ends before its sector {sectors}, so the commands shorten it to that length, then move it with its data"
            ),
            commands: shorten_and_move(sectors, moved),
        })
    }

    /// Returns the number of sectors to which a partition must be shortened so that its end is
    /// aligned if its start is; `None` if its length is a whole number of physical sectors, or if
    /// its content is not known to end before.
    fn aligned_length(&self, partition: &Layer) -> Option<u64> {
        let physical = self.physical_bytes().max(self.sector_bytes());
        let bytes = partition.bytes / physical * physical;
        let (_, content) = self.content_of(partition)?;
        let fits = contents::end(&content.kind)? <= bytes;
        (fits && bytes < partition.bytes).then_some(bytes / self.sector_bytes())
    }

    /// Returns the distance in bytes by which a misaligned partition is to move forward; 0 if it is
    /// aligned, and `None` if no aligned position is found.
    pub(super) fn forward(&self, partition: &Layer) -> Option<u64> {
        let lines = self.common_lines(partition)?;
        Some(match lines.forward {
            0 => 0,
            _ => self.forward_with_room(partition, lines),
        })
    }

    /// Returns the distance in bytes by which a partition moves forward, to one of the `lines` that
    /// leaves room for the move of the partition before it, if that is misaligned.
    fn forward_with_room(&self, partition: &Layer, lines: CommonLines) -> u64 {
        let Some(previous) = self.misaligned(self.previous(partition)) else {
            return lines.forward;
        };
        let room = self.common_lines(previous).map_or(0, |lines| {
            let forward = self.forward_with_room(previous, lines);
            forward.max(SPACE_SECTORS_MIN * self.sector_bytes())
        });
        let more = room.saturating_sub(gap(previous, partition) + lines.forward);
        lines.forward + more.next_multiple_of(lines.period)
    }

    /// Returns whether a misaligned partition can move forward at its length, once the misaligned
    /// ones after it have moved.
    fn can_move_forward(&self, partition: &Layer, drive: &Layer) -> bool {
        let fits = self.common_lines(partition).is_some_and(|lines| {
            let sectors = lines.forward.div_ceil(self.sector_bytes());
            let free = self.space_after(partition, drive).unwrap_or_default();
            free.holds(sectors)
        });
        let next = || self.misaligned(self.next(partition));
        fits || next().is_some_and(|next| self.can_move_forward(next, drive))
    }

    /// Returns the distance in bytes by which a misaligned partition can move backward at its
    /// length, once the misaligned ones before it have moved; `None` if there is not enough space.
    fn backward(&self, partition: &Layer) -> Option<u64> {
        let lines = self.common_lines(partition)?;
        let backward = lines.period - lines.forward;
        let mut free = self.space_before(partition);
        if let Some(previous) = self.misaligned(self.previous(partition)) {
            free.sectors += self.backward(previous)? / self.sector_bytes();
        }
        free.holds(backward.div_ceil(self.sector_bytes()))
            .then_some(backward)
    }

    /// Returns the partition if sfdisk can move it, and it begins off a grid.
    fn misaligned<'a>(&self, partition: Option<&'a Layer>) -> Option<&'a Layer> {
        partition.filter(|layer| {
            let role = match &layer.kind {
                Kind::Partition(partition) => partition.role,
                _ => return false,
            };
            let lines = self.common_lines(layer);
            role == PartitionRole::Primary && lines.is_some_and(|lines| lines.forward > 0)
        })
    }

    /// Returns the advice for a partition whose content is not known to end before its sector
    /// `sectors`. After the move, the partition would begin at sector `moved` of the drive.
    fn too_long(&self, partition: &Layer, sectors: u64, moved: u64) -> Option<Fix> {
        let sector = self.sector_bytes();
        let bytes = sectors * sector;
        let content = self.content_of(partition);
        let (id, layer) = content?;
        if contents::end(&layer.kind).is_some_and(|end| end <= bytes) {
            return None;
        }
        let Kind::Ext(ext) = &layer.kind else {
            let (entry, _, drive) = self.partition()?;
            let table = format!(
                "echo '{moved},{sectors}' | sfdisk -N {} {}",
                entry.number,
                device(drive)
            );
            return contents::too_long(&layer.kind).map(|what| {
                let what = what.replace("SECTOR", &format!("{moved}{}", self.sector_size()));
                note_only(&what.replace("TABLE", &table))
            });
        };
        let at = self.at(id);
        let device = at.device_below()?;
        let kib = (bytes / ext.block_bytes * ext.block_bytes) >> 10;
        let mut fix = Fix {
            note: format!(
                "back up {} first, and unmount it; the commands shrink its {} so that it can be moved; then check again",
                partition.name, ext.version
            ),
            commands: vec![
                // Status 1 means that all errors are corrected.
                format!("{{ e2fsck -f {device} || [ $? -eq 1 ]; }}"),
                format!("resize2fs {device} {kib}K"),
            ],
        };
        at.attach_images(&mut fix);
        Some(fix)
    }
}
