//! The content of a device, recognized before something writes to it.

use std::path::Path;

use traxtent_check::layers::{Content, Unknown, recognize};
use traxtent_check::source::FileSource;

/// Returns a description of a device's content, if it is recognized.
pub(crate) fn recognized_content(path: &Path) -> Option<String> {
    let source = FileSource::open(path).ok()?;
    let what = match recognize(&source, 512) {
        Content::Table(_) => "a partition table",
        Content::MdMember(_) => "a member of an md array",
        Content::PhysicalVolume(..) => "a physical volume of LVM",
        Content::Luks(_) => "LUKS",
        Content::Zfs(_) => "a member of a ZFS pool",
        Content::Xfs(_) => "XFS",
        Content::Btrfs(_) => "Btrfs",
        Content::Ext(_) => "an ext file system",
        Content::Swap(_) => "swap space",
        Content::Unknown(Unknown::Named(name)) => return Some(name),
        Content::Unknown(Unknown::Damaged(why)) => {
            return Some(format!("damaged content: {why}"));
        }
        _ => return None,
    };
    Some(what.to_owned())
}
