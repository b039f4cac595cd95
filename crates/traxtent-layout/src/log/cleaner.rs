//! Cleaning: the choice of segments, and the copying of their live blocks (Rosenblum and
//! Ousterhout, "The Design and Implementation of a Log-Structured File System", TOCS 1992, section
//! 3).
//!
//! A cleaning pass reads those of its segments, the *victims*, that have live blocks. Each is read
//! as a whole, as paper T's write cost assumes. The pass sorts the live blocks by age, writes them
//! to the head of the log, and ends with a checkpoint, which makes the victims free.

use std::fmt;
use std::str::FromStr;

use super::error::LogError;
use super::format::{Entry, Summary};
use super::segments::{Segment, SegmentTable};
use super::{Completion, Log, LogOp};
use traxtent_units::Sectors;

/// The order in which segments are cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CleaningPolicy {
    /// Segments with the smallest share of live blocks first: `greedy`.
    #[default]
    Greedy,
    /// Segments with the highest ratio of benefit to cost first: (1 - u) age / (1 + u), where u is
    /// the share of live blocks: `cost-benefit`.
    CostBenefit,
}

impl CleaningPolicy {
    /// All policies.
    pub const ALL: [CleaningPolicy; 2] = [CleaningPolicy::Greedy, CleaningPolicy::CostBenefit];

    /// Returns the benefit of cleaning a segment with this utilization and age.
    fn worth(self, utilization: f64, age: f64) -> f64 {
        match self {
            CleaningPolicy::Greedy => 1.0 - utilization,
            CleaningPolicy::CostBenefit => (1.0 - utilization) * age / (1.0 + utilization),
        }
    }
}

impl fmt::Display for CleaningPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CleaningPolicy::Greedy => "greedy",
            CleaningPolicy::CostBenefit => "cost-benefit",
        })
    }
}

impl FromStr for CleaningPolicy {
    type Err = LogError;

    fn from_str(text: &str) -> Result<CleaningPolicy, LogError> {
        let found = CleaningPolicy::ALL
            .into_iter()
            .find(|policy| policy.to_string() == text);
        found.ok_or_else(|| LogError::Name {
            text: text.to_owned(),
            expected: "greedy or cost-benefit",
        })
    }
}

/// The cleaning configuration. It can differ from one opening of the log to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// The policy that chooses segments.
    pub policy: CleaningPolicy,
    /// The minimum number of segments that a pass should free. A larger number means fewer
    /// checkpoints, but keeps more of the device free. The log uses a larger number if a pass of
    /// this size would free nothing.
    pub segments: u32,
}

impl Default for Cleaning {
    fn default() -> Cleaning {
        Cleaning {
            policy: CleaningPolicy::default(),
            segments: 8,
        }
    }
}

/// The blocks that must stay free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserve {
    /// A pass begins when fewer blocks than this are free.
    pub(super) low: u64,
    /// A pass picks no more victims once this many blocks would be free.
    pub(super) goal: u64,
    /// The most blocks that a checkpoint can take: all map pages, and the ends of chunks.
    pub(super) checkpoint: u64,
    /// No new data is accepted when fewer blocks than this are free.
    pub(super) least: u64,
}

impl Reserve {
    /// The number of blocks allowed for losses where chunks end early. A pass ends three chunks
    /// within a segment. Each costs one more summary, which takes a grain, and at most the last
    /// block of the segment.
    const SLOP: u64 = 8;

    /// Returns the reserve with which cleaning can always continue, given the capacities of the
    /// segments, `blocks` blocks and `pages` map pages. `None` if the blocks and pages are too
    /// many.
    ///
    /// A pass must free space: its victims must have more dead blocks than its checkpoint writes.
    /// Victims have at least the average number of dead blocks, which determines the number of
    /// victims.
    pub(super) fn new(
        rooms: &[u32],
        blocks: u64,
        pages: u64,
        cleaning: Cleaning,
    ) -> Option<Reserve> {
        let total: u64 = rooms.iter().map(|room| u64::from(*room)).sum();
        let most = u64::from(*rooms.iter().max()?);
        let checkpoint = pages + Self::SLOP;
        let mut victims = u64::from(cleaning.segments.max(1));
        loop {
            let low = (victims + 1) * most + checkpoint;
            let dead = total.checked_sub(low + most + blocks + pages)?;
            if victims * dead > checkpoint * rooms.len() as u64 {
                let goal = low + u64::from(cleaning.segments.max(1)) * most;
                let least = checkpoint + most;
                return Some(Reserve {
                    low,
                    goal,
                    checkpoint,
                    least,
                });
            }
            victims += 1;
        }
    }
}

/// A cleaning pass in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct CleaningPass {
    /// The number of victims that have not been read yet.
    left: usize,
    copies: Vec<Copied>,
    /// The number of blocks that were free when the pass began.
    free_before: u64,
}

/// A live block of a victim.
#[derive(Clone, Debug)]
struct Copied {
    block: u64,
    crc: u32,
    data: Vec<u8>,
    /// The time at which the youngest block of its segment was written.
    youngest: u64,
}

impl Log {
    /// Begins a cleaning pass if there is too little free space and no pass is in progress. If no
    /// segment can be cleaned, it only writes the open chunk.
    pub(super) fn keep_room(&mut self) {
        if self.table.free_room() < self.reserve.low && self.pass.is_none() {
            self.begin_pass();
        }
    }

    pub(super) fn begin_pass(&mut self) {
        self.seal();
        let victims = self.victims();
        if victims.is_empty() {
            return;
        }
        let mut pass = CleaningPass {
            free_before: self.table.free_room(),
            ..CleaningPass::default()
        };
        for victim in victims {
            let Segment {
                first,
                sectors,
                live,
                ..
            } = self.table.lines()[victim];
            // A segment without live blocks needs only the checkpoint.
            if live > 0 {
                pass.left += 1;
                self.traffic.cleaning_read += u64::from(sectors);
                let sectors = Sectors(sectors.into());
                let read = LogOp::Read {
                    lbn: first,
                    sectors,
                };
                self.issue(read, Completion::Victim(victim));
            }
        }
        let nothing_to_read = pass.left == 0;
        self.pass = Some(pass);
        if nothing_to_read {
            self.copy_out();
        }
    }

    fn victims(&self) -> Vec<usize> {
        let chosen = self.choose(|line, room| {
            let utilization = f64::from(line.live) / f64::from(room);
            let age = self.clock.saturating_sub(line.youngest) + 1;
            self.cleaning.policy.worth(utilization, age as f64)
        });
        if self.dead_blocks(&chosen) > self.reserve.checkpoint {
            return chosen;
        }
        // The policy's segments free no more than a checkpoint takes. Repeated, such passes would
        // use up the free space.
        let most_dead = self.choose(|line, room| f64::from(room - line.live));
        if self.dead_blocks(&most_dead) > self.dead_blocks(&chosen) {
            most_dead
        } else {
            chosen
        }
    }

    /// Returns the most worthwhile segments: as many as the goal requires and the space for copies
    /// allows.
    fn choose(&self, worth: impl Fn(&Segment, u32) -> f64) -> Vec<usize> {
        let table = &self.table;
        let mut order: Vec<(f64, usize)> = (0..table.lines().len())
            .filter(|segment| self.is_cleanable(*segment))
            .map(|segment| {
                (
                    worth(&table.lines()[segment], table.rooms()[segment]),
                    segment,
                )
            })
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let budget = table.free_room().saturating_sub(self.reserve.checkpoint);
        let (mut copied, mut free) = (0, table.free_room());
        let mut victims = Vec::new();
        for (_, segment) in order {
            let (live, room) = live_and_capacity(table, segment);
            if free >= self.reserve.goal + copied {
                break;
            }
            if copied + live <= budget {
                copied += live;
                free += room;
                victims.push(segment);
            }
        }
        victims
    }

    fn is_cleanable(&self, segment: usize) -> bool {
        let (live, room) = live_and_capacity(&self.table, segment);
        segment != self.head.segment
            && !self.table.is_free(segment)
            && !self.stuck.contains(&segment)
            && live < room
    }

    /// Returns the number of dead blocks in these segments.
    fn dead_blocks(&self, segments: &[usize]) -> u64 {
        let dead = |segment: &usize| {
            let (live, room) = live_and_capacity(&self.table, *segment);
            room - live
        };
        segments.iter().map(dead).sum()
    }

    /// Accepts a victim's bytes. `None` means that the victim could not be read; it then stays as
    /// it is.
    pub(super) fn victim_read(
        &mut self,
        victim: usize,
        bytes: Option<&[u8]>,
    ) -> Result<(), LogError> {
        let found = match bytes {
            Some(bytes) => self.live_blocks(victim, bytes),
            None => Err(LogError::Damaged {
                at: self.table.lines()[victim].first,
            }),
        };
        let pass = self.pass.as_mut().expect("victims are read in a pass");
        pass.left -= 1;
        let last = pass.left == 0;
        let outcome = match found {
            Ok(copies) => {
                pass.copies.extend(copies);
                Ok(())
            }
            Err(error) => {
                self.stuck.insert(victim);
                Err(error)
            }
        };
        if last {
            self.copy_out();
        }
        outcome
    }

    /// Returns the live blocks of a segment, as listed in its chunks and confirmed by the index.
    /// Marks the current map pages in the segment as dirty; they are then written again.
    fn live_blocks(&mut self, segment: usize, bytes: &[u8]) -> Result<Vec<Copied>, LogError> {
        let line = self.table.lines()[segment];
        let size = self.shape.block_bytes();
        let mut copies = Vec::new();
        let mut pages = Vec::new();
        let mut at = line.first;
        loop {
            let offset = (at.0 - line.first.0) as usize * self.shape.sector_bytes as usize;
            let Ok(summary) = Summary::decode(&bytes[offset..], at) else {
                break;
            };
            if summary.id != self.id {
                break;
            }
            for (entry, place) in summary.placed(self.shape) {
                match entry {
                    Entry::Map { page, .. } if self.index.page(page) == place => pages.push(page),
                    Entry::Data { block, crc } if self.index.block(block) == place => {
                        let start = (place.lbn.0 - line.first.0) as usize
                            * self.shape.sector_bytes as usize;
                        let data = bytes.get(start..start + size).map(<[u8]>::to_vec);
                        let data = data.filter(|data| crc32fast::hash(data) == crc);
                        copies.push(Copied {
                            block,
                            crc,
                            data: data.ok_or(LogError::Damaged { at: place.lbn })?,
                            youngest: line.youngest,
                        });
                    }
                    _ => {}
                }
            }
            if summary.next <= at || summary.next >= line.end() {
                break;
            }
            at = summary.next;
        }
        if copies.len() + pages.len() != line.live as usize {
            return Err(LogError::Format {
                at: line.first,
                what: "a segment",
                problem: "its summaries do not list all of its live blocks",
            });
        }
        for page in pages {
            self.index.mark_dirty(page);
        }
        Ok(copies)
    }

    /// Writes the live blocks of the victims, oldest first, and a checkpoint.
    fn copy_out(&mut self) {
        let pass = self.pass.as_mut().expect("a pass is in progress");
        let mut copies = std::mem::take(&mut pass.copies);
        copies.sort_by_key(|copy| (copy.youngest, copy.block));
        self.traffic.copied_blocks += copies.len() as u64;
        for copy in copies {
            let Copied { block, crc, .. } = copy;
            self.append(Entry::Data { block, crc }, &copy.data, copy.youngest);
        }
        self.write_checkpoint();
    }

    /// Ends a pass after its checkpoint is durable. Begins another if this one has freed space, but
    /// there is still too little.
    pub(super) fn end_pass(&mut self) {
        if let Some(pass) = self.pass.take()
            && self.table.free_room() > pass.free_before
        {
            self.keep_room();
        }
    }
}

/// Returns the number of live blocks in a segment, and its capacity in blocks.
fn live_and_capacity(table: &SegmentTable, segment: usize) -> (u64, u64) {
    let line = &table.lines()[segment];
    (line.live.into(), table.rooms()[segment].into())
}
