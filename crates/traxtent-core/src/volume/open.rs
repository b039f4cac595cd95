//! Making volumes, putting them together, and recovering them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use uuid::Uuid;

use super::record::{Entry, Record};
use super::superblock::{
    MEMBERS_MAX, MemberEntry, MemberState, SUPERBLOCK_BYTES, Superblock, SuperblockError, lost_max,
    maps_sectors, superblock_sectors,
};
use super::{
    Failures, Members, Op, Ops, State, Volume, VolumeError, WriteHole, encoded, failures, live,
};
use crate::layout::raid::{Array, Holds, Stripe};
use crate::units::{Lbn, Sectors};

/// Bytes that are read at once where a journal is searched.
const SEARCH_BYTES: usize = 1 << 20;

/// What a volume is made with.
#[derive(Clone, Debug)]
pub struct Format {
    /// The volume.
    pub volume: Uuid,
    /// 0, 1, 4 or 5.
    pub level: u8,
    /// What a chunk is: the number of a name in the list of the layout.
    pub rule: u8,
    /// Sectors of a chunk where all have the same, else 0.
    pub chunk: u32,
    /// Chunks are multiples of so many sectors.
    pub granule: u32,
    /// Spare tracks of each member.
    pub spares: u32,
    /// Bytes of a logical sector.
    pub sector_bytes: u32,
    /// Sectors of the journal on each member.
    pub journal: Sectors,
    /// The members: who, how many sectors, and the text of the track map.
    pub members: Vec<(Uuid, Sectors, Vec<u8>)>,
}

impl Format {
    /// The first superblock, whose capacity has yet to be set; nothing if a member is too small for it.
    pub fn superblock(&self) -> Option<Superblock> {
        let maps: u64 = self
            .members
            .iter()
            .map(|(_, _, map)| map.len() as u64)
            .sum();
        let maps = maps_sectors(maps, self.sector_bytes);
        let front = superblock_sectors(self.sector_bytes) + maps;
        let journal = Lbn(front.0)..Lbn(front.0) + self.journal;
        let entry = |(id, sectors, map): &(Uuid, Sectors, Vec<u8>)| {
            let end = sectors.0.checked_sub(front.0)?;
            (journal.end.0 < end).then_some(MemberEntry {
                id: *id,
                state: MemberState::Active,
                sectors: *sectors,
                data: journal.end..Lbn(end),
                map_bytes: map.len() as u32,
                map_crc: crc32fast::hash(map),
            })
        };
        let fits = (1..=MEMBERS_MAX).contains(&self.members.len());
        Some(Superblock {
            volume: self.volume,
            index: 0,
            members: self
                .members
                .iter()
                .map(entry)
                .collect::<Option<_>>()
                .filter(|_| fits)?,
            level: self.level,
            rule: self.rule,
            chunk: self.chunk,
            granule: self.granule,
            spares: self.spares,
            sector_bytes: self.sector_bytes,
            journal,
            maps,
            capacity: Sectors(0),
            generation: 1,
            epoch: 1,
            clean: true,
            synced: 0,
            scrubbed: 0,
            lost: Vec::new(),
        })
    }

    /// Writes what makes members of the drives: their track maps and superblocks.
    ///
    /// # Errors
    /// The first member that fails.
    pub async fn write(
        &self,
        superblock: &Superblock,
        members: &impl Members,
    ) -> Result<(), VolumeError> {
        let sector = superblock.sector_bytes as usize;
        let mut maps: Vec<u8> = self
            .members
            .iter()
            .flat_map(|(_, _, map)| map.iter().copied())
            .collect();
        maps.resize(superblock.maps.0 as usize * sector, 0);
        let all = 0..superblock.members.len();
        let blocks: Vec<Vec<u8>> = all
            .clone()
            .map(|index| encoded(superblock, index))
            .collect();
        let front = Lbn(superblock_sectors(superblock.sector_bytes).0);
        let second = |index| superblock.second(index);
        let mut steps: [Ops<'_>; 3] = Default::default();
        for index in all.clone() {
            if !maps.is_empty() {
                steps[0].push(Op::write(index, front, &maps));
                steps[0].push(Op::write(index, second(index) - superblock.maps, &maps));
            }
            steps[1].push(Op::write(index, Lbn(0), &blocks[index]));
            steps[2].push(Op::write(index, second(index), &blocks[index]));
        }
        for mut ops in steps {
            members.run(&mut ops).await;
            let mut flushes: Ops<'_> = all.clone().map(Op::flush).collect();
            members.run(&mut flushes).await;
            if let Some(&member) = failures(&ops).iter().chain(&failures(&flushes)).next() {
                let problem = "cannot be written";
                return Err(VolumeError::Member { member, problem });
            }
        }
        Ok(())
    }
}

/// Reads both superblocks of a drive of so many sectors, and returns the later one that is whole.
///
/// # Errors
/// What is wrong with the first one, if neither is whole.
pub async fn survey(
    members: &impl Members,
    member: usize,
    sectors: Sectors,
    sector_bytes: u32,
) -> Result<Superblock, SuperblockError> {
    let length = superblock_sectors(sector_bytes);
    let mut found: Result<Superblock, SuperblockError> = Err(SuperblockError::None);
    let mut bytes =
        members.buffer((length.0 as usize * sector_bytes as usize).max(SUPERBLOCK_BYTES));
    let second = sectors.0.checked_sub(length.0).map(Lbn);
    for at in [Some(Lbn(0)), second].into_iter().flatten() {
        let mut ops = [Op::read(member, at, &mut bytes)];
        members.run(&mut ops).await;
        if ops[0].outcome.is_err() {
            continue;
        }
        let decoded = Superblock::decode(&bytes).and_then(|superblock| {
            let own = &superblock.members[superblock.index];
            if superblock.sector_bytes != sector_bytes {
                return Err(SuperblockError::Elsewhere("has sectors of another size"));
            }
            if own.sectors > sectors {
                return Err(SuperblockError::Elsewhere("is smaller, or was cut short"));
            }
            Ok(superblock)
        });
        found = match (found, decoded) {
            (Ok(one), Ok(two)) if two.generation > one.generation => Ok(two),
            (Ok(one), _) => Ok(one),
            (Err(_), Ok(two)) => Ok(two),
            (Err(SuperblockError::None), Err(error)) | (Err(error), Err(_)) => Err(error),
        };
    }
    found
}

/// Members that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// What they agree on. Members that are missing have failed in it.
    pub superblock: Superblock,
    /// For each member which of the given superblocks was its own.
    pub given: Vec<Option<usize>>,
}

/// Why members are not put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// Nothing was given.
    #[error("no members are given")]
    Nothing,
    /// Members of two volumes.
    #[error("number {given} belongs to volume {theirs}, number 0 to {ours}")]
    Foreign {
        /// Which was given.
        given: usize,
        /// Its volume.
        theirs: Uuid,
        /// That of the first.
        ours: Uuid,
    },
    /// The same member in two places.
    #[error("numbers {first} and {given} are the same member, {member}")]
    Twice {
        /// Which was given.
        given: usize,
        /// And before.
        first: usize,
        /// Which member.
        member: usize,
    },
    /// A member that the others went on without.
    #[error(
        "number {given} is stale: the others have declared member {member} failed, or replaced it; leave it out"
    )]
    Stale {
        /// Which was given.
        given: usize,
        /// Which member it was.
        member: usize,
    },
    /// Members are missing.
    #[error("{} missing; {}", list(.members), if *.enough { "name it too; or, if it is gone for good, `assemble --force` goes on without redundancy" } else { "the others are not enough to go on" })]
    Missing {
        /// Which.
        members: Vec<usize>,
        /// Whether the rest is enough.
        enough: bool,
    },
}

fn list(members: &[usize]) -> String {
    let names: Vec<String> = members.iter().map(usize::to_string).collect();
    match members.len() {
        1 => format!("member {} is", names[0]),
        _ => format!("members {} are", names.join(", ")),
    }
}

/// Puts members together by their superblocks. With `force`, members that the others expect may be missing.
///
/// # Errors
/// Why they do not belong together, or are not enough.
pub fn choose(found: &[Superblock], force: bool) -> Result<Assembly, AssemblyError> {
    // First of all: members of two volumes say nothing of each other.
    for (number, one) in found.iter().enumerate() {
        if one.volume != found[0].volume {
            return Err(AssemblyError::Foreign {
                given: number,
                theirs: one.volume,
                ours: found[0].volume,
            });
        }
    }
    let newest = found.iter().max_by_key(|superblock| superblock.generation);
    let Some(newest) = newest else {
        return Err(AssemblyError::Nothing);
    };
    let mut superblock = newest.clone();
    let mut given: Vec<Option<usize>> = vec![None; superblock.members.len()];
    for (number, one) in found.iter().enumerate() {
        let member = one.index;
        let own = superblock.members.get(member);
        let is_current = own.is_some_and(|own| {
            own.id == one.members[member].id && own.state != MemberState::Failed
        });
        if !is_current {
            return Err(AssemblyError::Stale {
                given: number,
                member,
            });
        }
        if let Some(first) = given[member].replace(number) {
            return Err(AssemblyError::Twice {
                given: number,
                first,
                member,
            });
        }
    }
    let mut members: Vec<usize> = Vec::new();
    for (index, member) in superblock.members.iter_mut().enumerate() {
        if given[index].is_none() && member.state != MemberState::Failed {
            members.push(index);
            member.state = MemberState::Failed;
        }
    }
    let active = superblock
        .members
        .iter()
        .filter(|member| member.state == MemberState::Active)
        .count();
    let enough = match superblock.level {
        0 => active == superblock.members.len(),
        1 => active > 0,
        _ => active + 1 >= superblock.members.len(),
    };
    if !enough || !members.is_empty() && !force {
        return Err(AssemblyError::Missing { members, enough });
    }
    Ok(Assembly { superblock, given })
}

impl<M: Members> Volume<M> {
    /// Opens a volume whose members have been put together: what a crash left is made whole.
    ///
    /// # Errors
    /// If a member fails meanwhile, or more data are lost than can be noted; what is on the members is then as
    /// recoverable as before.
    pub async fn open(
        array: Array,
        members: M,
        superblock: Superblock,
        hole: WriteHole,
    ) -> Result<Self, VolumeError> {
        let volume = Volume::new(array, members, superblock, hole);
        {
            let mut state = volume.gate.write().await;
            if volume.journals() && !state.superblock.clean {
                let lost = volume.replay(&state).await?;
                note_lost(&mut state.superblock, lost)?;
            }
            state.superblock.epoch += 1;
            state.superblock.clean = false;
            volume.persist(&mut state).await?;
        }
        Ok(volume)
    }

    /// Does again what the journal tells of; returns what is lost.
    async fn replay(&self, state: &State) -> Result<Vec<Range<u64>>, VolumeError> {
        let records = self.records(&state.superblock).await?;
        let mut intents = BTreeSet::new();
        for (record, data) in records.values() {
            let mut rest = &data[..];
            let mut ops = Ops::new();
            for entry in &record.entries {
                match *entry {
                    Entry::Intent { stripe } => {
                        if stripe < self.array.stripes() {
                            intents.insert(stripe);
                        }
                    }
                    Entry::Place {
                        stripe,
                        member,
                        at,
                        sectors,
                    } => {
                        let (now, later) = rest.split_at(sectors as usize * self.sector_bytes);
                        rest = later;
                        let entry = state.superblock.members.get(member as usize);
                        let end = at.0.checked_add(sectors.into());
                        let fits = entry.zip(end).is_some_and(|(entry, end)| {
                            at >= entry.data.start && end <= entry.data.end.0
                        });
                        if !fits {
                            return Err(VolumeError::Record { member, at });
                        }
                        if self.is_live(state, member as usize, stripe) {
                            ops.push(Op::write(member as usize, at, now));
                        }
                    }
                }
            }
            self.members.run(&mut ops).await;
            all_well(&failures(&ops))?;
        }
        let mut lost = Vec::new();
        for number in intents {
            let stripe = self.stripe(number);
            self.resync(state, &stripe, &mut lost).await?;
        }
        let mut ops: Ops<'_> = live(&state.superblock).map(Op::flush).collect();
        self.members.run(&mut ops).await;
        all_well(&failures(&ops))?;
        Ok(lost)
    }

    /// The records that are not settled, in order.
    async fn records(
        &self,
        superblock: &Superblock,
    ) -> Result<BTreeMap<u64, (Record, Vec<u8>)>, VolumeError> {
        let bytes = self.sector_bytes;
        let sectors = (superblock.journal.end.0 - superblock.journal.start.0) as usize;
        let mut records = BTreeMap::new();
        let mut tail = 0;
        for member in live(superblock) {
            let mut journal = self.members.buffer(sectors * bytes);
            let mut ops = Ops::new();
            let step = SEARCH_BYTES / bytes * bytes;
            for (index, part) in journal.chunks_mut(step).enumerate() {
                let at = superblock.journal.start + Sectors((index * (step / bytes)) as u64);
                ops.push(Op::read(member, at, part));
            }
            self.members.run(&mut ops).await;
            for op in ops {
                if let (Err(_), super::Action::Read(_, part)) = (op.outcome, op.action) {
                    // The other copies of those records are elsewhere.
                    part.fill(0);
                }
            }
            for position in 0..sectors {
                let (volume, epoch) = (superblock.volume, superblock.epoch);
                let found = Record::read(
                    &journal[position * bytes..],
                    position as u64,
                    volume,
                    epoch,
                    bytes,
                );
                if let Some((record, data)) = found {
                    tail = tail.max(record.tail);
                    if record.sequence >= tail {
                        records
                            .entry(record.sequence)
                            .or_insert_with(|| (record, data.to_vec()));
                    }
                }
            }
        }
        Ok(records.split_off(&tail))
    }

    /// Makes the parity or the copies of a stripe agree that was in flight.
    async fn resync(
        &self,
        state: &State,
        stripe: &Stripe<'_>,
        lost: &mut Vec<Range<u64>>,
    ) -> Result<(), VolumeError> {
        let Some(parity) = stripe.parity_member() else {
            return match self.scrub_held(state, stripe).await {
                Ok((_, failed)) => all_well(&failed),
                // No copy can be read: whoever reads it is told.
                Err(VolumeError::Unreadable(_)) => Ok(()),
                Err(error) => Err(error),
            };
        };
        let mut desks = self.desks();
        let desk = self.desk(&mut desks, 0, state, stripe, stripe.logical());
        if desk.health.failed.has(parity) {
            return Ok(());
        }
        match self.rewrite(state, parity, &mut desks.desks[..1]).await {
            Ok(failed) => all_well(&failed),
            Err(VolumeError::Unreadable(_)) => {
                let absent = desks.desks[0].health.absent();
                let gone = stripe.chunks().filter(|chunk| absent.has(chunk.member));
                let gone = gone.filter_map(|chunk| match chunk.holds {
                    Holds::Data(k) => Some(stripe.logical_of(k)),
                    Holds::Parity => None,
                });
                let gone = gone.map(|range| range.start.0..range.end.0);
                lost.extend(gone.filter(|range| !range.is_empty()));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// An error that names the first of the members that failed.
fn all_well(failed: &Failures) -> Result<(), VolumeError> {
    match failed.first() {
        None => Ok(()),
        Some(&member) => Err(VolumeError::Member {
            member,
            problem: "fails while the journal is repeated; leave it out",
        }),
    }
}

fn note_lost(superblock: &mut Superblock, lost: Vec<Range<u64>>) -> Result<(), VolumeError> {
    let mut all: Vec<Range<u64>> = superblock.lost.iter().cloned().chain(lost).collect();
    all.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in all {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    let most = lost_max(superblock.members.len());
    if merged.len() > most {
        return Err(VolumeError::TooMuchLost(most));
    }
    superblock.lost = merged;
    Ok(())
}
