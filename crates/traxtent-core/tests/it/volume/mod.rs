//! Volumes: what they keep, and what any crash leaves of them.

mod assembly;
mod copies;
mod crashes;
mod format;
mod memory;
mod scrubs;
mod setup;
mod space;
