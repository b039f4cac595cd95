//! Writes the pictures of the book's concepts, and the tables of its interactive page, from the
//! profiles of built-in drives.
//!
//! `cargo run -p traxtent-plot --example concepts -- docs/concepts`
//!
//! Every figure is computed by the drive model. Nothing is random, and all numbers are rounded, so
//! the files are the same on every machine.

mod requests;
mod sheet;
mod straddle;
mod tables;
mod timeline;
mod track;
mod zero_latency;
mod zone_edge;

use std::error::Error;
use std::path::Path;

/// Returns the name and the content of each file.
fn files() -> [(&'static str, String); 6] {
    [
        ("track.svg", track::picture()),
        ("zero-latency.svg", zero_latency::picture()),
        ("straddle.svg", straddle::picture()),
        ("zone-edge.svg", zone_edge::picture()),
        ("request.svg", timeline::picture()),
        ("request.js", tables::script()),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("usage: concepts FOLDER; the book's folder is docs/concepts")?;
    for (name, content) in files() {
        std::fs::write(Path::new(&folder).join(name), content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size that every file must be below, in bytes. A page loads a file as a whole.
    const FILE_MAX: usize = 200_000;

    /// Are the files in the repository what this program writes, and are they small enough for a
    /// page?
    #[test]
    fn files_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/concepts");
        for (name, content) in files() {
            let stored = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(
                stored == content,
                "docs/concepts/{name} is out of date; renew it with \
                 `cargo run -p traxtent-plot --example concepts -- docs/concepts`"
            );
            let size = content.len();
            assert!(size < FILE_MAX, "{name} has {size} bytes");
        }
    }
}
