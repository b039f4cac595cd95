//! Superblocks: their bytes, and the detection of flipped ones.

use traxtent_layout::raid::{ChunkRule, Level};
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::superblock::{
    MemberEntry, MemberState, SUPERBLOCK_BYTES, Superblock, SuperblockError, reseal,
};
use uuid::Uuid;

/// A superblock of version 1, which must stay readable, without the zeros that pad it.
const GOLDEN: &[u8] = include_bytes!("superblock-1.bin");

fn example() -> Superblock {
    let entry = |id: u128, state, sectors| MemberEntry {
        id: Uuid::from_u128(id),
        state,
        doubtful: false,
        sectors: Sectors(sectors),
        data: Lbn(2067)..Lbn(sectors - 19),
        map_bytes: 500,
        map_crc: 0x0102_0304,
    };
    Superblock {
        volume: Uuid::from_u128(0x1122_3344_5566_7788_99aa_bbcc_ddee_ff00),
        index: 2,
        members: vec![
            entry(1, MemberState::Active, 100_000),
            entry(2, MemberState::Rebuilding(77), 100_001),
            entry(3, MemberState::Active, 100_002),
        ],
        level: Level::Raid5,
        chunks: ChunkRule::Tracks,
        granule: 8,
        spares: 4,
        sector_bytes: 512,
        journal: Lbn(19)..Lbn(2067),
        maps: Sectors(3),
        capacity: Sectors(190_000),
        generation: 12,
        epoch: 5,
        clean: true,
        synced: 300,
        scrubbed: 40,
        unrepaired: false,
        lost: vec![10..20, 30..31],
    }
}

/// Does an encoded superblock decode to the same one, and are its bytes those of version 1?
#[test]
fn golden() {
    let bytes = example().encode();
    assert_eq!(bytes.len(), SUPERBLOCK_BYTES);
    assert!(bytes.starts_with(GOLDEN) && bytes[GOLDEN.len()..].iter().all(|byte| *byte == 0));
    assert_eq!(Superblock::decode(&bytes), Ok(example()));
}

/// Is every flipped byte detected? With a corrected checksum, is the superblock either refused or
/// decoded to one that survives encoding and decoding?
#[test]
fn flipped_bytes() {
    let bytes = example().encode();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            assert!(Superblock::decode(&bytes).is_err(), "byte {at}");
            reseal(&mut bytes);
            if let Ok(read) = Superblock::decode(&bytes) {
                assert_eq!(Superblock::decode(&read.encode()), Ok(read), "byte {at}");
            }
        }
    }
}

/// Does decoding distinguish bytes that are not a superblock, another version and impossible
/// values?
#[test]
fn refusals() {
    assert_eq!(
        Superblock::decode(&[0; SUPERBLOCK_BYTES]),
        Err(SuperblockError::None)
    );
    assert_eq!(Superblock::decode(b"traxtvol"), Err(SuperblockError::None));
    let changed = |at: usize, value: u8| {
        let mut bytes = example().encode();
        bytes[at] = value;
        reseal(&mut bytes);
        Superblock::decode(&bytes).map(drop)
    };
    assert_eq!(changed(12, 2), Err(SuperblockError::Version(2)));
    for (at, value) in [
        (32, 3),
        (34, 0),
        (34, 33),
        (36, 6),
        (37, 0),
        (37, 4),
        (44, 1),
        (145, 2),
        (38, 2),
        (40, 1),
        (56, 18),
        (66, 1),
    ] {
        let refused = changed(at, value);
        assert!(
            matches!(refused, Err(SuperblockError::Impossible(_))),
            "byte {at}: {refused:?}"
        );
    }
}
