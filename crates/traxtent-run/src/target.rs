//! TARGET arguments: a built-in drive, a profile file, or DiskSim's parameter files.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeArray, DeTable, DeValue};
use traxtent_disksim::{System, SystemArray, profile_key, scheduler_hint};
use traxtent_map::MapFile;
use traxtent_model::disk::Scenario;
use traxtent_model::drive::Drive;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{self, Profile, ProfileError, nearest_name};
use traxtent_sim::Host;
use traxtent_units::{Span, system_message};
use traxtent_workload::trace::{DETECT_BYTES, detect};
use traxtent_workload::{SynthioSpec, WORKLOAD_KEYS};

use crate::error::{FileProblem, Result, RunError};
use crate::input;
use crate::observer::Observer;

/// The maximum size of a profile in bytes.
const PROFILE_BYTES_MAX: u64 = 64 << 20;

/// A parsed TARGET that has not been loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A built-in drive.
    Builtin(&'static str),
    /// A profile, or another file that a command accepts, such as a track map or a block device.
    File(PathBuf),
    /// A DiskSim parameter file, and the name of the selected disk, if any.
    DiskSim(PathBuf, Option<String>),
}

impl Target {
    /// Parses a TARGET. A name without `/` or `.` is a built-in drive, or else a file in the
    /// current directory.
    ///
    /// # Errors
    /// Returns an error if no file follows `disksim:`, or if a name without `/` or `.` is neither a
    /// built-in drive nor a file.
    pub fn parse(text: &str) -> Result<Target> {
        if let Some(rest) = text.strip_prefix("disksim:") {
            let (file, disk) = match rest.rsplit_once('#') {
                Some((file, disk)) => (file, Some(disk.to_owned())),
                None => (rest, None),
            };
            if file.is_empty() {
                return Err(RunError::input(format!("{text}: no file after `disksim:`")));
            }
            return Ok(Target::DiskSim(file.into(), disk));
        }
        if text.contains(['/', '.']) {
            return Ok(Target::File(text.into()));
        }
        match profile::builtin::names().find(|name| *name == text) {
            Some(name) => Ok(Target::Builtin(name)),
            None if Path::new(text).is_file() => Ok(Target::File(text.into())),
            None => Err(unknown(text)),
        }
    }
}

/// One or several drives, and the host's configuration for them.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The target as the user wrote it.
    pub target: String,
    /// The drives in the order of device numbers.
    pub drives: Vec<NamedDrive>,
    /// The synthetic workload in the DiskSim parameters.
    pub synthio: Option<SynthioSpec>,
    /// The seed in the DiskSim parameters.
    pub seed: Option<u64>,
    /// The DiskSim parameters that the machine was loaded from.
    pub system: Option<Arc<System>>,
}

/// A machine with one drive, whose name is also the machine's target.
impl From<NamedDrive> for Machine {
    fn from(drive: NamedDrive) -> Machine {
        Machine {
            target: drive.name.clone(),
            drives: vec![drive],
            synthio: None,
            seed: None,
            system: None,
        }
    }
}

impl Machine {
    pub(crate) fn arrays(&self) -> &[SystemArray] {
        self.system.as_ref().map_or(&[], |system| &system.arrays)
    }

    fn buses(&self) -> &[Vec<u32>] {
        self.system.as_ref().map_or(&[], |system| &system.buses)
    }
}

/// A drive of a machine.
#[derive(Clone, Debug)]
pub struct NamedDrive {
    /// The drive's name.
    pub name: String,
    /// The drive's figures.
    pub profile: Arc<Profile>,
    /// The drive's geometry, built from the profile.
    pub geometry: Arc<Geometry>,
    /// The files that describe the drive. Several drives can share them.
    pub files: Arc<[PathBuf]>,
}

impl Machine {
    /// Loads a target. DiskSim parameters that the model does not support cause warnings.
    ///
    /// # Errors
    /// Returns an error if there is no such target, if its files cannot be read, or if its
    /// description is invalid or not supported.
    pub fn load(text: &str, observer: &dyn Observer) -> Result<Machine> {
        let alone = |name: String, profile, files: &[PathBuf]| {
            let drive = NamedDrive::new(name, profile, files.into())?;
            Ok(Machine {
                target: text.to_owned(),
                ..Machine::from(drive)
            })
        };
        match Target::parse(text)? {
            Target::Builtin(name) => {
                let profile = profile::builtin(name).expect("names come from the list");
                alone(name.to_owned(), profile, &[])
            }
            Target::File(path) => {
                let profile = read_profile(&path)?;
                alone(profile.name.clone(), profile, &[path])
            }
            Target::DiskSim(file, disk) => load_disksim(text, &file, disk.as_deref(), observer),
        }
    }

    /// Loads a DiskSim target from the contents of its files, the parameter file first. This works
    /// where the files themselves are not available, such as in another process.
    ///
    /// # Errors
    /// Returns an error if the target is not one of DiskSim's, if a file is missing, or if the
    /// parameters are invalid or not supported.
    pub fn of_disksim(target: &str, files: &[(PathBuf, Vec<u8>)]) -> Result<Machine> {
        let (Target::DiskSim(file, disk), Some((_, text))) =
            (Target::parse(target)?, files.first())
        else {
            return Err(RunError::at(target, "is not a DiskSim parameter file"));
        };
        let sources = |path: &str| {
            let mut named = files.iter().filter(|(name, _)| name == Path::new(path));
            let found = named.next().map(|(_, bytes)| bytes.clone());
            found.ok_or_else(|| "is not among the files".to_owned())
        };
        let name = file.to_string_lossy();
        let system = traxtent_disksim::load_system(&name, text, disk.as_deref(), &sources)
            .map_err(RunError::input)?;
        let names = files.iter().map(|(name, _)| name.clone());
        Machine::of_system(target, system, names.collect())
    }

    /// Returns a machine with one drive, which a profile describes.
    ///
    /// # Errors
    /// Returns an error if the profile's geometry is invalid.
    pub fn of_profile(target: &str, name: String, profile: Profile) -> Result<Machine> {
        Ok(Machine {
            target: target.to_owned(),
            drives: vec![NamedDrive::new(name, profile, Arc::from([]))?],
            synthio: None,
            seed: None,
            system: None,
        })
    }

    fn of_system(target: &str, system: System, files: Vec<PathBuf>) -> Result<Machine> {
        let files: Arc<[PathBuf]> = files.into();
        let drives = system.disks.iter().map(|disk| {
            NamedDrive::new(disk.name.clone(), disk.profile.clone(), Arc::clone(&files))
        });
        Ok(Machine {
            target: target.to_owned(),
            drives: drives.collect::<Result<_>>()?,
            synthio: system.synthio.clone(),
            seed: system.seed,
            system: Some(Arc::new(system)),
        })
    }

    /// Returns the only drive of the target.
    ///
    /// # Errors
    /// Returns an error that names the drives if there are several.
    pub fn only_drive(mut self) -> Result<NamedDrive> {
        if self.drives.len() == 1 {
            return Ok(self.drives.remove(0));
        }
        let names = self.drives.iter().map(|drive| drive.name.as_str());
        let names: Vec<&str> = names.collect();
        // The name of the block from which DiskSim's parameters make the drive.
        let block = |drive: &NamedDrive| drive.profile.model.clone();
        let first = block(&self.drives[0]);
        let alike = if self.drives.iter().all(|drive| block(drive) == first) {
            format!(", all of them {first}; append #{first} for the first, or")
        } else {
            "; append".to_owned()
        };
        Err(RunError::input(format!(
            "{} has {} drives{alike} # and the name of one: {}",
            self.target,
            names.len(),
            names.join(", ")
        )))
    }

    /// Returns the period of the spindle, if there is exactly one drive and it rotates.
    pub fn revolution(&self) -> Option<Span> {
        match self.drives.as_slice() {
            [drive] => {
                let mechanics = drive.profile.mechanics.as_ref()?;
                Some(Span::from_ms(60_000.0 / mechanics.rpm))
            }
            _ => None,
        }
    }

    /// Iterates over the files of each drive. A file that several drives share occurs once
    /// for each.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let files = self.drives.iter().flat_map(|drive| drive.files.iter());
        files.map(PathBuf::as_path)
    }

    /// Returns the names of the devices that serve requests: the arrays, or else the drives.
    pub(crate) fn device_names(&self) -> Vec<String> {
        match self.arrays() {
            [] => self.drives.iter().map(|drive| drive.name.clone()).collect(),
            arrays => arrays.iter().map(|array| array.name.clone()).collect(),
        }
    }

    /// Returns the names of the devices that serve requests if there are several.
    pub(crate) fn several_names(&self) -> Vec<String> {
        let names = self.device_names();
        if names.len() > 1 { names } else { Vec::new() }
    }

    /// Appends the drives of another machine, whose DiskSim workload, seed and parameters are
    /// dropped.
    ///
    /// # Errors
    /// Returns an error if one of the machines has arrays, since the devices of traces are then
    /// arrays, to which drives cannot be added.
    pub fn extend(&mut self, other: Machine) -> Result<()> {
        if !self.arrays().is_empty() {
            let why =
                "the parameters describe arrays, to which --drive cannot add a drive; omit it";
            return Err(RunError::at(&self.target, why));
        }
        if !other.arrays().is_empty() {
            let why = "the parameters describe arrays, which --drive cannot add; append # and the \
                       name of a disk";
            return Err(RunError::at(&other.target, why));
        }
        self.target = format!("{}, {}", self.target, other.target);
        self.drives.extend(other.drives);
        Ok(())
    }

    /// Replaces figures as [`set`](Self::set) does. The order does not matter: a value that is
    /// invalid together with one to be replaced is tried again after the others.
    ///
    /// # Errors
    /// See [`set`](Self::set).
    pub fn set_all(&mut self, settings: &[(String, String)]) -> Result<()> {
        let mut left: Vec<&(String, String)> = settings.iter().collect();
        loop {
            let mut refused = Vec::new();
            let mut first_error = None;
            for setting in &left {
                if let Err(error) = self.set(&setting.0, &setting.1) {
                    refused.push(*setting);
                    first_error.get_or_insert(error);
                }
            }
            match first_error {
                None => return Ok(()),
                Some(error) if refused.len() == left.len() => return Err(error),
                Some(_) => left = refused,
            }
        }
    }

    /// Replaces a figure in all drives, by its dotted path in the profile, such as `mechanics.rpm`.
    ///
    /// # Errors
    /// Returns an error if there is no such figure, or if the value is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let names: Vec<String> = self.drives.iter().map(|drive| drive.name.clone()).collect();
        for drive in &mut self.drives {
            let profile = drive.profile.with_value(key, value).map_err(|error| {
                let named = key.split_once('.');
                let named = named.filter(|(name, _)| names.iter().any(|known| known == name));
                let named = named.map(|(name, key)| (name, profile_key(key).unwrap_or(key)));
                let unknown = |figure| {
                    let set = drive.profile.with_value(figure, value);
                    matches!(set, Err(ProfileError::UnknownKey { .. }))
                };
                if let Some((name, figure)) = named.filter(|(_, figure)| !unknown(figure)) {
                    let what = format!(
                        "--set changes all drives: write {figure}={value}, or make a profile of \
                         {name} with `traxtent convert` and change it there"
                    );
                    return RunError::at(format!("--set {key}={value}"), what);
                }
                let meant = match (&error, key) {
                    (ProfileError::UnknownKey { .. }, _) => meant_key(key, &drive.profile),
                    (_, "queue.scheduler") => scheduler_hint(value, false),
                    (_, "host.scheduler") => scheduler_hint(value, true),
                    _ => None,
                };
                let what = format!("{error}{}", did_you_mean(meant));
                RunError::at(format!("--set {key}={value}"), what)
            })?;
            *drive = if key.starts_with("geometry") {
                NamedDrive::new(drive.name.clone(), profile, Arc::clone(&drive.files))?
            } else {
                NamedDrive {
                    profile: Arc::new(profile),
                    ..drive.clone()
                }
            };
        }
        Ok(())
    }

    /// Checks that each drive has a figure, for an option that names only the figure's path.
    ///
    /// # Errors
    /// Returns an error if a drive has no such figure.
    pub fn check_key(&self, key: &str) -> Result<()> {
        for drive in &self.drives {
            // An unknown key is found before the value is parsed, so any value serves.
            let changed = drive.profile.with_value(key, "1");
            if let Err(error @ ProfileError::UnknownKey { .. }) = changed {
                let hint = did_you_mean(meant_key(key, &drive.profile));
                return Err(RunError::input(format!("{error}{hint}")));
            }
        }
        Ok(())
    }

    /// Returns a host with the machine's drives in their initial state.
    ///
    /// # Errors
    /// Returns an error if an array of the DiskSim parameters is invalid.
    pub fn host(&self) -> Result<Host> {
        let initial = |drive: &NamedDrive| {
            Drive::with_geometry(Arc::clone(&drive.profile), Arc::clone(&drive.geometry))
        };
        let mut host = Host::new(self.drives.iter().map(initial).collect());
        for (index, drive) in self.drives.iter().enumerate() {
            if let Some(queue) = drive.profile.host {
                let depth = if queue.one_at_a_time { 1 } else { u32::MAX };
                host = host.with_queue(index, queue.scheduler, depth);
            }
        }
        for disks in self.buses() {
            host = host.with_bus(disks);
        }
        for array in self.arrays() {
            let disks = array.disks.clone();
            host = host
                .with_array(&array.name, array.level, array.chunk, disks)
                .map_err(|error| RunError::at(format!("{}: {}", self.target, array.name), error))?;
        }
        Ok(host)
    }
}

impl NamedDrive {
    /// Returns a drive with this profile. `files` are those that describe it, if any.
    ///
    /// # Errors
    /// Returns an error if the geometry is invalid.
    pub fn new(name: String, profile: Profile, files: Arc<[PathBuf]>) -> Result<NamedDrive> {
        let geometry = Geometry::build(&profile.geometry)
            .map_err(|error| RunError::at(&name, ProfileError::Geometry(error.to_string())))?;
        Ok(NamedDrive {
            name,
            profile: Arc::new(profile),
            geometry: Arc::new(geometry),
            files,
        })
    }
}

fn load_disksim(
    target: &str,
    file: &Path,
    disk: Option<&str>,
    observer: &dyn Observer,
) -> Result<Machine> {
    let text = fs::read(file).map_err(|error| RunError::file(file, &error))?;
    let files = RefCell::new(vec![file.to_owned()]);
    let unreadable = RefCell::new(None);
    let sources = |path: &str| {
        files.borrow_mut().push(path.into());
        fs::read(path).map_err(|error| {
            let why = system_message(&error);
            unreadable.replace(Some((PathBuf::from(path), error)));
            why
        })
    };
    let system = traxtent_disksim::load_system(&file.to_string_lossy(), &text, disk, &sources);
    // A file that cannot be read ends the import, so the error is about that file.
    let system = system.map_err(|error| match unreadable.take() {
        Some((path, cause)) => {
            RunError::Io(FileProblem::new(error.to_string(), &path, Some(&cause)))
        }
        None => match mistaken_for_parameters(file, &text) {
            Some(what) => RunError::at(file.display(), what),
            None => RunError::input(error),
        },
    })?;
    for warning in &system.warnings {
        observer.warn(&warning.to_string());
    }
    Machine::of_system(target, system, files.into_inner())
}

fn read_profile(path: &Path) -> Result<Profile> {
    let text = input::text(path, PROFILE_BYTES_MAX)?;
    if MapFile::recognize(text.as_bytes()) {
        let why = "is a track map, which does not describe the drive's mechanics; name a drive";
        return Err(RunError::at(format!("{}:1", path.display()), why));
    }
    Profile::from_toml_named(&text, &name_of(path)).map_err(|error| {
        if text.parse().is_ok_and(|scenario: Scenario| !scenario.faults.is_empty()) {
            let why = "is a scenario of faults, not a drive; use it with `traxtent serve DRIVE --scenario FILE`";
            return RunError::at(path.display(), why);
        }
        if is_disksim(&text) {
            return parameters_error(path);
        }
        if let Some(what) = other_kind(path, &text) {
            return RunError::at(path.display(), what);
        }
        let line = match &error {
            ProfileError::Syntax { line, message } => {
                return RunError::at(format!("{}:{line}", path.display()), message);
            }
            ProfileError::OutOfBounds { key, .. } | ProfileError::MissingProvenance { key } => {
                line_of(&text, key)
            }
            ProfileError::Provenance { key, .. } => line_of(&text, &format!("provenance\0{key}")),
            ProfileError::Geometry(problem) => line_of(&text, &geometry_path(problem)),
            _ => 1,
        };
        RunError::at(format!("{}:{line}", path.display()), error)
    })
}

/// Refuses a DiskSim parameter file where a path would otherwise name an image of a device.
///
/// # Errors
/// Returns an error if the name has an extension of such a file.
pub fn refuse_parameters(path: &Path) -> Result<()> {
    const ENDINGS: [&str; 3] = ["parv", "diskspecs", "model"];
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
        return Err(parameters_error(path));
    }
    Ok(())
}

/// Returns the error for a DiskSim parameter file that is named without the prefix `disksim:`.
fn parameters_error(path: &Path) -> RunError {
    let path = path.display();
    let why = format!("is a DiskSim parameter file; write disksim:{path}");
    RunError::at(path.to_string(), why)
}

/// Returns a description of a file that is not one of DiskSim 4.0's parameters, if it is recognized
/// as another kind of file.
fn mistaken_for_parameters(path: &Path, text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines();
    if lines.any(|line| line.starts_with("Byte Order (Endian)")) {
        let what =
            "is a parameter file of DiskSim 2 or earlier; only those of DiskSim 4.0 can be read";
        return Some(what.to_owned());
    }
    if is_disksim(&text) {
        return None;
    }
    if path.extension().is_some_and(|ending| ending == "toml") {
        return Some("is not a DiskSim parameter file; for a profile, omit disksim:".to_owned());
    }
    other_kind(path, &text)
}

/// Returns whether a text contains a block of DiskSim parameters.
fn is_disksim(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    lines.any(|line| {
        let block = line.starts_with("disksim_") || line.starts_with("dm_");
        block && line.contains('{')
    })
}

/// Returns a description of a file that is not a profile, if it is recognized as a trace or as a
/// seek curve of DiskSim.
fn other_kind(path: &Path, text: &str) -> Option<String> {
    // A file whose first line looks like TOML is a profile with an error.
    if text
        .lines()
        .next()
        .is_some_and(|line| line.contains('=') || line.starts_with(['#', '[']))
    {
        return None;
    }
    if path.extension().is_some_and(|ending| ending == "seek") {
        return Some(
            "is a seek curve of DiskSim, not a drive; write disksim: and the parameter file"
                .to_owned(),
        );
    }
    let format = detect(&text.as_bytes()[..text.len().min(DETECT_BYTES)]).ok()?;
    Some(format!(
        "is a trace ({format}), not a drive; to replay it, write `traxtent sim DRIVE FILE`"
    ))
}

/// Returns the name for a drive whose profile does not state one.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let name: String = stem
        .chars()
        .map(|c| if legal(c) { c } else { '_' })
        .collect();
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

/// Returns the dotted path of the value that the beginning of a message about the geometry names,
/// such as `zone 1: sectors_per_track is 0`. Keys that the profile does not have are allowed in it.
fn geometry_path(problem: &str) -> String {
    let zone = problem
        .strip_prefix("zone ")
        .and_then(|rest| rest.split_once(':'))
        .and_then(|(index, rest)| Some((index.parse::<usize>().ok()?, rest)));
    let (table, rest) = match zone {
        Some((index, rest)) => (format!("geometry.zones.{index}"), rest),
        None => ("geometry".to_owned(), problem),
    };
    match rest.split_whitespace().next() {
        Some(key) => format!("{table}.{key}"),
        None => table,
    }
}

/// Returns the number of the line with the value at a path, or with the innermost table around it.
/// The parts of the path are separated by NULs if it contains any, and otherwise by dots.
fn line_of(text: &str, path: &str) -> usize {
    let separator = if path.contains('\0') { '\0' } else { '.' };
    let Ok(root) = DeTable::parse(text) else {
        return 1;
    };
    let mut offset = 0;
    let (mut table, mut list) = (Some(root.get_ref()), None);
    for key in path.split(separator) {
        let item = key.parse::<usize>().ok();
        let item = list.and_then(|list: &DeArray| list.get(item?));
        let Some(value) = table.and_then(|table| table.get(key)).or(item) else {
            break;
        };
        offset = value.span().start;
        (table, list) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(list) => (None, Some(list)),
            _ => (None, None),
        };
    }
    1 + text.as_bytes()[..offset]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// Returns the end of an error that suggests another name; empty if there is none.
fn did_you_mean(meant: Option<String>) -> String {
    meant.map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

/// Returns the key of `--set` that the user most probably meant: the key of the profile for a
/// parameter of DiskSim, or else one whose last part is `key` (`queue.scheduler` rather than
/// `host.scheduler`), or else the key of the workload with this name, or else the most similar key
/// of the profile.
fn meant_key(key: &str, profile: &Profile) -> Option<String> {
    let figures = profile.value_paths();
    let has = |known: &&str| figures.iter().any(|figure| figure.starts_with(known));
    if let Some(figure) = profile_key(key).filter(has) {
        return Some(figure.to_owned());
    }
    let last = |path: &str| path.rsplit('.').next() == Some(key);
    if let Some(figure) = ["queue.scheduler"].iter().find(|path| last(path)) {
        return Some((*figure).to_owned());
    }
    if let Some(figure) = figures.iter().find(|path| last(path)) {
        return Some(figure.clone());
    }
    if WORKLOAD_KEYS.iter().any(|(known, _)| *known == key) {
        return Some(format!("workload.{key}"));
    }
    nearest_name(key, figures.iter().map(String::as_str)).map(str::to_owned)
}

fn unknown(name: &str) -> RunError {
    let file = format!("{name}.toml");
    let hint = match nearest_name(name, profile::builtin::names()) {
        _ if Path::new(&file).is_file() => format!("for the profile, write {file}"),
        Some(known) => format!("did you mean {known}?"),
        None => {
            "`traxtent drives` lists the drives; there is no file of this name either".to_owned()
        }
    };
    RunError::input(format!("no built-in drive is called {name:?}: {hint}"))
}
