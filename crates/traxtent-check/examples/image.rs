//! Is every layer of an image aligned, and which commands fix it if not?
//!
//! `cargo run -p traxtent-check --example image -- disk.img`

use std::error::Error;
use std::path::PathBuf;

use traxtent_check::drive::StatedDrive;
use traxtent_check::findings;
use traxtent_check::target::{HostPaths, examine_targets};

fn main() -> Result<(), Box<dyn Error>> {
    let image = std::env::args().nth(1).map(PathBuf::from);
    let image = image.ok_or("an image file is required as the argument")?;
    let stack = examine_targets(&[image], &StatedDrive::default(), &HostPaths::default())?;
    for row in findings(&stack, None, None, &[]) {
        let finding = &row.finding;
        println!("{}: {}", finding.rule.id(), finding.what);
        for command in row.fix.iter().flat_map(|fix| &fix.commands) {
            println!("  {command}");
        }
    }
    Ok(())
}
