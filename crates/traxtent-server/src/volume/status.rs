//! The status of a volume, as reports and replies contain it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use traxtent_layout::raid::{Array, ChunkRule};
use traxtent_units::system_message;
use traxtent_volume::SuperblockPair;
use traxtent_volume::superblock::{MemberState, Superblock, SuperblockError};

use super::maintenance::MaintenanceProgress;
use super::{DeviceVolume, Devices};
use futures_lite::future::block_on;

/// The problem of a member whose file has been deleted while the volume is served.
pub(super) const DELETED: &str = "the file has been deleted, and its data is lost when the server ends; before that, `fail` and `replace` the member, or copy the volume's data";

/// The status of a volume and its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// The volume's UUID.
    pub volume: String,
    /// The RAID level, such as `raid-5`.
    pub level: String,
    /// The kind of chunks, by name.
    pub chunks: String,
    /// The number of sectors per chunk if all chunks have the same size, otherwise 0.
    pub chunk_sectors: u64,
    /// The size of a logical sector in bytes.
    pub sector_bytes: u32,
    /// The capacity in bytes.
    pub bytes: u64,
    /// The size of the journal on each member in bytes.
    #[serde(default)]
    pub journal_bytes: u64,
    /// The generation, which increases with each round of superblock writes.
    pub generation: u64,
    /// Whether the volume was shut down cleanly; false while it is served for writing.
    pub clean: bool,
    /// Whether the volume is served.
    pub served: bool,
    /// Whether more members have failed than the level tolerates, while the volume is served. Such
    /// a volume is read-only, and only its undamaged data can be read.
    pub broken: bool,
    /// The number of stripes.
    pub stripes: u64,
    /// The number of stripes, from the first, that the initial sync has completed.
    pub synced_stripes: u64,
    /// The stripe at which the next scrub begins; not 0 if the last one was stopped. The last one
    /// found no difference before it.
    pub scrub_next: u64,
    /// Whether a scrub found differences that have not been repaired since.
    #[serde(default)]
    pub unrepaired: bool,
    /// The number of sectors that were rewritten since the volume was opened, because a member
    /// could not read them or a scrub found them wrong.
    pub repaired_sectors: u64,
    /// The volume's LBNs with lost data.
    pub lost: Vec<LostRange>,
    /// The members in their order.
    pub members: Vec<MemberStatus>,
    /// The given devices that are old copies of members, or were dropped by the other members.
    #[serde(default)]
    pub stale: Vec<StaleMember>,
    /// The given devices that cannot be members, or whose superblocks cannot be used.
    #[serde(default)]
    pub unusable: Vec<UnusableDevice>,
    /// The current maintenance, or the last one since the server was started.
    pub work: Option<MaintenanceProgress>,
    /// A description of an order that is not yet complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

/// A device that is no longer a current member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleMember {
    /// The device.
    pub path: PathBuf,
    /// The number of the member that it was.
    pub member: usize,
    /// The highest generation in its superblocks.
    pub generation: u64,
    /// The generation of the volume.
    pub volume_generation: u64,
    /// Whether the other members declared it failed, or replaced it.
    pub dropped: bool,
}

/// A device that was given as a member and cannot be used as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusableDevice {
    /// The device.
    pub path: PathBuf,
    /// The problem.
    pub problem: String,
}

/// A half-open range of LBNs with lost data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRange {
    /// The first LBN.
    pub first: u64,
    /// The first LBN after the range.
    pub end: u64,
}

impl fmt::Display for LostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.first, self.end - 1);
        write!(
            f,
            "lost: sectors {first} to {last} of the volume; reads of them fail until they are written"
        )
    }
}

/// The status of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The member's number.
    pub member: usize,
    /// The member's UUID.
    pub id: String,
    /// The member's path; `None` if it is missing, or was not given.
    pub path: Option<PathBuf>,
    /// The member's size in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The number of bytes in the area for chunks that are used for neither data nor redundancy.
    /// It is stated only for a volume that has just been created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused_bytes: Option<u64>,
    /// `active`, `failed` or `rebuilding`. If the volume is not served and the member was not
    /// given, this is the state that the other members record.
    pub state: String,
    /// The number of stripes that have been restored during a rebuild.
    pub rebuilt_stripes: Option<u64>,
    /// Whether one of its superblocks was found missing, damaged or too old, and its data has not
    /// been confirmed since.
    #[serde(default)]
    pub doubtful: bool,
    /// The state of its first and second superblock, if they were examined: `generation 6`, or the
    /// problem.
    #[serde(default)]
    pub superblocks: Option<[String; 2]>,
    /// The problem of its device or the system's most recent error, while the volume is served.
    pub error: Option<String>,
    /// The number of operations for which the system returned an error since the device was opened.
    #[serde(default)]
    pub errors: u64,
    /// The age of the last of these errors in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error_seconds: Option<u64>,
    /// The age of the oldest outstanding operation in seconds, if it is a second or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<u64>,
}

impl MemberStatus {
    /// Records a state, as superblocks contain it.
    pub(super) fn set_state(&mut self, state: MemberState) {
        (self.state, self.rebuilt_stripes) = match state {
            MemberState::Active => ("active".to_owned(), None),
            MemberState::Failed => ("failed".to_owned(), None),
            MemberState::Rebuilding(stripes) => ("rebuilding".to_owned(), Some(stripes)),
        };
    }

    /// Records the state of the superblocks.
    pub(super) fn set_superblocks(&mut self, pair: &SuperblockPair) {
        self.superblocks = Some([&pair.first, &pair.second].map(|one| match one {
            Ok(superblock) => format!("generation {}", superblock.generation),
            Err(SuperblockError::None) => "missing".to_owned(),
            Err(error) => error.to_string(),
        }));
    }
}

impl VolumeStatus {
    /// Returns the status of an open volume that is not served.
    pub fn of(volume: &DeviceVolume) -> VolumeStatus {
        let superblock = block_on(volume.superblock());
        VolumeStatus::known(&superblock, volume.array(), volume.members())
    }

    /// Returns the status that the superblock of an unserved volume describes.
    pub(super) fn known(superblock: &Superblock, array: &Array, devices: &Devices) -> VolumeStatus {
        let members = superblock.members.iter().enumerate();
        VolumeStatus {
            volume: superblock.volume.to_string(),
            level: superblock.level.name().to_owned(),
            chunks: superblock.chunks.name().to_owned(),
            chunk_sectors: match superblock.chunks {
                ChunkRule::Fixed(sectors) => sectors.0,
                ChunkRule::Tracks | ChunkRule::LargestTrack | ChunkRule::SmallestTrack => 0,
            },
            sector_bytes: superblock.sector_bytes,
            bytes: superblock.capacity.0 * u64::from(superblock.sector_bytes),
            journal_bytes: {
                let journal = superblock.journal.end.0 - superblock.journal.start.0;
                journal * u64::from(superblock.sector_bytes)
            },
            generation: superblock.generation,
            clean: superblock.clean,
            served: false,
            broken: false,
            stripes: array.stripes(),
            synced_stripes: superblock.synced,
            scrub_next: superblock.scrubbed,
            unrepaired: superblock.unrepaired,
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
                .map(|(member, entry)| {
                    let mut status = MemberStatus {
                        member,
                        id: entry.id.to_string(),
                        path: devices.device(member).map(|one| one.path().to_owned()),
                        bytes: entry.sectors.0 * u64::from(superblock.sector_bytes),
                        unused_bytes: None,
                        state: String::new(),
                        rebuilt_stripes: None,
                        doubtful: entry.doubtful,
                        superblocks: None,
                        error: None,
                        errors: 0,
                        last_error_seconds: None,
                        waiting_seconds: None,
                    };
                    status.set_state(entry.state);
                    status
                })
                .collect(),
            stale: Vec::new(),
            unusable: Vec::new(),
            work: None,
            unfinished: None,
        }
    }

    /// Returns the status of a served volume. This never waits, not even if a member blocks all
    /// requests.
    pub(super) fn served(volume: &DeviceVolume, work: Option<MaintenanceProgress>) -> VolumeStatus {
        let known = volume.snapshot();
        let mut status = VolumeStatus::known(&known.superblock, volume.array(), volume.members());
        for member in &mut status.members {
            member.rebuilt_stripes = member.rebuilt_stripes.map(|_| volume.rebuilt());
            let device = volume.members().device(member.member);
            let error = device.as_ref().and_then(|device| device.last_error());
            member.error = error.map(|error| system_message(&error));
            if device.as_ref().is_some_and(|device| device.is_deleted()) && member.state != "failed"
            {
                member.error = Some(DELETED.to_owned());
            }
            let errors = device.as_ref().and_then(|device| device.errors());
            member.errors = errors.map_or(0, |errors| errors.count);
            member.last_error_seconds = errors.map(|errors| errors.last.elapsed().as_secs());
            let waiting = volume.members().waiting(member.member);
            member.waiting_seconds = waiting.map(|waiting| waiting.as_secs());
        }
        VolumeStatus {
            served: true,
            broken: known.broken,
            repaired_sectors: volume.repaired().0,
            work,
            ..status
        }
    }

    /// Adds the unused size of each member. This takes time in proportion to the number of runs of
    /// equally large stripes.
    pub(super) fn count_unused(&mut self, array: &Array) {
        for (member, usage) in self.members.iter_mut().zip(array.usage()) {
            member.unused_bytes = Some(usage.unused().0 * u64::from(self.sector_bytes));
        }
    }

    /// Returns the number of stripes that the initial sync has yet to process.
    pub fn unsynced(&self) -> u64 {
        match self.level.as_str() {
            "raid-0" => 0,
            _ => self.stripes.saturating_sub(self.synced_stripes),
        }
    }

    /// Returns whether the volume is not broken, all members are present and active and none is
    /// doubtful, no data is lost, no scrub has found differences that are not repaired, and no
    /// given device is stale or unusable.
    pub fn is_whole(&self) -> bool {
        self.members_are_whole() && self.stale.is_empty() && self.unusable.is_empty()
    }

    /// Returns whether the volume is whole apart from given devices that are not its members.
    pub fn members_are_whole(&self) -> bool {
        !self.broken
            && self.lost.is_empty()
            && !self.unrepaired
            && self
                .members
                .iter()
                .all(|member| member.state == "active" && member.path.is_some() && !member.doubtful)
    }
}
