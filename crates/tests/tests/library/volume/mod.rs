//! Volumes: preservation of data, and the state after any crash.

mod assembly;
mod copies;
mod crashes;
mod format;
mod memory;
mod scrubs;
mod setup;
mod space;
