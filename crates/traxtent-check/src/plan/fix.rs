//! The commands that fix a finding, or the steps that must come before them.
//!
//! Few misalignments can be fixed in place, because moving a layer means moving its data. Otherwise
//! the data must be copied away, the layer recreated and the data copied back. The commands
//! recreate the layer. They are printed only if they work as printed. Of several findings on one
//! drive, only the first has commands, because they may move the layers that the others name. On a
//! damaged drive, none has.

mod blocks;
mod contents;
mod data;
mod devices;
mod moves;
mod report;
mod space;
mod tables;

use crate::finding::{AffectedParts, Finding, Fix, Rule, Severity};
use crate::layers::{BootSector, Ext, Partition, Table, Unknown};
use crate::rules::{array_below, luks_remainder};
use crate::stack::{Kind, Layer, LayerId, Stack};
use blocks::BLOCK_BYTES;
use devices::{DEVICE, DRIVE, device, path_word};

pub use report::{keep_first_commands, keep_first_of_array};

/// The note for a layer that must be recreated.
const COPY_AWAY: &str =
    "cannot be moved in place: copy the data away, recreate the layer, copy the data back";

/// The note for an array that is being reshaped.
const RESHAPE: &str = "let the reshape of the array end first (/proc/mdstat), then check again";

/// The note added for a partition that a hybrid MBR repeats.
const HYBRID: &str =
    "; the hybrid MBR keeps the old position: recreate it afterwards (`sgdisk --hybrid`)";

/// The end of the reason for [`Unknown::Elsewhere`] if a part of a volume is not among the images.
const NOT_AVAILABLE: &str = "not available";

/// Returns the fix of a finding, or `None` if there is nothing to fix. `findings` are all findings
/// that are to be fixed, with this one. `drive` is the name of the drive whose tracks are checked.
pub fn fix(
    finding: &Finding,
    stack: &Stack,
    findings: &[Finding],
    drive: Option<&str>,
) -> Option<Fix> {
    let layer = stack.layer(finding.layer);
    let at = FindingContext {
        stack,
        id: finding.layer,
        layer,
        finding,
        findings,
        drive,
    };
    let mut fix = at
        .first_problem()
        .or_else(|| at.no_larger_blocks())
        .or_else(|| at.compensated())
        .or_else(|| at.place_first())
        .or_else(|| at.fix())?;
    let is_hybrid = |table: &Table| table.boot_sector == BootSector::Hybrid;
    if at.table_below().is_some_and(|(_, table)| is_hybrid(table))
        && fix
            .commands
            .iter()
            .any(|command| command.contains("sfdisk"))
    {
        fix.note.push_str(HYBRID);
    }
    without_placeholders(&mut fix);
    at.attach_images(&mut fix);
    Some(fix)
}

/// Moves all commands into the note if one of them contains a placeholder.
fn without_placeholders(fix: &mut Fix) {
    let has_placeholder = |command: &String| {
        let mut words = command.split_whitespace();
        words.any(|word| [DEVICE, DRIVE].contains(&word))
    };
    if !fix.commands.iter().any(has_placeholder) {
        return;
    }
    let commands = std::mem::take(&mut fix.commands);
    let names = if commands.iter().any(|command| command.contains(DEVICE)) {
        "; DEVICE stands for the device of the assembled array or volume, such as /dev/mdN: "
    } else {
        "; replace the words in capitals in this command: "
    };
    fix.note.push_str(names);
    fix.note.push_str(&commands.join(", then "));
}

fn note_only(note: &str) -> Fix {
    Fix {
        note: note.to_owned(),
        commands: Vec::new(),
    }
}

/// A finding with its layer, its stack, all findings, and the name of the drive with the tracks.
struct FindingContext<'a> {
    stack: &'a Stack,
    id: LayerId,
    layer: &'a Layer,
    finding: &'a Finding,
    findings: &'a [Finding],
    drive: Option<&'a str>,
}

impl FindingContext<'_> {
    fn fix(&self) -> Option<Fix> {
        match self.finding.rule {
            Rule::PartitionStart
            | Rule::PartitionChunk
            | Rule::PartitionStripe
            | Rule::PartitionErase
            | Rule::FsStart => self.move_partition(),
            Rule::PartitionEnd => self.shorten_partition(),
            Rule::LuksEnd => self.luks_end(),
            Rule::DataStart | Rule::DataChunk | Rule::DataStripe | Rule::DataErase => {
                self.move_data()
            }
            Rule::ChunkSize => self.rechunk(),
            Rule::LuksSector => self.luks_sector(),
            Rule::FsBlock => self.larger_blocks(),
            Rule::ExtStride => self.ext_stride(),
            Rule::XfsUnit => self.xfs_unit(),
            Rule::XfsLogUnit | Rule::XfsSector => self.recreate_xfs(),
            Rule::TableDamaged => self.table(),
            Rule::TableRemnant => self.protective_mbr(),
            Rule::Remnant => self.remnant(),
            Rule::PartitionOverlap => self.overlap(),
            Rule::TableSectorSize => Some(note_only(
                "connect the drive as it was when the table was written, or copy the data away and write a new table",
            )),
            Rule::ZfsAshift => Some(self.larger_ashift()),
            Rule::SwapPage => Some(note_only(
                "the machine determines the page size; put swap on a drive with smaller physical sectors",
            )),
            Rule::HintOptimal | Rule::HintMinimum | Rule::HintDiscard => Some(note_only(
                "nothing on the drive is wrong: set the alignment explicitly (parted --align none, mkfs.xfs -d noalign, mdadm --data-offset)",
            )),
            Rule::HintPhysical if self.finding.severity == Severity::Info => Some(note_only(
                "if the drive below has such sectors, state them with --physical-sector 4K to see the findings and their fixes",
            )),
            Rule::HintPhysical => Some(note_only(&format!(
                "state the size with --physical-sector {}, and align to it",
                self.physical_bytes()
            ))),
            Rule::HintBridge => Some(note_only(
                "state the size with --physical-sector 4096, and align to it",
            )),
            Rule::AlignmentOffset => Some(note_only(
                "remove the jumper before the drive holds data, or begin partitions at the drive's physical sectors",
            )),
            Rule::MixedSectors => Some(note_only(
                "replace the members that have smaller sectors, and create the layers above them for the larger ones",
            )),
            Rule::BeyondEnd => Some(note_only(&format!(
                "restore the layer below to its former size before anything is written{}",
                contents::if_cut_short(&self.layer.kind)
            ))),
            Rule::DriveSize => Some(note_only(
                "shrink the layers, file system first, until the last partition ends before the end of the drive",
            )),
            Rule::Damaged => Some(note_only(
                "use the format's own repair (e2fsck, xfs_repair, mdadm --assemble, cryptsetup repair) on a copy first",
            )),
            Rule::UnknownContent => self.container().or_else(|| self.incomplete_group()),
            Rule::ArrayIncomplete if self.layer.node.is_none() => {
                Some(note_only(match self.has_unused_member() {
                    true => {
                        "a member that was given is not used (see older-metadata); if others are missing too, name the images of all together"
                    }
                    false => "name the images of all members together",
                }))
            }
            Rule::TrackCrossing => self.crossing(),
            _ => None,
        }
    }

    /// Returns whether a member of this array was given that the array does not use.
    fn has_unused_member(&self) -> bool {
        let array = |id| match &self.stack.layer(id).kind {
            Kind::MdMember(member) => Some(&member.array),
            _ => None,
        };
        let own = self.layer.on.first().and_then(|on| array(on.layer));
        let mut unused = self
            .findings
            .iter()
            .filter(|one| one.rule == Rule::OlderMetadata);
        own.is_some() && unused.any(|one| array(one.layer) == own)
    }

    /// Returns the fix for blocks or extents that span track boundaries, if there are any.
    fn crossing(&self) -> Option<Fix> {
        let share = self.finding.share.filter(|share| share.crossing > 0)?;
        match share.parts {
            AffectedParts::Blocks => {
                if let Some(rule) = self.misaligned_below() {
                    return Some(note_only(&format!(
                        "may follow from {}: fix that first, then check again",
                        rule.id()
                    )));
                }
                let Kind::Ext(ext) = &self.layer.kind else {
                    return Some(note_only(
                        "leave it: only ext2, ext3 and ext4 can exclude blocks that span two tracks",
                    ));
                };
                let drive = self.drive.map_or(DRIVE.to_owned(), path_word);
                Some(note_only(&format!(
                    "only a new file system can exclude blocks that span two tracks: copy the data away first; `traxtent plan stack {drive} --for fs={} --output DIR` writes the commands into the directory DIR",
                    ext.version
                )))
            }
            AffectedParts::BlocksInUse => None,
            AffectedParts::Extents => Some(note_only(
                "`traxtent file realign` moves files of a mounted ext4 file system onto whole tracks",
            )),
        }
    }

    /// Returns the rule of a finding about the place of the layer, or of a layer below it.
    fn misaligned_below(&self) -> Option<Rule> {
        let here = self.findings.iter().find(|one| {
            one.layer == self.id
                && one.severity > Severity::Info
                && (is_place(one.rule) || one.rule == Rule::FsStart)
        });
        let below = || self.layer.on.first().map(|place| place.layer);
        here.map(|one| one.rule)
            .or_else(|| self.at(below()?).misaligned_below())
    }

    /// Returns the context of the same finding for another layer.
    fn at(&self, id: LayerId) -> FindingContext<'_> {
        let layer = self.stack.layer(id);
        FindingContext { id, layer, ..*self }
    }

    /// Returns the ways to check the disk in an image of another format.
    fn container(&self) -> Option<Fix> {
        let Kind::Unknown(Unknown::Container(name)) = &self.layer.kind else {
            return None;
        };
        // QEMU does not recognize every VHD, so the format is stated. QEMU calls VHD vpc.
        let format = match name.as_str() {
            "VHD" => "vpc".to_owned(),
            name => name.to_lowercase(),
        };
        let below = self.stack.layer(self.layer.on.first()?.layer);
        let is_file = matches!(&below.kind, Kind::Disk(_)) && below.node.is_none();
        let (image, raw) = if is_file {
            (
                path_word(&below.name),
                path_word(&format!("{}.raw", below.name)),
            )
        } else {
            (quoted(below.node.as_deref()?), "FILE".to_owned())
        };
        Some(note_only(&format!(
            "attach it with `qemu-nbd --read-only --format={format} --connect=/dev/nbd0 {image}` and check /dev/nbd0, or convert it with `qemu-img convert -f {format} -O raw {image} {raw}` and check {raw}"
        )))
    }

    /// Returns the advice for a logical volume in images, some of which are not named.
    fn incomplete_group(&self) -> Option<Fix> {
        let Kind::Unknown(Unknown::Elsewhere(reason)) = &self.layer.kind else {
            return None;
        };
        let below = self.stack.layer(self.layer.on.first()?.layer);
        let Kind::LogicalVolume(volume) = &below.kind else {
            return None;
        };
        let has_devices = self.stack.layers.iter().any(|layer| layer.node.is_some());
        (reason.ends_with(NOT_AVAILABLE) && !has_devices).then(|| {
            note_only(&format!(
                "name the images of all physical volumes of the group {} together",
                volume.group
            ))
        })
    }

    /// Returns the advice for a misaligned layer whose content is aligned, and for its end.
    fn compensated(&self) -> Option<Fix> {
        let here = self.findings.iter();
        let here = here.filter(|one| one.layer == self.id && is_place(one.rule));
        let is_compensated = here.map(|one| one.severity).max() == Some(Severity::Info);
        let is_end = self.finding.rule == Rule::PartitionEnd;
        (is_compensated && (is_end || is_place(self.finding.rule))).then(|| {
            note_only("leave it: what lies in it is aligned, and a move would misalign that")
        })
    }

    /// Returns the advice to recreate a misaligned partition first, if the fix of the finding is to
    /// recreate a layer in it.
    fn place_first(&self) -> Option<Fix> {
        let is_recreated = match self.finding.rule {
            Rule::XfsUnit => true,
            Rule::LuksSector => self.recreated_in(self.id, Severity::Fault).is_some(),
            rule => is_recreated(rule) && rule != Rule::ZfsAshift,
        };
        if !is_recreated {
            return None;
        }
        let (_, layer, _) = self.partition()?;
        let place = layer.on.first()?;
        let forward = self.forward(layer)?;
        if forward == 0 || !self.inherits_misalignment(layer) {
            return None;
        }
        Some(note_only(&format!(
            "{} is misaligned, so a new {} in it would be misaligned too: copy the data away, recreate the partition from sector {}{}, {}, copy the data back, check again",
            layer.name,
            self.kind_name(),
            (place.start + forward) / self.sector_bytes(),
            self.sector_size(),
            self.anew()
        )))
    }

    /// Returns whether a new layer in place of the finding's would be misaligned because the
    /// partition is. A file system that does not lie directly on the partition may be aligned.
    fn inherits_misalignment(&self, partition: &Layer) -> bool {
        let is_fs = matches!(
            self.layer.kind,
            Kind::Ext(_) | Kind::Xfs(_) | Kind::Btrfs(_)
        );
        let on_partition = self
            .layer
            .on
            .first()
            .is_some_and(|place| std::ptr::eq(self.stack.layer(place.layer), partition));
        on_partition || !is_fs
    }

    /// Returns the finding of a severity whose fix is to create the content of a layer anew; `None`
    /// if there is none. The content must be created anew in any case if that is a fault: moving or
    /// converting it is then wasted. Content that is encrypted is found in the LUKS device.
    fn recreated_in(&self, id: LayerId, severity: Severity) -> Option<FindingContext<'_>> {
        let (id, layer) = self.stack.above(id).next()?;
        let at = |finding| FindingContext {
            id,
            layer,
            finding,
            ..*self
        };
        let mut here = self.findings.iter().filter(|one| one.layer == id).map(at);
        match here.find(|at| at.finding.severity == severity && at.is_recreation()) {
            Some(at) => Some(at),
            None if matches!(layer.kind, Kind::Luks(_) | Kind::Opened(_)) => {
                self.recreated_in(id, severity)
            }
            None => None,
        }
    }

    /// Returns the end of the note of a fix that keeps the content of a layer. If a warning may
    /// lead the user to create the content anew, it says to do something else `instead`.
    fn unless_recreated(&self, id: LayerId, instead: &str) -> String {
        let content = self.recreated_in(id, Severity::Warning);
        content.map_or(String::new(), |content| {
            format!(
                "; if {} is created anew ({}), {instead}",
                self.stack.title(content.id),
                content.finding.rule.id()
            )
        })
    }

    /// Returns whether the only fix of the finding is to create its layer anew.
    fn is_recreation(&self) -> bool {
        is_recreated(self.finding.rule) && self.no_larger_blocks().is_none()
    }

    /// Returns the step that creates the layer of the finding anew, with the options of its file
    /// system.
    fn anew(&self) -> String {
        let fix = match self.finding.rule {
            Rule::FsBlock => self.larger_blocks(),
            Rule::XfsUnit | Rule::XfsLogUnit | Rule::XfsSector => self.recreate_xfs(),
            _ => None,
        };
        let device = self.device_below().unwrap_or_default();
        let command = fix.and_then(|fix| fix.commands.into_iter().next());
        let options = command
            .as_deref()
            .map(|line| line.strip_suffix(&device).unwrap_or(line));
        match options {
            Some(line) => format!(
                "create the layers in it anew, the file system with `{}`",
                line.trim_end()
            ),
            None => "check again for the right options, create the layers in it anew".to_owned(),
        }
    }

    /// Returns the title of the finding's layer, and why it must be created anew.
    fn reason(&self) -> String {
        let (title, rule) = (self.stack.title(self.id), self.finding.rule.id());
        format!("{title} must be created anew in any case ({rule})")
    }

    fn kind_name(&self) -> &'static str {
        match self.layer.kind {
            Kind::Ext(_) | Kind::Xfs(_) | Kind::Btrfs(_) => "file system",
            _ => "layer",
        }
    }

    /// Returns the partition that the finding concerns or lies in, with its layer and its drive.
    fn partition(&self) -> Option<(&Partition, &Layer, &Layer)> {
        let mut id = self.id;
        loop {
            let layer = self.stack.layer(id);
            if let Kind::Partition(partition) = &layer.kind {
                return Some((partition, layer, self.drive_below(id)));
            }
            id = layer.on.first()?.layer;
        }
    }

    /// Returns the layer that the table of a partition lies on. Returns the layer `id` itself if it
    /// is neither a partition nor a table.
    fn drive_below(&self, id: LayerId) -> &Layer {
        let layer = self.stack.layer(id);
        match (&layer.kind, layer.on.first()) {
            (Kind::Partition(_) | Kind::Table(_), Some(place)) => self.drive_below(place.layer),
            _ => layer,
        }
    }

    /// Returns the size in bytes of the sectors that the table counts, or 512 without a table.
    fn sector_bytes(&self) -> u64 {
        self.table_below()
            .map_or(512, |(_, table)| table.sector_bytes)
    }

    /// Returns the words after a number of sectors whose size is not the usual one.
    fn sector_size(&self) -> String {
        match self.sector_bytes() {
            512 => String::new(),
            bytes => format!(" (of {bytes} bytes)"),
        }
    }

    /// Returns the content of a partition.
    fn content_of(&self, partition: &Layer) -> Option<(LayerId, &Layer)> {
        self.stack.above(self.id_of(partition)?).next()
    }

    /// Returns the identifier of a layer of the stack.
    fn id_of(&self, layer: &Layer) -> Option<LayerId> {
        let mut layers = self.stack.iter();
        let found = layers.find(|(_, other)| std::ptr::eq(*other, layer));
        found.map(|(id, _)| id)
    }

    fn shorten_partition(&self) -> Option<Fix> {
        let (partition, layer, drive) = self.partition()?;
        let sector = self.sector_bytes();
        let off = self.finding.off?;
        let unit = off.every.max(sector);
        let sectors = layer.bytes / unit * unit / sector;
        if sectors * sector == layer.bytes {
            return Some(note_only(
                "follows from its start: at this length, its end is aligned once its start is; fix the start first, then check again",
            ));
        }
        // The end is as far into a sector as the length only if the start is aligned.
        if layer.bytes % off.every != off.by {
            return Some(note_only(&format!(
                "follows from its start, which is misaligned too: fix the start first, then check again; if {} is recreated for that, give it a length that is a multiple of {} sectors{}",
                layer.name,
                unit / sector,
                self.sector_size()
            )));
        }
        let content = self.content_of(layer);
        if let Some((_, content)) = content
            && let Kind::Luks(luks) = &content.kind
        {
            let first = if luks_remainder(luks, content.bytes) != 0 {
                Some(Rule::LuksEnd)
            } else {
                (luks.sector_bytes < off.every && off.every <= BLOCK_BYTES)
                    .then_some(Rule::LuksSector)
            };
            if let Some(rule) = first {
                return Some(note_only(&format!(
                    "the fix for {} shortens the partition: follow it first, then check again",
                    rule.id()
                )));
            }
        }
        if let Some(content) = self.recreated_in(self.id, Severity::Fault) {
            return Some(note_only(&format!(
                "{}; before that, shorten the partition: `echo ',{sectors}' | sfdisk -N {} {}`",
                content.reason(),
                partition.number,
                device(drive)
            )));
        }
        let fits = content.is_none_or(|(_, content)| {
            contents::end(&content.kind).is_some_and(|end| end <= sectors * sector)
        });
        if !fits {
            return Some(note_only(&format!(
                "leave it unless {} is recreated: its content reaches, or may reach, beyond its sector {sectors}",
                layer.name
            )));
        }
        let device = device(drive);
        Some(Fix {
            note: format!(
                "the content of {} ends before its sector {sectors}; nothing is moved",
                layer.name
            ),
            commands: vec![format!(
                "echo ',{sectors}' | sfdisk -N {} {device}",
                partition.number
            )],
        })
    }

    /// Returns the fix for a LUKS device that ends with part of a sector, which holds no data.
    fn luks_end(&self) -> Option<Fix> {
        let Kind::Luks(luks) = &self.layer.kind else {
            return None;
        };
        let bytes = self.layer.bytes;
        let whole = luks.data_start
            + bytes.saturating_sub(luks.data_start) / luks.sector_bytes * luks.sector_bytes;
        let Some((partition, _, drive)) = self.partition() else {
            return Some(note_only(&format!(
                "change the length of the device or file that it lies in to {whole} bytes: the last {} bytes hold none of its data; if it was longer before, restore its length instead",
                bytes.saturating_sub(whole)
            )));
        };
        let sectors = whole / self.sector_bytes();
        Some(Fix {
            note: format!(
                "shortens the partition to whole sectors of LUKS; the last {} bytes hold none of its data; if the partition was longer before, restore its length instead",
                bytes.saturating_sub(whole)
            ),
            commands: vec![format!(
                "echo ',{sectors}' | sfdisk -N {} {}",
                partition.number,
                device(drive)
            )],
        })
    }

    fn rechunk(&self) -> Option<Fix> {
        let Kind::Array(_) = &self.layer.kind else {
            return Some(note_only(COPY_AWAY));
        };
        let members = self
            .layer
            .on
            .iter()
            .map(|place| &self.stack.layer(place.layer).kind);
        if { members }.any(|kind| matches!(kind, Kind::MdMember(member) if member.is_reshaping)) {
            return Some(note_only(RESHAPE));
        }
        let device = quoted(self.layer.node.as_deref().unwrap_or(DEVICE));
        Some(Fix {
            note: "md changes the chunk of RAID 0, 4, 5, 6 and 10 in place, slowly; back up first, and run this in a directory where \
                   md.backup is not on the array"
                .to_owned(),
            commands: vec![format!(
                "mdadm --grow {device} --chunk=64 --backup-file=md.backup"
            )],
        })
    }

    /// Returns the sizes in bytes of a chunk and of a full stripe of the array below.
    fn stripes(&self) -> Option<(u64, u64)> {
        array_below(self.stack, self.id).map(|(_, chunk, stripe)| (chunk, stripe))
    }

    fn ext_stride(&self) -> Option<Fix> {
        let Kind::Ext(Ext { block_bytes, .. }) = self.layer.kind else {
            return None;
        };
        let device = self.device_below()?;
        let (chunk, stripe) = self.stripes()?;
        Some(Fix {
            note: "takes effect at once, mounted or not; existing files stay where they are"
                .to_owned(),
            commands: vec![format!(
                "tune2fs -E stride={},stripe_width={} {device}",
                chunk / block_bytes,
                stripe / block_bytes
            )],
        })
    }

    fn xfs_unit(&self) -> Option<Fix> {
        let mut note = "copy the data away (xfsdump), recreate it, copy the data back".to_owned();
        let mut others = self.findings.iter().filter(|one| one.layer == self.id);
        let is_recreated = others.any(|one| is_recreated(one.rule));
        if let Some((chunk, stripe)) = self.stripes().filter(|_| !is_recreated) {
            note.push_str(&format!(
                "; or mount it with sunit={},swidth={} (in units of 512 bytes), which is permanent unless the kernel's log reports that the alignment cannot be changed",
                chunk / 512,
                stripe / 512
            ));
        }
        Some(Fix {
            note,
            ..self.recreate_xfs()?
        })
    }

    fn recreate_xfs(&self) -> Option<Fix> {
        let device = self.device_below()?;
        let physical = self.physical_bytes();
        // With a log unit, mkfs.xfs requires a log of 64 MB, for which a small file system has no
        // room.
        let is_small = self.layer.bytes < 1 << 30;
        let stripes = match self.stripes() {
            Some((chunk, stripe)) if chunk > 0 => {
                let log = match chunk <= 256 << 10 {
                    _ if is_small => String::new(),
                    true => format!(" -l su={}k", chunk >> 10),
                    false => format!(" -l su={}k", physical.max(32 << 10) >> 10),
                };
                format!(" -d su={}k,sw={}{log}", chunk >> 10, stripe / chunk)
            }
            _ if physical > BLOCK_BYTES => format!(" -l su={}k", physical >> 10),
            _ => String::new(),
        };
        Some(Fix {
            note: "the sector and the log unit of XFS cannot be changed: copy the data away (xfsdump), recreate it, copy the data back".to_owned(),
            commands: vec![format!("mkfs.xfs -f -s size={BLOCK_BYTES}{stripes} {device}")],
        })
    }
}

/// Returns whether the findings of a rule are about the place of a partition or of data.
fn is_place(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::PartitionStart
            | Rule::PartitionChunk
            | Rule::PartitionStripe
            | Rule::PartitionErase
            | Rule::DataStart
            | Rule::DataChunk
            | Rule::DataStripe
            | Rule::DataErase
    )
}

/// Returns whether the usual fix for a rule's findings is to create the layer anew.
fn is_recreated(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::FsBlock
            | Rule::XfsLogUnit
            | Rule::XfsSector
            | Rule::ZfsAshift
            | Rule::DataStart
            | Rule::DataChunk
            | Rule::DataStripe
            | Rule::DataErase
    )
}

/// Returns a word quoted for a shell.
pub fn quoted(word: &str) -> String {
    // A collected stack may be hostile: its names may contain zero bytes.
    let quoter = shlex::Quoter::new().allow_nul(true);
    let quoted = quoter.quote(word).expect("only zero bytes are refused");
    quoted.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are plain paths left unquoted, and does a shell read every other word unchanged?
    #[test]
    fn words_for_a_shell() {
        for plain in ["/dev/sda1", "/dev/disk/by-id/ata-X_1:0", "a.img"] {
            assert_eq!(quoted(plain), plain);
        }
        for word in [
            "",
            "a b",
            "it's",
            "$(reboot)",
            "a\"b",
            "a\nb",
            "~",
            "!x^",
            "µ",
        ] {
            let quoted = quoted(word);
            assert_eq!(
                shlex::split(&quoted),
                Some(vec![word.to_owned()]),
                "{quoted}"
            );
        }
        assert_eq!(quoted("a b.img"), "'a b.img'");
        assert!(quoted("a\0b").contains('\0'));
    }
}
