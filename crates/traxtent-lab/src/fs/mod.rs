//! File systems and their hosts on the virtual clock, for the experiments of the papers.
//!
//! A [`SimulatedHost`] is a processor, a buffer cache, a file system and a disk, as its [`Config`]
//! describes them. [`apps`] contains the programs that the papers run. FFS of FreeBSD 4.0 follows
//! paper T, section 4.2; ext2 of Linux 2.6 follows paper Q, section 2.4.

mod access;
pub mod apps;
mod backing_storage;
pub mod build;
mod cache;
mod config;
mod disk;
pub mod ext4;
mod file;
pub mod groups;
mod growth;
pub mod linux;
pub mod postmark;
pub mod raid;
mod simulated_host;
mod space;
pub mod streams;
pub mod table2;
mod window;

pub use access::OpenFile;
pub use config::{Config, Cpu, Ext2, Ffs, Preallocation, ReadAhead};
pub use disk::Traffic;
pub use file::FileId;
pub use simulated_host::SimulatedHost;
