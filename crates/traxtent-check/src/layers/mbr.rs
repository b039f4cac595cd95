//! The partition table of the PC: four entries in the first sector, and a chain of tables in an
//! extended partition.
//!
//! Source: the format as Linux reads it (block/partitions/msdos.c). Sector numbers are in
//! logical sectors; the table does not state their size. Existing crates reject inconsistent
//! tables; this parser reads them, because the inconsistencies must be reported.

use super::error::Parsed;
use super::fields::{Fields, header};
use super::{BootSector, Partition, PartitionRole, Scheme, Table};
use crate::source::Source;

/// The maximum number of tables in the chain of an extended partition; Linux stops at 256
/// partitions.
const CHAIN_MAX: usize = 256;

const ENTRY_AT: usize = 446;
const ENTRY_BYTES: usize = 16;

/// A table and its partitions.
pub type Partitioned = (Table, Vec<Partition>);

/// Parses a table for sectors of `sector_bytes`.
///
/// # Errors
/// Returns an error if the bytes cannot be read. Inconsistencies are reported in [`Table::damage`].
pub fn parse(source: &dyn Source, sector_bytes: u64) -> Parsed<Partitioned> {
    let Some(sector) = header(source, 0, 512)? else {
        return Ok(None);
    };
    let Some(entries) = entries(&sector) else {
        return Ok(None);
    };
    let mut reader = Reader {
        source,
        sector_bytes,
        partitions: Vec::new(),
        damage: Vec::new(),
    };
    let mut containers = Vec::new();
    let used = || entries.iter().enumerate().filter(|(_, entry)| entry.used());
    for (index, entry) in used().filter(|(_, entry)| !entry.protects_gpt()) {
        let role = if entry.is_extended() {
            containers.push(*entry);
            PartitionRole::Extended
        } else {
            PartitionRole::Primary
        };
        reader.push(index as u32 + 1, role, *entry);
    }
    if containers.len() > 1 {
        let problem = format!("it has {} extended partitions", containers.len());
        reader.damage.push(problem);
    }
    if let Some(container) = containers.first() {
        reader.follow(*container)?;
    }
    let table = Table {
        scheme: Scheme::Mbr,
        no_intact_copy: false,
        copies_differ: false,
        sector_bytes,
        last_usable_sector: None,
        damage: reader.damage,
        boot_sector: if used().any(|(_, entry)| entry.protects_gpt()) {
            BootSector::ProtectsNothing
        } else {
            BootSector::Usual
        },
    };
    Ok(Some((table, reader.partitions)))
}

/// How Linux interprets the first sector (block/partitions/efi.c and msdos.c). Linux reads a GPT
/// only if an MBR protects it, and then reads no other partitions of that MBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstSector {
    /// Not an MBR, or one without entries.
    NoTable,
    /// An MBR with partitions.
    Partitions,
    /// An MBR that protects a GPT.
    Protective,
    /// An MBR that protects a GPT and repeats some of its partitions.
    Hybrid,
}

/// Returns Linux's interpretation of the first sector.
pub(super) fn first_sector(source: &dyn Source) -> Result<FirstSector, super::LayerError> {
    let entries = header(source, 0, 512)?.as_deref().and_then(entries);
    let used = entries.iter().flatten().filter(|entry| entry.used());
    let (protecting, others): (Vec<&Entry>, Vec<&Entry>) =
        used.partition(|entry| entry.protects_gpt());
    Ok(match (protecting.is_empty(), others.is_empty()) {
        (true, true) => FirstSector::NoTable,
        (true, false) => FirstSector::Partitions,
        (false, true) => FirstSector::Protective,
        (false, false) => FirstSector::Hybrid,
    })
}

#[derive(Clone, Copy)]
struct Entry {
    code: u8,
    first: u64,
    sectors: u64,
}

impl Entry {
    fn used(self) -> bool {
        self.code != 0 && self.sectors != 0
    }

    fn protects_gpt(self) -> bool {
        self.code == 0xee
    }

    fn is_extended(self) -> bool {
        matches!(self.code, 0x05 | 0x0f | 0x85)
    }
}

/// Returns the four entries, if the sector is a table.
fn entries(sector: &[u8]) -> Option<[Entry; 4]> {
    if sector.len() < 512 || sector[510..512] != [0x55, 0xaa] {
        return None;
    }
    let at = |index: usize| ENTRY_AT + index * ENTRY_BYTES;
    // The boot sector of a file system ends in the same two bytes, but its code does not look like
    // a list of flags.
    if (0..4).any(|index| sector[at(index)] & 0x7f != 0) {
        return None;
    }
    let entry = |index: usize| {
        let fields = Fields(&sector[at(index)..at(index) + ENTRY_BYTES]);
        Entry {
            code: fields.0[4],
            first: u64::from(fields.le32(8)),
            sectors: u64::from(fields.le32(12)),
        }
    };
    Some([entry(0), entry(1), entry(2), entry(3)])
}

struct Reader<'a> {
    source: &'a dyn Source,
    sector_bytes: u64,
    partitions: Vec<Partition>,
    damage: Vec<String>,
}

impl Reader<'_> {
    fn push(&mut self, number: u32, role: PartitionRole, entry: Entry) {
        self.partitions.push(Partition {
            number,
            role,
            type_code: format!("{:02x}", entry.code),
            first_sector: entry.first,
            sectors: entry.sectors,
        });
    }

    /// Follows the chain of tables: each holds a logical partition and the position of the next
    /// table.
    fn follow(&mut self, container: Entry) -> Result<(), super::LayerError> {
        let mut seen = Vec::new();
        let mut at = container.first;
        let mut number = 5;
        loop {
            if seen.contains(&at) {
                let problem = format!("the chain of logical partitions loops back to sector {at}");
                self.damage.push(problem);
                return Ok(());
            }
            if seen.len() == CHAIN_MAX {
                let problem =
                    format!("the chain of logical partitions has more than {CHAIN_MAX} tables");
                self.damage.push(problem);
                return Ok(());
            }
            seen.push(at);
            let sector = header(self.source, at.saturating_mul(self.sector_bytes), 512)?;
            let Some(entries) = sector.as_deref().and_then(entries) else {
                let problem =
                    format!("sector {at}, in the chain of logical partitions, is not a table");
                self.damage.push(problem);
                return Ok(());
            };
            let is_data = |entry: &&Entry| entry.used() && !entry.is_extended();
            if let Some(entry) = entries.iter().find(is_data) {
                let logical = Entry {
                    first: at + entry.first,
                    ..*entry
                };
                if logical.first + logical.sectors > container.first + container.sectors {
                    let problem =
                        format!("logical partition {number} reaches beyond the extended one");
                    self.damage.push(problem);
                }
                self.push(number, PartitionRole::Logical, logical);
                number += 1;
            }
            match entries
                .iter()
                .find(|entry| entry.used() && entry.is_extended())
            {
                Some(next) => at = container.first + next.first,
                None => return Ok(()),
            }
        }
    }
}
