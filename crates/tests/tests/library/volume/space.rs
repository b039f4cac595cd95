//! Members without room: a write fails as a whole, and no member is marked failed.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use traxtent_layout::raid::Level;
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_volume::superblock::MemberState;
use traxtent_volume::{Action, MemberIo, NoSpace, Op, Volume, VolumeError, WriteHole};

use super::memory::{Memory, SECTOR, wait};
use super::setup::setup;

/// Drives, one of which may have no room for some of its sectors.
struct Thin<'a> {
    memory: &'a Memory,
    /// A member, and its sectors that have no room.
    full: RefCell<Option<(usize, Range<Lbn>)>>,
    /// The number of writes that reached the members.
    writes: Cell<usize>,
}

impl MemberIo for &Thin<'_> {
    type Buffer = Vec<u8>;

    fn buffer(&self, bytes: usize) -> Vec<u8> {
        self.memory.buffer(bytes)
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        let writes = ops
            .iter()
            .filter(|op| matches!(op.action, Action::Write(..)));
        self.writes.set(self.writes.get() + writes.count());
        self.memory.run(ops).await;
    }

    fn reserve(&self, member: usize, sectors: Range<Lbn>) -> Result<(), NoSpace> {
        match &*self.full.borrow() {
            Some((full, without)) if *full == member => {
                let overlap = sectors.start < without.end && without.start < sectors.end;
                if overlap { Err(NoSpace) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}

/// Asserts that writes fail with [`VolumeError::NoSpace`] while the journal or the data area of a
/// member has no room, and that a write succeeds afterwards.
fn refused_without_room(level: Level, seed: u64, journal: bool) {
    let made = setup(level, &mut Rng::new(seed));
    let memory = Memory::new(made.drives, None);
    let thin = Thin {
        memory: &memory,
        full: RefCell::new(None),
        writes: Cell::new(0),
    };
    let superblock = made.superblock.clone();
    let volume = Volume::open(made.array.clone(), &thin, superblock, WriteHole::Closed);
    let volume = wait(volume).unwrap();
    let data = vec![7; volume.capacity().0 as usize * SECTOR];
    for member in 0..made.superblock.members.len() {
        let sectors = if journal {
            made.superblock.journal.clone()
        } else {
            made.superblock.members[member].data.clone()
        };
        *thin.full.borrow_mut() = Some((member, sectors));
        let before = thin.writes.get();
        // Not every stripe uses every member.
        let mut refused = 0;
        for stripe in 0..made.array.stripes() {
            let all = made.array.stripe(stripe).unwrap().logical();
            let bytes = (all.end.0 - all.start.0) as usize * SECTOR;
            match wait(volume.write(all.start, &data[..bytes])) {
                Err(error) => {
                    assert_eq!(error, VolumeError::NoSpace { member }, "{level:?}");
                    refused += 1;
                }
                Ok(()) => assert!(!journal, "{level:?}: member {member}"),
            }
        }
        assert!(refused > 0, "{level:?}: member {member}");
        if journal {
            assert_eq!(thin.writes.get(), before, "{level:?}: member {member}");
        }
    }
    *thin.full.borrow_mut() = None;
    wait(volume.write(Lbn(0), &data)).unwrap();
    let mut back = vec![0; data.len()];
    wait(volume.read(Lbn(0), &mut back)).unwrap();
    assert!(back == data, "{level:?}");
    let states = wait(volume.superblock()).members;
    assert!(
        states
            .iter()
            .all(|member| member.state == MemberState::Active)
    );
}

/// If a member has no room for its data, does the write fail without the member being marked
/// failed, and succeed once there is room?
#[test]
fn data_needs_room() {
    for (seed, level) in (0..40).zip(Level::ALL.iter().cycle()) {
        refused_without_room(*level, seed, false);
    }
}

/// If any member has no room for the journal, does a write fail before anything is written, and
/// succeed once there is room?
#[test]
fn the_journal_needs_room_too() {
    let levels = [Level::Raid1, Level::Raid4, Level::Raid5];
    for (seed, level) in (0..40).zip(levels.iter().cycle()) {
        refused_without_room(*level, seed, true);
    }
}
