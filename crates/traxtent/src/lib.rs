//! The `traxtent` command: reads its arguments, calls the other crates, prints.
//!
//! What is computed is computed elsewhere; here is what a person at a terminal or a script sees.
//! Results go to standard output, everything else to standard error, a line each. Exit status: 0
//! done, 1 done and something was found, 2 usage or bad input, 3 a file or device that cannot be used.

mod check;
mod claims;
mod copies;
mod demo;
mod drives;
mod failure;
mod fault;
mod html;
mod input;
mod lab;
mod map;
mod output;
mod parse;
mod plan;
mod plan_stack;
mod plot;
mod probe;
mod progress;
mod serve;
mod sim;
mod table;
mod target;
mod validate;
mod volume;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

/// Finds the physical structure of a disk, models it exactly, and lays data out along it.
#[derive(Parser, Debug)]
#[command(name = "traxtent", version, propagate_version = true, after_help = EXIT_STATUS)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_STATUS: &str = "\
Exit status: 0 done; 1 done, and something was found; 2 usage or bad input; 3 a file or device cannot be used.";

#[derive(Subcommand, Debug)]
enum Verb {
    Check(check::Args),
    Demo(demo::Args),
    Drives(drives::Args),
    Fault(fault::Args),
    Lab(lab::Args),
    Map(map::Args),
    Plan(plan::Args),
    Probe(probe::Args),
    Serve(serve::Args),
    Sim(sim::Args),
    Validate(validate::Args),
    Volume(volume::Args),
    /// Print a shell's completions
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page
    #[command(hide = true)]
    Man {
        /// The verb; without it, the command's own page
        verb: Option<String>,
    },
}

/// The definition of the command line, from which manual pages and completions are made.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = match Cli::from_arg_matches(&command().get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let result = match &cli.verb {
        Verb::Check(args) => check::run(args),
        Verb::Demo(args) => demo::run(args),
        Verb::Drives(args) => drives::run(args),
        Verb::Fault(args) => fault::run(args),
        Verb::Lab(args) => lab::run(args),
        Verb::Map(args) => map::run(args),
        Verb::Plan(args) => plan::run(args),
        Verb::Probe(args) => probe::run(args),
        Verb::Serve(args) => serve::run(args),
        Verb::Sim(args) => sim::run(args),
        Verb::Validate(args) => validate::run(args),
        Verb::Volume(args) => volume::run(args),
        Verb::Completions { shell } => completions(*shell),
        Verb::Man { verb } => man(verb.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Reads `text` as every kind of argument that is not left to clap, for the fuzzer; says how many
/// points it has as a sweep.
#[doc(hidden)]
pub fn read_as_arguments(text: &str) -> usize {
    let _ = target::Target::parse(text);
    let _ = (parse::pace(text), parse::speed(text));
    let _ = (parse::bitrate(text), parse::time(text));
    let _ = text.parse::<traxtent_exec::serve::Speed>();
    let _ = text.parse::<traxtent_check::plan::Want>();
    let options: Vec<String> = text.lines().map(str::to_owned).collect();
    sim::sweep_points(&options)
}

fn completions(shell: Shell) -> failure::Result<()> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command(), "traxtent", &mut bytes);
    print(&bytes)
}

fn man(verb: Option<&str>) -> failure::Result<()> {
    let mut root = command();
    root.build();
    let page = match verb {
        None => root,
        Some(name) => root
            .find_subcommand(name)
            .ok_or_else(|| failure::Failure::input(format!("there is no verb {name:?}")))?
            .clone(),
    };
    let mut bytes = Vec::new();
    clap_mangen::Man::new(page).render(&mut bytes)?;
    print(&bytes)
}

fn print(bytes: &[u8]) -> failure::Result<()> {
    use std::io::Write;
    let mut out = output::stdout();
    out.write_all(bytes)?;
    output::finish(out)
}
