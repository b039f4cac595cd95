//! A complete parameter file: drives, their buses and arrays, the host's queue, the workload.

mod mappings;
mod organizations;

use super::drive::{BusTimes, disk_profile, model_profile, ms};
use super::ignored::warn_of_ignored;
use super::known::warning_of_unused;
use super::names::{missing_block, unknown_kind, warn_of_unknown_names};
use super::parameter_source::{error_at_parameter, origins};
use super::params::{Block, Document, Entry, Node, ParamError, Sources, Value};
use super::required::{BUS_REQUIRED, DRIVER_REQUIRED, QUEUEING, warn_of_missing};
use super::scheduling::{QueueOwner, origin_of_replacement, scheduler};
use super::synthio;
use super::synthio_places::SynthioPlaces;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use traxtent_layout::raid::Level;
use traxtent_model::profile::{HostSpec, Profile, Scheduler};
use traxtent_units::{Count, Lbn, Sectors};
use traxtent_workload::{SynthioError, SynthioSpec, TraceRecord};

/// The maximum number of disks. DiskSim itself has room for 100 devices.
const DISKS_MAX: usize = 1000;

/// The contents of a DiskSim parameter file.
#[derive(Clone, Debug)]
pub struct System {
    /// The disks, in the order of their device numbers.
    pub disks: Vec<SystemDisk>,
    /// Arrays of the disks. If there are any, the devices of workloads and traces are the arrays.
    /// Otherwise they are the disks.
    pub arrays: Vec<SystemArray>,
    /// The scheduling policy of the host's queue in front of each disk.
    pub host_scheduler: Scheduler,
    /// Whether the host sends a disk several requests at once, for the disk's own queue. Otherwise
    /// it sends one at a time.
    pub queueing_in_disks: bool,
    /// The synthetic workload, if there is one.
    pub synthio: Option<SynthioSpec>,
    /// The seed of the workload's random numbers, if the file states one.
    pub seed: Option<u64>,
    /// For each bus on which disks wait for each other: those disks, as indexes.
    pub buses: Vec<Vec<u32>>,
    /// The mapping from a trace's devices to those of the system. Empty if the numbers are the
    /// same.
    pub devices: Vec<DeviceMap>,
    /// Parameters of the loaded disks and of the rest of the system that are missing, unknown, not
    /// modelled or replaced, and notes on layouts.
    pub warnings: Vec<String>,
    /// The places of the synthetic workload's parameters; `None` without such a workload.
    synthio_places: Option<SynthioPlaces>,
}

/// A disk of a system.
#[derive(Clone, Debug)]
pub struct SystemDisk {
    /// Its name in the file.
    pub name: String,
    /// Its profile.
    pub profile: Profile,
}

/// Disks that are addressed as one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemArray {
    /// Its name in the file.
    pub name: String,
    /// The RAID level.
    pub level: Level,
    /// The size of a chunk: consecutive sectors of the array on one disk.
    pub chunk: Sectors,
    /// The disks, as indexes.
    pub disks: Vec<u32>,
}

/// The mapping from a device of a trace to a disk or array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceMap {
    /// The device number in the trace.
    pub trace_device: u32,
    /// The index of the disk or, if the system has arrays, of the array.
    pub disk: u32,
    /// Sectors per unit of an address in the trace.
    pub sectors_per_unit: f64,
    /// Sectors per unit of a size in the trace.
    pub sectors_per_size_unit: f64,
    /// Sectors added to each address.
    pub offset: i64,
}

/// The bus type that carries any number of transfers at a time.
const UNLIMITED: u8 = 2;

/// The kinds of devices other than disks. They have device numbers in DiskSim.
const OTHER_DEVICES: &[&str] = &["disksim_simpledisk", "memsmodel_mems", "ssdmodel_ssd"];

/// The maximum number of names that a message lists.
const NAMES_LISTED_MAX: usize = 8;

/// Loads a parameter file of any kind: a system (`.parv`), a drive (`.diskspecs`) or a layout with
/// mechanics (`.model`). If `only` is given, loads only the disk with that name, or else the first
/// instance of the block with that name.
///
/// # Errors
/// Returns an error if the text does not follow DiskSim's grammar, if another file is not
/// available, if a parameter is missing, invalid or out of bounds, if there are too many disks, no
/// disk or not the one requested, or if an organization of the disks (striping, redundancy) is not
/// modelled.
pub fn load_system(
    file: &str,
    text: &[u8],
    only: Option<&str>,
    sources: &Sources<'_>,
) -> Result<System, ParamError> {
    let document = Document::parse(file, text, sources)?;
    let mut loader = Loader {
        document: &document,
        sources,
        warnings: Vec::new(),
        loaded: Vec::new(),
        buses: BTreeMap::new(),
    };
    let only = only.map(|name| document.first_instance(name).unwrap_or(name));
    let mut disks = loader.disks(only)?;
    if disks.is_empty() {
        return Err(loader.no_disk(file, only)?);
    }
    let names = loader.device_names(&disks, only)?;
    let (host_scheduler, queueing_in_disks) = loader.driver()?;
    loader.state_host(&mut disks, host_scheduler, queueing_in_disks);
    let synthio = if only.is_none() {
        synthio::load(&document, &|name| names.numbers(name), &mut loader.warnings)?
    } else {
        None
    };
    let (synthio, synthio_places) = synthio.unzip();
    let devices = loader.device_maps(&names)?;
    let buses = loader.shared_buses(&disks)?;
    warn_of_unknown_names(&document, &mut loader.warnings);
    warn_of_ignored(&document, only.is_none(), &mut loader.warnings);
    Ok(System {
        devices,
        seed: loader.seed()?,
        buses,
        warnings: loader.warnings(),
        disks,
        arrays: names.arrays,
        host_scheduler,
        queueing_in_disks,
        synthio,
        synthio_places,
    })
}

impl System {
    /// Converts an error in the synthetic workload to an error that refers to the parameter in the
    /// file. Returns `None` if the file has no such workload.
    pub fn synthio_error(&self, error: &SynthioError) -> Option<ParamError> {
        Some(self.synthio_places.as_ref()?.error(error))
    }

    /// Returns an error in the requests of the synthetic workload, with the place of its block.
    /// Returns `None` if the file has no such workload.
    pub fn synthio_request_error(&self, problem: impl ToString) -> Option<ParamError> {
        Some(self.synthio_places.as_ref()?.at_block(problem.to_string()))
    }

    /// Returns a trace record with its device, address and size mapped to a disk or array, or
    /// `None` if the file maps devices but not this one.
    pub fn map_record(&self, mut record: TraceRecord) -> Option<TraceRecord> {
        if self.devices.is_empty() {
            return Some(record);
        }
        let map = self
            .devices
            .iter()
            .find(|map| map.trace_device == record.device)?;
        record.device = map.disk;
        let lbn = (record.request.lbn.0 as f64 * map.sectors_per_unit) as u64;
        record.request.lbn = Lbn(lbn.saturating_add_signed(map.offset));
        record.request.sectors =
            (f64::from(record.request.sectors) * map.sectors_per_size_unit) as u32;
        Some(record)
    }
}

fn is_drive(block: &Block) -> bool {
    matches!(block.kind.as_str(), "disksim_disk" | "dm_disk")
}

struct Loader<'a> {
    document: &'a Document,
    sources: &'a Sources<'a>,
    warnings: Vec<String>,
    /// The blocks from which profiles were made. Blocks of other disks were not read.
    loaded: Vec<&'a Block>,
    /// The bus to which each disk is connected.
    buses: BTreeMap<String, String>,
}

/// The devices to which names in the file refer.
struct DeviceNames<'a> {
    document: &'a Document,
    disks: BTreeMap<String, u32>,
    arrays: Vec<SystemArray>,
    /// The members of each organization, if there are no arrays.
    organizations: BTreeMap<String, Rc<[u32]>>,
    /// Whether only one of the file's disks is loaded.
    is_partial: bool,
}

impl DeviceNames<'_> {
    /// Returns the devices to which a name refers: a disk, the members of an organization, or an
    /// array. The list is empty if only one disk is loaded and the name refers to others.
    fn numbers(&self, name: &Node) -> Result<Rc<[u32]>, ParamError> {
        let name_text = name.str()?;
        if !self.arrays.is_empty() {
            let block = self.document.block_of_instance(name_text);
            let mut arrays = self.arrays.iter();
            let array =
                arrays.position(|array| array.name == name_text || Some(&*array.name) == block);
            // DiskSim numbers arrays and disks in the same way, so the first disk's name also
            // refers to the first array.
            let alike = self.disks.get(name_text).map(|disk| *disk as usize);
            let array = array
                .or(alike)
                .filter(|array| *array < self.arrays.len())
                .ok_or_else(|| {
                    let names = self.arrays.iter().map(|array| array.name.as_str());
                    let names: Vec<&str> = names.collect();
                    let counted = Count(names.len(), "array");
                    name.error(format!(
                        "there is no array {name_text:?}; the file has {counted} ({}), and a disk's \
                         name means the array with the disk's number, counted from 0",
                        listed(&names)
                    ))
                })?;
            return Ok(Rc::new([array as u32]));
        }
        if let Some(&disk) = self.disks.get(name_text) {
            return Ok(Rc::new([disk]));
        }
        match self.organizations.get(name_text) {
            Some(members) => Ok(Rc::clone(members)),
            None if self.is_partial => Ok(Rc::new([])),
            None => Err(no_such("disk or organization", self.document, name)),
        }
    }
}

/// Returns the error for a name that is not that of a device of a `kind`. If it would be an
/// instance of a block that does not exist, or of one that is not modelled, the error is about
/// that.
fn no_such(kind: &str, document: &Document, name: &Node) -> ParamError {
    let text = match name.str() {
        Ok(text) => text,
        Err(error) => return error,
    };
    let block = document
        .block_of_instance(text)
        .and_then(|block| document.block(block));
    let left_out = block.filter(|block| OTHER_DEVICES.contains(&block.kind.as_str()));
    missing_block(document, text).unwrap_or_else(|| {
        name.error(match left_out {
            Some(block) => format!(
                "{text:?} is a {}, which is not modelled; name disks (disksim_disk or dm_disk)",
                block.kind
            ),
            None => format!("there is no {kind} {text:?}"),
        })
    })
}

impl<'a> Loader<'a> {
    /// Returns the error for a file without a disk, or without the requested one.
    fn no_disk(&mut self, file: &str, only: Option<&str>) -> Result<ParamError, ParamError> {
        let disks = self.disks(None)?.into_iter();
        let names: Vec<String> = disks.map(|disk| disk.name).collect();
        let problem = match only {
            Some(only) if !names.is_empty() => format!(
                "there is no disk called {only:?}; the disks are {}",
                listed(&names)
            ),
            _ => match self.document.blocks().find_map(|block| unknown_kind(block)) {
                Some(unknown) => return Ok(unknown),
                None => "the file does not describe a disk".to_owned(),
            },
        };
        Ok(ParamError {
            file: file.to_owned(),
            line: 1,
            problem,
        })
    }

    /// Returns the devices by name.
    fn device_names(
        &self,
        disks: &[SystemDisk],
        only: Option<&str>,
    ) -> Result<DeviceNames<'a>, ParamError> {
        let numbers: BTreeMap<String, u32> = disks
            .iter()
            .enumerate()
            .map(|(number, disk)| (disk.name.clone(), number as u32))
            .collect();
        let arrays = match only {
            None => self.arrays(&numbers)?,
            Some(_) => Vec::new(),
        };
        let organizations = if arrays.is_empty() {
            self.organizations(&numbers, only.is_some())?
        } else {
            BTreeMap::new()
        };
        Ok(DeviceNames {
            document: self.document,
            disks: numbers,
            arrays,
            organizations,
            is_partial: only.is_some(),
        })
    }

    /// Returns all warnings, including those about unused parameters.
    fn warnings(mut self) -> Vec<String> {
        for block in self.loaded {
            for unused in block.unused() {
                self.warnings.push(warning_of_unused(&unused));
            }
        }
        // Files share includes, so the same warning may occur several times.
        let mut seen = BTreeSet::new();
        self.warnings.retain(|warning| seen.insert(warning.clone()));
        self.warnings
    }

    /// Returns the instances of each disk block, or the blocks themselves if none is instantiated.
    fn disks(&mut self, only: Option<&str>) -> Result<Vec<SystemDisk>, ParamError> {
        for entry in &self.document.entries {
            if let Entry::Topology(root) = entry {
                collect_buses(root, None, &mut self.buses);
            }
        }
        let mut disks = Vec::new();
        let mut shared = BTreeMap::new();
        let mut known = BTreeSet::new();
        for entry in &self.document.entries {
            let Entry::Instances {
                names,
                of,
                file,
                line,
            } = entry
            else {
                continue;
            };
            let Some(block) = self.document.block(of) else {
                let mut missing = names.iter().filter(|name| {
                    self.buses.contains_key(*name) && only.is_none_or(|only| only == *name)
                });
                let error = missing.find_map(|name| missing_block(self.document, name));
                error.map_or(Ok(()), Err)?;
                continue;
            };
            let place = format!("{file}:{line}");
            if !is_drive(block) {
                if only.is_none() && OTHER_DEVICES.contains(&block.kind.as_str()) {
                    self.warnings.push(format!(
                        "{place}: {} is not modelled: {} is left out, and the disks after it have \
                         lower device numbers than in DiskSim",
                        block.kind,
                        listed(names)
                    ));
                }
                continue;
            }
            if let Some(twice) = names.iter().find(|name| !known.insert(*name)) {
                return Err(ParamError {
                    file: file.to_string(),
                    line: *line,
                    problem: format!(
                        "a disk {twice:?} is instantiated already; each needs a name of its own"
                    ),
                });
            }
            let chosen = names
                .iter()
                .filter(|name| only.is_none_or(|only| only == *name));
            let chosen: Vec<&String> = chosen.collect();
            let without_bus = chosen.iter().filter(|name| self.bus_of(name).is_none());
            let without_bus: Vec<&String> = without_bus.copied().collect();
            if !without_bus.is_empty() && block.kind == "disksim_disk" {
                self.warnings.push(format!(
                    "{place}: {}: no bus in the topology: transfers take only the \
                     \"Bulk sector transfer time\" of the drive",
                    listed(&without_bus)
                ));
            }
            for name in chosen {
                // The profile of identical instances is computed once.
                let bus = self.bus_times(name)?;
                let profile = match shared.get(of) {
                    Some((known_bus, profile)) if *known_bus == bus => Profile::clone(profile),
                    _ => {
                        let mut profile = self.profile(block, of, bus)?;
                        profile.provenance = origins(block, self.bus_of(name), &profile);
                        profile
                    }
                };
                shared.insert(of.clone(), (bus, profile.clone()));
                disks.push(SystemDisk {
                    name: name.clone(),
                    profile,
                });
                if disks.len() > DISKS_MAX {
                    return Err(block.error(format!("there are more than {DISKS_MAX} disks")));
                }
            }
        }
        if disks.is_empty() {
            for block in self.document.blocks().filter(|block| is_drive(block)) {
                let name = block.name.clone().unwrap_or_default();
                if only.is_none_or(|only| only == name) {
                    let mut profile = self.profile(block, &name, BusTimes::default())?;
                    profile.provenance = origins(block, None, &profile);
                    disks.push(SystemDisk { name, profile });
                }
            }
        }
        Ok(disks)
    }

    fn profile(
        &mut self,
        block: &'a Block,
        name: &str,
        bus: BusTimes,
    ) -> Result<Profile, ParamError> {
        self.loaded.push(block);
        if block.kind == "dm_disk" {
            self.warnings.push(format!(
                "{}:{}: the block has only a layout and mechanics: the drive is modelled with no cache, no overheads and an infinitely fast bus",
                block.file, block.line
            ));
        }
        let warnings = &mut self.warnings;
        let profile = match block.kind.as_str() {
            "dm_disk" => model_profile(block, name, self.sources, warnings),
            _ => disk_profile(block, name, bus, self.sources, warnings),
        }?;
        profile
            .check()
            .map_err(|error| error_at_parameter(block, &error))?;
        Ok(profile)
    }

    /// Returns the disks of each bus that has several disks and carries one transfer at a time. On
    /// a bus of type 2, transfers do not wait.
    fn shared_buses(&self, disks: &[SystemDisk]) -> Result<Vec<Vec<u32>>, ParamError> {
        let mut by_bus: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (number, disk) in (0..).zip(disks) {
            if let Some(bus) = self.buses.get(&disk.name) {
                by_bus.entry(bus).or_default().push(number);
            }
        }
        let mut shared = Vec::new();
        for (bus, disks) in by_bus {
            let block = self.block_of_instance(bus);
            let kind = block
                .map(|block| block.get_bounded("type", 1, UNLIMITED))
                .transpose()?;
            if disks.len() > 1 && kind.flatten() != Some(UNLIMITED) {
                shared.push(disks);
            }
        }
        Ok(shared)
    }

    fn bus_times(&mut self, disk: &str) -> Result<BusTimes, ParamError> {
        let Some(bus) = self.bus_of(disk) else {
            return Ok(BusTimes::default());
        };
        warn_of_missing(bus, BUS_REQUIRED, &mut self.warnings);
        Ok(BusTimes {
            read_ms: ms(bus, "Read block transfer time")?,
            write_ms: ms(bus, "Write block transfer time")?,
        })
    }

    /// Returns the block of the bus to which a disk is connected.
    fn bus_of(&self, disk: &str) -> Option<&'a Block> {
        self.block_of_instance(self.buses.get(disk)?)
    }

    fn block_of_instance(&self, instance: &str) -> Option<&'a Block> {
        let block = self.document.block_of_instance(instance)?;
        self.document.block(block).map(|block| &**block)
    }

    /// Returns the seed of the run if the file states it, otherwise the seed of the initialization.
    fn seed(&self) -> Result<Option<u64>, ParamError> {
        let mut blocks = self.document.blocks();
        let Some(block) = blocks.find(|block| block.kind == "disksim_global") else {
            return Ok(None);
        };
        let stated = |key| match block.get_bounded(key, 0, i64::MAX) {
            Ok(seed) => Ok(seed.map(i64::cast_unsigned)),
            // DiskSim's earlier versions had PID, for another seed in each run.
            Err(error) => Err(ParamError {
                problem: format!(
                    "{}; write a number, and choose others with --seed or --seeds N",
                    error.problem
                ),
                ..error
            }),
        };
        let (real, initial) = (stated("Real Seed")?, stated("Init Seed")?);
        Ok(real.or(initial))
    }

    /// Records the host's queue in the profiles, unless it is the default.
    fn state_host(&self, disks: &mut [SystemDisk], scheduler: Scheduler, queueing_in_disks: bool) {
        let host = HostSpec {
            scheduler,
            one_at_a_time: !queueing_in_disks,
        };
        if let Some(driver) = self.driver_block().filter(|_| host != HostSpec::default()) {
            let queue = driver.get_block("Scheduler").ok().flatten();
            let replaced = queue.and_then(|queue| origin_of_replacement(queue, QueueOwner::Host));
            let origin = replaced.unwrap_or_else(|| {
                format!(
                    "assumed: DiskSim, {}:{}, disksim_iodriver",
                    driver.file, driver.line
                )
            });
            for disk in disks {
                disk.profile.host = Some(host);
                let origins = &mut disk.profile.provenance.0;
                origins.insert("host".to_owned(), origin.clone());
            }
        }
    }

    /// Returns the block of the driver at the root of the topology, or else of the first driver
    /// that is instantiated, or else the first block of a driver.
    fn driver_block(&self) -> Option<&'a Block> {
        let is_driver = |block: &&Block| block.kind == "disksim_iodriver";
        let entries = &self.document.entries;
        let mut roots = entries.iter().filter_map(|entry| match entry {
            Entry::Topology(Node {
                value: Value::Device { name, .. },
                ..
            }) => self.block_of_instance(name).filter(is_driver),
            _ => None,
        });
        let mut instantiated = entries.iter().filter_map(|entry| match entry {
            Entry::Instances { of, .. } => self.document.block(of).map(|block| &**block),
            _ => None,
        });
        let mut blocks = self.document.blocks().map(|block| &**block);
        let root = roots.next();
        root.or_else(|| instantiated.find(is_driver))
            .or_else(|| blocks.find(is_driver))
    }

    /// Returns the policy of the host's queue, and whether disks queue requests too.
    fn driver(&mut self) -> Result<(Scheduler, bool), ParamError> {
        let Some(block) = self.driver_block() else {
            return Ok((Scheduler::Fcfs, true));
        };
        warn_of_missing(block, DRIVER_REQUIRED, &mut self.warnings);
        let policy = match block.get_block("Scheduler")? {
            Some(queue) => scheduler(queue, QueueOwner::Host, &mut self.warnings)?,
            None => Scheduler::Fcfs,
        };
        Ok((policy, block.get_flag(QUEUEING)?.unwrap_or(false)))
    }
}

/// Returns the names as a text, or the first ones if there are many.
fn listed(names: &[impl AsRef<str>]) -> String {
    let shown = names.iter().take(NAMES_LISTED_MAX).map(AsRef::as_ref);
    let more = if names.len() > NAMES_LISTED_MAX {
        ", …"
    } else {
        ""
    };
    shown.collect::<Vec<_>>().join(", ") + more
}

fn collect_buses(node: &Node, bus: Option<&str>, buses: &mut BTreeMap<String, String>) {
    let Value::Device {
        kind,
        name,
        children,
    } = &node.value
    else {
        return;
    };
    if let (Some(bus), "disksim_disk" | "disksim_device") = (bus, kind.as_str()) {
        buses.insert(name.clone(), bus.to_owned());
    }
    let bus = if kind == "disksim_bus" {
        Some(name.as_str())
    } else {
        bus
    };
    for child in children {
        collect_buses(child, bus, buses);
    }
}

#[cfg(test)]
mod tests;
