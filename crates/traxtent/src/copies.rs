//! `traxtent volume copies`: volumes that keep replicas of their blocks around the track.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use traxtent_layout::tpl::{PartitionBounds, PartitionCount, Tpl};
use traxtent_server::copies::{self, ReplicaVolumeIoError, ReplicaVolumePlan};
use traxtent_units::Count;
use traxtent_units::byte_size::{BYTE_SIZE_HELP, parse_byte_size};
use traxtent_volume::copies::superblock::ReplicatedSuperblock;
use uuid::Uuid;

use crate::failure::{Failure, Result, note};
use crate::output;
use crate::progress::Progress;
use traxtent_check::content::{content_beside_volume, recognized_content};

/// The note on the data of a volume that was destroyed.
pub(crate) const REMAINING_DATA: &str =
    "the data remains on the devices; `create` overwrites it only with --force";

/// Keep replicas of blocks around their tracks, on one file or block device
///
/// Random reads of small blocks wait for the replica that passes the head first. The replicas take
/// up capacity of the device. `volume serve` serves the volume. docs/guides/copies.md explains when
/// replicas are worthwhile, and when a smaller partition is better.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Create a volume; a block device is first surveyed, for one or two revolutions per track
    Create(Create),
    /// Show the status of the volume on a device, without writing
    Status(Status),
    /// Remove the superblocks that make the device a volume; other content is kept
    Destroy(Destroy),
}

#[derive(clap::Args, Debug)]
#[command(after_help = BYTE_SIZE_HELP)]
struct Create {
    /// The number of replicas of each block, or a range within which free space decides
    #[arg(long, value_name = "M|LEAST..MOST", value_parser = bounds, allow_negative_numbers = true)]
    copies: PartitionBounds,
    /// The device's track map
    #[arg(long, value_name = "FILE")]
    map: PathBuf,
    /// The size of a block in bytes, such as 4K
    #[arg(long, value_name = "BYTES", value_parser = parse_byte_size, default_value = "4K")]
    block: u64,
    /// How often the survey reads each track; 0: no survey, reads take any replica [default: 1 on
    /// block devices, 0 on files]
    #[arg(long, value_name = "N")]
    readings: Option<u32>,
    /// Overwrite the content of the device, which is lost
    #[arg(long)]
    force: bool,
    /// A file or block device
    device: PathBuf,
    /// Print the new volume as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Status {
    /// The device
    device: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Destroy {
    /// The device
    device: PathBuf,
    /// Confirm the loss of the volume's data; required
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Create(args) => create(args),
        Verb::Status(args) => status(args),
        Verb::Destroy(args) => destroy(args),
    }
}

fn create(args: &Create) -> Result<()> {
    let is_device = |path: &PathBuf| {
        use std::os::unix::fs::FileTypeExt;
        std::fs::metadata(path).is_ok_and(|data| data.file_type().is_block_device())
    };
    let readings = args.readings.unwrap_or(u32::from(is_device(&args.device)));
    let block_bytes = u32::try_from(args.block);
    let plan = ReplicaVolumePlan {
        device: args.device.clone(),
        map: args.map.clone(),
        bounds: args.copies,
        block_bytes: block_bytes.map_err(|_| Failure::input("--block: expected less than 4G"))?,
        readings,
        force: args.force,
    };
    let mut progress: Option<(Progress, usize)> = None;
    let made = copies::create(
        &plan,
        Uuid::new_v4(),
        recognized_content,
        |track, tracks| {
            let begin = || (Progress::new("tracks surveyed", Some(tracks as u64)), 0);
            let (progress, before) = progress.get_or_insert_with(begin);
            progress.add(track.saturating_sub(*before) as u64);
            *before = track;
        },
    );
    let made = made.map_err(failure)?;
    show(&made.superblock, &made.layout, args.json)
}

fn status(args: &Status) -> Result<()> {
    let (_, found) = copies::find(&args.device).map_err(failure)?;
    show(&found.superblock, &found.layout, args.json)?;
    if !found.has_both_superblocks() {
        return Err(Failure::Finding(
            "one of the two superblocks is missing or damaged, and the volume is lost if the other is too; `volume serve` rewrites it".to_owned(),
        ));
    }
    let tracks = found.layout.shape().tracks();
    if found.layout.suspect(tracks.start).is_some() {
        return Err(Failure::Finding(
            "the volume was not stopped cleanly; its replicas are updated while it is served"
                .to_owned(),
        ));
    }
    if found.repairs() > 0 {
        return Err(Failure::Finding(
            "one of the two copies of the table of tracks is damaged or out of date, and the volume is lost if the other is damaged in the same place; `volume serve` rewrites it".to_owned(),
        ));
    }
    Ok(())
}

fn destroy(args: &Destroy) -> Result<()> {
    if !args.force {
        return Err(Failure::input(
            "the volume's data would be lost; confirm with --force",
        ));
    }
    let was = copies::destroy(&args.device, content_beside_volume).map_err(failure)?;
    let (path, mut out) = (args.device.display(), output::stdout());
    writeln!(out, "{path}: no longer holds volume {}", was.volume)?;
    output::finish(out)?;
    note(REMAINING_DATA);
    Ok(())
}

fn show(superblock: &ReplicatedSuperblock, layout: &Tpl, as_json: bool) -> Result<()> {
    let header = layout.header();
    let bytes =
        |blocks: u64| blocks * u64::from(header.block_sectors) * u64::from(header.sector_bytes);
    let (least, most) = (header.bounds.least(), header.bounds.most());
    let all = bytes(layout.shape().blocks());
    let mut tracks = [0_u64; PartitionCount::ALL.len()];
    let mut used = 0;
    for track in layout.shape().tracks() {
        let state = layout.track(track);
        tracks[state.count.get().ilog2() as usize] += 1;
        for layer in (0..8).filter(|layer| state.holds(*layer)) {
            let blocks = layout.shape().layer_on(track, layer);
            used += bytes(u64::from(blocks.end - blocks.start));
        }
    }
    let counted = || {
        let all = PartitionCount::ALL.iter().zip(tracks);
        all.filter(|(_, tracks)| *tracks > 0)
    };
    if as_json {
        let tracks =
            counted().map(|(count, tracks)| json!({ "copies": count.get(), "tracks": tracks }));
        return output::json(&json!({
            "volume": superblock.volume.to_string(),
            "bytes": all,
            "bytes_in_use": used,
            "block_bytes": header.block_sectors * header.sector_bytes,
            "copies_least": least.get(),
            "copies_most": most.get(),
            "tracks": tracks.collect::<Vec<_>>(),
            "surveyed": superblock.survey.bytes > 0,
        }));
    }
    let mut out = output::stdout();
    let replicas = match (least.get(), most.get()) {
        (1, 1) => "1 replica".to_owned(),
        (least, most) if least == most => format!("{most} replicas"),
        (least, most) => format!("{least} to {most} replicas"),
    };
    writeln!(
        out,
        "volume {}: {replicas} of each block, {all} bytes, {used} in use",
        superblock.volume
    )?;
    for (count, tracks) in counted() {
        writeln!(out, "  {} with {count}", Count(tracks, "track"))?;
    }
    let map = layout.shape().map();
    let mapped = map.end().0 - map.first().0;
    let unused = superblock.sectors.0.saturating_sub(mapped) * u64::from(header.sector_bytes);
    if unused > 0 {
        writeln!(
            out,
            "  not used: {unused} bytes that the track map does not cover"
        )?;
    }
    if superblock.survey.bytes == 0 {
        writeln!(out, "  not surveyed: reads take any replica")?;
    }
    output::finish(out)
}

fn failure(error: ReplicaVolumeIoError) -> Failure {
    match error {
        ReplicaVolumeIoError::Device(_)
        | ReplicaVolumeIoError::Target(_)
        | ReplicaVolumeIoError::Survey { .. } => Failure::Io(error.to_string()),
        other => Failure::input(other),
    }
}

/// Parses a number of replicas, or two numbers separated by two dots.
fn bounds(text: &str) -> std::result::Result<PartitionBounds, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let count = |text: &str| {
        let number: Option<u32> = text.parse().ok();
        let number =
            number.ok_or("expected a number of replicas, such as 2, or a range, such as 1..2");
        PartitionCount::new(number?).map_err(|error| error.to_string())
    };
    PartitionBounds::new(count(least)?, count(most)?).map_err(|error| error.to_string())
}
