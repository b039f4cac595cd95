//! Media that run out of room.

use std::cell::Cell;
use std::rc::Rc;

use traxtent_model::disk::{Disk, DiskError, Media, MediaError, MemoryMedia};
use traxtent_model::drive::Drive;

use super::{SECTORS, small, stamped};

/// Memory that accepts only a limited number of further writes.
struct Limited {
    memory: MemoryMedia,
    left: Rc<Cell<u32>>,
}

impl Limited {
    fn take(&self) -> Result<(), MediaError> {
        let left = self.left.get().checked_sub(1).ok_or(MediaError::NoSpace)?;
        self.left.set(left);
        Ok(())
    }
}

impl Media for Limited {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError> {
        self.memory.read(at, into)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), MediaError> {
        self.take()?;
        self.memory.write(at, data)
    }

    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError> {
        self.take()?;
        self.memory.zero(at, length)
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        Ok(())
    }
}

const FULL: DiskError = DiskError::Media(MediaError::NoSpace);

/// If the media have no room, does the client get an error, is no acknowledged or flushed data
/// lost, and does the flush succeed once there is room again?
#[test]
fn no_room_is_reported_and_nothing_is_lost() {
    let left = Rc::new(Cell::new(1));
    let media = Limited {
        memory: MemoryMedia::new(),
        left: Rc::clone(&left),
    };
    let drive = Drive::new(&small(SECTORS[0])).unwrap();
    let mut disk = Disk::with_media(drive, media);
    let mut sector = vec![0; 512];
    let mut read = |disk: &mut Disk<Limited>, lbn| {
        disk.read(lbn, &mut sector).unwrap();
        sector[0]
    };

    disk.write(0, &stamped(1, 512)).unwrap();
    disk.flush().unwrap();
    // The cache accepts writes for which the media have no room.
    for lbn in 1..=128 {
        disk.write(lbn, &stamped(2, 512)).unwrap();
    }
    disk.write(0, &stamped(3, 512)).unwrap_err();
    assert_eq!(disk.flush(), Err(FULL));
    assert_eq!(disk.write_fua(1, &stamped(4, 512)), Err(FULL));
    assert_eq!(
        (read(&mut disk, 0), read(&mut disk, 1), read(&mut disk, 128)),
        (1, 2, 2)
    );

    left.set(1000);
    disk.flush().unwrap();
    disk.power_cut(1).unwrap();
    assert_eq!(
        (read(&mut disk, 0), read(&mut disk, 1), read(&mut disk, 128)),
        (1, 2, 2)
    );
}
