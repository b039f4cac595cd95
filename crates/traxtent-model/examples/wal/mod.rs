//! A write-ahead log on a modelled disk: group commit, and recovery after a power cut.
//!
//! A [`Log`] is the database's state in memory, which a crash loses. The [`Disk`] is passed to each
//! call and survives a crash. Like the disk, the log is a state machine: time is an argument.
//!
//! Each record fills a sector. Its checksum covers the checksum of the previous record, so remains
//! of lost records never continue a newer log.

use std::collections::BTreeSet;

use traxtent_model::disk::{Command, Disk, DiskError, Tag};
use traxtent_units::{Lbn, SimTime};

/// The number of sectors that recovery reads at a time.
const RECOVERY_SECTORS: u64 = 128;

/// A log that begins at LBN 0.
pub(crate) struct Log {
    /// Whether a record is acknowledged only after a flush.
    flushes: bool,
    /// The bytes of the records for the next write.
    waiting: Vec<u8>,
    /// The number of records appended, including those that wait.
    appended: u64,
    /// The checksum of the last of them.
    checksum: u64,
    /// The number of records in the writes submitted so far.
    submitted: u64,
    /// The number of records acknowledged.
    acknowledged: u64,
    /// The outstanding command. There is one at a time.
    outstanding: Option<(Tag, Command)>,
}

impl Log {
    /// Reads the log, beginning at time `now`. Returns it, ready for records, with the transactions
    /// found. The reads run on the disk's own clock, which is then ahead of `now` by the time that
    /// they took.
    pub(crate) fn recover(
        disk: &mut Disk,
        now: SimTime,
        flushes: bool,
    ) -> Result<(Log, Vec<u64>), DiskError> {
        // Completions of commands from before the crash.
        while disk.poll(now).is_some() {}
        let sector = disk.sector_bytes() as usize;
        let mut chunk = vec![0; RECOVERY_SECTORS as usize * sector];
        let (mut checksum, mut found) = (0, Vec::new());
        'log: loop {
            disk.read(found.len() as u64, &mut chunk)?;
            for record in chunk.chunks_exact(sector) {
                let (stored, body) = record.split_at(8);
                let sum = checksum_of(checksum, body);
                if stored != sum.to_le_bytes() {
                    break 'log;
                }
                checksum = sum;
                found.push(u64::from_le_bytes(body[..8].try_into().expect("8 bytes")));
            }
        }
        let records = found.len() as u64;
        let log = Log {
            flushes,
            waiting: Vec::new(),
            appended: records,
            checksum,
            submitted: records,
            acknowledged: records,
            outstanding: None,
        };
        Ok((log, found))
    }

    /// Appends the record of a transaction. It is acknowledged once [`Log::acknowledged`] is
    /// greater than the number returned. Call [`Log::poll`] next, which may start the write.
    pub(crate) fn append(&mut self, disk: &Disk, transaction: u64) -> u64 {
        let mut body = vec![0; disk.sector_bytes() as usize - 8];
        body[..8].copy_from_slice(&transaction.to_le_bytes());
        self.checksum = checksum_of(self.checksum, &body);
        self.waiting.extend(self.checksum.to_le_bytes());
        self.waiting.extend(body);
        self.appended += 1;
        self.appended - 1
    }

    /// Advances the log to `now`. All waiting records become one write, followed by a flush if the
    /// log flushes. The next write begins after that.
    pub(crate) fn poll(&mut self, disk: &mut Disk, now: SimTime) -> Result<(), DiskError> {
        while let Some(done) = disk.poll(now) {
            let Some((tag, command)) = self.outstanding.take() else {
                unreachable!("the disk has only this log's commands");
            };
            assert_eq!(done.tag, tag);
            done.outcome?;
            if self.flushes && command != Command::Flush {
                self.submit(disk, now, Command::Flush, Vec::new())?;
            } else {
                self.acknowledged = self.submitted;
            }
        }
        if self.outstanding.is_none() && !self.waiting.is_empty() {
            let command = Command::Write {
                lbn: Lbn(self.submitted),
                sectors: (self.appended - self.submitted) as u32,
                fua: false,
            };
            self.submitted = self.appended;
            let data = std::mem::take(&mut self.waiting);
            self.submit(disk, now, command, data)?;
        }
        Ok(())
    }

    /// The number of acknowledged records. Records with numbers below it are acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    fn submit(
        &mut self,
        disk: &mut Disk,
        now: SimTime,
        command: Command,
        data: Vec<u8>,
    ) -> Result<(), DiskError> {
        let tag = disk.submit(now, command, data)?;
        self.outstanding = Some((tag, command));
        Ok(())
    }
}

/// Cuts the power to a disk and recovers its log. Returns the number of distinct transactions
/// found, and the number of acknowledged ones that are lost.
pub(crate) fn cut_and_count(
    disk: &mut Disk,
    seed: u64,
    acknowledged: &[u64],
) -> Result<(usize, usize), DiskError> {
    disk.power_cut(seed)?;
    let (_, found) = Log::recover(disk, disk.now(), true)?;
    let found: BTreeSet<u64> = found.into_iter().collect();
    let lost = acknowledged.iter().filter(|sent| !found.contains(sent));
    Ok((found.len(), lost.count()))
}

/// Returns a percentile of sorted values. There must be at least one value.
pub(crate) fn percentile<T: Copy>(sorted: &[T], percent: usize) -> T {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Returns the FNV-1a hash of the previous record's checksum and the bytes of this record.
fn checksum_of(before: u64, body: &[u8]) -> u64 {
    let bytes = before.to_le_bytes();
    let bytes = bytes.iter().chain(body);
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
