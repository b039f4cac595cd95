//! What is known of a volume, as it is told.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use traxtent_core::layout::raid::{Array, Chunks};
use traxtent_core::volume::SuperblockPair;
use traxtent_core::volume::superblock::{MemberState, Superblock, SuperblockError};

use super::care::Progress;
use super::{DeviceVolume, Devices, wait};

/// A volume and its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its UUID.
    pub volume: String,
    /// Its level, such as `raid-5`.
    pub level: String,
    /// What a chunk is, by name.
    pub chunks: String,
    /// Sectors of a chunk where all have the same, else 0.
    pub chunk_sectors: u64,
    /// Bytes of a logical sector.
    pub sector_bytes: u32,
    /// Bytes that it offers.
    pub bytes: u64,
    /// Counts the superblocks written.
    pub generation: u64,
    /// Whether it was stopped in order; never while it is served.
    pub clean: bool,
    /// Whether it is served.
    pub served: bool,
    /// Whether more members have failed than the level bears: it can only be read, where its data are whole.
    pub broken: bool,
    /// How many stripes it has.
    pub stripes: u64,
    /// Stripes, from the first one, that the initial sync is done with.
    pub synced_stripes: u64,
    /// Where a scrub goes on.
    pub scrub_next: u64,
    /// Sectors that were written anew because a member could not read them, since it was opened.
    pub repaired_sectors: u64,
    /// The volume's LBNs whose data are lost.
    pub lost: Vec<LostRange>,
    /// The members in their order.
    pub members: Vec<MemberStatus>,
    /// Devices that were given, and are old copies of members or were left out by the others.
    #[serde(default)]
    pub stale: Vec<StaleMember>,
    /// The rebuild, sync or scrub that is under way, or the last one since it is served.
    pub work: Option<Progress>,
    /// What was ordered and has not come to its end, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

/// A device that is no current member any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleMember {
    /// The device.
    pub path: PathBuf,
    /// The member that it was.
    pub member: usize,
    /// The highest generation of its superblocks.
    pub generation: u64,
    /// That of the volume.
    pub volume_generation: u64,
    /// Whether the others declared it failed, or replaced it.
    pub dropped: bool,
}

/// LBNs whose data are lost, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRange {
    /// The first.
    pub first: u64,
    /// Behind the last.
    pub end: u64,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its number.
    pub member: usize,
    /// Its UUID.
    pub id: String,
    /// Where it is, if it is here.
    pub path: Option<PathBuf>,
    /// `active`, `failed` or `rebuilding`.
    pub state: String,
    /// Stripes that are good on it while it is rebuilt.
    pub rebuilt_stripes: Option<u64>,
    /// Whether a superblock of it was found missing or damaged, and nobody has repaired it since: its data may be gone as
    /// well.
    #[serde(default)]
    pub doubtful: bool,
    /// What its first and its second superblock are, if they were looked at: `generation 6`, or what is wrong.
    #[serde(default)]
    pub superblocks: Option<[String; 2]>,
    /// What the system said when it failed the last time, while it is served.
    pub error: Option<String>,
    /// The time for which it has not returned something that it was asked for, where that is a second or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<u64>,
}

impl MemberStatus {
    /// Notes what the superblocks are.
    pub(super) fn set_superblocks(&mut self, pair: &SuperblockPair) {
        self.superblocks = Some([&pair.first, &pair.second].map(|one| match one {
            Ok(superblock) => format!("generation {}", superblock.generation),
            Err(SuperblockError::None) => "missing".to_owned(),
            Err(error) => error.to_string(),
        }));
    }
}

impl Status {
    /// Of a volume that is open, and that nobody serves.
    pub fn of(volume: &DeviceVolume) -> Status {
        let superblock = wait(volume.superblock());
        Status::known(&superblock, volume.array(), volume.members())
    }

    /// What members say that nobody serves.
    pub(super) fn known(superblock: &Superblock, array: &Array, devices: &Devices) -> Status {
        let members = superblock.members.iter().enumerate();
        Status {
            volume: superblock.volume.to_string(),
            level: superblock.level.name().to_owned(),
            chunks: superblock.chunks.name().to_owned(),
            chunk_sectors: match superblock.chunks {
                Chunks::Fixed(sectors) => sectors.0,
                Chunks::Tracks | Chunks::LargestTrack | Chunks::SmallestTrack => 0,
            },
            sector_bytes: superblock.sector_bytes,
            bytes: superblock.capacity.0 * u64::from(superblock.sector_bytes),
            generation: superblock.generation,
            clean: superblock.clean,
            served: false,
            broken: false,
            stripes: array.stripes(),
            synced_stripes: superblock.synced,
            scrub_next: superblock.scrubbed,
            repaired_sectors: 0,
            lost: superblock
                .lost
                .iter()
                .map(|lost| LostRange {
                    first: lost.start,
                    end: lost.end,
                })
                .collect(),
            members: members
                .map(|(member, entry)| MemberStatus {
                    member,
                    id: entry.id.to_string(),
                    path: devices.device(member).map(|one| one.path().to_owned()),
                    state: match entry.state {
                        MemberState::Active => "active",
                        MemberState::Failed => "failed",
                        MemberState::Rebuilding(_) => "rebuilding",
                    }
                    .to_owned(),
                    rebuilt_stripes: match entry.state {
                        MemberState::Rebuilding(stripes) => Some(stripes),
                        _ => None,
                    },
                    doubtful: entry.doubtful,
                    superblocks: None,
                    error: None,
                    waiting_seconds: None,
                })
                .collect(),
            stale: Vec::new(),
            work: None,
            unfinished: None,
        }
    }

    /// Of a volume that is served. Waits for nothing: a member may hold up everything else.
    pub(super) fn served(volume: &DeviceVolume, work: Option<Progress>) -> Status {
        let known = volume.known();
        let mut status = Status::known(&known.superblock, volume.array(), volume.members());
        for member in &mut status.members {
            member.rebuilt_stripes = member.rebuilt_stripes.map(|_| volume.rebuilt());
            let device = volume.members().device(member.member);
            let error = device.and_then(|device| device.last_error());
            member.error = error.map(|error| error.to_string());
            let waiting = volume.members().waiting(member.member);
            member.waiting_seconds = waiting.map(|waiting| waiting.as_secs());
        }
        Status {
            served: true,
            broken: known.broken,
            repaired_sectors: volume.repaired().0,
            work,
            ..status
        }
    }

    /// How many stripes the initial sync has still to do.
    pub fn unsynced(&self) -> u64 {
        match self.level.as_str() {
            "raid-0" => 0,
            _ => self.stripes.saturating_sub(self.synced_stripes),
        }
    }

    /// Whether all members are good, with all their superblocks, and nothing is lost.
    pub fn is_whole(&self) -> bool {
        !self.broken
            && self.lost.is_empty()
            && self.stale.is_empty()
            && self
                .members
                .iter()
                .all(|member| member.state == "active" && !member.doubtful)
    }
}
