//! `traxtent convert`: the conversion of a drive, such as one in a DiskSim parameter file, to a
//! profile.

use std::io::Write;
use std::path::PathBuf;

use traxtent_run::OutputFormat;

use crate::drives::{commented, write_new};
use crate::failure::{Result, be_quiet};
use crate::machine::{TARGET_HELP, load};
use crate::output;
use crate::overwrite;
use crate::parse::output_file;

/// Convert a drive, such as one in a DiskSim parameter file, to an editable profile
///
/// `traxtent sim` gives the same results for the profile as for the original TARGET. Comments state
/// the meaning, unit, bounds and origin of every figure, except in zones and other parts of the
/// layout.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(help = TARGET_HELP)]
    target: String,
    /// Write the profile to this file instead of standard output
    #[arg(long, value_name = "FILE", value_parser = output_file)]
    out: Option<PathBuf>,
    /// Replace an existing profile; needs --out
    #[arg(long, requires = "out")]
    force: bool,
    /// Omit notes and warnings
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    be_quiet(args.quiet);
    let drive = load(&args.target)?.only_drive()?;
    let heading = format!(
        "Converted from {}. If you change a value, change its origin too; the origins are at the \
         end.",
        args.target
    );
    let text = commented(&drive.profile, &heading);
    match &args.out {
        Some(path) => {
            let inputs = drive.files.iter().map(PathBuf::as_path);
            let format = Some(OutputFormat::Profile);
            overwrite::check(inputs, &[("--out", Some(path), format)])?;
            write_new(path, &text, args.force)
        }
        None => {
            let mut out = output::stdout();
            out.write_all(text.as_bytes())?;
            output::finish(out)
        }
    }
}
