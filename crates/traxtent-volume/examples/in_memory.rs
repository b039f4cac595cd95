//! Shows that a RAID-5 volume on members in memory keeps its data when a member fails.
//!
//! `cargo run -p traxtent-volume --example in_memory`

use std::cell::RefCell;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use traxtent_layout::raid::{Array, ArrayShape, ChunkRule, Level, Member};
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::{Action, MemberIo, NewVolume, Op, Volume, WriteHole};
use uuid::Uuid;

const SECTOR_BYTES: usize = 512;
const MEMBER_SECTORS: u64 = 20_000;

/// Members in memory. Their operations complete immediately.
struct Memory(RefCell<Vec<Vec<u8>>>);

impl MemberIo for Memory {
    type Buffer = Vec<u8>;

    fn buffer(&self, bytes: usize) -> Vec<u8> {
        vec![0; bytes]
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        for op in ops {
            let member = &mut self.0.borrow_mut()[op.member];
            let start = |at: Lbn| at.0 as usize * SECTOR_BYTES;
            match &mut op.action {
                Action::Read(at, into) => {
                    into.copy_from_slice(&member[start(*at)..][..into.len()]);
                }
                Action::Write(at, data) => {
                    member[start(*at)..][..data.len()].copy_from_slice(data);
                }
                Action::Flush => {}
            }
        }
    }
}

/// Runs a future that never waits.
fn complete<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("members in memory never wait"),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let member = |id| (Uuid::from_u128(id), Sectors(MEMBER_SECTORS), Vec::new());
    let new = NewVolume {
        volume: Uuid::from_u128(1),
        level: Level::Raid5,
        chunks: ChunkRule::Fixed(Sectors(128)),
        granule: 8,
        spares: 0,
        sector_bytes: SECTOR_BYTES as u32,
        journal: Sectors(4096),
        members: vec![member(2), member(3), member(4)],
    };
    let mut superblock = new.superblock().expect("the members are large enough");
    let map = Arc::new(TrackMap::from_sizes([MEMBER_SECTORS as u32]));
    let members = superblock.members.iter().map(|entry| Member {
        map: Arc::clone(&map),
        data: entry.data.clone(),
    });
    let shape = ArrayShape {
        level: new.level,
        chunks: new.chunks,
        granule: new.granule,
        spares: new.spares,
    };
    let array = Array::new(shape, members.collect())?;
    superblock.capacity = array.capacity();
    superblock.synced = array.stripes(); // the parity of zeros is zero

    let empty = vec![0; MEMBER_SECTORS as usize * SECTOR_BYTES];
    let memory = Memory(RefCell::new(vec![empty; 3]));
    complete(async {
        new.write(&superblock, &memory).await?;
        let volume = Volume::open(array, memory, superblock, WriteHole::Closed).await?;
        volume.write(Lbn(1000), &[7; 4096]).await?;
        volume.flush().await?;
        volume.fail(0).await?;
        let mut data = [0; 4096];
        volume.read(Lbn(1000), &mut data).await?;
        assert_eq!(data, [7; 4096]);
        volume.stop().await?;
        println!("the data survived the loss of member 0");
        Ok(())
    })
}
