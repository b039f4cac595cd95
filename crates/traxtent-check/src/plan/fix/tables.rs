//! Fixes of partition tables and remnants, and the effect of a wrong table on other fixes.

use super::devices::{device, is_named};
use super::{FindingContext, note_only};
use crate::finding::{Fix, Rule};
use crate::layers::{BootSector, Scheme, Table, Unknown};
use crate::stack::{ByteRange, Kind, Layer, LayerId};

impl FindingContext<'_> {
    /// Returns the advice to solve another problem first, if commands for this finding would rely
    /// on a wrong partition table, or destroy a hybrid ISO image.
    pub(super) fn first_problem(&self) -> Option<Fix> {
        if is_about_table(self.finding.rule) {
            return None;
        }
        let (id, table) = self.table_below()?;
        let name = &self.stack.layer(id).name;
        let drive = self.stack.layer(id).on.first()?.layer;
        let mut beside = self.stack.above(drive).map(|(_, layer)| &layer.kind);
        if beside.any(|kind| matches!(kind, Kind::Unknown(Unknown::Named(_)))) {
            return Some(note_only(
                "the partitions are parts of a hybrid ISO image, so nothing in it can be moved: create the image anew with aligned partitions",
            ));
        }
        let is_wrong = !table.damage.is_empty() || table.boot_sector == BootSector::ProtectsNothing;
        is_wrong.then(|| {
            note_only(&format!(
                "repair the {name} first, then check again: with a wrong table, commands would move or overwrite the wrong sectors"
            ))
        })
    }

    /// Returns the partition table that the layer of the finding lies in.
    pub(super) fn table_below(&self) -> Option<(LayerId, &Table)> {
        let mut id = self.id;
        loop {
            let layer = self.stack.layer(id);
            if let Kind::Table(table) = &layer.kind {
                return Some((id, table));
            }
            id = layer.on.first()?.layer;
        }
    }

    pub(super) fn table(&self) -> Option<Fix> {
        let Kind::Table(table) = &self.layer.kind else {
            return None;
        };
        let drive = self.drive_below(self.id);
        let device = device(drive);
        if table.scheme == Scheme::Mbr {
            return Some(Fix {
                note: "keep a dump, correct it, and write it back".to_owned(),
                commands: vec![format!("sfdisk --dump {device} >table.txt")],
            });
        }
        let mut partitions = self.stack.above(self.id);
        if partitions.any(|(_, partition)| self.ends_beyond(partition, drive)) {
            return Some(note_only(
                "the drive or the image was longer when the table was written: restore its length first, and write nothing until then",
            ));
        }
        if table.no_intact_copy {
            return Some(note_only(&format!(
                "no copy of the table is intact, so nothing on the drive says which partitions are right, and tools that rewrite the table would make its errors permanent: restore a saved table (`sgdisk --load-backup=FILE {device}`), or search for the partitions (`testdisk {device}`) and compare them with `sgdisk --print {device}`"
            )));
        }
        if table.copies_differ {
            return Some(note_only(&format!(
                "decide first which copy is right, and write nothing until then: `sgdisk --print {device}` shows the primary copy; `gdisk {device}` shows the backup after `r`, `c`, `y` and `p`, and `q` leaves without writing. If the primary copy is right, `sgdisk --move-second-header {device}` rewrites the backup from it; if the backup is right, `w` instead of `q` rewrites the primary copy from it"
            )));
        }
        if table.boot_sector == BootSector::Missing {
            return Some(Fix {
                note: "the first command writes an MBR that protects the GPT (boot code in the first sector is lost); the second rewrites both copies of the GPT from the intact one".to_owned(),
                commands: vec![
                    format!("printf 'label: dos\\nstart=1,type=ee\\n' | sfdisk --wipe never {device}"),
                    format!("sgdisk --move-second-header {device}"),
                ],
            });
        }
        Some(Fix {
            note: format!(
                "rewrites both copies, and the MBR that protects them, from the intact copy; check first that `sgdisk --print {device}` lists the partitions that should be there"
            ),
            commands: vec![format!("sgdisk --move-second-header {device}")],
        })
    }

    /// Returns the advice for partitions that share sectors, or reach beyond the drive.
    pub(super) fn overlap(&self) -> Option<Fix> {
        let device = device(self.drive_below(self.id));
        Some(note_only(&format!(
            "write to neither partition until it is known which entry is wrong: keep a dump of the table (`sfdisk --dump {device}`), and correct that entry; if the drive or the image was longer before, restore its length instead"
        )))
    }

    /// Returns whether a partition reaches into the place of a GPT's second copy.
    fn ends_beyond(&self, partition: &Layer, drive: &Layer) -> bool {
        let last = drive.bytes.saturating_sub(33 * self.sector_bytes());
        let end = |place: &ByteRange| place.start.saturating_add(place.bytes);
        partition.on.first().is_some_and(|place| end(place) > last)
    }

    /// Returns the advice for an MBR that protects nothing. The right command depends on whether
    /// the partitions are wanted, so the note explains both cases.
    pub(super) fn protective_mbr(&self) -> Option<Fix> {
        let drive = self.drive_below(self.id);
        let device = device(drive);
        Some(note_only(&format!(
            "if the partitions are wanted, write nothing to the drive: restore a saved table (`sgdisk --load-backup=FILE {device}`), or search for the partitions (`testdisk {device}`) and enter them anew with gdisk; if nothing on the drive is wanted, `wipefs --all{} --backup {device}` removes the remnant",
            force(drive)
        )))
    }

    pub(super) fn remnant(&self) -> Option<Fix> {
        let Kind::Unknown(Unknown::Remnant(remnant)) = &self.layer.kind else {
            return None;
        };
        let drive = self.drive_below(self.layer.on.first()?.layer);
        let device = device(drive);
        let types = &remnant.blkid_type;
        let force = if types.contains("gpt") {
            force(drive)
        } else {
            ""
        };
        Some(note_only(&format!(
            "`wipefs {device}` lists all signatures; if the content above is what the drive is used for, `wipefs --all{force} --backup --types {types} {device}` removes this one, and keeps a copy of it in the home directory"
        )))
    }
}

/// Returns whether the findings of a rule are about a partition table itself.
pub(super) fn is_about_table(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::TableDamaged | Rule::TableRemnant | Rule::TableSectorSize
    )
}

/// Returns the option that wipefs needs to remove a partition table from a file; empty if it gets a
/// device. Without the option, wipefs takes a table in a file for a nested one, and removes
/// nothing.
fn force(drive: &Layer) -> &'static str {
    if is_named(drive) { " --force" } else { "" }
}
