//! The GUID partition table (GPT) of UEFI: a header and a list of entries, with a copy of both at
//! the end of the drive.
//!
//! Source: UEFI specification 2.10, chapter 5. A table may have been written for another sector
//! size; it is then looked for at the offset for that size. Existing crates reject inconsistent
//! tables; this parser reads them, because the inconsistencies must be reported.

use super::error::Parsed;
use super::fields::{Fields, header};
use super::gpt_copy::{GptCopy, differences};
use super::mbr::Partitioned;
use super::{BootSector, Partition, PartitionRole, Scheme, Table};
use crate::source::Source;

/// The sector sizes for which a table may be written.
const SECTOR_SIZES: [u64; 4] = [512, 4096, 1024, 2048];

/// The maximum number of bytes to read from a list of entries: 32 times the usual 128 entries of
/// 128 bytes.
const LIST_BYTES_MAX: u64 = 512 << 10;

/// The damage that is reported for a table whose primary copy is missing.
const ONLY_BACKUP: &str = "only its backup is present";

const HEADER_CHECKSUM: &str = "the checksum of its header is wrong";
const LIST_CHECKSUM: &str = "the checksum of its entries is wrong";

const HEADER_BYTES_MIN: u32 = 92;
const ENTRY_BYTES_MIN: u32 = 128;

/// Parses a table. Among primary copies, and then among backups, one for sectors of `sector_bytes`
/// takes precedence. If a primary copy is damaged and its backup is intact, the partitions are
/// those of the backup, as in sfdisk and gdisk. If both copies are intact but differ, they are
/// those of the primary copy, as in the kernel.
///
/// # Errors
/// Returns an error if the bytes cannot be read. Inconsistencies are reported in [`Table::damage`].
pub fn parse(source: &dyn Source, sector_bytes: u64) -> Parsed<Partitioned> {
    let sizes = || std::iter::once(sector_bytes).chain(SECTOR_SIZES);
    for size in sizes() {
        if let Some(primary) = Header::read(source, size, 1)? {
            return Ok(Some(match primary.intact_backup(source)? {
                Some((problem, backup)) => {
                    let (mut table, partitions) = backup.table(source)?;
                    table.damage.insert(0, shown_instead(&problem, backup.at));
                    (table, partitions)
                }
                None => primary.table(source)?,
            }));
        }
    }
    for size in sizes() {
        let sectors = source.bytes() / size.max(1);
        if sectors > 1
            && let Some(backup) = Header::read(source, size, sectors - 1)?
        {
            let (mut table, partitions) = backup.table(source)?;
            table.damage.insert(0, ONLY_BACKUP.to_owned());
            return Ok(Some((table, partitions)));
        }
    }
    Ok(None)
}

/// Returns whether [`parse`] found only the backup of a table.
pub(super) fn is_only_backup(table: &Table) -> bool {
    table.damage.iter().any(|damage| damage == ONLY_BACKUP)
}

/// Returns whether the headers of both copies of a table are intact and in their places for a drive
/// of this length, which means that the table belongs to the whole drive.
pub(super) fn spans(source: &dyn Source, sector_bytes: u64) -> Result<bool, super::LayerError> {
    let last = (source.bytes() / sector_bytes).saturating_sub(1);
    let primary = Header::read(source, sector_bytes, 1)?;
    let backup = Header::read(source, sector_bytes, last)?;
    Ok(
        primary.is_some_and(|header| header.checksum_matches && header.other == last)
            && backup.is_some_and(|header| header.checksum_matches && header.own == last),
    )
}

/// Returns the damage that is reported for a table whose backup replaces a primary copy with this
/// problem.
fn shown_instead(problem: &str, backup: u64) -> String {
    format!(
        "{problem}, so the partitions shown are those of its backup in sector {backup}, which is intact"
    )
}

/// Returns whether an entry describes a partition. The type of an unused one is zero.
fn is_used(entry: &[u8]) -> bool {
    entry[..16] != [0; 16]
}

struct Header {
    sector_bytes: u64,
    /// The sector that holds the header.
    at: u64,
    /// The sector that the header states for itself.
    own: u64,
    /// The sector that the header states for its other copy.
    other: u64,
    disk_guid: String,
    first_usable: u64,
    last_usable: u64,
    list_at: u64,
    entries: u32,
    entry_bytes: u32,
    list_crc: u32,
    /// Whether the header's size is possible and its checksum is right.
    checksum_matches: bool,
}

impl Header {
    /// Reads the header in sector `at`, if there is one.
    fn read(
        source: &dyn Source,
        sector_bytes: u64,
        at: u64,
    ) -> Result<Option<Header>, super::LayerError> {
        let Some(sector) = header(source, at.saturating_mul(sector_bytes), 512)? else {
            return Ok(None);
        };
        if !sector.starts_with(b"EFI PART") {
            return Ok(None);
        }
        let fields = Fields(&sector);
        let header_bytes = fields.le32(12);
        let checksum_matches = (HEADER_BYTES_MIN..=512).contains(&header_bytes) && {
            let mut checked = sector[..header_bytes as usize].to_vec();
            checked[16..20].fill(0);
            crc32fast::hash(&checked) == fields.le32(16)
        };
        Ok(Some(Header {
            sector_bytes,
            at,
            own: fields.le64(24),
            other: fields.le64(32),
            disk_guid: fields.guid(56),
            first_usable: fields.le64(40),
            last_usable: fields.le64(48),
            list_at: fields.le64(72),
            entries: fields.le32(80),
            entry_bytes: fields.le32(84),
            list_crc: fields.le32(88),
            checksum_matches,
        }))
    }

    fn table(&self, source: &dyn Source) -> Result<Partitioned, super::LayerError> {
        let mut damage = Vec::new();
        if !self.checksum_matches {
            damage.push(HEADER_CHECKSUM.to_owned());
        }
        if self.own != self.at {
            damage.push(self.misplaced());
        }
        let is_intact = self.is_intact(source)?;
        let intact_backup = match self.at {
            1 => self.check_backup(source, &mut damage)?,
            _ => None,
        };
        let copies_differ = match &intact_backup {
            Some(backup) if is_intact => self.compare(backup, source, &mut damage)?,
            _ => false,
        };
        let partitions = self.partitions(source, &mut damage)?;
        let table = Table {
            scheme: Scheme::Gpt,
            no_intact_copy: !is_intact && intact_backup.is_none(),
            copies_differ,
            sector_bytes: self.sector_bytes,
            last_usable_sector: Some(self.last_usable),
            damage,
            boot_sector: BootSector::Usual,
        };
        Ok((table, partitions))
    }

    /// Returns whether the header is in the sector that it states, and the header and its entries
    /// have the right checksums. A list that is too long to be read in full counts as damaged.
    fn is_intact(&self, source: &dyn Source) -> Result<bool, super::LayerError> {
        Ok(self.problem(source)?.is_none())
    }

    /// Returns the first reason why the copy is not intact; `None` if it is.
    fn problem(&self, source: &dyn Source) -> Result<Option<String>, super::LayerError> {
        if !self.checksum_matches {
            return Ok(Some(HEADER_CHECKSUM.to_owned()));
        }
        if self.own != self.at {
            return Ok(Some(self.misplaced()));
        }
        if self.list_bytes() > LIST_BYTES_MAX {
            let problem = format!("its {} entries are too many to be checked", self.entries);
            return Ok(Some(problem));
        }
        Ok(match self.list(source)? {
            None => Some(self.unreadable_list()),
            Some(list) if crc32fast::hash(&list) != self.list_crc => Some(LIST_CHECKSUM.to_owned()),
            Some(_) => None,
        })
    }

    /// Returns the problem of a primary copy and the backup that replaces it, if the copy is
    /// damaged and the backup is intact. The backup is in the sector that an undamaged header
    /// states, or in the last one.
    fn intact_backup(
        &self,
        source: &dyn Source,
    ) -> Result<Option<(String, Header)>, super::LayerError> {
        let Some(problem) = self.problem(source)? else {
            return Ok(None);
        };
        let last = (source.bytes() / self.sector_bytes).saturating_sub(1);
        let stated = self.checksum_matches.then_some(self.other);
        for at in stated.into_iter().chain([last]).filter(|&at| at > 1) {
            if let Some(backup) = Header::read(source, self.sector_bytes, at)?
                && backup.is_intact(source)?
            {
                return Ok(Some((problem, backup)));
            }
        }
        Ok(None)
    }

    /// Returns the description of a header that is not in the sector that it states.
    fn misplaced(&self) -> String {
        format!(
            "its header claims to be in sector {} but is in sector {}",
            self.own, self.at
        )
    }

    /// Returns the description of a list of entries that cannot be read.
    fn unreadable_list(&self) -> String {
        format!(
            "its entries would be in sector {}, which cannot be read",
            self.list_at
        )
    }

    /// Adds the problems of a primary copy's backup to `damage`, and returns the backup if it is
    /// intact.
    fn check_backup(
        &self,
        source: &dyn Source,
        damage: &mut Vec<String>,
    ) -> Result<Option<Header>, super::LayerError> {
        let last = (source.bytes() / self.sector_bytes).saturating_sub(1);
        let backup = Header::read(source, self.sector_bytes, self.other)?;
        let is_intact = match &backup {
            Some(backup) => backup.is_intact(source)?,
            None => false,
        };
        if self.other > last {
            damage.push(format!(
                "its backup would be in sector {}, beyond the last one, {last}: the table is from a larger drive",
                self.other
            ));
        } else if backup.is_none() {
            damage.push(format!("there is no backup in sector {}", self.other));
        } else if !is_intact {
            damage.push(format!("its backup in sector {} is damaged", self.other));
        } else if self.other != last {
            damage.push(format!(
                "its backup is in sector {}, not in the last one, {last}: the table is from a smaller drive",
                self.other
            ));
        }
        Ok(backup.filter(|_| is_intact))
    }

    /// Adds the differences between an intact primary copy and its intact backup to `damage`, and
    /// returns whether there are any.
    fn compare(
        &self,
        backup: &Header,
        source: &dyn Source,
        damage: &mut Vec<String>,
    ) -> Result<bool, super::LayerError> {
        let differences = differences(&self.copy(source)?, &backup.copy(source)?);
        if !differences.is_empty() {
            damage.push(format!(
                "its two copies differ, although the checksums of both are right: {}; the partitions shown are those of the primary copy, as in the kernel, and the backup is in sector {}",
                differences.join("; "),
                backup.at
            ));
        }
        Ok(!differences.is_empty())
    }

    /// Returns the content of an intact copy. Entries of an invalid size count as none.
    fn copy(&self, source: &dyn Source) -> Result<GptCopy, super::LayerError> {
        let list = match self.has_valid_entry_size() {
            true => self.list(source)?.unwrap_or_default(),
            false => Vec::new(),
        };
        let entries = list.chunks_exact(self.entry_bytes.max(1) as usize);
        Ok(GptCopy {
            disk_guid: self.disk_guid.clone(),
            first_usable: self.first_usable,
            last_usable: self.last_usable,
            entries: (1..)
                .zip(entries)
                .filter(|(_, entry)| is_used(entry))
                .map(|(number, entry)| (number, entry.to_owned()))
                .collect(),
        })
    }

    /// Returns the stated length of the list of entries in bytes.
    fn list_bytes(&self) -> u64 {
        u64::from(self.entries) * u64::from(self.entry_bytes)
    }

    /// Reads the whole list of entries; `None` if it lies beyond the end.
    fn list(&self, source: &dyn Source) -> Result<Option<Vec<u8>>, super::LayerError> {
        let at = self.list_at.saturating_mul(self.sector_bytes);
        Ok(header(source, at, self.list_bytes() as usize)?)
    }

    fn has_valid_entry_size(&self) -> bool {
        (ENTRY_BYTES_MIN..=4096).contains(&self.entry_bytes) && self.entry_bytes.is_power_of_two()
    }

    fn partitions(
        &self,
        source: &dyn Source,
        damage: &mut Vec<String>,
    ) -> Result<Vec<Partition>, super::LayerError> {
        let entry_bytes = self.entry_bytes;
        if !self.has_valid_entry_size() {
            damage.push(format!(
                "its entry size of {entry_bytes} bytes is invalid; 128, 256, …, 4096 are allowed"
            ));
            return Ok(Vec::new());
        }
        let stated_bytes = self.list_bytes();
        let list_bytes = stated_bytes.min(LIST_BYTES_MAX);
        if list_bytes < stated_bytes {
            damage.push(format!(
                "it states {} entries; only the first {} are checked",
                self.entries,
                list_bytes / u64::from(entry_bytes)
            ));
        }
        let at = self.list_at.saturating_mul(self.sector_bytes);
        let Some(list) = header(source, at, list_bytes as usize)? else {
            damage.push(self.unreadable_list());
            return Ok(Vec::new());
        };
        if list_bytes == stated_bytes && crc32fast::hash(&list) != self.list_crc {
            damage.push(LIST_CHECKSUM.to_owned());
        }
        let mut partitions = Vec::new();
        for (index, entry) in list.chunks_exact(entry_bytes as usize).enumerate() {
            if !is_used(entry) {
                continue;
            }
            let fields = Fields(entry);
            let (first, last) = (fields.le64(32), fields.le64(40));
            let number = index as u32 + 1;
            if last < first {
                damage.push(format!(
                    "partition {number} ends in sector {last}, before its start in sector {first}"
                ));
                continue;
            }
            if last == u64::MAX {
                damage.push(format!(
                    "partition {number} ends in sector {last}, beyond the end of any drive"
                ));
                continue;
            }
            if first < self.first_usable || last > self.last_usable {
                damage.push(format!(
                    "partition {number}, sectors {first} to {last}, is outside the usable sectors, {} to {}",
                    self.first_usable, self.last_usable
                ));
            }
            partitions.push(Partition {
                number,
                role: PartitionRole::Primary,
                type_code: fields.guid(0),
                first_sector: first,
                sectors: last - first + 1,
            });
        }
        Ok(partitions)
    }
}
