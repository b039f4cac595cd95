//! The advice that depends on the content of a partition: where it ends, and whether it can shrink.

use crate::layers::Unknown;
use crate::stack::Kind;

/// Returns the first byte after a partition's content, if it is known.
pub(super) fn end(kind: &Kind) -> Option<u64> {
    match kind {
        Kind::Ext(ext) => Some(ext.blocks.saturating_mul(ext.block_bytes)),
        Kind::Xfs(xfs) => Some(xfs.blocks.saturating_mul(xfs.block_bytes)),
        Kind::Btrfs(btrfs) => Some(btrfs.device_bytes),
        Kind::Swap(swap) => Some(swap.pages.saturating_mul(swap.page_bytes)),
        Kind::Unknown(Unknown::Blank) => Some(0),
        _ => None,
    }
}

/// Returns the steps for a partition that must be shortened to be moved, but whose content fills it
/// or may fill it. SECTOR stands for the new first sector, and TABLE for the command that changes
/// the table. For ext, commands shrink the file system instead.
pub(super) fn too_long(kind: &Kind) -> Option<String> {
    let recreate = "recreate the partition from sector SECTOR";
    Some(match kind {
        Kind::Xfs(_) => format!(
            "XFS fills the partition and cannot shrink: copy the data away (xfsdump), {recreate}, create the file system anew, copy the data back"
        ),
        Kind::Btrfs(_) => format!(
            "copy the data away, {recreate}, create the file system anew, copy the data back; or mount it, shrink it by 16 MiB or more (btrfs filesystem resize), and check again"
        ),
        Kind::Swap(_) => {
            format!(
                "swap holds nothing to keep: stop it (swapoff), {recreate} (`TABLE`), and run mkswap on it; /etc/fstab may name its old UUID"
            )
        }
        Kind::MdMember(_) => format!(
            "if the array has redundancy and is complete, remove this member from it (mdadm --fail, --remove), {recreate}, and add it again, which rebuilds it; the array must fit the shorter member; otherwise copy the data of the array away"
        ),
        Kind::PhysicalVolume(_) => format!(
            "move its extents to another physical volume (pvmove), remove it from the group (vgreduce, pvremove), {recreate}, and add it again (pvcreate, vgextend); without another one, copy the data away"
        ),
        Kind::Luks(_) => format!(
            "LUKS records no length, so its content would be cut off: copy the data away, {recreate}, format and copy back; commands that shorten the partition are safe only once the file system in it has been shrunk"
        ),
        Kind::Zfs(_) => format!(
            "ZFS fills the partition and cannot shrink: replace this device in the pool with another (zpool replace), or send the data away, {recreate}, and create the pool anew"
        ),
        _ => format!(
            "the end of its content is not known, and the partition has to be shortened to be moved: copy the data away, {recreate}, copy the data back"
        ),
    })
}

/// Returns the advice for a content whose boot sector states the start of its partition, which a
/// move of the data does not change: NTFS and FAT at byte 0x1C ("hidden sectors"), exFAT at byte
/// 0x40 (`PartitionOffset`). Only code that boots through the BIOS uses the field (Microsoft's
/// specifications of FAT and exFAT; partclone.ntfsfixboot(8)).
pub(super) fn if_moved(kind: &Kind) -> &'static str {
    let Kind::Unknown(Unknown::Named(name)) = kind else {
        return "";
    };
    match name.as_str() {
        "NTFS" => {
            "; its boot sector states its old start, with which Windows may not boot from it: after the move, run `partclone.ntfsfixboot -w` on the partition"
        }
        "FAT" | "exFAT" => {
            "; its boot sector states its old start: if a BIOS boots a system from it, install the boot loader of that system again after the move"
        }
        _ => "",
    }
}

/// Returns the alternative to restoring the length of a layer that is too short for its content.
pub(super) fn if_cut_short(kind: &Kind) -> &'static str {
    match kind {
        Kind::Ext(_) => ", or check the file system and shrink it (e2fsck -f, resize2fs)",
        Kind::Xfs(_) => {
            "; XFS cannot shrink: otherwise, copy away what a read-only mount still shows, and create it anew"
        }
        Kind::Btrfs(_) => {
            "; otherwise, copy away what a read-only mount still shows, and create it anew"
        }
        Kind::Swap(_) => {
            ", or create the swap space anew (mkswap), because it holds nothing to keep"
        }
        Kind::Luks(_) => {
            "; otherwise, the data beyond the end is lost, and the content must be checked with its own tool"
        }
        Kind::MdMember(_) => {
            "; otherwise, remove this member from the array, if it has redundancy, and replace it"
        }
        _ => "; otherwise, copy away what can still be read",
    }
}
