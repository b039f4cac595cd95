//! The names of drives, images and parts of images in commands, and the commands that attach loop
//! devices.
//!
//! Tools count sectors of 512 bytes in a file. If the sectors of an image have another size, only
//! `losetup` names the image, and all other commands use a loop device with sectors of that size.

use super::{FindingContext, quoted};
use crate::finding::Fix;
use crate::stack::{Kind, Layer};

/// The placeholder for the device of an array or a volume that is not assembled.
pub(super) const DEVICE: &str = "DEVICE";

/// The placeholder for a drive that the user names.
pub(super) const DRIVE: &str = "DRIVE";

/// The shell variable for the loop device of a part of an image.
pub(super) const PART_VARIABLE: &str = "$part";

/// The shell variable for the loop device of a whole image.
const IMAGE_VARIABLE: &str = "$image";

/// The size of the sectors that tools count in a file, in bytes.
const FILE_SECTOR_BYTES: u64 = 512;

/// The largest sector that loop devices have on every machine, in bytes: the smallest memory page.
const LOOP_SECTOR_BYTES_MAX: u64 = 4096;

/// Returns the word for a layer in commands: its device, the image, or the loop device of the
/// image.
pub(super) fn device(layer: &Layer) -> String {
    if let Some(node) = &layer.node {
        quoted(node)
    } else if is_named(layer) {
        path_word(&layer.name)
    } else if !matches!(layer.kind, Kind::Disk(_)) {
        DEVICE.to_owned()
    } else if losetup(layer, "").is_some() {
        IMAGE_VARIABLE.to_owned()
    } else {
        DRIVE.to_owned()
    }
}

/// Returns whether commands name a file itself, because its sectors are those of a file.
pub(super) fn is_named(layer: &Layer) -> bool {
    image_sector_bytes(layer) == Some(FILE_SECTOR_BYTES)
}

/// Returns a path as a shell word. Tools would take a name that begins with `-` for an option.
pub(super) fn path_word(path: &str) -> String {
    match path.starts_with('-') {
        true => quoted(&format!("./{path}")),
        false => quoted(path),
    }
}

/// Returns the size of an image's logical sectors in bytes; `None` if the layer is not an image.
fn image_sector_bytes(layer: &Layer) -> Option<u64> {
    match &layer.kind {
        Kind::Disk(disk) if layer.node.is_none() => Some(disk.logical_bytes),
        _ => None,
    }
}

/// Returns the command that attaches a loop device to an image; `None` if the layer is not an
/// image, or if loop devices cannot have sectors of its size.
fn losetup(image: &Layer, options: &str) -> Option<String> {
    let bytes = image_sector_bytes(image)?;
    let is_possible = (FILE_SECTOR_BYTES..=LOOP_SECTOR_BYTES_MAX).contains(&bytes);
    let sectors = match bytes {
        FILE_SECTOR_BYTES => String::new(),
        _ if is_possible && bytes.is_power_of_two() => format!(" --sector-size {bytes}"),
        _ => return None,
    };
    let image = path_word(&image.name);
    Some(format!("losetup --find --show{sectors}{options} {image}"))
}

impl FindingContext<'_> {
    /// Returns the device that a layer lies on, as a shell word.
    pub(super) fn device_below(&self) -> Option<String> {
        let below = self.stack.layer(self.layer.on.first()?.layer);
        // The tools of these formats need a device, even for a whole image.
        let needs_device = matches!(self.layer.kind, Kind::Luks(_) | Kind::PhysicalVolume(_));
        let is_image = matches!(below.kind, Kind::Disk(_)) && !needs_device;
        Some(match self.attach_part() {
            Some(_) if !is_image => PART_VARIABLE.to_owned(),
            _ => device(below),
        })
    }

    /// Returns the command that attaches a loop device to the layer below, if that layer is in an
    /// image.
    pub(super) fn attach_part(&self) -> Option<String> {
        let id = self.layer.on.first()?.layer;
        let (image, start) = self.stack.in_one_piece(id)?;
        let bytes = self.stack.layer(id).bytes;
        let range = format!(" --offset {start} --sizelimit {bytes}");
        let losetup = losetup(self.stack.layer(image), &range)?;
        Some(format!("part=$({losetup})"))
    }

    /// Returns the command that attaches a loop device to the image below, if there is one.
    fn attach_image(&self) -> Option<String> {
        let mut layer = self.layer;
        while let Some(place) = layer.on.first() {
            layer = self.stack.layer(place.layer);
        }
        Some(format!("image=$({})", losetup(layer, "")?))
    }

    /// Adds the commands that attach and detach the loop devices that a fix uses. If only the note
    /// uses the device of an image, the note has the command.
    pub(super) fn attach_images(&self, fix: &mut Fix) {
        let uses = |fix: &Fix, text: &str| fix.commands.iter().any(|line| line.contains(text));
        if let Some(part) = self.attach_part()
            && uses(fix, PART_VARIABLE)
            && !uses(fix, "part=$(")
        {
            wrap(fix, part, PART_VARIABLE);
        }
        let Some(image) = self.attach_image() else {
            return;
        };
        if uses(fix, IMAGE_VARIABLE) {
            fix.note.push_str(
                "; the loop device is necessary because tools count sectors of 512 bytes in a file",
            );
            wrap(fix, image, IMAGE_VARIABLE);
        } else if fix.note.contains(IMAGE_VARIABLE) {
            fix.note.push_str(&format!(
                "; attach the image first, because tools count sectors of 512 bytes in a file: `{image}`"
            ));
        }
    }
}

/// Adds the command that attaches a loop device before the other commands of a fix, and the one
/// that detaches it after them. The latter is not run if one of the others fails.
fn wrap(fix: &mut Fix, attach: String, variable: &str) {
    let detach = format!("losetup --detach {variable}");
    fix.note += &format!("; if a command fails, detach the loop device (`{detach}`)");
    fix.commands.insert(0, attach);
    fix.commands.push(detach);
}

#[cfg(test)]
mod tests {
    use super::path_word;

    /// Is a name that begins with `-` not taken for an option, and is every other path unchanged?
    #[test]
    fn paths_like_options() {
        assert_eq!(path_word("-n.img"), "./-n.img");
        assert_eq!(path_word("- n.img"), "'./- n.img'");
        assert_eq!(path_word("./-n.img"), "./-n.img");
        assert_eq!(path_word("n-.img"), "n-.img");
    }
}
