//! Tests of `traxtent file` on mounted file systems: files that are in use while they are moved,
//! kills and power cuts meanwhile, file systems that have aged, unusual files, and refusals.
//!
//! Most tests use a loop device over a file in memory, and need root. The kernel and other
//! processes run beside the tests, so a seed repeats the operations of a test, but not their
//! timing.

#[path = "../served/attach.rs"]
#[expect(dead_code, reason = "other tests need the rest")]
mod attach;
#[path = "../served/server.rs"]
#[expect(dead_code, reason = "other tests need the rest")]
mod server;

mod aged;
mod btrfs;
mod disk;
mod kills;
mod model;
mod power;
mod refused;
mod special;
mod work;
