//! Fixes of blocks and sectors that are smaller than the physical sectors of the drive.

use super::{COPY_AWAY, FindingContext, is_recreated, note_only};
use crate::finding::{Finding, Fix, Rule, Severity};
use crate::rules::{bytes, physical_below};
use crate::stack::Kind;

/// The size that the fixes give to blocks and to encrypted sectors, in bytes. It is the largest
/// sector of LUKS2, and the largest block that every kernel mounts on every machine.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// The distance by which `cryptsetup convert` moves the key slots of LUKS1 toward the data: the
/// difference between the two headers of LUKS2, of 16 KiB each, and the one of LUKS1, of 4 KiB. It
/// first rounds the end of the key slots up to 4 KiB (lib/luks2/luks2_luks1_convert.c).
const KEY_SLOTS_SHIFT_BYTES: u64 = 28 << 10;

/// The advice for a file system whose blocks are smaller than large physical sectors.
const LARGE_BLOCKS: &str = "blocks of more than 4096 bytes need memory pages of that size, or a kernel that supports blocks larger than its pages: without either, put the file system on a drive with smaller physical sectors";

/// The largest ashift of ZFS.
const ASHIFT_MAX: u32 = 16;

impl FindingContext<'_> {
    /// Returns the advice for blocks and sectors on physical sectors that are too large for them.
    pub(super) fn no_larger_blocks(&self) -> Option<Fix> {
        if self.physical_bytes() <= BLOCK_BYTES {
            return None;
        }
        let note = match self.finding.rule {
            Rule::FsBlock => LARGE_BLOCKS.to_owned(),
            Rule::XfsSector => {
                format!("a sector of XFS cannot be larger than its blocks; {LARGE_BLOCKS}")
            }
            Rule::LuksSector => format!(
                "LUKS encrypts in sectors of {BLOCK_BYTES} bytes or less: put it on a drive with smaller physical sectors"
            ),
            _ => return None,
        };
        Some(note_only(&note))
    }

    /// Returns the largest physical sector of the drives below, in bytes.
    pub(super) fn physical_bytes(&self) -> u64 {
        physical_below(self.stack, self.id).map_or(BLOCK_BYTES, |(_, bytes)| bytes)
    }

    pub(super) fn luks_sector(&self) -> Option<Fix> {
        let Kind::Luks(luks) = &self.layer.kind else {
            return None;
        };
        let mut here = self.findings.iter().filter(|one| one.layer == self.id);
        let is_wrong = |one: &&Finding| one.severity > Severity::Info && is_recreated(one.rule);
        if let Some(first) = here.find(is_wrong) {
            return Some(note_only(&format!(
                "the advice for {} recreates it: follow it first, then check again",
                first.rule.id()
            )));
        }
        let rest = self.layer.bytes.saturating_sub(luks.data_start) % BLOCK_BYTES;
        if rest != 0 {
            // cryptsetup: "Data device is not aligned to encryption sector size".
            return Some(note_only(&format!(
                "cryptsetup refuses sectors of {BLOCK_BYTES} bytes for this length: shrink the file system in the LUKS device by {rest} bytes or more, shorten what the LUKS device lies in by exactly {rest} bytes, then check again"
            )));
        }
        if let Some(content) = self.recreated_in(self.id, Severity::Fault) {
            return Some(note_only(&format!(
                "do not re-encrypt it, because {}: copy the data away, recreate it (`cryptsetup luksFormat --type luks2 --sector-size {BLOCK_BYTES}`), {}, copy the data back",
                content.reason(),
                content.anew()
            )));
        }
        let device = self.device_below()?;
        let otherwise = self.unless_recreated(
            self.id,
            &format!("recreate the LUKS device instead (`cryptsetup luksFormat --type luks2 --sector-size {BLOCK_BYTES}`)"),
        );
        if let Some(end) = luks.key_slots_end {
            let end = end.next_multiple_of(4096) + KEY_SLOTS_SHIFT_BYTES;
            if luks.data_start < end {
                return Some(note_only(&format!(
                    "LUKS1 has sectors of 512 bytes, and `cryptsetup convert` to LUKS2 fails, because it needs {} before the data, which begins after {}: copy the data away, recreate it (`cryptsetup luksFormat --type luks2 --sector-size {BLOCK_BYTES}`), copy the data back",
                    bytes(end),
                    bytes(luks.data_start)
                )));
            }
            return Some(Fix {
                note: format!(
                    "LUKS1 has sectors of 512 bytes: close the device, back up its header, convert it to LUKS2 and re-encrypt it{otherwise}"
                ),
                commands: vec![
                    format!("cryptsetup convert --type luks2 {device}"),
                    format!(
                        "cryptsetup reencrypt --force-offline-reencrypt --sector-size {BLOCK_BYTES} {device}"
                    ),
                ],
            });
        }
        Some(Fix {
            note: format!(
                "close the device and back up its header first; all data is re-encrypted, which can be interrupted; the file system on it must have blocks of 4096 bytes or more{otherwise}"
            ),
            commands: vec![format!(
                "cryptsetup reencrypt --force-offline-reencrypt --sector-size {BLOCK_BYTES} {device}"
            )],
        })
    }

    pub(super) fn larger_blocks(&self) -> Option<Fix> {
        let device = self.device_below()?;
        let command = match &self.layer.kind {
            Kind::Ext(ext) => format!("mke2fs -t {} -b {BLOCK_BYTES} {device}", ext.version),
            // The other values that cannot be changed are set at once.
            Kind::Xfs(_) => self
                .recreate_xfs()?
                .commands
                .concat()
                .replace("mkfs.xfs -f", &format!("mkfs.xfs -f -b size={BLOCK_BYTES}")),
            Kind::Btrfs(_) => format!("mkfs.btrfs -f --sectorsize {BLOCK_BYTES} {device}"),
            _ => return Some(note_only(COPY_AWAY)),
        };
        Some(Fix {
            note: "the block size of a file system cannot be changed: copy the data away first"
                .to_owned(),
            commands: vec![command],
        })
    }

    pub(super) fn larger_ashift(&self) -> Fix {
        let ashift = self.physical_bytes().next_power_of_two().ilog2();
        note_only(&format!(
            "the ashift of a vdev cannot be changed: create a new pool with `zpool create -o ashift={}`, and send the data to it",
            ashift.min(ASHIFT_MAX)
        ))
    }
}
