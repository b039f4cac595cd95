//! `traxtent check`: checks the alignment of every layer.

mod measure;
mod text;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use traxtent_check::collect::StackArchive;
use traxtent_check::drive::StatedDrive;
use traxtent_check::files::{Mounted, bad_blocks_in_image, extents_in_image, extents_of_mounted};
use traxtent_check::report::{Report, ReportRow, SeverityCounts};
use traxtent_check::rules::{Extent, TrackCheck};
use traxtent_check::source::{FileSource, JoinedSource};
use traxtent_check::target::{HostPaths, TargetError, examine_targets};
use traxtent_check::{Finding, Kind, LayerId, Rule, Severity, Stack};

use traxtent_map::TrackMap;
use traxtent_model::profile::Profile;
use traxtent_units::byte_size::BYTE_SIZE_HELP;

use crate::failure::{Failure, Result, warn};
use crate::map::Subject;
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::parse;
use crate::table::{Side, Table};

/// The maximum size of an archive, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 64 << 20;

/// The size of a physical sector in bytes, if neither `--physical-sector` nor `--drive` states it.
/// `--chunk` and `--stripe` must be multiples of it.
const PHYSICAL_BYTES: u64 = 4096;

/// Check the alignment of every layer: partitions, arrays, volumes, encryption, file systems
///
/// A TARGET is an image file, a block device, or a file that --collect wrote; without one, every
/// drive of the machine is checked. A block device is checked with all layers above and below it.
/// Nothing is written to it, except in the range that --scratch names. Exit status 1 means findings
/// at or above --fail-on; 3 means that a layer could not be read or contradicts its format.
/// docs/reference/check.md lists the findings.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, after_help = BYTE_SIZE_HELP)]
pub(crate) struct Args {
    /// Images, block devices, or files that --collect wrote
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Check alignment to this drive: a built-in drive, a profile, or a track map
    #[arg(long, value_name = "DRIVE")]
    drive: Option<String>,
    /// The size of a physical sector in bytes, such as 4K
    #[arg(long, value_name = "BYTES", value_parser = sector)]
    physical_sector: Option<u64>,
    /// The size of a logical sector in bytes
    #[arg(long, value_name = "BYTES", value_parser = sector)]
    logical_sector: Option<u64>,
    /// The size of an erase block of a solid-state drive in bytes, such as 512K or 3M
    #[arg(long, value_name = "BYTES", value_parser = size)]
    erase_block: Option<u64>,
    /// The size of a chunk in bytes, such as 64K, if the drive is an array behind a controller;
    /// with
    /// --stripe, the stripe parameters of file systems are checked too
    #[arg(long, value_name = "BYTES", value_parser = size)]
    chunk: Option<u64>,
    /// The size of a full stripe's data in bytes, if the drive is an array behind a controller
    #[arg(long, value_name = "BYTES", value_parser = size)]
    stripe: Option<u64>,
    /// For a file in the image, or a mounted file, count the extents that cross track boundaries;
    /// may be repeated
    #[arg(long, value_name = "PATH", requires = "drive")]
    file: Vec<String>,
    /// Write the collected information, without data or keys, to a file for a check elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "quiet", "fail_on", "ignore"])]
    collect: Option<PathBuf>,
    /// The lowest severity that sets exit status 1
    #[arg(long, value_name = "SEVERITY", value_parser = severities(), default_value = "fault")]
    fail_on: Severity,
    /// Omit a finding; may be repeated
    #[arg(long, value_name = "ID", value_parser = rules())]
    ignore: Vec<Rule>,
    /// Print no report; only set the exit status
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    measure: measure::Measure,
}

fn rules() -> impl TypedValueParser<Value = Rule> {
    let names = Rule::all().iter().map(|rule| rule.id());
    PossibleValuesParser::new(names).map(|name| name.parse().expect("only ids pass"))
}

fn severities() -> impl TypedValueParser<Value = Severity> {
    PossibleValuesParser::new(Severity::all().map(Severity::name))
        .map(|name| name.parse().expect("only names pass"))
}

/// Parses a sector size, which is a power of two from 512 to 64K.
fn sector(text: &str) -> Result<u64, String> {
    let is_allowed = |bytes: u64| bytes.is_power_of_two() && (512..=65_536).contains(&bytes);
    parse::bytes_if(text, is_allowed, "expected a power of two from 512 to 64K")
}

fn size(text: &str) -> Result<u64, String> {
    let is_allowed = |bytes: u64| (512..=1 << 30).contains(&bytes) && bytes.is_multiple_of(512);
    parse::bytes_if(
        text,
        is_allowed,
        "expected a multiple of 512 up to 1G, such as 512K or 3M",
    )
}

pub(crate) fn run(args: &Args) -> Result<()> {
    refuse_duplicates(&args.targets)?;
    let (archives, devices): (Vec<_>, Vec<_>) = args
        .targets
        .iter()
        .map(|path| Ok((path, archive(path)?)))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .partition(|(_, archive)| archive.is_some());
    match (archives.is_empty(), devices.is_empty()) {
        (true, _) => machine(args),
        (false, true) if args.measure.is_requested() => Err(Failure::input(
            "--measure needs a block device, not a file that --collect wrote",
        )),
        (false, true) if args.collect.is_some() => Err(Failure::input(
            "--collect needs devices or images, not a file that --collect wrote",
        )),
        (false, true) if !args.file.is_empty() => Err(Failure::input(
            "--file needs an image or a mounted file, not a file that --collect wrote",
        )),
        (false, true) => hosts(
            args,
            archives
                .into_iter()
                .filter_map(|(_, archive)| archive)
                .collect(),
        ),
        (false, false) => Err(Failure::input(format!(
            "{} was written by --collect, but {} was not; check them separately",
            archives[0].0.display(),
            devices[0].0.display()
        ))),
    }
}

/// Refuses a file or device that is named twice. It would count as two members of an array.
fn refuse_duplicates(targets: &[PathBuf]) -> Result<()> {
    let mut seen = BTreeMap::new();
    for path in targets {
        // `archive` reports a path whose metadata cannot be read.
        let Ok(meta) = fs::metadata(path) else {
            continue;
        };
        let key = if meta.file_type().is_block_device() {
            (None, meta.rdev())
        } else {
            (Some(meta.dev()), meta.ino())
        };
        if let Some(first) = seen.insert(key, path) {
            return Err(Failure::input(format!(
                "{} and {} are the same target; name it once",
                first.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

/// Returns the archive in a file; `None` if the file is not an archive.
fn archive(path: &Path) -> Result<Option<StackArchive>> {
    let fail = |error| Failure::file(path, &error);
    // A device or a pipe is never an archive, and opening it can block.
    if !fs::metadata(path).map_err(fail)?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file)
        .take(64)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    if !StackArchive::recognize(&bytes) {
        return Ok(None);
    }
    file.take(ARCHIVE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    let archive = StackArchive::read(&bytes).map_err(|error| Failure::at(path.display(), error))?;
    Ok(Some(archive))
}

/// Checks this machine, devices, or images. With `--collect`, writes the collected information
/// instead.
fn machine(args: &Args) -> Result<()> {
    let drive = Drive::of(args)?;
    let host = HostPaths::default();
    let files = RequestedFiles::of(args, &host)?;
    let devices = files.devices();
    let targets = devices.as_ref().unwrap_or(&args.targets);
    if let Some(path) = &args.collect {
        let inputs = targets.iter().map(PathBuf::as_path);
        overwrite::check(
            inputs,
            &[("--collect", Some(path), Some(OutputFormat::Stack))],
        )?;
    }
    let mut stack =
        examine_targets(targets, &drive.stated, &host).map_err(|error| match error {
            TargetError::File { path, error } => Failure::file(&path, &error),
            error => Failure::Io(error.to_string()),
        })?;
    warn_of_smaller_disks(&stack);
    if let Some(path) = &args.collect {
        return output::write(path, &StackArchive::new(hostname(), stack).write());
    }
    let measured = args.measure.measure(targets, &mut stack)?;
    let excluded = match &drive.tracks {
        Some(_) => excluded_blocks(&stack),
        None => Vec::new(),
    };
    let findings = drive.judge(&stack, files.extents(&stack)?, excluded, &args.ignore);
    if args.json {
        output::json(&Report::new(None, &stack, &findings).with_measured(&measured))?;
    } else if !args.quiet {
        let mut out = output::stdout();
        out.write_all(text::measurements(&measured).as_bytes())?;
        out.write_all(text::report(&stack, &findings).as_bytes())?;
        output::finish(out)?;
    }
    verdict(args, &findings)
}

/// Warns about block devices that are smaller than the drive of `--drive`, so that it is probably
/// another one. An image may hold only the first part of a drive. A larger image or device is a
/// finding.
fn warn_of_smaller_disks(stack: &Stack) {
    for (_, layer) in stack.iter() {
        if let Kind::Disk(disk) = &layer.kind
            && !disk.image
            && let Some(capacity) = disk.capacity_bytes
            && layer.bytes < capacity
        {
            let (name, bytes) = (&layer.name, layer.bytes);
            warn(format!(
                "{name}: has {bytes} bytes, but the drive of --drive has {capacity}; its tracks may be those of another drive"
            ));
        }
    }
}

/// Checks archives of other machines. Prints a report for one, and a table for several.
fn hosts(args: &Args, archives: Vec<StackArchive>) -> Result<()> {
    let drive = Drive::of(args)?;
    let judged: Vec<(StackArchive, Vec<ReportRow>)> = archives
        .into_iter()
        .map(|mut archive| {
            for layer in &mut archive.stack.layers {
                if let Kind::Disk(disk) = &mut layer.kind {
                    drive.stated.apply_to(disk);
                }
            }
            let findings = drive.judge(&archive.stack, Vec::new(), Vec::new(), &args.ignore);
            (archive, findings)
        })
        .collect();
    if args.json {
        let reports: Vec<_> = judged
            .iter()
            .map(|(archive, findings)| Report::new(Some(&archive.host), &archive.stack, findings))
            .collect();
        output::json(&reports)?;
    } else if let [(archive, findings)] = judged.as_slice()
        && !args.quiet
    {
        let mut out = output::stdout();
        writeln!(out, "{}", archive.host)?;
        out.write_all(text::report(&archive.stack, findings).as_bytes())?;
        output::finish(out)?;
    } else if !args.quiet {
        let mut out = output::stdout();
        rows(&judged).write(&mut out)?;
        output::finish(out)?;
    }
    let all: Vec<ReportRow> = judged
        .into_iter()
        .flat_map(|(_, findings)| findings)
        .collect();
    verdict(args, &all)
}

fn rows(judged: &[(StackArchive, Vec<ReportRow>)]) -> Table {
    let right = |title| (title, Side::Right);
    let mut table = Table::new([
        ("host", Side::Left),
        right("drives"),
        right("layers"),
        right("faults"),
        right("warnings"),
        right("notes"),
        ("worst", Side::Left),
    ]);
    for (archive, findings) in judged {
        let layers = &archive.stack.layers;
        let drives = layers.iter().filter(|layer| layer.on.is_empty()).count();
        let tally = SeverityCounts::of(findings);
        let worst = findings.first();
        let worst = worst.map_or("-".to_owned(), |ReportRow { finding, .. }| {
            format!(
                "{}: {}",
                finding.rule.id(),
                archive.stack.layer(finding.layer).name
            )
        });
        let counts = [
            drives,
            layers.len(),
            tally.faults,
            tally.warnings,
            tally.infos,
        ];
        let counts = counts.map(|count| count.to_string());
        table.row(
            [archive.host.clone()]
                .into_iter()
                .chain(counts)
                .chain([worst]),
        );
    }
    table
}

/// Formats a stack as a tree with marks for its findings, for the fuzzer.
pub(crate) fn draw(stack: &Stack, findings: &[Finding]) -> String {
    text::tree(stack, &findings.iter().collect::<Vec<_>>())
}

/// Returns the error for the exit status. Unreadable and damaged layers take precedence over other
/// findings.
fn verdict(args: &Args, rows: &[ReportRow]) -> Result<()> {
    let findings = || rows.iter().map(|row| &row.finding);
    let unreadable = |finding: &&Finding| matches!(finding.rule, Rule::Unreadable | Rule::Damaged);
    if let Some(finding) = findings().find(unreadable) {
        return Err(Failure::Io(finding.what.clone()));
    }
    let bad: Vec<&Finding> = findings()
        .filter(|finding| finding.severity >= args.fail_on)
        .collect();
    match bad.as_slice() {
        [] => Ok(()),
        _ if args.quiet => Err(Failure::Status(1)),
        bad => Err(Failure::Finding(verdict_line(bad, args.fail_on))),
    }
}

/// Returns the message that ends a check with findings. It states how many there are, and their
/// ids, by which the report names them.
fn verdict_line(bad: &[&Finding], fail_on: Severity) -> String {
    let mut ids: Vec<&str> = Vec::new();
    for id in bad.iter().map(|finding| finding.rule.id()) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let severity = match fail_on {
        Severity::Info => "",
        Severity::Warning => " of severity warning or fault",
        Severity::Fault => " of severity fault",
    };
    let plural = if bad.len() == 1 { "" } else { "s" };
    format!(
        "{} finding{plural}{severity} in the report above: {}",
        bad.len(),
        ids.join(", ")
    )
}

fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The specified properties of the drive at the bottom of the stack.
struct Drive {
    stated: StatedDrive,
    /// The user's name of the drive, its track map, and the size of the map's sectors in bytes.
    tracks: Option<(String, TrackMap, u64)>,
    profile: Option<Arc<Profile>>,
}

impl Drive {
    fn of(args: &Args) -> Result<Drive> {
        let mut drive = match &args.drive {
            Some(text) => Drive::load(text)?,
            None => Drive {
                stated: StatedDrive::default(),
                tracks: None,
                profile: None,
            },
        };
        let stated = &mut drive.stated;
        let replace = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        replace(&mut stated.logical_bytes, args.logical_sector);
        replace(&mut stated.physical_bytes, args.physical_sector);
        replace(&mut stated.erase_bytes, args.erase_block);
        replace(&mut stated.chunk_bytes, args.chunk);
        replace(&mut stated.stripe_bytes, args.stripe);
        if let (Some(logical), Some(physical)) = (stated.logical_bytes, stated.physical_bytes)
            && physical < logical
        {
            return Err(Failure::input(format!(
                "a physical sector of {physical} bytes is smaller than a logical one of {logical}"
            )));
        }
        let physical = stated.physical_bytes.unwrap_or(PHYSICAL_BYTES);
        for (option, bytes) in [("--chunk", args.chunk), ("--stripe", args.stripe)] {
            if let Some(bytes) = bytes
                && bytes % physical != 0
            {
                let hint = if bytes % 1000 == 0 {
                    "; KB counts 1000 bytes, K counts 1024"
                } else {
                    ""
                };
                return Err(Failure::input(format!(
                    "{option}: {bytes} bytes are not a multiple of a physical sector of {physical} (--physical-sector){hint}"
                )));
            }
        }
        if let (Some(chunk), Some(stripe)) = (stated.chunk_bytes, stated.stripe_bytes)
            && stripe % chunk != 0
        {
            return Err(Failure::input(format!(
                "a full stripe of {stripe} bytes is not a multiple of a chunk of {chunk}"
            )));
        }
        Ok(drive)
    }

    fn load(text: &str) -> Result<Drive> {
        let subject = Subject::load(text)?;
        let file = subject.file();
        let identity = &file.identity;
        let logical = u64::from(identity.logical_bytes);
        let mut stated = match &subject {
            Subject::Drive(drive) => StatedDrive::of(&drive.profile),
            Subject::Map(name, _) => StatedDrive {
                model: Some(name.clone()),
                logical_bytes: Some(logical),
                physical_bytes: Some(u64::from(identity.physical_bytes)),
                is_rotating: true,
                ..StatedDrive::default()
            },
        };
        stated.capacity_bytes = Some(identity.capacity.0.saturating_mul(logical));
        Ok(Drive {
            stated,
            tracks: Some((text.to_owned(), file.tracks.clone(), logical)),
            profile: match &subject {
                Subject::Drive(drive) => Some(Arc::clone(&drive.profile)),
                Subject::Map(..) => None,
            },
        })
    }

    fn judge(
        &self,
        stack: &Stack,
        extents: Vec<Extent>,
        excluded: Vec<(LayerId, Range<u64>)>,
        ignored: &[Rule],
    ) -> Vec<ReportRow> {
        let tracks = self.tracks.as_ref();
        let tracks = tracks.map(|(drive, map, sector_bytes)| TrackCheck {
            drive,
            map,
            sector_bytes: *sector_bytes,
            extents,
            excluded,
        });
        traxtent_check::findings(stack, tracks.as_ref(), self.profile.as_deref(), ignored)
    }
}

/// Returns the byte ranges that each ext file system excludes from use, in ascending order.
///
/// Only file systems that lie in one piece on a readable drive are included. A file system whose
/// list of bad blocks cannot be read counts as one without a list.
fn excluded_blocks(stack: &Stack) -> Vec<(LayerId, Range<u64>)> {
    let mut excluded = Vec::new();
    for (id, layer) in stack.iter() {
        let Kind::Ext(ext) = &layer.kind else {
            continue;
        };
        let Some((drive, start)) = stack.in_one_piece(id) else {
            continue;
        };
        let drive = stack.layer(drive);
        let path = drive.node.as_ref().unwrap_or(&drive.name);
        let Ok(source) = FileSource::open(Path::new(path)) else {
            continue;
        };
        let part = JoinedSource::part(Rc::new(source), start, layer.bytes);
        let mut ranges = bad_blocks_in_image(&part, ext).unwrap_or_default();
        ranges.sort_by_key(|range| range.start);
        excluded.extend(ranges.into_iter().map(|range| (id, range)));
    }
    excluded
}

/// The files given by `--file`, whose extents are checked.
enum RequestedFiles {
    /// No files.
    None,
    /// Mounted files with their names.
    Mounted(Vec<(String, Mounted)>),
    /// Files in the image that is the only target.
    InImage(PathBuf, Vec<String>),
}

impl RequestedFiles {
    fn of(args: &Args, host: &HostPaths) -> Result<RequestedFiles> {
        match args.targets.as_slice() {
            _ if args.file.is_empty() => Ok(RequestedFiles::None),
            [] => {
                let locate = |name: &String| {
                    let path = Path::new(name);
                    let file = extents_of_mounted(path, host)
                        .map_err(|error| Failure::file(path, &error))?;
                    Ok((name.clone(), file))
                };
                Ok(RequestedFiles::Mounted(
                    args.file.iter().map(locate).collect::<Result<_>>()?,
                ))
            }
            [image] => Ok(RequestedFiles::InImage(image.clone(), args.file.clone())),
            _ => Err(Failure::input(
                "--file needs one image as TARGET, or no TARGET for a mounted file",
            )),
        }
    }

    /// Returns the devices of mounted files, which become the targets.
    fn devices(&self) -> Option<Vec<PathBuf>> {
        match self {
            RequestedFiles::Mounted(files) => {
                Some(files.iter().map(|(_, file)| file.device.clone()).collect())
            }
            _ => None,
        }
    }

    /// Returns the extents, as byte ranges of the layer that holds the file system.
    fn extents(&self, stack: &Stack) -> Result<Vec<Extent>> {
        let in_layer = |layer: LayerId, file: &String, ranges: Vec<Range<u64>>| {
            let file = file.clone();
            ranges.into_iter().map(move |bytes| Extent {
                layer,
                file: file.clone(),
                bytes,
            })
        };
        let mut extents = Vec::new();
        match self {
            RequestedFiles::None => {}
            RequestedFiles::Mounted(files) => {
                for (name, file) in files {
                    let device = file.device.to_str();
                    let mut layers = stack
                        .iter()
                        .filter(|(_, layer)| layer.node.as_deref() == device);
                    let (below, _) = layers
                        .next()
                        .ok_or_else(|| Failure::Io(format!("{name}: cannot find its device")))?;
                    let (layer, _) = stack
                        .above(below)
                        .next()
                        .unwrap_or((below, stack.layer(below)));
                    extents.extend(in_layer(layer, name, file.extents.clone()));
                }
            }
            RequestedFiles::InImage(image, names) => {
                let mut layers = stack.iter().filter_map(|(id, layer)| match &layer.kind {
                    Kind::Ext(ext) => Some((id, layer, ext)),
                    _ => None,
                });
                let unsuitable = || {
                    Failure::input(format!(
                        "{}: --file needs an image with exactly one ext file system, in one piece",
                        image.display()
                    ))
                };
                let (id, layer, ext) = layers.next().ok_or_else(unsuitable)?;
                if layers.next().is_some() {
                    return Err(unsuitable());
                }
                let (_, start) = stack.in_one_piece(id).ok_or_else(unsuitable)?;
                let source =
                    FileSource::open(image).map_err(|error| Failure::file(image, &error))?;
                let part = JoinedSource::part(Rc::new(source), start, layer.bytes);
                for name in names {
                    let ranges = extents_in_image(&part, ext, name)
                        .map_err(|error| Failure::at(image.display(), error))?;
                    extents.extend(in_layer(id, name, ranges));
                }
            }
        }
        Ok(extents)
    }
}
