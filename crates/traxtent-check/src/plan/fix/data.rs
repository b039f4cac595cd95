//! Fixes of data that begins at the wrong place: in a physical volume, in an encrypted device, and
//! in the members of an array.

use super::devices::{DEVICE, PART_VARIABLE};
use super::{COPY_AWAY, FindingContext, RESHAPE, note_only, quoted};
use crate::finding::Fix;
use crate::layers::{MdMember, RaidLevel};
use crate::stack::Kind;

impl FindingContext<'_> {
    pub(super) fn move_data(&self) -> Option<Fix> {
        let every = self.finding.off.map_or(1 << 20, |off| off.every);
        if let Kind::MdMember(member) = &self.layer.kind {
            return Some(self.recreate_array(member, every));
        }
        let device = self.device_below()?;
        let data = (1_u64 << 20).next_multiple_of(every);
        let (what, commands) = match &self.layer.kind {
            Kind::PhysicalVolume(volume) => {
                let create =
                    |device: &str| format!("pvcreate --dataalignment {}k {device}", data >> 10);
                if let Some(group) = &volume.group {
                    // No command of a note attaches the image.
                    let (device, explanation) = match device.as_str() {
                        PART_VARIABLE | DEVICE => (
                            DEVICE,
                            "; DEVICE stands for the device of the physical volume",
                        ),
                        device => (device, ""),
                    };
                    let create = create(device);
                    return Some(note_only(&format!(
                        "move the data to another physical volume (pvmove), remove this one from the group {group} (vgreduce), format it anew (`{create}`), and add it again (vgextend); without another one, copy the data away and create the group anew{explanation}"
                    )));
                }
                ("a physical volume", vec![create(&device)])
            }
            Kind::Luks(luks) => {
                let offset = (16_u64 << 20).next_multiple_of(every) / 512;
                let kind = if luks.version == 1 {
                    format!("--type luks1 --align-payload {offset}")
                } else {
                    format!(
                        "--type luks2 --sector-size {} --offset {offset}",
                        luks.sector_bytes
                    )
                };
                (
                    "encrypted data",
                    vec![format!("cryptsetup luksFormat {kind} {device}")],
                )
            }
            _ => ("this data", Vec::new()),
        };
        Some(Fix {
            note: format!("{what} {COPY_AWAY}"),
            commands,
        })
    }

    /// Returns the note for an array whose members' data does not begin at a multiple of `every`
    /// bytes. The note is the same for all members.
    fn recreate_array(&self, member: &MdMember, every: u64) -> Fix {
        if member.is_reshaping {
            return note_only(RESHAPE);
        }
        let chunk = match member.chunk_bytes {
            0 => String::new(),
            bytes => format!(" --chunk={}K", bytes >> 10),
        };
        let offset = (64_u64 << 20).next_multiple_of(every) >> 10;
        let mut devices = vec![DEVICE.to_owned(); member.members as usize];
        for (id, layer) in self.stack.iter() {
            if let Kind::MdMember(other) = &layer.kind
                && other.array == member.array
                && self.stack.above(id).next().is_some()
                && let Some(role) = other.role
                && let Some(device) = devices.get_mut(role as usize)
                && let Some(on) = layer.on.first()
                && let Some(node) = &self.stack.layer(on.layer).node
            {
                *device = quoted(node);
            }
        }
        let explanation = if devices.iter().any(|device| device == DEVICE) {
            ", where each DEVICE stands for the device of a member, in the order of the members"
        } else {
            ""
        };
        let note = format!("the data of an array's members {COPY_AWAY}");
        let Some((level, layout)) = level(member.level).zip(layout(member.level, member.layout))
        else {
            return note_only(&note);
        };
        note_only(&format!(
            "{note}: `mdadm --create /dev/md0 --level={level}{layout} --raid-devices={}{chunk} --data-offset={offset}K {}`{explanation}",
            member.members,
            devices.join(" ")
        ))
    }
}

/// Returns mdadm's name of a level; `None` if mdadm creates no such array for data.
fn level(level: RaidLevel) -> Option<&'static str> {
    Some(match level {
        RaidLevel::Linear => "linear",
        RaidLevel::Raid0 => "0",
        RaidLevel::Raid1 => "1",
        RaidLevel::Raid4 => "4",
        RaidLevel::Raid5 => "5",
        RaidLevel::Raid6 => "6",
        RaidLevel::Raid10 => "10",
        RaidLevel::Other => return None,
    })
}

/// Returns mdadm's option for a layout, with a space before it: nothing for the default, and `None`
/// for a layout that mdadm does not create. The numbers are those of md(4) and raid5.h of the
/// kernel.
fn layout(level: RaidLevel, layout: u32) -> Option<String> {
    let name = match (level, layout) {
        (RaidLevel::Raid5 | RaidLevel::Raid6, 2) | (RaidLevel::Raid10, 0x102) => {
            return Some(String::new());
        }
        (RaidLevel::Raid5 | RaidLevel::Raid6, _) => match layout {
            0 => "left-asymmetric",
            1 => "right-asymmetric",
            3 => "right-symmetric",
            4 => "parity-first",
            5 => "parity-last",
            _ => return None,
        }
        .to_owned(),
        // Bits 0 to 7 count near copies, bits 8 to 15 far copies; bit 16 selects the offset layout.
        (RaidLevel::Raid10, _) => match (layout >> 16, layout >> 8 & 0xff, layout & 0xff) {
            (0, 1, near) => format!("n{near}"),
            (0, far, 1) => format!("f{far}"),
            (1, far, 1) => format!("o{far}"),
            _ => return None,
        },
        _ => return Some(String::new()),
    };
    Some(format!(" --layout={name}"))
}
