//! Which devices are the current members of a volume.
//!
//! Every member has two superblocks. A round of writing them increases the generation, writes the first superblocks of all
//! members that have not failed, flushes, writes the second ones, and flushes again (`Volume::persist`). Nothing that was
//! decided is relied on before its round has ended. Three things follow for a volume that is found again:
//!
//! - If any second superblock has generation *g*, every member of that round had its first one durable at *g*. A member
//!   whose highest generation is lower missed the round: it is an old copy, or was left out. It is *stale*.
//! - A generation that is found in first superblocks alone was never relied on. It does not decide who is a member.
//! - A second superblock that cannot be read may have had the generation of the first one beside it. A member whose highest
//!   generation is below that cannot be judged, and the volume is not put together by guess.
//!
//! Two members of one generation that say different things were written to apart from each other; that is never put
//! together either. What counters cannot tell is a copy that was taken in the very generation that is found again: one taken
//! while the volume was served, and put in place of its original after a crash, before the next start.

use uuid::Uuid;

use super::superblock::{
    MemberState, SUPERBLOCK_BYTES, Superblock, SuperblockError, sizes_in, superblock_sectors,
};
use super::{Members, Op};
use crate::layout::raid::Level;
use crate::units::{Lbn, Sectors};

/// The two superblocks of a device, as they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuperblockPair {
    /// The one at the beginning.
    pub first: Result<Superblock, SuperblockError>,
    /// The one behind the member's last chunk.
    pub second: Result<Superblock, SuperblockError>,
}

impl SuperblockPair {
    /// The superblock of the higher generation; none if both are unusable.
    pub fn newest(&self) -> Option<&Superblock> {
        let both = self.first.iter().chain(&self.second);
        both.max_by_key(|superblock| superblock.generation)
    }

    /// Why the device is no member, where both superblocks are unusable: damage says more than nothing.
    ///
    /// # Errors
    /// If it is none.
    pub fn usable(&self) -> Result<&Superblock, SuperblockError> {
        match (self.newest(), &self.first, &self.second) {
            (Some(newest), ..) => Ok(newest),
            (_, Err(SuperblockError::None), Err(second)) => Err(*second),
            (_, Err(first), _) => Err(*first),
            (None, Ok(_), _) => unreachable!("it would be the newest"),
        }
    }
}

/// Reads both superblocks of every device, given the size of each in sectors and the bytes of a sector.
///
/// The second one is looked for where the first one says that it is; where the first one is unusable, at the device's
/// end, then where the other devices' superblocks, or the remains of the first one, say that the member ended: the device may
/// be larger than its member.
pub async fn survey(members: &impl Members, devices: &[(Sectors, u32)]) -> Vec<SuperblockPair> {
    let mut pairs = Vec::new();
    let mut sizes: Vec<Sectors> = Vec::new();
    for (member, &device) in devices.iter().enumerate() {
        let reader = Reader {
            members,
            member,
            device,
        };
        let (first, bytes) = reader.read(Lbn(0)).await;
        let at = match &first {
            Ok(own) => Some(own.second(own.index)),
            Err(_) => {
                sizes.extend(sizes_in(&bytes));
                reader.second_of(device.0)
            }
        };
        let second = match at {
            Some(at) => reader.read_second(at, first.as_ref().ok()).await,
            None => Err(SuperblockError::None),
        };
        for superblock in first.iter().chain(&second) {
            sizes.extend(superblock.members.iter().map(|entry| entry.sectors));
        }
        pairs.push(SuperblockPair { first, second });
    }
    sizes.sort_unstable();
    sizes.dedup();
    for (member, (pair, &device)) in pairs.iter_mut().zip(devices).enumerate() {
        let reader = Reader {
            members,
            member,
            device,
        };
        for &size in &sizes {
            if pair.newest().is_some() {
                break;
            }
            if let Some(at) = reader.second_of(size)
                && let Ok(found) = reader.read_second(at, None).await
            {
                pair.second = Ok(found);
            }
        }
    }
    pairs
}

/// Reads superblocks of one device.
struct Reader<'a, M> {
    members: &'a M,
    member: usize,
    /// Its size, and bytes of a sector.
    device: (Sectors, u32),
}

impl<M: Members> Reader<'_, M> {
    /// Where the second superblock of a member of so many sectors begins, if the device is that large.
    fn second_of(&self, sectors: Sectors) -> Option<Lbn> {
        let own = superblock_sectors(self.device.1);
        let fits = sectors <= self.device.0;
        sectors.0.checked_sub(own.0).map(Lbn).filter(|_| fits)
    }

    /// The superblock at a place, and the bytes that stand there.
    async fn read(&self, at: Lbn) -> (Result<Superblock, SuperblockError>, M::Buffer) {
        let (sectors, sector_bytes) = self.device;
        let own = superblock_sectors(sector_bytes);
        let length = own.0 as usize * sector_bytes as usize;
        let mut bytes = self.members.buffer(length.max(SUPERBLOCK_BYTES));
        if at.0.saturating_add(own.0) > sectors.0 {
            bytes.fill(0);
            return (Err(SuperblockError::None), bytes);
        }
        let mut ops = [Op::read(self.member, at, &mut bytes)];
        self.members.run(&mut ops).await;
        if ops[0].outcome.is_err() {
            bytes.fill(0);
            return (Err(SuperblockError::Unreadable), bytes);
        }
        let found = Superblock::decode(&bytes).and_then(|superblock| {
            if superblock.sector_bytes != sector_bytes {
                return Err(SuperblockError::Elsewhere("has sectors of another size"));
            }
            if superblock.members[superblock.index].sectors > sectors {
                return Err(SuperblockError::Elsewhere("is smaller, or was cut short"));
            }
            Ok(superblock)
        });
        (found, bytes)
    }

    /// The second superblock, if it is one that belongs there, and to the first one.
    async fn read_second(
        &self,
        at: Lbn,
        first: Option<&Superblock>,
    ) -> Result<Superblock, SuperblockError> {
        let found = self.read(at).await.0?;
        let is_own = |first: &Superblock| {
            let id = |superblock: &Superblock| superblock.members[superblock.index].id;
            (first.volume, first.index, id(first)) == (found.volume, found.index, id(&found))
        };
        match found.second(found.index) == at && first.is_none_or(is_own) {
            true => Ok(found),
            false => Err(SuperblockError::Mismatched),
        }
    }
}

/// Members that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// What they agree on. Members that are missing have failed in it, and those with a missing or damaged
    /// superblock are doubtful.
    pub superblock: Superblock,
    /// For each member which of the given devices is its own.
    pub given: Vec<Option<usize>>,
}

/// Why devices are not put together. Numbers named `given` count the devices in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// Nothing was given.
    #[error("no members are given")]
    Nothing,
    /// A device without a usable superblock.
    #[error("number {given}: {error}")]
    Unusable {
        /// The device.
        given: usize,
        /// What is there instead.
        error: SuperblockError,
    },
    /// Members of two volumes.
    #[error("number {given} belongs to volume {theirs}, number 0 to {ours}")]
    Foreign {
        /// The device.
        given: usize,
        /// Its volume.
        theirs: Uuid,
        /// That of the first device.
        ours: Uuid,
    },
    /// The same member in two places.
    #[error("numbers {first} and {given} are the same member, {member}")]
    Twice {
        /// The device.
        given: usize,
        /// The one before.
        first: usize,
        /// The member that both say they are.
        member: usize,
    },
    /// An old copy of a member, or one that the others went on without.
    #[error(
        "number {given} is stale: member {member} has generation {own} there, and the volume went on to {newest}; leave it out"
    )]
    Stale {
        /// The device.
        given: usize,
        /// The member that it says it is.
        member: usize,
        /// The highest generation on it.
        own: u64,
        /// That of the volume.
        newest: u64,
        /// Whether the others declared it failed, or replaced it.
        dropped: bool,
    },
    /// A member that may be stale: a superblock that would tell cannot be used.
    #[error(
        "number {given} may be stale: member {member} has generation {own} there, and member {other} has {newest} in its first superblock; its second one, which would tell, is unusable; name only the members that are current"
    )]
    Undecided {
        /// The device that may be stale.
        given: usize,
        /// The member that it says it is.
        member: usize,
        /// The highest generation on it.
        own: u64,
        /// The device whose second superblock is unusable.
        other_given: usize,
        /// The member that that says it is.
        other: usize,
        /// The generation of its first superblock.
        newest: u64,
    },
    /// Members that were written to apart from each other.
    #[error(
        "numbers {first} and {given} went separate ways: both have generation {generation} and differ; name only the members of one side"
    )]
    Diverged {
        /// A device of one side.
        first: usize,
        /// A device of the other side.
        given: usize,
        /// The generation of both.
        generation: u64,
    },
    /// Members are missing.
    #[error("{} missing; {}", list(.members), if *.enough { "name it too; or, if it is gone for good, `assemble --force` goes on without redundancy" } else { "the others are not enough to go on" })]
    Missing {
        /// The members.
        members: Vec<usize>,
        /// Whether the rest is enough.
        enough: bool,
    },
    /// A member is missing, and the parity that would make up for it was never made.
    #[error(
        "{} missing, and the initial sync has done {synced} of {stripes} stripes: blocks there cannot be computed; name it too; or, if it is gone for good, `assemble --force` goes on with what was written",
        list(.members)
    )]
    Unsynced {
        /// The members.
        members: Vec<usize>,
        /// Stripes that have parity.
        synced: u64,
        /// All stripes.
        stripes: u64,
    },
}

fn list(members: &[usize]) -> String {
    let names: Vec<String> = members.iter().map(usize::to_string).collect();
    match members.len() {
        1 => format!("member {} is", names[0]),
        _ => format!("members {} are", names.join(", ")),
    }
}

/// Puts members together by their superblocks (see the module). With `force`, members that the others expect may be missing.
///
/// # Errors
/// Why they do not belong together, or are not enough.
pub fn choose(found: &[SuperblockPair], force: bool) -> Result<Assembly, AssemblyError> {
    let newest = newest_of(found)?;
    let round = last_round(found, &newest)?;
    let mut superblock = agreed(found, round)?.clone();
    // The next round is above whatever was begun.
    let highest = newest.iter().map(|one| one.generation).max();
    superblock.generation = highest.unwrap_or(round);
    let mut given: Vec<Option<usize>> = vec![None; superblock.members.len()];
    for (number, (one, pair)) in newest.iter().zip(found).enumerate() {
        let member = one.index;
        if is_left_out(&superblock, one) {
            return Err(AssemblyError::Stale {
                given: number,
                member,
                own: one.generation,
                newest: round,
                dropped: true,
            });
        }
        if let Some(first) = given[member].replace(number) {
            return Err(AssemblyError::Twice {
                given: number,
                first,
                member,
            });
        }
        superblock.members[member].doubtful |= is_doubtful(pair, round);
    }
    let mut missing: Vec<usize> = Vec::new();
    for (index, member) in superblock.members.iter_mut().enumerate() {
        if given[index].is_none() && member.state != MemberState::Failed {
            missing.push(index);
            member.state = MemberState::Failed;
        }
    }
    let states = superblock.members.iter().map(|member| member.state);
    let active = states.filter(|state| *state == MemberState::Active).count();
    let enough = match superblock.level {
        Level::Raid0 => active == superblock.members.len(),
        Level::Raid1 => active > 0,
        Level::Raid4 | Level::Raid5 => active + 1 >= superblock.members.len(),
    };
    if !enough || !missing.is_empty() && !force {
        return Err(AssemblyError::Missing {
            members: missing,
            enough,
        });
    }
    Ok(Assembly { superblock, given })
}

/// The newest superblock of each device; all are of one volume.
fn newest_of(found: &[SuperblockPair]) -> Result<Vec<&Superblock>, AssemblyError> {
    let mut newest: Vec<&Superblock> = Vec::new();
    for (given, pair) in found.iter().enumerate() {
        let own = pair.usable();
        let own = own.map_err(|error| AssemblyError::Unusable { given, error })?;
        newest.push(own);
        if own.volume != newest[0].volume {
            return Err(AssemblyError::Foreign {
                given,
                theirs: own.volume,
                ours: newest[0].volume,
            });
        }
    }
    match newest.is_empty() {
        true => Err(AssemblyError::Nothing),
        false => Ok(newest),
    }
}

/// The generation of the last round that may have been relied on, which no device is below.
fn last_round(found: &[SuperblockPair], newest: &[&Superblock]) -> Result<u64, AssemblyError> {
    let seconds = found.iter().filter_map(|pair| pair.second.as_ref().ok());
    let ended = seconds.map(|second| second.generation).max().unwrap_or(0);
    // Rounds that may have ended: the second superblock that would tell is unusable.
    let open = found.iter().enumerate().filter_map(|(given, pair)| {
        let first = pair.first.as_ref().ok();
        first
            .filter(|_| pair.second.is_err())
            .map(|first| (first.generation, given))
    });
    let open = open.filter(|(generation, _)| *generation > ended).max();
    for (given, one) in newest.iter().enumerate() {
        if one.generation < ended {
            let table = agreed(found, ended)?;
            return Err(AssemblyError::Stale {
                given,
                member: one.index,
                own: one.generation,
                newest: ended,
                dropped: is_left_out(table, one),
            });
        }
    }
    let Some((generation, other_given)) = open else {
        return Ok(ended);
    };
    match newest.iter().position(|one| one.generation < generation) {
        None => Ok(generation),
        Some(given) => Err(AssemblyError::Undecided {
            given,
            member: newest[given].index,
            own: newest[given].generation,
            other_given,
            other: newest[other_given].index,
            newest: generation,
        }),
    }
}

/// What the superblocks of a generation say. A first one that differs from a second one was never relied on: it does
/// no harm if its member is left out anyway.
fn agreed(found: &[SuperblockPair], generation: u64) -> Result<&Superblock, AssemblyError> {
    let seconds = found.iter().map(|pair| (true, pair.second.as_ref().ok()));
    // Where the second one is unusable, the first one may have been relied on.
    let firsts = found.iter();
    let firsts = firsts.map(|pair| (pair.second.is_err(), pair.first.as_ref().ok()));
    let all = seconds.enumerate().chain(firsts.enumerate());
    let all = all.filter_map(|(given, (may_count, one))| Some((given, may_count, one?)));
    let mut all = all.filter(|(.., one)| one.generation == generation);
    let (first, _, agreed) = all.next().expect("the generation was found in one of them");
    for (given, may_count, other) in all {
        let index = agreed.index;
        let is_same = Superblock {
            index,
            ..other.clone()
        } == *agreed;
        if !is_same && (may_count || !is_left_out(agreed, other)) {
            return Err(AssemblyError::Diverged {
                first,
                given,
                generation,
            });
        }
    }
    Ok(agreed)
}

/// Whether a table of members goes on without the one that a superblock stands on: it has failed, or was replaced.
fn is_left_out(table: &Superblock, own: &Superblock) -> bool {
    table.members.get(own.index).is_none_or(|entry| {
        entry.state == MemberState::Failed || entry.id != own.members[own.index].id
    })
}

/// Whether a superblock of a current member is missing, damaged, or older than a crash leaves it. First ones have the generation
/// of the last round that ended. Second ones may be a round behind, and one more for each member that failed meanwhile: a round in
/// which one fails is given up, and begun again without it.
fn is_doubtful(pair: &SuperblockPair, round: u64) -> bool {
    match (&pair.first, &pair.second) {
        (Ok(first), Ok(second)) => {
            let rounds = 1 + second.members.len() as u64;
            first.generation < round || second.generation + rounds < round
        }
        _ => true,
    }
}

impl Assembly {
    /// Refuses to start without a member while parity that would make up for it has not been made: the volume has `stripes`
    /// stripes. With `force`, parity is taken as it stands: what was written is right, and what never was is anything.
    ///
    /// # Errors
    /// [`AssemblyError::Unsynced`].
    pub fn check_synced(&mut self, stripes: u64, force: bool) -> Result<(), AssemblyError> {
        let superblock = &mut self.superblock;
        let failed = superblock.members.iter().enumerate();
        let failed = failed.filter(|(_, member)| member.state == MemberState::Failed);
        let members: Vec<usize> = failed.map(|(index, _)| index).collect();
        let has_parity = matches!(superblock.level, Level::Raid4 | Level::Raid5);
        if !has_parity || members.is_empty() || superblock.synced >= stripes {
            return Ok(());
        }
        if !force {
            return Err(AssemblyError::Unsynced {
                members,
                synced: superblock.synced,
                stripes,
            });
        }
        superblock.synced = stripes;
        Ok(())
    }
}
