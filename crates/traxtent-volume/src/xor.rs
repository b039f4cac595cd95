//! Exclusive or of buffers.

use smallvec::SmallVec;

/// The size of a block in bytes. A block fits in the first-level cache, so it is combined from all
/// sources before the next one.
const BLOCK_BYTES: usize = 8192;

/// Sets `into` to the exclusive or of the sources. A shorter source counts as zero beyond its end.
pub(super) fn xor_into<'a>(into: &mut [u8], sources: impl IntoIterator<Item = &'a [u8]>) {
    let sources: SmallVec<[&[u8]; 16]> = sources.into_iter().collect();
    for (number, into) in into.chunks_mut(BLOCK_BYTES).enumerate() {
        let (from, to) = (number * BLOCK_BYTES, number * BLOCK_BYTES + into.len());
        let part = |source: &&'a [u8]| {
            let part = source.get(from..to.min(source.len()));
            part.filter(|part| !part.is_empty())
        };
        let mut parts = sources.iter().filter_map(part);
        let first = parts.next().unwrap_or(&[]);
        let (begin, rest) = into.split_at_mut(first.len());
        begin.copy_from_slice(first);
        rest.fill(0);
        while let Some(one) = parts.next() {
            match parts.next() {
                Some(two) if two.len() == one.len() => add_two(into, one, two),
                two => std::iter::once(one)
                    .chain(two)
                    .for_each(|one| add(into, one)),
            }
        }
    }
}

// The compiler vectorizes these.

fn add(into: &mut [u8], from: &[u8]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into ^= from;
    }
}

fn add_two(into: &mut [u8], one: &[u8], two: &[u8]) {
    for ((into, one), two) in into.iter_mut().zip(one).zip(two) {
        *into ^= one ^ two;
    }
}
