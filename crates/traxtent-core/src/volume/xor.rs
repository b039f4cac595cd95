//! Sums by exclusive or.

use smallvec::SmallVec;

/// Bytes that are summed from all sources before the next: they stay in the nearest cache.
const BLOCK: usize = 8192;

/// Makes `into` the sum of sources. A shorter one counts as zero beyond its end.
pub(super) fn sum_into<'a>(into: &mut [u8], sources: impl IntoIterator<Item = &'a [u8]>) {
    let sources: SmallVec<[&[u8]; 16]> = sources.into_iter().collect();
    for (number, into) in into.chunks_mut(BLOCK).enumerate() {
        let (from, to) = (number * BLOCK, number * BLOCK + into.len());
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

// The compiler makes vectors of these.

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
