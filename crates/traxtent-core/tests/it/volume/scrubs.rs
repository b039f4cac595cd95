//! Scrubs: what they find is mended, or its member is not believed.

use traxtent_core::layout::raid::Level;
use traxtent_core::volume::WriteHole;
use traxtent_core::volume::superblock::MemberState;
use traxtent_core::workload::Rng;

use super::memory::{Memory, wait};
use super::setup::{open, setup};

/// Has a member failed that refuses the parity or the copy which a scrub writes to it, so that nobody takes the
/// stripe for synchronized?
#[test]
fn refused_writes() {
    let mut refused = 0;
    for (seed, level) in (0..60).zip([Level::Raid1, Level::Raid4, Level::Raid5].iter().cycle()) {
        let made = setup(*level, &mut Rng::new(seed));
        let memory = Memory::new(made.drives, None);
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        let last = memory.drives.borrow().len() - 1;
        let mut wrong = 0;
        for stripe in 0..made.array.stripes() {
            // All but its superblock and the journal: those are not written here before it has failed.
            memory.drives.borrow_mut()[last].refuses = true;
            let on_last = made.array.stripe(stripe).unwrap().parity_member();
            let scrubbed = wait(volume.scrub(stripe)).unwrap();
            if *level == Level::Raid1 || on_last == Some(last) {
                wrong += scrubbed.wrong;
            }
        }
        let state = wait(volume.superblock()).members[last].state;
        assert_eq!(wrong > 0, state == MemberState::Failed, "seed {seed}");
        wait(volume.scrub_checkpoint(made.array.stripes())).unwrap();
        refused += u32::from(wrong > 0);
    }
    assert!(refused > 30, "{refused} of 60");
}
