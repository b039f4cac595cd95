//! The comparison of the two copies of a GPT.
//!
//! Source: UEFI specification 2.10, section 5.3. Positions, checksums and the number of entries are
//! not compared, because they do not change the partitions.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::Fields;

/// The maximum number of differences to name. Tables that have little in common differ everywhere.
const NAMED_MAX: usize = 6;

/// The content of an intact copy.
pub(super) struct GptCopy {
    pub(super) disk_guid: String,
    pub(super) first_usable: u64,
    pub(super) last_usable: u64,
    /// The entries that are in use, by the number of the partition. Each has at least 128 bytes.
    pub(super) entries: BTreeMap<u32, Vec<u8>>,
}

/// Returns the differences between the copies, each as a clause; empty if they agree.
pub(super) fn differences(primary: &GptCopy, backup: &GptCopy) -> Vec<String> {
    let numbers: BTreeSet<u32> = [primary, backup]
        .iter()
        .flat_map(|copy| copy.entries.keys().copied())
        .collect();
    let entry = |copy: &'_ GptCopy, number| copy.entries.get(&number).cloned();
    let mut found: Vec<String> = numbers
        .into_iter()
        .filter_map(|number| {
            entry_difference(number, entry(primary, number), entry(backup, number))
        })
        .collect();
    if primary.disk_guid != backup.disk_guid {
        found.push(format!(
            "the GUID of the drive is {} in the primary copy, but {} in the backup",
            primary.disk_guid, backup.disk_guid
        ));
    }
    let usable = |copy: &GptCopy| (copy.first_usable, copy.last_usable);
    if usable(primary) != usable(backup) {
        found.push(format!(
            "the usable sectors are {} to {} in the primary copy, but {} to {} in the backup",
            primary.first_usable, primary.last_usable, backup.first_usable, backup.last_usable
        ));
    }
    if found.len() > NAMED_MAX {
        let more = found.split_off(NAMED_MAX - 1).len();
        found.push(format!("there are {more} more differences"));
    }
    found
}

/// Returns the difference between the entries of a partition.
fn entry_difference(
    number: u32,
    primary: Option<Vec<u8>>,
    backup: Option<Vec<u8>>,
) -> Option<String> {
    let sectors = |entry: &[u8]| {
        let fields = Fields(entry);
        format!("sectors {} to {}", fields.le64(32), fields.le64(40))
    };
    let (primary, backup) = match (primary, backup) {
        (Some(primary), Some(backup)) => (primary, backup),
        (Some(only), None) => {
            let at = sectors(&only);
            return Some(format!(
                "partition {number}, {at}, is only in the primary copy"
            ));
        }
        (None, Some(only)) => {
            let at = sectors(&only);
            return Some(format!("partition {number}, {at}, is only in the backup"));
        }
        (None, None) => return None,
    };
    if primary[32..48] != backup[32..48] {
        return Some(format!(
            "partition {number} is {} in the primary copy, but {} in the backup",
            sectors(&primary),
            sectors(&backup)
        ));
    }
    let properties: Vec<&str> = [
        ("type", 0..16),
        ("GUID", 16..32),
        ("attributes", 48..56),
        ("name", 56..128),
    ]
    .into_iter()
    .filter(|(_, bytes)| primary[bytes.clone()] != backup[bytes.clone()])
    .map(|(property, _)| property)
    .collect();
    (!properties.is_empty()).then(|| {
        format!(
            "partition {number} differs in these properties: {}",
            properties.join(", ")
        )
    })
}
