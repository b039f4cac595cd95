//! File systems and their hosts on the virtual clock, for the experiments of the papers.
//!
//! A [`SimulatedHost`] is a processor, a buffer cache, a file system and a disk, as its [`Config`]
//! describes them. [`apps`] contains the programs that the papers run. FFS of FreeBSD 4.0 follows
//! paper T, section 4.2; ext2 of Linux 2.6 follows paper Q, section 2.4.

mod access;
pub mod apps;
pub mod build;
mod cache;
mod config;
mod disk;
mod file;
pub mod groups;
mod growth;
pub mod linux;
mod machine;
pub mod postmark;
pub mod raid;
mod space;
pub mod streams;
pub mod table2;
mod volume;
mod window;

pub use access::OpenFile;
pub use config::{Config, Cpu, Ext2, Ffs, Preallocation, ReadAhead};
pub use disk::Traffic;
pub use file::FileId;
pub use machine::SimulatedHost;
