//! The rules, which derive [`Finding`]s from a [`Stack`].
//!
//! Paper A is the source for the layers that have to be aligned with each other. The modules name
//! other sources. A rule reports a problem once, for the layer that has to be changed.

mod grid;
mod hints;
mod sizes;
mod starts;
mod tables;
mod tracks;

pub(crate) use grid::{CommonLines, array_below, common_lines, physical_below};
pub(crate) use tables::luks_remainder;
pub use tracks::{Extent, TrackCheck};

use std::collections::BTreeSet;

use crate::finding::{Finding, Rule, Severity};
use crate::layers::{Array, Disk, MdMember, MediaKind, PhysicalVolume, Remnant, Unknown};
use crate::stack::{ByteRange, Kind, Layer, LayerId, Stack};

/// The system's message for a file that the user is not permitted to read.
const PERMISSION_DENIED: &str = "Permission denied";

/// The largest number of missing members that are listed one by one.
const MISSING_LISTED_MAX: usize = 8;

type Findings = Vec<Finding>;

/// Returns all findings of a stack, worst first, and damage before other faults.
pub fn check(stack: &Stack, tracks: Option<&TrackCheck<'_>>) -> Vec<Finding> {
    let mut findings = Findings::new();
    for (id, layer) in stack.iter() {
        match &layer.kind {
            Kind::Disk(disk) => drive_kind(id, disk, &layer.name, &mut findings),
            Kind::Unknown(unknown) => content(stack, id, unknown, &mut findings),
            Kind::MdMember(member) => unused_member(stack, id, member, &mut findings),
            Kind::PhysicalVolume(volume) => older_metadata(stack, id, volume, &mut findings),
            Kind::Array(array) => missing_members(stack, id, array, &mut findings),
            _ => {}
        }
    }
    tables::check(stack, &mut findings);
    starts::check(stack, &mut findings);
    sizes::check(stack, &mut findings);
    hints::check(stack, &mut findings);
    if let Some(tracks) = tracks {
        tracks.check(stack, &mut findings);
    }
    findings.sort_by_key(|finding| {
        (
            std::cmp::Reverse(finding.severity),
            !finding.rule.is_damage(),
            finding.layer,
            finding.rule,
        )
    });
    findings
}

/// Reports a drive that is shingled or solid-state, with advice for its use.
fn drive_kind(id: LayerId, disk: &Disk, name: &str, findings: &mut Findings) {
    let (rule, what) = match disk.medium {
        MediaKind::ShingledHostManaged => (
            Rule::Shingled,
            format!(
                "{name} is shingled and host-managed: file systems on it must write zones in order \
                 (Btrfs, F2FS, XFS with zones), and alignment to tracks has no effect"
            ),
        ),
        MediaKind::ShingledHostAware => (
            Rule::Shingled,
            format!(
                "{name} is shingled and reports its zones: it accepts writes in any order and reorders them later, so \
                 write zones in order, in long runs, and keep it out of arrays with parity; small writes are slow \
                 wherever they begin"
            ),
        ),
        MediaKind::ShingledHidden => (
            Rule::Shingled,
            format!(
                "{name} is shingled and hides this: it collects writes and rewrites bands later, so write to it in long runs, \
                 leave it idle in between, and keep it out of arrays with parity, where a rebuild takes days"
            ),
        ),
        MediaKind::SolidStateZoned => (
            Rule::SolidState,
            format!(
                "{name} is solid-state, zoned and host-managed: file systems on it must write zones in order \
                 (Btrfs, F2FS, XFS with zones), and it has no tracks"
            ),
        ),
        MediaKind::SolidState => (
            Rule::SolidState,
            match disk.erase_bytes {
                Some(erase) => format!(
                    "{name} is solid-state: it is checked against erase blocks of {}",
                    bytes(erase)
                ),
                None => format!(
                    "{name} is solid-state: the size of its erase blocks is not known; begin partitions at multiples of \
                     1 MiB, or specify --erase-block"
                ),
            },
        ),
        MediaKind::Unknown | MediaKind::Rotating => return,
    };
    findings.push(Finding::new(rule, id, what));
}

/// Reports the missing members of an array. Members are counted from 1; mdadm's numbers for them,
/// which begin at 0, are in parentheses.
fn missing_members(stack: &Stack, id: LayerId, array: &Array, findings: &mut Findings) {
    let layer = stack.layer(id);
    let role = |on: &ByteRange| match &stack.layer(on.layer).kind {
        Kind::MdMember(member) => member.role,
        _ => None,
    };
    let there: BTreeSet<u32> = layer.on.iter().filter_map(role).collect();
    let missing: Vec<u32> = (0..array.members)
        .filter(|role| !there.contains(role))
        .collect();
    let (name, of) = (&layer.name, array.members);
    let absent = if layer.node.is_some() {
        "missing"
    } else {
        "not given"
    };
    let what = match missing.as_slice() {
        [] => return,
        [role] => format!(
            "member {} of {of} of {name} (RaidDevice {role} of mdadm) is {absent}: its alignment is not checked",
            role + 1
        ),
        _ if missing.len() > MISSING_LISTED_MAX => format!(
            "{} of {of} members of {name} are {absent}: their alignment is not checked",
            missing.len()
        ),
        _ => {
            let list = |first: u32| {
                let numbers = missing.iter().map(|role| (role + first).to_string());
                numbers.collect::<Vec<_>>().join(", ")
            };
            format!(
                "members {} of {of} of {name} (RaidDevice {} of mdadm) are {absent}: their alignment is not checked",
                list(1),
                list(0)
            )
        }
    };
    findings.push(Finding::new(Rule::ArrayIncomplete, id, what));
}

/// Reports a member that its array does not use, because another one is newer or has its role.
fn unused_member(stack: &Stack, id: LayerId, member: &MdMember, findings: &mut Findings) {
    if stack.above(id).next().is_some() {
        return;
    }
    let others = stack.iter().filter_map(|(other, layer)| match &layer.kind {
        Kind::MdMember(found) if other != id && found.array == member.array => Some((other, found)),
        _ => None,
    });
    let others: Vec<(LayerId, &MdMember)> = others.collect();
    let newest = others.iter().map(|(_, other)| other.events).max();
    let title = stack.title(id);
    let what = match newest.filter(|newest| *newest > member.events) {
        Some(newest) => format!(
            "{title} is older than other members of its array (events {} of {newest}), so it is not used",
            member.events
        ),
        None => match others.iter().find(|(_, other)| other.role == member.role) {
            Some(&(other, _)) => format!(
                "{title} has the role of {} in the same array, so it is not used",
                stack.title(other)
            ),
            None => return,
        },
    };
    findings.push(Finding::new(Rule::OlderMetadata, id, what));
}

/// Reports a physical volume whose metadata is older than that of its group's other volumes.
fn older_metadata(stack: &Stack, id: LayerId, volume: &PhysicalVolume, findings: &mut Findings) {
    if volume.sequence == 0 || volume.sequence >= volume.group_sequence {
        return;
    }
    let what = format!(
        "{} has version {} of the metadata of group {}; version {} of another volume is used",
        stack.title(id),
        volume.sequence,
        volume.group.as_deref().unwrap_or("of unknown name"),
        volume.group_sequence
    );
    findings.push(Finding::new(Rule::OlderMetadata, id, what));
}

fn content(stack: &Stack, id: LayerId, unknown: &Unknown, findings: &mut Findings) {
    let on = stack.layer(id).on.first().map_or(id, |place| place.layer);
    let name = &stack.layer(on).name;
    let (rule, what) = match unknown {
        Unknown::Named(what) => (
            Rule::UnknownContent,
            format!("{name} holds {what}, which is not checked further"),
        ),
        Unknown::Container(format) => (
            Rule::UnknownContent,
            format!("{name} is a {format} image; the disk in it is not examined"),
        ),
        Unknown::Nameless => (
            Rule::UnknownContent,
            format!("the content of {name} is not known, so its alignment is not checked"),
        ),
        Unknown::Headless { byte, found } => (
            Rule::UnknownContent,
            match found {
                Some(found) => format!(
                    "{name} has no header at its start, but {found}: a partition table is possibly \
                     lost, and the alignment is not checked"
                ),
                None => format!(
                    "{name} has no header at its start, but data at byte {byte}, so its alignment \
                     is not checked"
                ),
            },
        ),
        Unknown::Elsewhere(reason) => (
            Rule::UnknownContent,
            format!("{name} is not examined: {reason}"),
        ),
        Unknown::Unreadable(reason) => (
            Rule::Unreadable,
            format!(
                "{name} cannot be read: {reason}{}",
                remedy(stack.layer(on), reason)
            ),
        ),
        Unknown::Damaged(reason) => (Rule::Damaged, format!("{name} is damaged: {reason}")),
        Unknown::Remnant(remnant) => return self::remnant(stack, id, name, remnant, findings),
        Unknown::Blank => return,
    };
    findings.push(Finding::new(rule, id, what));
}

/// Returns the remedy for a device or a file that the user is not permitted to read, otherwise
/// nothing.
fn remedy(layer: &Layer, reason: &str) -> &'static str {
    match (reason == PERMISSION_DENIED, &layer.node) {
        (false, _) => "",
        (true, Some(_)) => "; use sudo, or run as a member of the device's group, usually `disk`",
        (true, None) => "; use sudo, or run as a user who may read the file",
    }
}

/// Reports a remnant of an earlier use of a drive.
fn remnant(stack: &Stack, id: LayerId, name: &str, remnant: &Remnant, findings: &mut Findings) {
    let drive = stack.layer(id).on.first().map_or(id, |place| place.layer);
    let content = stack
        .above(drive)
        .map(|(above, _)| above)
        .find(|above| *above != id)
        .map_or("other content", |above| match &stack.layer(above).kind {
            Kind::Unknown(Unknown::Named(name)) => name.as_str(),
            _ => stack.layer(above).name.as_str(),
        });
    let what = format!(
        "{name} holds {content}, but also {} from an earlier use{}",
        remnant.what,
        if remnant.is_ambiguous {
            "; tools may take it for the content"
        } else {
            ", which the kernel ignores"
        }
    );
    let severity = if remnant.is_ambiguous {
        Rule::Remnant.severity()
    } else {
        Severity::Info
    };
    findings.push(Finding::new(Rule::Remnant, id, what).with_severity(severity));
}

/// Formats a number of bytes in the largest unit that divides it.
pub fn bytes(count: u64) -> String {
    let units = [
        (1u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    for (unit, name) in units {
        if count >= unit && count.is_multiple_of(unit) {
            return format!("{} {name}", count / unit);
        }
    }
    format!("{count} B")
}

#[cfg(test)]
mod tests {
    /// Are sizes formatted in the largest unit that divides them, or in bytes if none does?
    #[test]
    fn sizes_in_the_largest_unit() {
        let text = [0, 512, 4096, 1 << 20, 3 << 19, 33_553_920].map(super::bytes);
        assert_eq!(
            text,
            ["0 B", "512 B", "4 KiB", "1 MiB", "1536 KiB", "33553920 B"]
        );
    }
}
