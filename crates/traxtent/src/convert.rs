//! `traxtent convert`: a drive of a DiskSim parameter file as a profile for editing.

use std::io::Write;
use std::path::{Path, PathBuf};

use traxtent_model::profile::Profile;

use crate::drives::origins_in_words;
use crate::failure::{Failure, Result};
use crate::output;
use crate::target::{Machine, TARGET_HELP};

/// Convert a drive of a DiskSim parameter file to an editable profile
///
/// The profile simulates as the original does. A comment names the meaning, unit, bounds and origin
/// of every figure.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[arg(help = TARGET_HELP)]
    target: String,
    /// Write the profile to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    force: bool,
}

const EXAMPLES: &str = "Examples:
  traxtent convert disksim:atlas10k.parv --out my.toml
  traxtent convert disksim:3disks.parv#disk1";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let drive = Machine::load(&args.target)?.only_drive()?;
    let text = commented(&drive.profile, &format!("Converted from {}.", args.target));
    match &args.out {
        Some(path) => write_new(path, &text, args.force),
        None => {
            let mut out = output::stdout();
            out.write_all(text.as_bytes())?;
            output::finish(out)
        }
    }
}

/// Returns a profile with comments, after a heading and the number of figures of each origin.
pub(crate) fn commented(profile: &Profile, heading: &str) -> String {
    let heading = format!("{heading}\n{}", origins_in_words(profile));
    profile.to_commented_toml(&heading)
}

/// Writes a profile to a file that must not exist, unless `force` allows to replace it.
pub(crate) fn write_new(path: &Path, text: &str, force: bool) -> Result<()> {
    if !force && path.is_file() {
        let what = "exists already; --force replaces it";
        return Err(Failure::at(path.display(), what));
    }
    output::write(path, text.as_bytes())
}
