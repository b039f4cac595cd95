//! Cleaning: which segments, and how their living blocks move (Rosenblum and Ousterhout, "The Design
//! and Implementation of a Log-Structured File System", TOCS 1992, section 3).
//!
//! A pass reads its victims whole, as the write cost of paper T counts them, sorts what lives in them
//! by age, writes it to the head of the log, and ends with a checkpoint, which makes the victims free.

use std::fmt;
use std::str::FromStr;

use super::error::LogError;
use super::format::{Entry, Summary};
use super::segments::{Segment, SegmentTable};
use super::{Log, Op, Then};
use crate::units::Sectors;

/// Which segments are cleaned first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Those with the least in them: `greedy`.
    #[default]
    Greedy,
    /// Those with the most of free space times age over cost, (1 - u) age / (1 + u): `cost-benefit`.
    CostBenefit,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 2] = [Policy::Greedy, Policy::CostBenefit];

    /// How much a segment is worth cleaning that so much of lives in, so long after it was written.
    fn worth(self, utilization: f64, age: f64) -> f64 {
        match self {
            Policy::Greedy => 1.0 - utilization,
            Policy::CostBenefit => (1.0 - utilization) * age / (1.0 + utilization),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Policy::Greedy => "greedy",
            Policy::CostBenefit => "cost-benefit",
        })
    }
}

impl FromStr for Policy {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Policy, LogError> {
        let found = Policy::ALL
            .into_iter()
            .find(|policy| policy.to_string() == text);
        found.ok_or_else(|| LogError::Name {
            text: text.to_owned(),
            expected: "greedy or cost-benefit",
        })
    }
}

/// How a log is cleaned. It may differ from one opening of the log to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Which segments.
    pub policy: Policy,
    /// How many segments a pass shall win, at least. More make for fewer checkpoints, and keep more
    /// of the device free; the log takes more than this where it must to win anything.
    pub segments: u32,
}

impl Default for Cleaning {
    fn default() -> Cleaning {
        Cleaning {
            policy: Policy::default(),
            segments: 8,
        }
    }
}

/// What has to stay free, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserve {
    /// Below this a pass begins.
    pub(super) low: u64,
    /// Above this it picks no more victims.
    pub(super) goal: u64,
    /// What a checkpoint can take: all map pages, and the ends of chunks.
    pub(super) checkpoint: u64,
    /// Below this nothing new is taken.
    pub(super) least: u64,
}

impl Reserve {
    /// Blocks lost where chunks end early. A pass ends three within a segment, each for a summary more,
    /// which takes a grain, and at most the last block of the segment.
    const SLOP: u64 = 8;

    /// What segments of these rooms need for `blocks` blocks and `pages` map pages to be cleaned for
    /// ever; nothing, if they are too many.
    ///
    /// A pass must win room: the dead blocks of its victims have to exceed what its checkpoint
    /// writes. Victims have at least the average of dead blocks, so this says how many there must be.
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

/// A pass of cleaning under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// Victims that have not been read.
    left: usize,
    copies: Vec<Copied>,
    /// Blocks that were free when it began.
    free_before: u64,
}

/// A living block of a victim.
#[derive(Clone, Debug)]
struct Copied {
    block: u64,
    crc: u32,
    data: Vec<u8>,
    /// When the youngest block of its segment was written.
    youngest: u64,
}

impl Log {
    /// Begins a pass of cleaning if there is too little room, none is under way, and one can win.
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
        let mut pass = Pass {
            free_before: self.table.free_room(),
            ..Pass::default()
        };
        for victim in victims {
            let Segment {
                first,
                sectors,
                live,
                ..
            } = self.table.lines()[victim];
            // What nothing lives in needs no more than the checkpoint.
            if live > 0 {
                pass.left += 1;
                self.traffic.cleaning_read += u64::from(sectors);
                let sectors = Sectors(sectors.into());
                let read = Op::Read {
                    lbn: first,
                    sectors,
                };
                self.ask(read, Then::Victim(victim));
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
        if self.won(&chosen) > self.reserve.checkpoint {
            return chosen;
        }
        // The policy would rather clean what wins little. That must not use up the last room.
        let most_won = self.choose(|line, room| f64::from(room - line.live));
        if self.won(&most_won) > self.won(&chosen) {
            most_won
        } else {
            chosen
        }
    }

    /// The segments worth most, as many as the room for copies and the goal allow.
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
            let (live, room) = of(table, segment);
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
        let (live, room) = of(&self.table, segment);
        segment != self.head.segment
            && !self.table.is_free(segment)
            && !self.stuck.contains(&segment)
            && live < room
    }

    /// Dead blocks of segments.
    fn won(&self, segments: &[usize]) -> u64 {
        let dead = |segment: &usize| {
            let (live, room) = of(&self.table, *segment);
            room - live
        };
        segments.iter().map(dead).sum()
    }

    /// Takes a victim's bytes, or that they cannot be read: then it stays as it is.
    pub(super) fn victim_read(
        &mut self,
        victim: usize,
        bytes: Option<&[u8]>,
    ) -> Result<(), LogError> {
        let found = match bytes {
            Some(bytes) => self.living(victim, bytes),
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

    /// What lives in a segment, as its chunks tell and the index confirms. Map pages that live there
    /// are to be written anew.
    fn living(&mut self, segment: usize, bytes: &[u8]) -> Result<Vec<Copied>, LogError> {
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
                problem: "its summaries do not tell all that lives in it",
            });
        }
        for page in pages {
            self.index.soil(page);
        }
        Ok(copies)
    }

    /// Writes what was alive in the victims, oldest first, and a checkpoint.
    fn copy_out(&mut self) {
        let pass = self.pass.as_mut().expect("a pass is under way");
        let mut copies = std::mem::take(&mut pass.copies);
        copies.sort_by_key(|copy| (copy.youngest, copy.block));
        self.traffic.copied_blocks += copies.len() as u64;
        for copy in copies {
            let Copied { block, crc, .. } = copy;
            self.append(Entry::Data { block, crc }, &copy.data, copy.youngest);
        }
        self.write_checkpoint();
    }

    /// Ends a pass whose checkpoint is durable. Goes on if there is still too little room.
    pub(super) fn end_pass(&mut self) {
        if let Some(pass) = self.pass.take()
            && self.table.free_room() > pass.free_before
        {
            self.keep_room();
        }
    }
}

/// Blocks alive in a segment, and blocks that it takes.
fn of(table: &SegmentTable, segment: usize) -> (u64, u64) {
    let line = &table.lines()[segment];
    (line.live.into(), table.rooms()[segment].into())
}
