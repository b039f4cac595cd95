//! The content of drives: tables, superblocks and headers, the stack that they form, and stacks in
//! files.
//!
//! A header is put at the offset that its format requires, on a drive of zeros, so that the search
//! does not have to find the offset.

use std::rc::Rc;
use std::str::FromStr;

use traxtent_check::collect::StackArchive;
use traxtent_check::drive::StatedDrive;
use traxtent_check::examine::{StackRoot, examine};
use traxtent_check::files::extents_in_image;
use traxtent_check::layers::btrfs::chunks::{Chunk, ChunkMap};
use traxtent_check::layers::lvm::Group;
use traxtent_check::layers::{btrfs, ext, gpt, luks, lvm, mbr, md, named, swap, xfs, zfs};
use traxtent_check::plan::{self, DriveProperties, StackSpec};
use traxtent_check::{Source, SourceError, Stack, rules};
use traxtent_units::Lbn;

/// The length of the drive in bytes: a multiple of the alignment of superblocks at the end.
const DRIVE_BYTES: u64 = 4 << 20;

/// A drive of zeros with some bytes at an offset.
struct Drive {
    at: u64,
    bytes: Vec<u8>,
}

impl Drive {
    fn with(at: u64, input: &[u8]) -> Drive {
        let room = (DRIVE_BYTES - at) as usize;
        Drive {
            at,
            bytes: input[..input.len().min(room)].to_vec(),
        }
    }
}

impl Source for Drive {
    fn bytes(&self) -> u64 {
        DRIVE_BYTES
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let wanted = buffer.len() as u64;
        if offset
            .checked_add(wanted)
            .is_none_or(|end| end > DRIVE_BYTES)
        {
            return Err(SourceError::Beyond {
                offset,
                wanted,
                bytes: DRIVE_BYTES,
            });
        }
        buffer.fill(0);
        // The requested range may begin before the bytes or within them, and end after them.
        let skip = self.at.saturating_sub(offset).min(wanted) as usize;
        let from = offset.saturating_sub(self.at).min(self.bytes.len() as u64) as usize;
        let both = (buffer.len() - skip).min(self.bytes.len() - from);
        buffer[skip..skip + both].copy_from_slice(&self.bytes[from..from + both]);
        Ok(())
    }
}

pub(crate) fn partition_tables(input: &[u8]) {
    let drive = Drive::with(0, input);
    for sector in [512, 4096] {
        if let Ok(Some((_, partitions))) = gpt::parse(&drive, sector) {
            assert!(partitions.iter().all(|partition| partition.sectors > 0));
        }
        let _ = mbr::parse(&drive, sector);
    }
}

pub(crate) fn ext(input: &[u8]) {
    if let Ok(Some(found)) = ext::parse(&Drive::with(1024, input)) {
        assert!(found.block_bytes.is_power_of_two() && found.group_blocks > 0);
    }
}

/// A file in an ext image: adjacent ranges are merged into one extent.
pub(crate) fn files(input: &[u8]) {
    let drive = Drive::with(1024, input);
    let Ok(Some(found)) = ext::parse(&drive) else {
        return;
    };
    for path in ["/a", "/d/b"] {
        let Ok(extents) = extents_in_image(&drive, &found, path) else {
            continue;
        };
        for pair in extents.windows(2) {
            assert!(pair[0].end != pair[1].start, "{pair:?} are one extent");
        }
    }
}

/// The words after `--for`. If they lead to a plan, each of its steps has commands.
pub(crate) fn want(input: &[u8]) {
    let Some(Ok(want)) = super::text(input).map(StackSpec::from_str) else {
        return;
    };
    let drive = DriveProperties {
        name: "drive".to_owned(),
        logical_bytes: 512,
        physical_bytes: 4096,
        lowest_aligned: Lbn(0),
        lbns: 1 << 24,
        tracks: None,
    };
    let devices: Vec<String> = (0..want.disks)
        .map(|disk| format!("/dev/d{disk}"))
        .collect();
    if let Ok(recipe) = plan::plan_stack(&drive, &want, &devices, "list") {
        assert!(recipe.steps.iter().all(|step| !step.commands.is_empty()));
    }
}

pub(crate) fn xfs(input: &[u8]) {
    if let Ok(Some(found)) = xfs::parse(&Drive::with(0, input)) {
        assert!(found.sector_bytes <= found.block_bytes);
    }
}

/// A superblock, and the same bytes as items of the chunk tree. Each item follows its address and
/// its length. Every chunk of a map has a place for all its addresses, or none.
pub(crate) fn btrfs(input: &[u8]) {
    let _ = btrfs::parse(&Drive::with(64 << 10, input));
    let mut chunks = Vec::new();
    let mut rest = input;
    while let Some((logical, after)) = rest.split_first_chunk() {
        let Some((length, after)) = after.split_first_chunk() else {
            break;
        };
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (item, after) = after.split_at(length);
        chunks.extend(Chunk::parse(u64::from_le_bytes(*logical), item));
        rest = after;
    }
    let Ok(map) = ChunkMap::new(chunks.clone()) else {
        return;
    };
    for chunk in chunks {
        let bytes = chunk.logical.end - chunk.logical.start;
        if let Ok(places) = map.on_device(chunk.logical) {
            let sum: u64 = places.iter().map(|place| place.end - place.start).sum();
            assert_eq!(sum, bytes, "{places:?}");
        }
    }
}

pub(crate) fn swap(input: &[u8]) {
    let _ = swap::parse(&Drive::with(0, input));
    let _ = named::parse(&Drive::with(0, input));
}

pub(crate) fn luks(input: &[u8]) {
    if let Ok(Some(found)) = luks::parse(&Drive::with(0, input)) {
        assert!(found.sector_bytes.is_power_of_two());
    }
}

pub(crate) fn lvm(input: &[u8]) {
    let _ = lvm::parse(&Drive::with(0, input));
}

pub(crate) fn lvm_text(input: &[u8]) {
    if let Some(Ok(group)) = super::text(input).map(Group::parse) {
        assert!(group.extent_bytes > 0);
    }
}

pub(crate) fn md(input: &[u8]) {
    for at in [0, 4096, DRIVE_BYTES - (8 << 10), DRIVE_BYTES - (64 << 10)] {
        if let Ok(Some(found)) = md::parse(&Drive::with(at, input)) {
            assert!(found.used_bytes <= found.data_bytes && found.members > 0);
            assert_eq!(found.level.is_striped(), found.chunk_bytes > 0);
        }
    }
}

pub(crate) fn zfs(input: &[u8]) {
    if let Ok(Some(found)) = zfs::parse(&Drive::with(16 << 10, input)) {
        assert!(found.ashift.is_none_or(|ashift| ashift < 32));
    }
}

/// A whole drive: regardless of its content, the layers are consistent and can be drawn.
pub(crate) fn stack(input: &[u8]) {
    let root = StackRoot {
        name: "drive".to_owned(),
        node: None,
        disk: StatedDrive::default().image(),
        is_sector_stated: false,
        limits: None,
        bytes: DRIVE_BYTES,
        source: Ok(Rc::new(Drive::with(0, input))),
    };
    judge(&examine(vec![root], None));
}

/// A collected stack: accepted input is written, and read back as the same value.
pub(crate) fn archive(input: &[u8]) {
    let Ok(archive) = StackArchive::read(input) else {
        return;
    };
    judge(&archive.stack);
    let again = StackArchive::read(&archive.write()).expect("it has been read before");
    assert_eq!(archive, again);
}

fn judge(stack: &Stack) {
    stack.check().expect("layers fit together");
    let findings = rules::check(stack, None);
    assert!(!traxtent::draw_stack(stack, &findings).is_empty());
}
