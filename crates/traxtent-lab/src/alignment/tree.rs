//! A tarball made from a seed, in place of a kernel's source. It has about as many files, with
//! similar sizes.
//!
//! Sizes are drawn from a lognormal distribution of median 4.7 KB and mean 11 KB. These values are
//! assumed for the sources of Linux 2.6.32 to 3.11, because none have been published. A directory
//! holds twelve files, and its parent directory holds twenty such directories.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use traxtent_units::Rng;
use traxtent_workload::Distribution;

/// The median of the file sizes in bytes.
const MEDIAN_BYTES: f64 = 4700.0;
/// The standard deviation of the natural logarithm of the file sizes.
const SIGMA: f64 = 1.3;
/// The largest file size in bytes.
const LARGEST_BYTES: f64 = (4 << 20) as f64;
const FILES_PER_FOLDER: u64 = 12;
const FOLDERS_PER_FOLDER: u64 = 20;

/// Writes a tarball of about `mib` MiB: the tree `linux`, with each directory before its files.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_tarball(path: &Path, mib: u64, seed: u64) -> io::Result<()> {
    let mut rng = Rng::new(seed);
    let deviate = Distribution::Normal {
        mean: 0.0,
        deviation: SIGMA,
    };
    let mut tar = tar::Builder::new(BufWriter::new(File::create(path)?));
    let (mut written, mut number) = (0, 0);
    let mut folder = String::new();
    folders(&mut tar, "linux")?;
    while written < mib << 20 {
        if number % FILES_PER_FOLDER == 0 {
            let index = number / FILES_PER_FOLDER;
            let above = format!("linux/{}", index / FOLDERS_PER_FOLDER);
            if index.is_multiple_of(FOLDERS_PER_FOLDER) {
                folders(&mut tar, &above)?;
            }
            folder = format!("{above}/{}", index % FOLDERS_PER_FOLDER);
            folders(&mut tar, &folder)?;
        }
        let bytes = (MEDIAN_BYTES * deviate.sample(&mut rng).exp()).min(LARGEST_BYTES) as usize;
        let mut content = Vec::with_capacity(bytes + 8);
        while content.len() < bytes {
            content.extend(rng.bits().to_le_bytes());
        }
        let mut header = header(tar::EntryType::Regular, 0o644);
        header.set_size(bytes as u64);
        tar.append_data(
            &mut header,
            format!("{folder}/{number}.c"),
            &content[..bytes],
        )?;
        // Tar writes a header and pads the content to whole blocks.
        written += 512 + bytes.next_multiple_of(512) as u64;
        number += 1;
    }
    tar.into_inner()?.flush()
}

fn folders(tar: &mut tar::Builder<impl Write>, path: &str) -> io::Result<()> {
    let mut header = header(tar::EntryType::Directory, 0o755);
    header.set_size(0);
    tar.append_data(&mut header, path, io::empty())
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(1_000_000_000);
    header
}
