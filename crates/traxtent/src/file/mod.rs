//! `traxtent file`: files on whole tracks of a mounted file system.

mod moves;
mod show;
mod subject;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Subcommand;
use traxtent_file::TrackReader;
use traxtent_units::byte_size::parse_byte_size;

use crate::failure::{Failure, Result, be_quiet};
use crate::output;
use subject::FileSystems;

/// Show, allocate, move and read files by whole tracks
///
/// Needs a mounted ext4 file system (`show` and `read` also accept XFS and Btrfs) on a drive whose
/// tracks are known, and usually root. The kernel needs no patch. docs/guides/files.md has a
/// complete example.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Show(ShowArgs),
    Allocate(AllocateArgs),
    Realign(RealignArgs),
    Read(ReadArgs),
}

/// The option that names track maps.
#[derive(clap::Args, Debug)]
struct MapArgs {
    /// The track map of the drive: a map file, a list of tracks, or a drive. If the file system
    /// lies on several drives: DEVICE=MAP, once for each
    #[arg(long = "map", value_name = "MAP", required = true)]
    maps: Vec<String>,
}

/// Show which parts of files are on whole tracks
///
/// A part is on a whole track if all blocks that the track holds belong to the file, in file order.
/// PIECES is the number of requests that read the file if none crosses a track boundary. The bars
/// show 64 equal parts of the file; the height is the share on whole tracks.
///
/// The drive is not timed. If its size, model or serial number is not that in the map, a warning
/// says so. `probe --check` tests the map's boundaries.
///
/// Btrfs is supported on one device, if the data has the profile single or DUP (of DUP, the first
/// copy is shown), and needs root. Compressed files and those with other profiles are left out,
/// with a line each and exit status 1.
#[derive(clap::Args, Debug)]
struct ShowArgs {
    /// The files, and directories whose files are shown
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    map: MapArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The options of the verbs that move blocks.
#[derive(clap::Args, Debug)]
struct MoveArgs {
    #[command(flatten)]
    map: MapArgs,
    /// The most temporary space to allocate while files are moved
    #[arg(long, value_name = "BYTES", value_parser = parse_byte_size, default_value = "1G")]
    extra: u64,
    /// Do not test a sample of the map's boundaries on the drive first. Needed if the drive cannot
    /// be timed, such as an image file behind a loop device. A warning says if the map is of a
    /// drive of another size, model or serial number
    #[arg(long)]
    trust_map: bool,
    /// Omit notes and warnings
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Create a file of zeros whose space is allocated on whole tracks
///
/// Only on ext4. The space is on whole tracks as far as the free space permits. The file must not
/// exist, and gets its name only once it is complete.
#[derive(clap::Args, Debug)]
struct AllocateArgs {
    /// The file to create
    file: PathBuf,
    /// The size of the file
    #[arg(long, value_name = "BYTES", value_parser = parse_byte_size, allow_hyphen_values = true)]
    size: u64,
    #[command(flatten)]
    moving: MoveArgs,
}

/// Move existing files onto whole tracks
///
/// Only on ext4. Files can be read and written meanwhile, and keep their content, even after a
/// crash or if the command is stopped. Files that cannot be moved are left alone, with a line each.
/// These are running programs, swap files, immutable and encrypted files, and others. Parts that
/// are already on whole tracks stay where they are if at least 95 % of the file can be on whole
/// tracks that way.
///
/// Exit status 1 means that a file could not be moved, or only in part.
#[derive(clap::Args, Debug)]
struct RealignArgs {
    /// The files, and directories whose files are moved
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Move nothing, and print the best possible results
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    moving: MoveArgs,
}

/// Read files in requests of whole tracks, and write them to standard output
///
/// Like `cat`, but each request reads what one track holds of the file, and some tracks are
/// requested ahead. Reads bypass the page cache if the file system permits it. On Btrfs, the
/// command ends at the first file that `show` would leave out, with status 3.
#[derive(clap::Args, Debug)]
struct ReadArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    map: MapArgs,
    /// The number of tracks to request ahead
    #[arg(long, value_name = "TRACKS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    ahead: u16,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Show(args) => show::run(args),
        Verb::Allocate(args) => {
            be_quiet(args.moving.quiet);
            moves::allocate(args)
        }
        Verb::Realign(args) => {
            be_quiet(args.moving.quiet);
            moves::realign(args)
        }
        Verb::Read(args) => read(args),
    }
}

fn read(args: &ReadArgs) -> Result<()> {
    let mut systems = FileSystems::new(&args.map.maps)?;
    let mut out = io::stdout().lock();
    for path in &args.files {
        systems.warn_of_other_drives(path)?;
        let (system, partition) = systems.partition(path)?;
        let mut reader = TrackReader::open(path, system, &partition, args.ahead.into())
            .map_err(subject::failure)?;
        while let Some(track) = reader
            .next_track()
            .map_err(|error| Failure::file(path, &error))?
        {
            out.write_all(&track)?;
        }
    }
    output::finish(out)
}
