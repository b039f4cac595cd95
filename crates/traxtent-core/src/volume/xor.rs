//! Parity.

/// Adds `from` to `into` without carry. The compiler makes vectors of it.
pub(super) fn xor(into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    for (into, from) in into.iter_mut().zip(from) {
        *into ^= from;
    }
}
