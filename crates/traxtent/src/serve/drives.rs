//! The drives to be served, with the files of each.

use std::path::{Path, PathBuf};

use traxtent_model::disk::{Disk, MemoryMedia, Scenario};
use traxtent_model::drive::Drive;
use traxtent_model::profile::Profile;
use traxtent_run::input;
use traxtent_server::serve::{Settings, memory_limit};

use super::Args;
use super::environment::variable_part;
use crate::failure::{Failure, Result};
use crate::machine::load;
use crate::overwrite::{self, OutputFormat};
use crate::sim::single_values;

/// The maximum size of a scenario in bytes.
const SCENARIO_BYTES_MAX: u64 = 16 << 20;

/// The lower bound of [`ServedDrive::outstanding`].
const OUTSTANDING_MIN: u32 = 128;

/// A drive to be served.
pub(super) struct ServedDrive {
    /// The name of its export.
    pub(super) name: String,
    pub(super) settings: Settings,
}

impl ServedDrive {
    /// Returns the maximum number of requests per client that are carried out at a time.
    pub(super) fn outstanding(&self) -> usize {
        self.settings.profile.queue.depth.max(OUTSTANDING_MIN) as usize
    }
}

/// The values of an option that takes a file: one for the only drive, or `NAME=FILE`.
struct Files<'a> {
    option: &'static str,
    values: &'a [PathBuf],
}

/// Reads the arguments. Control sockets that are not named get paths in `folder`.
pub(super) fn read(args: &Args, folder: &Path) -> Result<Vec<ServedDrive>> {
    let named: Vec<(String, &str)> = args.drives.iter().map(|text| named(text)).collect();
    for (index, (name, drive)) in named.iter().enumerate() {
        // The variables of the two would have the same name, too.
        let is_equal = |(other, _): &&(String, &str)| variable_part(other) == variable_part(name);
        if let Some((other, _)) = named[..index].iter().find(is_equal) {
            let problem = if other == name {
                format!("two drives are called {name}")
            } else {
                format!("the variables of {other} and {name} would have the same names")
            };
            return Err(Failure::input(format!(
                "{problem}; give one of them another name: NAME={drive}"
            )));
        }
    }
    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let files = |option, values: &[PathBuf]| Files { option, values }.by_drive(&names);
    let data = files("--file", &args.file)?;
    let scenarios = files("--scenario", &args.scenario)?;
    let logs = files("--log", &args.log)?;
    let receipts = files("--receipt", &args.receipt)?;
    let controls = files("--control", &args.control)?;
    let changes = single_values(&args.set)?;
    let in_memory = data.iter().filter(|file| file.is_none()).count() as u64;
    let memory_bytes_max = memory_limit().map(|limit| limit / in_memory.max(1));
    let (mut drives, mut inputs) = (Vec::new(), Vec::new());
    for (index, (name, drive)) in named.iter().enumerate() {
        let drive_text = *drive;
        let mut machine =
            load(drive_text).map_err(|error| without_dashes(error, index, drive_text))?;
        machine.set_all(&changes)?;
        let drive = machine.only_drive()?;
        inputs.extend_from_slice(&drive.files);
        let profile = Profile::clone(&drive.profile);
        if let Some(path) = &scenarios[index] {
            check_scenario(path, &profile)?;
        }
        let control = match named.len() {
            1 => folder.join("control"),
            _ => folder.join(format!("{name}.control")),
        };
        drives.push(ServedDrive {
            name: name.clone(),
            settings: Settings {
                file: data[index].clone(),
                memory_bytes_max,
                read_only: args.read_only,
                speed: args.speed,
                seed: args.seed,
                scenario: scenarios[index].clone(),
                log: logs[index].clone(),
                receipt: receipts[index].clone(),
                control: Some(controls[index].clone().unwrap_or(control)),
                subtract_transport: args.transport == "measured",
                ..Settings::of(drive_text, profile)
            },
        });
    }
    inputs.extend(scenarios.into_iter().flatten());
    let outputs = [
        ("--file", &data, None),
        ("--log", &logs, Some(OutputFormat::RequestLog)),
        ("--receipt", &receipts, Some(OutputFormat::Receipt)),
    ];
    let outputs: Vec<_> = outputs
        .into_iter()
        .flat_map(|(option, paths, format)| {
            let paths = paths.iter().map(Option::as_deref);
            paths.map(move |path| (option, path, format))
        })
        .collect();
    overwrite::check(inputs.iter().map(PathBuf::as_path), &outputs)?;
    Ok(drives)
}

/// Splits `NAME=DRIVE`. Without a name, the export is named after the disk of DiskSim parameters if
/// one is selected, otherwise after the built-in drive, or the file without its directory and
/// suffix.
fn named(text: &str) -> (String, &str) {
    if let Some((name, drive)) = text.split_once('=')
        && is_name(name)
    {
        return (name.to_owned(), drive);
    }
    let file = text.strip_prefix("disksim:").unwrap_or(text);
    let (file, disk) = file.rsplit_once('#').unwrap_or((file, ""));
    let stem = Path::new(file).file_stem().unwrap_or_default();
    let name = if disk.is_empty() {
        stem.to_string_lossy().into_owned()
    } else {
        disk.to_owned()
    };
    (name, text)
}

/// Returns whether a text can be the name of an export: it needs no escapes in a URI, and is valid
/// as a file name.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(plain)
}

impl Files<'_> {
    /// Returns the file of each drive.
    fn by_drive(&self, names: &[&str]) -> Result<Vec<Option<PathBuf>>> {
        let option = self.option;
        let mut files = vec![None; names.len()];
        for value in self.values {
            let (index, path) = match (split(value, names), names) {
                (Some(found), _) => found,
                (None, [_]) => (0, value.as_path()),
                (None, _) => return Err(self.without_name(value, names)),
            };
            let path = std::path::absolute(path).map_err(|error| Failure::file(path, &error))?;
            if files[index].replace(path).is_some() {
                return Err(Failure::input(match names {
                    [_] => format!("{option} is given twice"),
                    _ => format!("{option} is given twice for {}", names[index]),
                }));
            }
        }
        Ok(files)
    }

    fn without_name(&self, value: &Path, names: &[&str]) -> Failure {
        Failure::input(format!(
            "{} {}: several drives are served; name the drive of the file: {}=FILE",
            self.option,
            value.display(),
            names.join("=FILE or ")
        ))
    }
}

/// Splits `NAME=FILE`, if NAME is the name of a drive.
fn split<'a>(value: &'a Path, names: &[&str]) -> Option<(usize, &'a Path)> {
    let (name, path) = value.to_str()?.split_once('=')?;
    let index = names.iter().position(|other| *other == name)?;
    Some((index, Path::new(path)))
}

/// Adds a hint to the error for a drive after the first that does not exist: it can be a command
/// whose `--` was forgotten.
fn without_dashes(error: Failure, index: usize, text: &str) -> Failure {
    match error {
        Failure::Input(line) if index > 0 && !text.contains(['=', '/', ':']) => Failure::Input(
            format!("{line}; to run a command, write -- before it: -- {text} …"),
        ),
        other => other,
    }
}

/// Checks that a scenario's faults are valid and fit the drive.
fn check_scenario(path: &Path, profile: &Profile) -> Result<()> {
    let text = input::text(path, SCENARIO_BYTES_MAX)?;
    let scenario =
        Scenario::from_toml(&text).map_err(|error| Failure::at(path.display(), error))?;
    let drive = Drive::new(profile).map_err(|error| Failure::at(&profile.name, error))?;
    Disk::with_media(drive, MemoryMedia::new())
        .schedule_faults(&scenario)
        .map_err(|error| Failure::at(path.display(), error))
}
