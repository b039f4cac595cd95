//! What developers run.
fn main() {}
