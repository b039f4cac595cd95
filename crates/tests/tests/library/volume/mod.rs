//! Volumes: the data that they keep, and their state after any crash.

mod assembly;
mod copies;
mod crashes;
mod format;
mod memory;
mod scrubs;
mod setup;
mod space;
