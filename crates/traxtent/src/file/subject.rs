//! The file systems that hold the named files, with the track maps of their drives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_check::LayerId;
use traxtent_check::target::HostPaths;
use traxtent_file::{FileError, FileSystem, TrackedDrive, device_of};
use traxtent_layout::Partition;
use traxtent_map::MapFile;

use crate::failure::{Failure, Result, warn};
use crate::map::Subject;
use crate::probe::mismatch;

/// The examined file systems, by device.
pub(super) struct FileSystems {
    host: HostPaths,
    maps: Vec<NamedMap>,
    known: BTreeMap<PathBuf, (FileSystem, BTreeMap<LayerId, TrackedDrive>)>,
    /// The drives whose identity was compared with that of their maps.
    compared: BTreeSet<PathBuf>,
}

/// A track map that `--map` names.
pub(super) struct NamedMap {
    /// The device to which it applies; `None` for the only drive.
    device: Option<PathBuf>,
    /// The name of the map.
    pub(super) name: String,
    pub(super) file: MapFile,
    /// Whether the map comes from a model, so that it does not have the device's identity.
    pub(super) is_model: bool,
    drive: TrackedDrive,
}

impl FileSystems {
    /// Loads the maps.
    pub(super) fn new(maps: &[String]) -> Result<FileSystems> {
        let maps = maps.iter().map(|text| NamedMap::load(text));
        let maps: Vec<NamedMap> = maps.collect::<Result<_>>()?;
        if maps.len() > 1
            && let Some(map) = maps.iter().find(|map| map.device.is_none())
        {
            return Err(Failure::input(format!(
                "--map {}: with several maps, each needs its device: DEVICE=MAP",
                map.name
            )));
        }
        Ok(FileSystems {
            host: HostPaths::default(),
            maps,
            known: BTreeMap::new(),
            compared: BTreeSet::new(),
        })
    }

    /// Returns the file system that holds a path, and the tracks of its drives.
    pub(super) fn of(
        &mut self,
        path: &Path,
    ) -> Result<(&FileSystem, &BTreeMap<LayerId, TrackedDrive>)> {
        let device = device_of(path, &self.host).map_err(|error| at(path, &error))?;
        if !self.known.contains_key(&device) {
            let system = FileSystem::of(path, &self.host).map_err(failure)?;
            let drives = self.drives(&system)?;
            self.known.insert(device.clone(), (system, drives));
        }
        let (system, drives) = &self.known[&device];
        Ok((system, drives))
    }

    /// Returns the file system that holds a path, and its blocks on the drive. It must lie in one
    /// piece on one drive.
    pub(super) fn partition(&mut self, path: &Path) -> Result<(&FileSystem, Partition)> {
        let (system, drives) = self.of(path)?;
        let drive = system.in_one_piece().and_then(|(id, _)| drives.get(&id));
        let drive = drive.or_else(|| drives.values().next());
        let drive = drive.ok_or_else(|| Failure::at(path.display(), "has no drive below it"))?;
        let partition = system.partition(drive).map_err(failure)?;
        Ok((system, partition))
    }

    /// Returns the only drive below the file system of a path, and its map.
    pub(super) fn drive(&mut self, path: &Path) -> Result<(PathBuf, &NamedMap)> {
        let mut drives = self.drives_of(path)?.into_iter();
        match (drives.next(), drives.next()) {
            (Some(drive), None) => Ok(drive),
            _ => {
                let what = "its file system lies on several drives; only one is supported here";
                Err(Failure::at(path.display(), what))
            }
        }
    }

    /// Returns the drives below the file system of a path, each with its map.
    pub(super) fn drives_of(&mut self, path: &Path) -> Result<Vec<(PathBuf, &NamedMap)>> {
        let (system, _) = self.of(path)?;
        let nodes = system.drives().into_iter().map(|(_, node)| node.into());
        let nodes: Vec<PathBuf> = nodes.collect();
        let count = nodes.len();
        let with_map = |node: PathBuf| {
            let map = self.map_of(&node, count)?;
            Ok((node, map))
        };
        nodes.into_iter().map(with_map).collect()
    }

    /// Warns about each map that contradicts the identity of a drive below a path. Each drive is
    /// compared once.
    pub(super) fn warn_of_other_drives(&mut self, path: &Path) -> Result<()> {
        let mut compared = std::mem::take(&mut self.compared);
        for (node, map) in self.drives_of(path)? {
            if compared.insert(node.clone())
                && let Some(problem) = mismatch(&node, &map.file, map.is_model)
            {
                let (map, node) = (&map.name, node.display());
                warn(format!(
                    "{map}: {problem}; its tracks are not those of {node}"
                ));
            }
        }
        self.compared = compared;
        Ok(())
    }

    fn drives(&self, system: &FileSystem) -> Result<BTreeMap<LayerId, TrackedDrive>> {
        let drives = system.drives();
        let map = |(id, node): &(LayerId, &str)| {
            let map = self.map_of(Path::new(*node), drives.len())?;
            Ok((*id, map.drive.clone()))
        };
        drives.iter().map(map).collect()
    }

    fn map_of(&self, node: &Path, drives: usize) -> Result<&NamedMap> {
        let is_for = |map: &&NamedMap| match &map.device {
            Some(device) => std::fs::canonicalize(device).is_ok_and(|device| device == node),
            None => drives == 1,
        };
        self.maps.iter().find(is_for).ok_or_else(|| {
            Failure::input(format!(
                "--map: no map for {}; name it with {}=MAP",
                node.display(),
                node.display()
            ))
        })
    }
}

impl NamedMap {
    fn load(text: &str) -> Result<NamedMap> {
        let (device, name) = match text.split_once('=') {
            Some((device, name)) if Path::new(device).exists() => (Some(device.into()), name),
            Some((device, _)) if device.starts_with("/dev/") && !Path::new(text).exists() => {
                let what = format!("there is no device {device}");
                return Err(Failure::at(format!("--map {text}"), what));
            }
            _ => (None, text),
        };
        let subject = Subject::load(name)?;
        let file = subject.file().into_owned();
        Ok(NamedMap {
            device,
            name: name.to_owned(),
            is_model: subject.geometry().is_some(),
            drive: TrackedDrive {
                map: Arc::new(file.tracks.clone()),
                sector_bytes: file.identity.logical_bytes.into(),
            },
            file,
        })
    }
}

/// Converts an error of `traxtent_file`.
pub(super) fn failure(error: FileError) -> Failure {
    match error {
        FileError::System { .. } | FileError::Device(_) => Failure::Io(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}

fn at(path: &Path, error: &io::Error) -> Failure {
    Failure::file(path, error)
}

/// A file that the user has named, or that was found in a named directory.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    is_named: bool,
}

impl FoundFile {
    /// Returns whether the file was found in a directory and has been removed since. Others use the
    /// file system meanwhile, so this is no fault. A file that the user has named is missed.
    pub(super) fn is_gone(&self) -> bool {
        !self.is_named
            && fs::symlink_metadata(&self.path)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

/// Returns the named files, and the files in named directories and below, without crossing to other
/// file systems. A file with several names is returned once.
pub(super) fn files_below(paths: &[PathBuf]) -> Result<Vec<FoundFile>> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for named in paths {
        let fail = |error| Failure::file(named, &error);
        let top = fs::metadata(named).map_err(fail)?;
        let mut waiting = vec![named.clone()];
        while let Some(path) = waiting.pop() {
            let fail = |error| Failure::file(&path, &error);
            // Symbolic links are followed only if `paths` names them.
            let is_named = waiting.is_empty() && path.as_path() == named;
            let meta = if is_named {
                fs::metadata(&path)
            } else {
                fs::symlink_metadata(&path)
            };
            let Some(meta) = unless_gone(meta, is_named).map_err(fail)? else {
                continue;
            };
            if meta.is_dir() && meta.dev() == top.dev() {
                let entries = unless_gone(fs::read_dir(&path), is_named).map_err(fail)?;
                let entries = entries.into_iter().flatten();
                let mut entries = entries
                    .map(|entry| entry.map(|entry| entry.path()))
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(fail)?;
                entries.sort();
                entries.reverse();
                waiting.extend(entries);
            } else if (meta.is_file() && meta.dev() == top.dev() || !top.is_dir())
                && known.insert((meta.dev(), meta.ino()))
            {
                found.push(FoundFile { path, is_named });
            }
        }
    }
    Ok(found)
}

/// Returns `None` for what was found in a directory and has been removed since.
fn unless_gone<T>(result: io::Result<T>, is_named: bool) -> io::Result<Option<T>> {
    match result {
        Err(error) if !is_named && error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
