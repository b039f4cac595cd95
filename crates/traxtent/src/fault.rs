//! `traxtent fault`: faults of a served drive, such as power cuts, bad sectors and stalls.

use std::io::Write;
use std::path::PathBuf;

use traxtent_model::disk::Fault;
use traxtent_server::control::send_order;

use crate::failure::{Failure, Result};
use crate::output;

/// Inject a fault into a served drive
///
/// SOCKET is the control socket that `traxtent serve` prints. A command run by `traxtent serve`
/// finds it in $control. With several drives, $control is the first drive's socket;
/// $control_NAME is that of drive NAME. docs/guides/faults.md lists the faults and their keys.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The served drive's control socket
    socket: PathBuf,
    /// The fault's name: power-cut, latent-error, slow-sector, grown-defect, stall, vanish,
    /// lying-flush or lying-fua
    fault: String,
    /// The fault's keys and values: `--lbn 1000` or `lbn=1000`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    keys: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let line = line(args)?;
    let fault: Fault = line.parse().map_err(Failure::input)?;
    let answer =
        send_order(&args.socket, &fault).map_err(|error| Failure::file(&args.socket, &error))?;
    let done = answer.map_err(Failure::input)?;
    let mut out = output::stdout();
    writeln!(out, "{done}")?;
    output::finish(out)
}

/// Returns the fault as text, such as `stall,for=2s`.
fn line(args: &Args) -> Result<String> {
    let mut line = args.fault.clone();
    let mut keys = args.keys.iter();
    while let Some(key) = keys.next() {
        let (dashed, key) = match key.strip_prefix("--") {
            Some(key) => (true, key),
            None => (false, key.as_str()),
        };
        line.push(',');
        line.push_str(key);
        if dashed && !key.contains('=') {
            let value = keys
                .next()
                .ok_or_else(|| Failure::input(format!("--{key}: missing value")))?;
            line.push('=');
            line.push_str(value);
        }
    }
    Ok(line)
}
