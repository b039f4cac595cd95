//! Requests clipped and extended at boundaries.

use proptest::prelude::*;
use traxtent_layout::{Boundaries, Partition};
use traxtent_units::{Block, Blocks};

use super::{blocks, map, numbers, partition};

/// Are requests clipped and extended at a boundary even if no block is excluded there?
#[test]
fn cut_where_traxtents_touch() {
    // Blocks of 8: a boundary at 24, which is also a block boundary, and one at 44 within block 5.
    let partition = Partition::whole(map(0, &[24, 20, 36]), 8).unwrap();
    assert_eq!(partition.excluded().collect::<Vec<_>>(), [Block(5)]);
    let request = |boundaries: Boundaries, wanted, available| {
        boundaries.request(&partition, blocks(wanted), &blocks(available))
    };
    use Boundaries::{Clip, Extend, Ignore};
    assert_eq!(request(Ignore, 1..5, 0..5), blocks(1..5));
    assert_eq!(request(Clip, 1..5, 0..5), blocks(1..3));
    assert_eq!(request(Extend, 1..2, 0..5), blocks(0..3));
    // Read-ahead from block 1, and from the first block of the next track.
    assert_eq!(request(Extend, 1..2, 1..5), blocks(1..3));
    assert_eq!(request(Extend, 3..4, 3..5), blocks(3..5));
    // Blocks that are not contiguous in the file, or not dirty, are not included.
    assert_eq!(request(Extend, 7..8, 7..9), blocks(7..9));
    assert_eq!(request(Extend, 7..8, 6..99), blocks(6..10));
    // An excluded block that a file nevertheless contains.
    assert_eq!(request(Clip, 5..8, 4..9), blocks(5..6));
    let all = Clip.requests(&partition, blocks(1..10), Blocks(2));
    let ends: Vec<_> = all.map(|request| request.end.0).collect();
    assert_eq!(ends, [3, 5, 6, 8, 10]);
}

proptest! {
    /// Does a request begin no later than the requested blocks, and stay within the available ones?
    /// Unless boundaries are ignored, does it also stay within a traxtent, or consist of the
    /// excluded block at which it begins? Does an extended one take all available blocks of the
    /// traxtent?
    #[test]
    fn never_beyond(
        partition in partition(),
        from in 0..300_u64, before in 0..20_u64, size in 1..60_u64, after in 0..60_u64,
    ) {
        let available = blocks(from..from + before + size + after);
        let wanted = blocks(from + before..from + before + size);
        for boundaries in Boundaries::ALL {
            let request = boundaries.request(&partition, wanted.clone(), &available);
            prop_assert!(request.start <= wanted.start && request.start < request.end);
            prop_assert!(available.start <= request.start && request.end <= available.end);
            if boundaries == Boundaries::Ignore {
                prop_assert_eq!(request, wanted.clone());
                continue;
            }
            let Some(traxtent) = partition.traxtent_of(wanted.start) else {
                prop_assert_eq!(request, wanted.start..wanted.start + Blocks(1));
                continue;
            };
            let inside = numbers(&available).filter(|block| traxtent.blocks.contains(block));
            if boundaries == Boundaries::Extend {
                prop_assert_eq!(numbers(&request).collect::<Vec<_>>(), inside.collect::<Vec<_>>());
            } else {
                let wanted = inside.filter(|block| wanted.contains(block));
                prop_assert_eq!(numbers(&request).collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
            }
        }
    }

    /// Do the requests for a range cover it exactly once and in order, and is none too long?
    #[test]
    fn requests_cover_a_range(partition in partition(), from in 0..300_u64, size in 0..99_u64, most in 1..40_u64) {
        for boundaries in Boundaries::ALL {
            let requests = boundaries.requests(&partition, blocks(from..from + size), Blocks(most));
            let mut next = from;
            for request in requests {
                prop_assert_eq!(request.start, Block(next));
                prop_assert!(request.end.0 > next && request.end.0 - next <= most);
                next = request.end.0;
            }
            prop_assert_eq!(next, from + size);
        }
    }
}
