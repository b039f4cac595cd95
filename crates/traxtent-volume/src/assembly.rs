//! Assembly: finds the current members of a volume among its devices.
//!
//! Every member has two superblocks. They are updated in rounds. A round increases the generation,
//! writes the first superblocks of all members that have not failed, flushes, writes the second
//! ones, and flushes again (`Volume::persist`). Nothing that a round records is relied on before
//! the round has ended. This gives three rules for assembling a volume:
//!
//! - If any second superblock has generation *g*, the first superblock of every member of that
//!   round was durable at *g*. A member whose highest generation is lower missed the round: it is
//!   an old copy, or was left out. It is *stale*.
//! - A generation that is found only in first superblocks was never relied on. It does not
//!   determine the members.
//! - A second superblock that cannot be read may have had the same generation as the member's first
//!   one. A member whose highest generation is lower may therefore be current or stale, and the
//!   volume is not assembled.
//!
//! Members that were used separately are not assembled either, whatever their generations. Two
//! members were used separately if their superblocks have the same generation but different
//! contents, or if each continued without the other ([`SuperblockPair::is_split_from`]). If each of
//! the two has since been replaced on the other's side, their superblocks look as if members had
//! been replaced one after the other. The member with the lower generation is then stale.
//!
//! Generations cannot reveal one kind of old copy: one that was taken while the volume was served,
//! and replaced its original after a crash, before the next start. Both have the same generation.

use uuid::Uuid;

use super::superblock::{
    MemberState, SUPERBLOCK_BYTES, Superblock, SuperblockError, sizes_in, superblock_sectors,
};
use super::{MemberIo, Op};
use traxtent_layout::raid::Level;
use traxtent_units::{Lbn, Sectors};

/// The two superblocks read from a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuperblockPair {
    /// The superblock at the beginning.
    pub first: Result<Superblock, SuperblockError>,
    /// The superblock after the member's last chunk.
    pub second: Result<Superblock, SuperblockError>,
}

impl SuperblockPair {
    /// Returns the superblock with the higher generation; `None` if both are unusable.
    pub fn newest(&self) -> Option<&Superblock> {
        let both = self.first.iter().chain(&self.second);
        both.max_by_key(|superblock| superblock.generation)
    }

    /// Returns the superblock of the last round that was relied on. This is the second one or, if
    /// it is unusable, possibly the first one.
    fn relied(&self) -> Option<&Superblock> {
        self.second.as_ref().or(self.first.as_ref()).ok()
    }

    /// Returns whether two members continued without each other, so that each may have writes that
    /// the other lacks.
    ///
    /// A member that is declared failed is not written again before it gets another ID. If the
    /// volume had one history, none of these would therefore be found:
    ///
    /// - Each member declares the other one failed.
    /// - One declares the other one failed, but does not have the higher generation.
    /// - One declares the other one failed, and the other one's table does not have the declaring
    ///   member's ID in the declaring member's place. RAID-1 of three or more members is an
    ///   exception: after the other one failed, the declaring member may have been rebuilt from a
    ///   third one, as the replacement of the ID in that table. Other levels cannot replace a
    ///   member while another one has failed.
    pub fn is_split_from(&self, other: &SuperblockPair) -> bool {
        let (Some(ours), Some(theirs)) = (self.relied(), other.relied()) else {
            return false;
        };
        let one_way = |table: &Superblock, pair: &SuperblockPair, own: &Superblock| {
            let is_later = || {
                let second = pair.second.as_ref();
                second.is_ok_and(|second| second.generation >= table.generation)
            };
            let is_replaced = || {
                let entry = own.members.get(table.index);
                entry.is_none_or(|entry| entry.id != table.members[table.index].id)
                    && (table.level != Level::Raid1 || table.members.len() == 2)
            };
            declares_failed(table, own)
                && (declares_failed(own, table) || is_later() || is_replaced())
        };
        ours.volume == theirs.volume
            && (one_way(ours, other, theirs) || one_way(theirs, self, ours))
    }

    /// Returns the newest superblock, or the reason why both are unusable. Damage takes precedence
    /// over absence.
    ///
    /// # Errors
    /// Returns an error if neither superblock is usable.
    pub fn usable(&self) -> Result<&Superblock, SuperblockError> {
        match (self.newest(), &self.first, &self.second) {
            (Some(newest), ..) => Ok(newest),
            (_, Err(SuperblockError::None), Err(second)) => Err(*second),
            (_, Err(first), _) => Err(*first),
            (None, Ok(_), _) => unreachable!("one usable superblock is the newest"),
        }
    }
}

/// Reads both superblocks of every device. `devices` gives each device's size in sectors and its
/// bytes per sector.
///
/// The second superblock is read at the position stated by the first one. If the first one is
/// unusable, the end of the device is tried. The device may be larger than its member, so the
/// member ends stated by the other devices' superblocks, or by the remains of the first one, are
/// tried next.
pub async fn read_superblocks(
    members: &impl MemberIo,
    devices: &[(Sectors, u32)],
) -> Vec<SuperblockPair> {
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

/// A reader of one device's superblocks.
struct Reader<'a, M> {
    members: &'a M,
    member: usize,
    /// The device's size, and its bytes per sector.
    device: (Sectors, u32),
}

impl<M: MemberIo> Reader<'_, M> {
    /// Returns the position of the second superblock of a member of `sectors` sectors, if the
    /// device is that large.
    fn second_of(&self, sectors: Sectors) -> Option<Lbn> {
        let own = superblock_sectors(self.device.1);
        let fits = sectors <= self.device.0;
        sectors.0.checked_sub(own.0).map(Lbn).filter(|_| fits)
    }

    /// Returns the superblock at a position, and the bytes read there.
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
                return Err(SuperblockError::Elsewhere("has a different sector size"));
            }
            if superblock.members[superblock.index].sectors > sectors {
                return Err(SuperblockError::Elsewhere(
                    "is smaller, or was truncated; omit it",
                ));
            }
            Ok(superblock)
        });
        (found, bytes)
    }

    /// Reads the second superblock, and checks that it belongs at this position and to the first
    /// one.
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
        if found.second(found.index) == at && first.is_none_or(is_own) {
            Ok(found)
        } else {
            Err(SuperblockError::Mismatched)
        }
    }
}

/// Members that form a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The superblock that they agree on. In it, missing members are marked as failed, and members
    /// with a superblock that is missing, damaged or too old as doubtful. In both cases, the next
    /// scrub begins at stripe 0.
    pub superblock: Superblock,
    /// The index of each member's device in the list given; `None` for missing members.
    pub given: Vec<Option<usize>>,
    /// The members that are not given although they have not failed, with the state that the others
    /// record of them.
    pub missing: Vec<(usize, MemberState)>,
}

/// The reason why devices are not assembled. Fields named `given` are indices into the list of
/// devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// No devices were given.
    #[error("no members are given")]
    Nothing,
    /// A device without a usable superblock.
    #[error("device {given}: {error}")]
    Unusable {
        /// The device's number.
        given: usize,
        /// The problem with its superblocks.
        error: SuperblockError,
    },
    /// Members of different volumes.
    #[error("device {given} belongs to volume {theirs}, but device 0 belongs to {ours}")]
    Foreign {
        /// The device's number.
        given: usize,
        /// The device's volume.
        theirs: Uuid,
        /// The volume of the first device.
        ours: Uuid,
    },
    /// The same member given twice.
    #[error("devices {first} and {given} are both member {member}; name only one of them")]
    Twice {
        /// The device's number.
        given: usize,
        /// The number of the earlier device.
        first: usize,
        /// The member that both superblocks name.
        member: usize,
    },
    /// An old copy of a member, or a member without which the others continued.
    #[error(
        "device {given} is stale: its generation as member {member} is {own}, but the volume's is {newest}; omit it"
    )]
    Stale {
        /// The device's number.
        given: usize,
        /// The member that its superblock names.
        member: usize,
        /// The highest generation on the device.
        own: u64,
        /// The generation of the volume.
        newest: u64,
        /// Whether the other members marked it as failed, or replaced it.
        dropped: bool,
    },
    /// A member that may be stale. The superblock that would show this is unusable.
    #[error(
        "device {given} may be stale: its generation as member {member} is {own}, but member {other} has {newest} in its first superblock, and its second superblock is unusable; name only the members that are current"
    )]
    MaybeStale {
        /// The number of the device that may be stale.
        given: usize,
        /// The member that its superblock names.
        member: usize,
        /// The highest generation on it.
        own: u64,
        /// The number of the device whose second superblock is unusable.
        other_given: usize,
        /// The member that this other device's superblock names.
        other: usize,
        /// The generation of the other device's first superblock.
        newest: u64,
    },
    /// Members that continued without each other.
    #[error(
        "devices {first} and {given} are split (generations {} and {}): each may have writes that the other lacks; name only the members of one side", generations[0], generations[1]
    )]
    Split {
        /// The number of a device of one side.
        first: usize,
        /// The number of a device of the other side.
        given: usize,
        /// The generation of each.
        generations: [u64; 2],
    },
    /// Missing members.
    #[error("{} missing{}; {}", list(.members), failed_too(.failed), if *.enough { "name every member or, if a missing one is dead, use `assemble --force` to start the volume degraded" } else { "the other members are not enough to start the volume; name every member that is missing" })]
    Missing {
        /// The missing members.
        members: Vec<usize>,
        /// The members that had failed before.
        failed: Vec<usize>,
        /// Whether the remaining members are enough.
        enough: bool,
    },
    /// A missing or failed member, whose data cannot be computed because parity is not yet
    /// initialized.
    #[error(
        "member {member} {}, and the initial sync has completed only {synced} of {stripes} stripes; the missing blocks cannot be computed; {}",
        if *.failed { "has failed" } else { "is missing" },
        if *.failed {
            "use `assemble --force` to keep only the data that was written, then `replace` and `rebuild` the member"
        } else {
            "name it too, or, if it is dead, use `assemble --force` to keep only the data that was written"
        }
    )]
    Unsynced {
        /// The member.
        member: usize,
        /// Whether the superblocks say that it has failed. It cannot be used again.
        failed: bool,
        /// The number of stripes with initialized parity.
        synced: u64,
        /// The number of all stripes.
        stripes: u64,
    },
}

impl AssemblyError {
    /// Replaces each device's number by the entry of `numbers` at that index.
    fn renumber(&mut self, numbers: &[usize]) {
        match self {
            AssemblyError::Unusable { given, .. } | AssemblyError::Stale { given, .. } => {
                *given = numbers[*given];
            }
            AssemblyError::MaybeStale {
                given,
                other_given: other,
                ..
            }
            | AssemblyError::Twice {
                given,
                first: other,
                ..
            }
            | AssemblyError::Split {
                given,
                first: other,
                ..
            } => {
                *given = numbers[*given];
                *other = numbers[*other];
            }
            // These name a device by its place among all, or none.
            AssemblyError::Foreign { .. }
            | AssemblyError::Nothing
            | AssemblyError::Missing { .. }
            | AssemblyError::Unsynced { .. } => {}
        }
    }
}

/// Describes failed members after missing ones; empty if there are none.
fn failed_too(members: &[usize]) -> String {
    match members {
        [] => String::new(),
        [one] => format!(", and member {one} has failed"),
        [first, ..] => format!(
            ", and {} members have failed, the first is {first}",
            members.len()
        ),
    }
}

fn list(members: &[usize]) -> String {
    let names: Vec<String> = members.iter().map(usize::to_string).collect();
    match members.len() {
        1 => format!("member {} is", names[0]),
        _ => format!("members {} are", names.join(", ")),
    }
}

/// Assembles members by their superblocks (see the module). With `force`, members may be missing.
///
/// # Errors
/// Returns an error if no devices are given, if a device is unusable, stale, possibly stale, or
/// given twice, if the devices do not belong together, or if members are missing. With `force`,
/// missing members are an error only if the others are not enough.
pub fn assemble(found: &[SuperblockPair], force: bool) -> Result<Assembly, AssemblyError> {
    let newest = newest_of(found)?;
    check_splits(found)?;
    let round = last_round(found, &newest)?;
    let mut superblock = agreed(found, round)?.clone();
    // The generation of the next round must be above that of any round that was begun.
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
    let mut missing: Vec<(usize, MemberState)> = Vec::new();
    let mut failed = Vec::new();
    for (index, member) in superblock.members.iter_mut().enumerate() {
        if member.state == MemberState::Failed {
            failed.push(index);
        } else if given[index].is_none() {
            missing.push((index, member.state));
            member.state = MemberState::Failed;
        }
    }
    superblock.check_scrubbed();
    let states = superblock.members.iter().map(|member| member.state);
    let active = states.filter(|state| *state == MemberState::Active).count();
    let enough = match superblock.level {
        Level::Raid0 => active == superblock.members.len(),
        Level::Raid1 => active > 0,
        Level::Raid4 | Level::Raid5 => active + 1 >= superblock.members.len(),
    };
    if !enough || !missing.is_empty() && !force {
        return Err(AssemblyError::Missing {
            members: missing.into_iter().map(|(member, _)| member).collect(),
            failed,
            enough,
        });
    }
    Ok(Assembly {
        superblock,
        given,
        missing,
    })
}

/// Returns every reason why devices cannot be members of one volume together. Devices of volumes
/// other than the first device's come first. The devices of each volume are then compared with
/// each other: the device that an error of [`assemble`] names is left out, and the others are
/// assembled again. Missing members and unusable devices are not reported. The first device must be
/// usable.
pub fn contradictions(found: &[SuperblockPair]) -> Vec<AssemblyError> {
    let usable = |given: &usize| Some((*given, found[*given].newest()?.volume));
    let numbers: Vec<usize> = (0..found.len()).collect();
    let volumes: Vec<(usize, Uuid)> = numbers.iter().filter_map(usable).collect();
    let mut contradictions = Vec::new();
    let mut seen: Vec<Uuid> = Vec::new();
    for &(given, theirs) in &volumes {
        let ours = *seen.first().unwrap_or(&theirs);
        if theirs != ours {
            contradictions.push(AssemblyError::Foreign {
                given,
                theirs,
                ours,
            });
        }
        if !seen.contains(&theirs) {
            seen.push(theirs);
        }
    }
    for volume in seen {
        let of_volume = volumes.iter().filter(|(_, other)| *other == volume);
        let mut left: Vec<usize> = of_volume.map(|(given, _)| *given).collect();
        loop {
            let pairs: Vec<SuperblockPair> = left.iter().map(|&at| found[at].clone()).collect();
            let Err(mut error) = assemble(&pairs, true) else {
                break;
            };
            let (AssemblyError::Stale { given, .. }
            | AssemblyError::MaybeStale { given, .. }
            | AssemblyError::Twice { given, .. }
            | AssemblyError::Split { given, .. }) = error
            else {
                break;
            };
            error.renumber(&left);
            contradictions.push(error);
            left.remove(given);
        }
    }
    contradictions
}

/// Refuses members that continued without each other.
fn check_splits(found: &[SuperblockPair]) -> Result<(), AssemblyError> {
    for (given, pair) in found.iter().enumerate() {
        let first = found[..given]
            .iter()
            .position(|one| one.is_split_from(pair));
        if let Some(first) = first {
            let generation = |given: usize| found[given].newest().map_or(0, |one| one.generation);
            return Err(AssemblyError::Split {
                first,
                given,
                generations: [first, given].map(generation),
            });
        }
    }
    Ok(())
}

/// Returns the newest superblock of each device, after checking that all are of one volume.
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
    if newest.is_empty() {
        Err(AssemblyError::Nothing)
    } else {
        Ok(newest)
    }
}

/// Returns the generation of the last round that may have been relied on. Fails if a device has a
/// lower one.
fn last_round(found: &[SuperblockPair], newest: &[&Superblock]) -> Result<u64, AssemblyError> {
    let seconds = found.iter().filter_map(|pair| pair.second.as_ref().ok());
    let ended = seconds.map(|second| second.generation).max().unwrap_or(0);
    // Rounds that may have ended; the second superblock that would show it is unusable.
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
        Some(given) => Err(AssemblyError::MaybeStale {
            given,
            member: newest[given].index,
            own: newest[given].generation,
            other_given,
            other: newest[other_given].index,
            newest: generation,
        }),
    }
}

/// Returns the common contents of the superblocks of a generation. A first superblock that differs
/// from a second one was never relied on. It is ignored if its member is left out anyway.
fn agreed(found: &[SuperblockPair], generation: u64) -> Result<&Superblock, AssemblyError> {
    let seconds = found.iter().map(|pair| (true, pair.second.as_ref().ok()));
    // If the second superblock is unusable, the first one may have been relied on.
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
            return Err(AssemblyError::Split {
                first,
                given,
                generations: [generation; 2],
            });
        }
    }
    Ok(agreed)
}

/// Returns whether a table of members leaves out the member that has the superblock `own`: the
/// member has failed, or was replaced.
fn is_left_out(table: &Superblock, own: &Superblock) -> bool {
    table.members.get(own.index).is_none_or(|entry| {
        entry.state == MemberState::Failed || entry.id != own.members[own.index].id
    })
}

/// Returns whether a table declares the member that has the superblock `own` failed.
fn declares_failed(table: &Superblock, own: &Superblock) -> bool {
    table.members.get(own.index).is_some_and(|entry| {
        entry.state == MemberState::Failed && entry.id == own.members[own.index].id
    })
}

/// Returns whether a superblock of a current member is missing, damaged, or older than a crash
/// could leave it. First superblocks have at least the generation of the last round that ended.
/// Second ones may be one round older, and one more for each member that failed in the meantime: a
/// round in which a member fails is abandoned, and started again without it.
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
    /// Refuses to start without a member while the parity needed to compute its data is not
    /// initialized. The volume has `stripes` stripes. With `force`, existing parity is accepted:
    /// blocks that were written are correct, and blocks that were never written have arbitrary
    /// contents.
    ///
    /// # Errors
    /// Returns [`AssemblyError::Unsynced`] if parity is not initialized and `force` is not set.
    pub fn check_synced(&mut self, stripes: u64, force: bool) -> Result<(), AssemblyError> {
        let superblock = &mut self.superblock;
        let has_parity = matches!(superblock.level, Level::Raid4 | Level::Raid5);
        let mut members = superblock.members.iter();
        // At most one member has failed: without two, the volume would not be assembled.
        let failed = members.position(|member| member.state == MemberState::Failed);
        let Some(member) = failed.filter(|_| has_parity && superblock.synced < stripes) else {
            return Ok(());
        };
        if !force {
            return Err(AssemblyError::Unsynced {
                member,
                failed: self.missing.is_empty(),
                synced: superblock.synced,
                stripes,
            });
        }
        superblock.synced = stripes;
        Ok(())
    }
}
