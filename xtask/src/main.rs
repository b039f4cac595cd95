//! Commands for developers. `cargo xtask --help` lists the verbs.

mod bench;
mod blind;
mod book;
mod cycles;
mod dist;
mod fuzz;
mod guest;
mod libtest;
mod machine;
mod mutants;
mod packages;
#[cfg(feature = "pages")]
mod pages;
mod planted;
mod python;
mod shell;
mod soak;
mod suite;
mod tally;
mod test;
mod tree;
mod words;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Commands for developers
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Verb {
    /// Install the packages that tests use, check style and lints, run all tests, build the pure
    /// crates from their packages
    Test,
    /// Measure, and print the machine, the seed and the commit with the figures
    Bench(bench::Options),
    /// Probe random drives without knowledge of their layouts, and compare the results with them
    Blind(blind::Options),
    /// Search for inputs that break a parser
    Fuzz(fuzz::Options),
    /// Run the tests at many times their usual repetitions, check the Python package and the book,
    /// then fuzz for hours
    Soak(soak::Options),
    /// Try planted bugs, each of which a named test must catch
    Planted(planted::Options),
    /// Change the model in small ways with cargo-mutants, and count the changes that tests catch
    Mutants(mutants::Options),
    /// Make the tarball, the Python wheel and the Debian package, and try them in clean
    /// environments
    Dist(dist::Options),
    /// Build the Python package with the libraries of the tests, install it, and run its checks
    Python,
    /// Build the book into target/book, and read every page in a browser
    Book,
    /// Write the man pages and shell completions into a directory
    #[cfg(feature = "pages")]
    #[command(hide = true)]
    Pages { folder: std::path::PathBuf },
}

fn main() -> ExitCode {
    match run(Verb::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<ExitCode> {
    std::env::set_current_dir(shell::root())?;
    match verb {
        Verb::Test => test::run(),
        Verb::Bench(options) => bench::run(&options),
        Verb::Blind(options) => blind::run(&options),
        Verb::Fuzz(options) => fuzz::run(&options),
        Verb::Soak(options) => soak::run(&options),
        Verb::Planted(options) => planted::run(&options),
        Verb::Mutants(options) => mutants::run(&options),
        Verb::Dist(options) => dist::run(&options),
        Verb::Python => Ok(python::test(python::start_preparation(false), None).report()),
        Verb::Book => book::run(),
        #[cfg(feature = "pages")]
        Verb::Pages { folder } => pages::write(&folder),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// Are the definitions of the verbs and their options valid?
    #[test]
    fn verbs_are_sound() {
        super::Verb::command().debug_assert();
    }
}
