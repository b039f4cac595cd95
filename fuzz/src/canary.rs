//! Planted bugs. Each is triggered by a four-byte prefix. A blind search would take an hour to
//! guess it; a search guided by coverage finds it in a second.

/// Panics for an input that begins with `trax`.
pub(crate) fn panics(input: &[u8]) {
    if opens_with(input, b"trax") {
        panic!("the planted panic");
    }
}

/// Allocates a gigabyte for an input that begins with `fill`.
pub(crate) fn fills_memory(input: &[u8]) {
    if opens_with(input, b"fill") {
        std::hint::black_box(vec![input[0]; 1 << 30]);
    }
}

/// Never returns for an input that begins with `spin`.
pub(crate) fn hangs(input: &[u8]) {
    while opens_with(input, b"spin") {
        std::hint::spin_loop();
    }
}

/// Recurses without end for an input that begins with `deep`.
pub(crate) fn exhausts_stack(input: &[u8]) {
    if opens_with(input, b"deep") {
        std::hint::black_box(descend(1));
    }
}

fn descend(depth: u64) -> u64 {
    let depth = std::hint::black_box(depth);
    if depth == 0 {
        0
    } else {
        descend(depth + 1).wrapping_add(depth)
    }
}

/// Compares byte by byte, so that each byte is a branch that coverage records.
fn opens_with(input: &[u8], word: &[u8; 4]) -> bool {
    input.len() >= word.len()
        && input
            .iter()
            .zip(word)
            .all(|(found, wanted)| std::hint::black_box(found) == wanted)
}
