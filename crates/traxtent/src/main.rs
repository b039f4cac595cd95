//! The `traxtent` command.
fn main() {}
