//! `traxtent plan stack`: the commands that create an aligned stack from scratch.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use traxtent_check::plan::fix::quoted;
use traxtent_check::plan::recipe::script::refuse_unless;
use traxtent_check::plan::recipe::{Recipe, StackPlanError, Step};
use traxtent_check::plan::stack_spec::{GRAMMAR, Table};
use traxtent_check::plan::tools::{self, Tool};
use traxtent_check::plan::{self, DriveProperties, StackSpec};
use traxtent_check::sysfs::Machine;
use traxtent_check::target::HostPaths;
use traxtent_io::device::guard::check_unused;
use traxtent_io::device::{BlockTarget, Storage};
use traxtent_map::TrackMap;
use traxtent_probe::{Identity, Target as _};
use traxtent_run::Target;
use traxtent_units::byte_size::BYTE_SIZE_HELP;
use traxtent_units::{Lbn, Sectors};

use crate::failure::{Failure, Result, note};
use crate::machine::{TARGET_HELP, load};
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::parse;
use traxtent_check::content::all_content;
use traxtent_run::read_map;

/// Print the commands that create a stack from scratch: partition, RAID, LVM, LUKS, file system
///
/// Every layer is aligned with those below it. If tracks are known, the partition begins at a track
/// boundary if that costs little, and ext2, ext3 and ext4 exclude the blocks that span two tracks.
/// Nothing is run, and nothing is written to the target. The output is a shell script;
/// docs/guides/plan-stack.md explains it.
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment, after_help = after_help())]
pub(crate) struct StackArgs {
    #[arg(value_name = "TARGET", help = format!("{TARGET_HELP}, a track map, a block device, or an image file"))]
    target: String,
    /// The layers to create, as words separated by commas; see below
    #[arg(long = "for", value_name = "WORDS", default_value = "fs=ext4")]
    want: StackSpec,
    /// The path of a device in the commands, once for each disk [default: TARGET if it is a device,
    /// the loop device of an image, otherwise a placeholder]
    #[arg(long, value_name = "PATH")]
    device: Vec<String>,
    /// The drive model of a device or image, for its tracks: a name, a profile or a track map
    #[arg(long, value_name = "DRIVE")]
    drive: Option<String>,
    /// The size of a physical sector in bytes: 512, 1K, 2K or 4K [default: that of --drive, or of
    /// the target; 4K for an image]
    #[arg(long, value_name = "BYTES", value_parser = sector)]
    physical_sector: Option<u32>,
    /// Also write the commands and the list of bad blocks into this directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The files that identify a disk, relative to its directory in sysfs: SCSI and ATA, NVMe, virtio,
/// loop devices, device-mapper and md. The last two are those of a partition's disk.
const IDENTITIES: [&str; 8] = [
    "device/wwid",
    "wwid",
    "serial",
    "loop/backing_file",
    "dm/uuid",
    "md/uuid",
    "../device/wwid",
    "../wwid",
];

/// The file name of the commands in --output.
const SCRIPT: &str = "stack.sh";
/// The file name of the list of bad blocks in --output.
const LIST: &str = "badblocks.txt";
/// The physical sector size assumed for an image, in bytes: that of most current drives.
const IMAGE_PHYSICAL_BYTES: u32 = 4096;

fn after_help() -> String {
    let words = GRAMMAR.replace('\n', "\n  ");
    format!("The words of --for:\n  {words}\n\n{BYTE_SIZE_HELP}")
}

/// Parses the size of a physical sector.
fn sector(text: &str) -> Result<u32, String> {
    let bytes = parse::bytes_if(
        text,
        |bytes| matches!(bytes, 512 | 1024 | 2048 | 4096),
        "expected 512, 1024, 2048 or 4096",
    )?;
    Ok(bytes as u32)
}

/// Runs the command.
pub(crate) fn run(args: &StackArgs) -> Result<()> {
    if let Some(folder) = &args.output {
        let (script, list) = (folder.join(SCRIPT), folder.join(LIST));
        overwrite::check(
            [],
            &[
                ("--output", Some(&script), Some(OutputFormat::Script)),
                ("--output", Some(&list), Some(OutputFormat::BlockList)),
            ],
        )?;
    }
    let mut args = args.clone();
    args.want = args.want.on_drives(args.device.len());
    let args = &args;
    let mut place = StackTarget::find(args)?;
    let smallest = place.fit_devices(args)?;
    let devices = place.devices(args);
    let list = match &args.output {
        Some(folder) => absolute(&folder.join(LIST)),
        None => LIST.to_owned(),
    };
    place.check_devices(args)?;
    let mut recipe = plan::plan_stack(&place.properties, &args.want, &devices, &list)
        .map_err(|error| place.refused(args, &error))?;
    recipe.notes.extend(smallest);
    place.set_up(&devices, &mut recipe);
    let contents = place.contents(args);
    note_content(&contents, &mut recipe);
    let blank = contents.iter().filter(|(_, content)| content.is_none());
    recipe.test_blank(blank.map(|(path, _)| absolute(path)));
    let others = contents.iter().filter(|(_, content)| content.is_some());
    recipe.test_identity(others.filter_map(|(path, _)| {
        let (file, content) = identity(path)?;
        Some((absolute(path), file.to_owned(), content))
    }));
    recipe.test_list();
    note_missing(args, &mut recipe);
    check_with_drive(args, &place, &mut recipe);
    note_tools(&mut recipe);
    if let Some(folder) = &args.output {
        output::folder(folder)?;
        let list = folder.join(LIST);
        match &recipe.bad_blocks {
            Some(blocks) => output::write(&list, blocks.list.lines().as_bytes())?,
            // The list of an earlier plan.
            None if list.is_file() => {
                fs::remove_file(&list).map_err(|error| Failure::file(&list, &error))?;
            }
            None => {}
        }
        let path = folder.join(SCRIPT);
        output::write(&path, recipe.script().as_bytes())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .map_err(|error| Failure::file(&path, &error))?;
    } else if recipe.bad_blocks.is_some() {
        note(format!(
            "use --output DIR to write {LIST}, which mke2fs reads"
        ));
    }
    if args.json {
        return output::json(&recipe);
    }
    let mut out = output::stdout();
    out.write_all(recipe.script().as_bytes())?;
    output::finish(out)
}

/// Returns a path as a shell word that is valid in every working directory.
fn absolute(path: &Path) -> String {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    quoted(&full.to_string_lossy())
}

/// Adds the drive to the `traxtent check` command of a stack on a single drive, so that the check
/// counts track crossings.
fn check_with_drive(args: &StackArgs, place: &StackTarget, recipe: &mut Recipe) {
    let drive = match (&args.drive, &place.node) {
        (Some(drive), _) => drive,
        (None, Node::Elsewhere) => &args.target,
        (None, _) => return,
    };
    if args.want.disks != 1 {
        return;
    }
    let word = match Path::new(drive) {
        file if file.exists() => absolute(file),
        _ => quoted(drive),
    };
    let checks = recipe
        .steps
        .iter_mut()
        .filter(|step| step.program == "traxtent");
    for command in checks.flat_map(|step| &mut step.commands) {
        command.push_str(&format!(" --drive {word}"));
    }
}

/// The drive, and the device or image on which the stack is created, if known.
struct StackTarget {
    properties: DriveProperties,
    node: Node,
}

enum Node {
    /// A drive that is not on this machine.
    Elsewhere,
    Block(String),
    Image(String),
}

impl StackTarget {
    fn find(args: &StackArgs) -> Result<StackTarget> {
        let mut place = match Target::parse(&args.target)? {
            Target::File(path) if is_device(&path) => device(&args.target, &path)?,
            _ => StackTarget {
                properties: drive(&args.target)?,
                node: Node::Elsewhere,
            },
        };
        if let Some(name) = &args.drive {
            if matches!(place.node, Node::Elsewhere) {
                return Err(Failure::input(format!(
                    "--drive: {} already names a drive; remove the option",
                    args.target
                )));
            }
            let other = drive(name)?;
            if (other.lbns, other.logical_bytes)
                != (place.properties.lbns, place.properties.logical_bytes)
            {
                return Err(Failure::input(format!(
                    "--drive {name}: has {} sectors of {} bytes, but {} has {} of {}",
                    other.lbns,
                    other.logical_bytes,
                    args.target,
                    place.properties.lbns,
                    place.properties.logical_bytes
                )));
            }
            place.properties = other;
        }
        if let Some(bytes) = args.physical_sector {
            if bytes < place.properties.logical_bytes {
                return Err(Failure::input(format!(
                    "--physical-sector: {bytes} is less than the logical sector of {} bytes",
                    place.properties.logical_bytes
                )));
            }
            place.properties.physical_bytes = bytes;
        }
        Ok(place)
    }

    /// Adapts the plan to the devices of `--device` that this machine has: the size to that of the
    /// smallest, so that all partitions are equal, and the physical sector to the largest, unless
    /// it is stated. Returns a note that names the smallest if the sizes differ.
    ///
    /// # Errors
    /// Returns an error if a device has another logical sector size: LBNs would then mean other
    /// places on it.
    fn fit_devices(&mut self, args: &StackArgs) -> Result<Option<String>> {
        let sys = HostPaths::default().sys;
        let failed = |error| Failure::file(&sys, &error);
        let numbers = args
            .device
            .iter()
            .filter_map(|path| Some((path, block_device(Path::new(path))?)));
        let numbers: Vec<(&String, u64)> = numbers.collect();
        if numbers.is_empty() {
            return Ok(None);
        }
        let machine = Machine::read(&sys).map_err(failed)?;
        let properties = &mut self.properties;
        let logical = properties.logical_bytes;
        let mut smallest = &args.target;
        let mut differ = false;
        for (path, number) in numbers {
            let Some(device) = kernel_name(number).and_then(|name| machine.devices.get(&name))
            else {
                continue;
            };
            let own = device.limits.logical_bytes.unwrap_or(logical.into());
            if own != u64::from(logical) {
                let why = format!(
                    "sectors of {own} bytes do not match the sectors of {logical} bytes of {}",
                    args.target
                );
                return Err(Failure::at(path, why));
            }
            if args.physical_sector.is_none()
                && let Some(physical) = device.limits.physical_bytes
                && let Ok(physical) = u32::try_from(physical)
            {
                properties.physical_bytes = properties.physical_bytes.max(physical);
            }
            let lbns = device.bytes / own;
            differ |= lbns != properties.lbns;
            if lbns < properties.lbns {
                properties.lbns = lbns;
                smallest = path;
            }
        }
        Ok(differ.then(|| format!(
            "{smallest} is the smallest drive, with {} LBNs; the plan uses no more of any drive.",
            properties.lbns
        )))
    }

    fn devices(&self, args: &StackArgs) -> Vec<String> {
        if !args.device.is_empty() {
            return args.device.iter().map(|device| quoted(device)).collect();
        }
        match &self.node {
            Node::Block(path) => vec![quoted(path)],
            Node::Image(_) => vec!["\"$DISK\"".to_owned()],
            Node::Elsewhere if args.want.disks == 1 => vec!["/dev/DISK".to_owned()],
            Node::Elsewhere => (0..args.want.disks)
                .map(|n| format!("/dev/DISK{}", letters(n)))
                .collect(),
        }
    }

    /// Refuses devices that the commands would destroy by mistake: a device that is named twice or
    /// in use, and a partition that would get a partition table. For devices that are not on this
    /// machine, only the paths are compared.
    fn check_devices(&self, args: &StackArgs) -> Result<()> {
        let mut paths: Vec<&Path> = args.device.iter().map(Path::new).collect();
        if let (Node::Block(path), true) = (&self.node, paths.is_empty()) {
            paths.push(Path::new(path));
        }
        let mut numbers = Vec::new();
        let mut places: Vec<(&Path, Storage)> = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            if path.is_file() {
                let why = "is a file, not a device; attach each image with `losetup --find --show`, and name the loop devices";
                return Err(Failure::at(path.display(), why));
            }
            let number = block_device(path);
            if paths[..index].contains(path) || number.is_some() && numbers.contains(&number) {
                let why = "is named twice; name each disk once";
                return Err(Failure::at(path.display(), why));
            }
            numbers.push(number);
            let Some(number) = number else { continue };
            if let Ok(stat) = rustix::fs::stat(*path) {
                let storage = Storage::of(&stat);
                if let Some((other, _)) = places.iter().find(|(_, of)| of.overlaps(&storage)) {
                    let why = format!(
                        "shows the same data as {}; name each disk once",
                        other.display()
                    );
                    return Err(Failure::at(path.display(), why));
                }
                places.push((path, storage));
            }
            let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
            let is_partition =
                Path::new(&format!("/sys/dev/block/{major}:{minor}/partition")).exists();
            if is_partition && args.want.table != Table::None {
                let why = "is a partition; name the whole disk, or use table=none to create the layers in it";
                return Err(Failure::at(path.display(), why));
            }
            check_unused(path).map_err(|refusal| Failure::Io(refusal.to_string()))?;
        }
        match &self.node {
            Node::Image(path) if args.device.is_empty() => {
                check_unused(Path::new(path)).map_err(|refusal| Failure::Io(refusal.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Returns why there is no plan. Only a single image can be the target.
    fn refused(&self, args: &StackArgs, error: &StackPlanError) -> Failure {
        match (&self.node, error) {
            (Node::Image(_), StackPlanError::Devices { disks, .. }) if args.device.is_empty() => {
                let why = format!(
                    "is one image, and the stack needs {disks} disks; attach each image with `losetup --find --show`, and name each loop device with --device"
                );
                Failure::at(&args.target, why)
            }
            _ => Failure::at(&args.target, error),
        }
    }

    /// Returns the content of the devices and images of this machine that the commands overwrite;
    /// `None` for one that is blank.
    fn contents<'a>(&'a self, args: &'a StackArgs) -> Vec<(&'a Path, Option<String>)> {
        let target = match &self.node {
            Node::Block(path) | Node::Image(path) if args.device.is_empty() => Some(path),
            _ => None,
        };
        let paths = args.device.iter().chain(target).map(Path::new);
        let existing = paths.filter(|path| path.exists());
        existing.map(|path| (path, all_content(path))).collect()
    }

    /// For an image, adds the commands that attach it as a block device, before all others. For
    /// placeholder names, adds a note.
    fn set_up(&self, devices: &[String], recipe: &mut Recipe) {
        match &self.node {
            Node::Image(path) if devices == ["\"$DISK\""] => {
                let image = absolute(Path::new(path));
                let attach = Step {
                    what: "The image as a block device".to_owned(),
                    program: "losetup",
                    commands: vec![
                        refuse_unless(
                            &format!("-z \"$(losetup --associated {image})\""),
                            &image,
                            "is in use as a loop device",
                        ),
                        format!("DISK=$(losetup --find --show --partscan {image})"),
                        "trap 'losetup --detach \"$DISK\"' EXIT".to_owned(),
                    ],
                };
                recipe.steps.insert(0, attach);
            }
            Node::Elsewhere if devices[0].starts_with("/dev/DISK") => {
                let placeholders = devices.join(", ");
                recipe.notes.push(match devices.len() {
                    1 => format!("Replace {placeholders} with the drive's path, or use --device PATH."),
                    _ => format!("Replace {placeholders} with the drives' paths, or use --device PATH once for each."),
                });
            }
            _ => {}
        }
    }
}

/// Adds a note about the paths of `--device` that this machine does not have.
fn note_missing(args: &StackArgs, recipe: &mut Recipe) {
    let missing: Vec<&str> = args
        .device
        .iter()
        .map(String::as_str)
        .filter(|path| !Path::new(path).exists())
        .collect();
    let (do_not, its) = match missing.len() {
        0 => return,
        1 => ("does not", "its size, content and use were"),
        _ => ("do not", "their sizes, content and use were"),
    };
    recipe.notes.push(format!(
        "{} {do_not} exist on this machine, so {its} not checked.",
        missing.join(", ")
    ));
}

/// Adds notes about the content that the commands overwrite.
fn note_content(contents: &[(&Path, Option<String>)], recipe: &mut Recipe) {
    for (path, content) in contents {
        if let Some(content) = content {
            recipe.notes.push(format!(
                "WARNING: {} holds {content}. These commands overwrite it.",
                path.display()
            ));
        }
    }
}

/// Returns the `n`-th of A, B, …, Z, AA, …, which distinguish placeholder names; 0 gives A.
fn letters(n: u32) -> String {
    let letter = |n: u32| char::from(b'A' + (n % 26) as u8);
    match n / 26 {
        0 => letter(n).to_string(),
        more => format!("{}{}", letter(more - 1), letter(n)),
    }
}

/// Returns the first file in sysfs that identifies a block device, relative to its directory there,
/// and the file's content without line breaks at the end; `None` if there is none.
fn identity(path: &Path) -> Option<(&'static str, String)> {
    let name = kernel_name(block_device(path)?)?;
    // The script finds the directory by the name of the node, which differs for `cciss!c0d0`.
    let node = fs::canonicalize(path).ok()?;
    let folder = Path::new("/sys/class/block").join(node.file_name().filter(|own| **own == *name)?);
    IDENTITIES.into_iter().find_map(|file| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        let text = text.trim_end_matches('\n');
        let is_plain = !text.trim().is_empty() && !text.contains(char::is_control);
        is_plain.then(|| (file, text.to_owned()))
    })
}

/// Returns the number of a block device; `None` if the path names something else.
fn block_device(path: &Path) -> Option<u64> {
    let meta = fs::metadata(path).ok()?;
    meta.file_type().is_block_device().then(|| meta.rdev())
}

/// Returns the kernel's name of a block device: `sda`, `cciss!c0d0`.
fn kernel_name(number: u64) -> Option<String> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let folder = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

/// Returns whether a path is a device or an image: it exists, and is neither a directory, a profile
/// nor a map. A damaged map also counts as a map.
fn is_device(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let map = || {
        fs::metadata(path).is_ok_and(|meta| meta.is_file())
            && matches!(read_map(path), Ok(Some(_)) | Err(_))
    };
    path.exists() && !path.is_dir() && !name.contains(".toml") && !map()
}

fn device(text: &str, path: &Path) -> Result<StackTarget> {
    let meta = fs::metadata(path).map_err(|error| Failure::file(path, &error))?;
    if meta.is_file() {
        let identity = Identity {
            capacity: Sectors(meta.len() / 512),
            logical_bytes: 512,
            physical_bytes: IMAGE_PHYSICAL_BYTES,
            ..Identity::default()
        };
        return Ok(StackTarget {
            properties: of_identity(text, &identity, None),
            node: Node::Image(text.to_owned()),
        });
    }
    let target = BlockTarget::open(path).map_err(|error| Failure::Io(error.to_string()))?;
    Ok(StackTarget {
        properties: of_identity(text, target.identity(), None),
        node: Node::Block(text.to_owned()),
    })
}

/// Loads a drive by its name, profile or map.
fn drive(text: &str) -> Result<DriveProperties> {
    if let Target::File(path) = Target::parse(text)?
        && let Some(file) = read_map(&path)?
    {
        return Ok(of_identity(text, &file.identity, Some(file.tracks)));
    }
    let drive = load(text)?.only_drive()?;
    let sector = &drive.profile.sector;
    let tracks = TrackMap::from_sizes(drive.geometry.track_sizes());
    Ok(DriveProperties {
        name: drive.name.clone(),
        logical_bytes: sector.logical_bytes,
        physical_bytes: sector.physical_bytes,
        lowest_aligned: Lbn(u64::from(sector.lowest_aligned_lbn)),
        lbns: tracks.end().0,
        tracks: drive.profile.mechanics.is_some().then(|| Arc::new(tracks)),
    })
}

fn of_identity(name: &str, identity: &Identity, tracks: Option<TrackMap>) -> DriveProperties {
    DriveProperties {
        name: name.to_owned(),
        logical_bytes: identity.logical_bytes,
        physical_bytes: identity.physical_bytes.max(identity.logical_bytes),
        lowest_aligned: Lbn(0),
        lbns: identity.capacity.0,
        tracks: tracks.map(Arc::new),
    }
}

/// Adds notes about the tools on this machine: those that are missing or too old, and the versions
/// of the others.
fn note_tools(recipe: &mut Recipe) {
    let mut programs: Vec<&'static str> = recipe.steps.iter().map(|step| step.program).collect();
    programs.dedup();
    let mut installed = Vec::new();
    for tool in programs.into_iter().filter_map(tools::tool_named) {
        match version(tool) {
            None => recipe.notes.push(format!(
                "{} is not installed here; Debian has it in {}.",
                tool.program, tool.package
            )),
            Some(text) => match tools::version_in(&text) {
                Some((version, word)) if version < tool.min_version => recipe.notes.push(format!(
                    "{} {word} is installed here; {} needs {} or later.",
                    tool.program, tool.needed_feature, tool.min_version
                )),
                Some((_, word)) => installed.push(format!("{} {word}", tool.program)),
                None => {}
            },
        }
    }
    if !installed.is_empty() {
        recipe.notes.push(format!(
            "Written for the installed versions: {}.",
            installed.join(", ")
        ));
    }
}

/// Returns a program's output for its version option; `None` if the program cannot be run.
fn version(tool: &Tool) -> Option<String> {
    let on_path = Command::new(tool.program).args(tool.version_args).output();
    let output = on_path
        .or_else(|_| {
            Command::new(Path::new("/usr/sbin").join(tool.program))
                .args(tool.version_args)
                .output()
        })
        .ok()?;
    let says = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&says).into_owned())
}
