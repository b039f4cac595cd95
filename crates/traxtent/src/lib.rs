//! The `traxtent` command, and the opening page of the API documentation.
//!
//! The command parses arguments, calls the other crates, and prints results. All computations are
//! in the other crates. Results go to standard output, and everything else goes to standard error,
//! one message per line. The exit status is 0 for success; 1 for success with findings; 2 for wrong
//! usage or bad input; 3 if a file or device cannot be used; and 4 if a served run is not
//! trustworthy and `--require-trustworthy` is given.
//!
//! # Which crate is for what
//!
//! The links work if all crates are documented together: `cargo doc --workspace --no-deps`.
//!
//! | to … | use | begin with |
//! |---|---|---|
//! | test on a disk | [`traxtent-model`] | [`disk::Disk`], [`drive::Drive`], [`profile::builtin`] |
//! | simulate workloads | [`traxtent-sim`] | [`TestDrive`], [`simulate`] |
//! | simulate by name, in sweeps | [`traxtent-run`] | [`SweepPlan`], [`run_all`] |
//! | make workloads, read traces | [`traxtent-workload`] | [`WorkloadSpec`], [`TraceReader`] |
//! | find the tracks of a drive | [`traxtent-probe`] | [`Target`], [`extract`] |
//! | keep and look up tracks | [`traxtent-map`] | [`TrackMap`], [`MapFile`] |
//! | place data | [`traxtent-layout`] | [`Partition`], [`Allocator`], [`raid::Array`] |
//! | put files on whole tracks | [`traxtent-file`] | [`realign`], [`TrackReader`] |
//! | keep data on several disks | [`traxtent-volume`] | [`NewVolume`], [`Volume`] |
//! | read DiskSim's files | [`traxtent-disksim`] | [`load_system`] |
//! | encode, decode or serve SCSI commands | [`traxtent-scsi`] | [`DeviceServer`] |
//! | access real devices | [`traxtent-io`] | [`device::open`] |
//! | serve drives and volumes | [`traxtent-server`] | [`service::BlockService`] |
//! | check alignment | [`traxtent-check`] | [`findings`] |
//! | repeat a paper's measurement | [`traxtent-lab`], [`traxtent-experiments`] | [`MEASUREMENTS`] |
//! | draw results | [`traxtent-plot`] | [`Draw`] |
//! | count time, angles and LBNs | [`traxtent-units`] | [`SimTime`], [`Span`], [`Lbn`] |
//!
//! `docs/internals/architecture.md` in the repository has the invariants of each crate, and a list
//! of examples.
//!
//! [`traxtent-model`]: ../traxtent_model/index.html
//! [`disk::Disk`]: ../traxtent_model/disk/struct.Disk.html
//! [`drive::Drive`]: ../traxtent_model/drive/struct.Drive.html
//! [`profile::builtin`]: ../traxtent_model/profile/builtin/fn.builtin.html
//! [`traxtent-sim`]: ../traxtent_sim/index.html
//! [`traxtent-run`]: ../traxtent_run/index.html
//! [`SweepPlan`]: ../traxtent_run/struct.SweepPlan.html
//! [`run_all`]: ../traxtent_run/fn.run_all.html
//! [`traxtent-workload`]: ../traxtent_workload/index.html
//! [`TestDrive`]: ../traxtent_sim/struct.TestDrive.html
//! [`simulate`]: ../traxtent_sim/simulate/fn.simulate.html
//! [`WorkloadSpec`]: ../traxtent_workload/struct.WorkloadSpec.html
//! [`TraceReader`]: ../traxtent_workload/trace/struct.TraceReader.html
//! [`traxtent-probe`]: ../traxtent_probe/index.html
//! [`Target`]: ../traxtent_probe/trait.Target.html
//! [`extract`]: ../traxtent_probe/fn.extract.html
//! [`traxtent-map`]: ../traxtent_map/index.html
//! [`TrackMap`]: ../traxtent_map/struct.TrackMap.html
//! [`MapFile`]: ../traxtent_map/struct.MapFile.html
//! [`traxtent-layout`]: ../traxtent_layout/index.html
//! [`Partition`]: ../traxtent_layout/struct.Partition.html
//! [`Allocator`]: ../traxtent_layout/struct.Allocator.html
//! [`raid::Array`]: ../traxtent_layout/raid/struct.Array.html
//! [`traxtent-file`]: ../traxtent_file/index.html
//! [`realign`]: ../traxtent_file/fn.realign.html
//! [`TrackReader`]: ../traxtent_file/struct.TrackReader.html
//! [`traxtent-volume`]: ../traxtent_volume/index.html
//! [`NewVolume`]: ../traxtent_volume/struct.NewVolume.html
//! [`Volume`]: ../traxtent_volume/struct.Volume.html
//! [`traxtent-disksim`]: ../traxtent_disksim/index.html
//! [`load_system`]: ../traxtent_disksim/fn.load_system.html
//! [`traxtent-scsi`]: ../traxtent_scsi/index.html
//! [`DeviceServer`]: ../traxtent_scsi/struct.DeviceServer.html
//! [`traxtent-io`]: ../traxtent_io/index.html
//! [`device::open`]: ../traxtent_io/device/fn.open.html
//! [`traxtent-server`]: ../traxtent_server/index.html
//! [`service::BlockService`]: ../traxtent_server/service/trait.BlockService.html
//! [`traxtent-check`]: ../traxtent_check/index.html
//! [`findings`]: ../traxtent_check/fn.findings.html
//! [`traxtent-lab`]: ../traxtent_lab/index.html
//! [`traxtent-experiments`]: ../traxtent_experiments/index.html
//! [`MEASUREMENTS`]: ../traxtent_lab/constant.MEASUREMENTS.html
//! [`traxtent-plot`]: ../traxtent_plot/index.html
//! [`Draw`]: ../traxtent_plot/trait.Draw.html
//! [`traxtent-units`]: ../traxtent_units/index.html
//! [`SimTime`]: ../traxtent_units/struct.SimTime.html
//! [`Span`]: ../traxtent_units/struct.Span.html
//! [`Lbn`]: ../traxtent_units/struct.Lbn.html

mod calibrate;
mod check;
#[cfg(feature = "lab")]
mod claims;
mod convert;
mod copies;
mod demo;
mod drives;
mod failure;
mod fault;
mod file;
mod html;
mod invocation;
#[cfg(feature = "lab")]
mod lab;
mod logging;
mod machine;
mod manual;
mod map;
mod output;
mod overwrite;
mod parse;
mod plan;
mod plan_stack;
mod plot;
mod probe;
mod progress;
mod serve;
mod sim;
mod table;
mod validate;
mod volume;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

/// Find the physical structure of a disk, model it exactly, and lay out data along it.
#[derive(Parser, Debug)]
#[command(name = "traxtent", version, propagate_version = true, after_help = EXIT_STATUS)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_STATUS: &str = "\
Exit status: 0 success; 1 success, with findings; 2 wrong usage or bad input; 3 a file or device cannot be used;
4 a served run is not as required (serve --require-trustworthy, --require-faults).
Signals: Ctrl-C and SIGTERM end a server normally (0, or the receipt's verdict); any other command is ended by the signal (130 after Ctrl-C).";

#[derive(Subcommand, Debug)]
enum Verb {
    Check(check::Args),
    Calibrate(calibrate::Args),
    Convert(convert::Args),
    Demo(demo::Args),
    Doctor(serve::doctor::Args),
    Drives(drives::Args),
    Fault(fault::Args),
    File(file::Args),
    #[cfg(feature = "lab")]
    Lab(lab::Args),
    /// Explain that this build has no experiments
    #[cfg(not(feature = "lab"))]
    #[command(hide = true, disable_help_flag = true)]
    Lab {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    Map(map::Args),
    Plan(plan::Args),
    Probe(probe::Args),
    Serve(serve::Args),
    Sim(sim::Args),
    Validate(validate::Args),
    Volume(volume::Args),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page
    #[command(hide = true)]
    Man {
        /// The subcommand, such as `volume create`; without it, the command's own page
        verb: Vec<String>,
    },
}

/// The message of a build without the experiments.
const NO_LAB: &str = "this build lacks the experiments; rebuild it with the feature `lab`";

pub use invocation::Invocation;
pub use manual::man_page;

/// Returns the definition of the command line, for generating manual pages and completions.
pub fn command() -> clap::Command {
    manual::with_examples(Cli::command())
}

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    ExitCode::from(run(Invocation::of_process()))
}

/// Runs the command, and returns its exit status. Wrong usage, `--help` and `--version` end the
/// process.
pub fn run(invocation: Invocation) -> u8 {
    let name = std::ffi::OsString::from("traxtent");
    let words = std::iter::once(&name).chain(&invocation.arguments);
    let matches = command().try_get_matches_from(words);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    invocation.keep();
    logging::start();
    let result = match &cli.verb {
        Verb::Check(args) => check::run(args),
        Verb::Calibrate(args) => calibrate::run(args),
        Verb::Convert(args) => convert::run(args),
        Verb::Demo(args) => demo::run(args),
        Verb::Doctor(args) => serve::doctor::run(args),
        Verb::Drives(args) => drives::run(args),
        Verb::Fault(args) => fault::run(args),
        Verb::File(args) => file::run(args),
        #[cfg(feature = "lab")]
        Verb::Lab(args) => lab::run(args),
        #[cfg(not(feature = "lab"))]
        Verb::Lab { .. } => Err(failure::Failure::input(NO_LAB)),
        Verb::Map(args) => map::run(args),
        Verb::Plan(args) => plan::run(args),
        Verb::Probe(args) => probe::run(args),
        Verb::Serve(args) => serve::run(args),
        Verb::Sim(args) => sim::run(args),
        Verb::Validate(args) => validate::run(args),
        Verb::Volume(args) => volume::run(args),
        Verb::Completions { shell } => completions(*shell),
        Verb::Man { verb } => man(verb),
    };
    match result {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

/// Parses `text` with the command's own parsers of arguments, for the fuzzer. Returns the number of
/// points of the sweep whose options are the lines of the text.
#[doc(hidden)]
pub fn read_as_arguments(text: &str) -> usize {
    let _ = traxtent_run::Target::parse(text);
    let _ = (parse::pace(text), parse::speed(text));
    let _ = (parse::bitrate(text), parse::time(text));
    let _ = traxtent_units::byte_size::parse_byte_size(text);
    let _ = text.parse::<traxtent_server::serve::Speed>();
    let _ = text.parse::<traxtent_check::plan::StackSpec>();
    let options: Vec<String> = text.lines().map(str::to_owned).collect();
    sim::sweep_points(&options)
}

/// Draws a stack with its findings, for the fuzzer.
#[doc(hidden)]
pub fn draw_stack(stack: &traxtent_check::Stack, findings: &[traxtent_check::Finding]) -> String {
    check::draw(stack, findings)
}

fn completions(shell: Shell) -> failure::Result<()> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command(), "traxtent", &mut bytes);
    print(&bytes)
}

fn man(verb: &[String]) -> failure::Result<()> {
    let mut root = command();
    root.build();
    let mut page = &root;
    for name in verb {
        page = page
            .find_subcommand(name)
            .ok_or_else(|| failure::Failure::input(format!("unknown subcommand {name:?}")))?;
    }
    print(&man_page(page)?)
}

fn print(bytes: &[u8]) -> failure::Result<()> {
    use std::io::Write;
    let mut out = output::stdout();
    out.write_all(bytes)?;
    output::finish(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does every build accept `lab`, and do only builds with the experiments list it?
    #[test]
    fn lab_is_a_verb() {
        assert!(Cli::try_parse_from(["traxtent", "lab", "list", "T2", "--json"]).is_ok());
        let help = command().render_help().to_string();
        assert_eq!(help.contains("  lab "), cfg!(feature = "lab"), "{help}");
        // Without the experiments, `--help` is an argument, so the message takes precedence.
        let parsed = Cli::try_parse_from(["traxtent", "lab", "--help"]);
        assert_eq!(parsed.is_err(), cfg!(feature = "lab"));
    }

    /// Does every option that takes bytes accept the spellings that people type?
    #[test]
    fn sizes_in_every_verb() {
        let mut tried = Vec::new();
        sizes_of(&command(), &mut tried);
        for name in ["physical-sector", "chunk", "block-size", "block", "journal"] {
            assert!(tried.iter().any(|tried| tried == name), "{name}: {tried:?}");
        }
    }

    fn sizes_of(verb: &clap::Command, tried: &mut Vec<String>) {
        let is_size = |arg: &&clap::Arg| {
            let names = arg.get_value_names().unwrap_or_default();
            names.iter().any(|name| name.as_str() == "BYTES")
        };
        for arg in verb.get_arguments().filter(is_size) {
            let option = arg.get_long().expect("sizes are options");
            let accepts = |size: &str| {
                let alone = clap::Command::new("verb").arg(arg.clone());
                let parsed = alone.try_get_matches_from(["verb", &format!("--{option}"), size]);
                parsed.is_ok()
            };
            // Rates begin at 64K.
            let sizes = match accepts("4096") {
                true => ["4k", "4K", "4KiB", "4kib"],
                false => ["64k", "64K", "64KiB", "64kib"],
            };
            for size in sizes {
                assert!(accepts(size), "{} --{option} {size}", verb.get_name());
            }
            tried.push(option.to_owned());
        }
        for verb in verb.get_subcommands() {
            sizes_of(verb, tried);
        }
    }
}
