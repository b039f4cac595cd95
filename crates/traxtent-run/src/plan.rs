//! The runs of a sweep: each drive with each combination of the settings' values and each seed.

use traxtent_workload::RequestSizes;

use crate::error::{Result, RunError};
use crate::observer::Observer;
use crate::run::{Case, SimulationRun, TracePlan};
use crate::summary::Summary;
use crate::sweep::{Point, Setting, combinations};
use crate::target::{Machine, Target};
use crate::workload::Workload;

/// A sweep as a user describes it. The fields are the arguments of `traxtent sim`.
#[derive(Clone, Debug, Default)]
pub struct SweepPlan {
    /// The targets: one, or several to compare.
    pub targets: Vec<String>,
    /// The drives for the devices of a trace after those of the target (`--drive`). They are added
    /// to each target.
    pub more_drives: Vec<String>,
    /// The workload; `None` is the one in a target's DiskSim parameters.
    pub workload: Option<String>,
    /// The settings (`--set`).
    pub settings: Vec<Setting>,
    /// The first seed of a synthetic workload; `None` is the workload's own.
    pub seed: Option<u64>,
    /// The number of seeds; `None` is 1.
    pub seeds: Option<u32>,
    /// The number of requests to exclude from all figures. They are the first to complete.
    pub warmup: u64,
    /// The options for replaying a trace.
    pub trace: TracePlan,
}

impl SweepPlan {
    /// Loads the targets and the workload, and returns a case for each target and each combination
    /// of the settings' values. The order is that of the targets, then that of [`combinations`].
    ///
    /// # Errors
    /// Returns an error if a target is invalid or given twice, if the workload is invalid or
    /// missing, if the settings are invalid or do not fit, or if an option does not apply to the
    /// workload.
    pub fn cases(&self, observer: &dyn Observer) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for (index, target) in self.targets.iter().enumerate() {
            if self.targets[..index].contains(target) {
                return Err(RunError::input(format!(
                    "--drives: {target} is given twice"
                )));
            }
            let mut machine = Machine::load(target.trim(), observer)?;
            for target in &self.more_drives {
                machine.extend(Machine::load(target, observer)?)?;
            }
            let drive = (self.targets.len() > 1).then(|| machine.target.clone());
            cases.extend(self.cases_on(&machine, drive.as_deref())?);
        }
        Ok(cases)
    }

    /// Returns a case for each combination of the settings' values on this machine. The targets are
    /// not used. `drive` is the machine's name if several are compared.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`cases`](Self::cases), except for the targets.
    pub fn cases_on(&self, machine: &Machine, drive: Option<&str>) -> Result<Vec<Case>> {
        Setting::check_all(&self.settings)?;
        let workload = self.workload(machine)?;
        let case = |set: Point| {
            let (mut machine, mut workload) = (machine.clone(), workload.clone());
            let is_seed = |(key, _): &(String, String)| key == "workload.seed";
            if self.seed.is_some() && set.iter().any(is_seed) {
                return Err(RunError::input(
                    "--seed and --set workload.seed exclude each other",
                ));
            }
            let mut figures = Vec::new();
            for (key, value) in &set {
                match key.strip_prefix("workload.") {
                    Some(key) => workload.set(key, value).map_err(|error| {
                        let is_in_file = matches!(workload, Workload::Synthio(_)) && key != "count";
                        let system = machine.system.as_deref().filter(|_| is_in_file);
                        let placed = system.and_then(|system| system.synthio_request_error(&error));
                        placed.map_or(error, RunError::input)
                    })?,
                    None => figures.push((key.clone(), value.clone())),
                }
            }
            machine.set_all(&figures).map_err(|error| match drive {
                Some(drive) => RunError::at(drive, error),
                None => error,
            })?;
            let seeds = self.seeds(&workload, machine.seed)?;
            let runs = seeds.into_iter().map(|seed| SimulationRun {
                machine: machine.clone(),
                workload: workload.clone(),
                seed,
                warmup: self.warmup,
                trace: self.trace.clone(),
            });
            Ok(Case {
                drive: drive.map(str::to_owned),
                runs: runs.collect(),
                set,
            })
        };
        combinations(&self.settings).into_iter().map(case).collect()
    }

    fn workload(&self, machine: &Machine) -> Result<Workload> {
        let workload = match (&self.workload, &machine.synthio) {
            (Some(text), _) => Workload::parse(text)?,
            (None, Some(spec)) => Workload::Synthio(spec.clone()),
            (None, None) => {
                if let Ok(Target::DiskSim(_, Some(disk))) = Target::parse(&machine.target) {
                    return Err(RunError::input(format!(
                        "{}: a single disk of a file runs without the file's workload; omit #{disk}, or give a workload, such as random,count=10000 (see `traxtent help sim`)",
                        machine.target
                    )));
                }
                return Err(RunError::input(format!(
                    "{} contains no workload; give one, such as random,count=10000 (see `traxtent help sim`)",
                    machine.target
                )));
            }
        };
        let drive = (!self.more_drives.is_empty()).then_some("--drive");
        if !matches!(workload, Workload::Trace(_))
            && let Some(option) = self.trace.first_option().or(drive)
        {
            return Err(RunError::input(format!("{option} applies only to traces")));
        }
        Ok(workload)
    }

    /// Returns the seed of each run; 0 for a trace or supplied requests, which need none.
    fn seeds(&self, workload: &Workload, stated: Option<u64>) -> Result<Vec<u64>> {
        let first = match workload {
            Workload::Drawn(spec) => self.seed.unwrap_or(spec.seed),
            Workload::Synthio(_) => self.seed.or(stated).unwrap_or(1),
            Workload::Trace(_) | Workload::Supplied(_)
                if self.seed.is_some() || self.seeds.is_some() =>
            {
                return Err(RunError::input(
                    "--seed and --seeds apply only to synthetic workloads, not to traces",
                ));
            }
            Workload::Trace(_) | Workload::Supplied(_) => 0,
        };
        let count = u64::from(self.seeds.unwrap_or(1));
        Ok((0..count).map(|index| first.wrapping_add(index)).collect())
    }
}

/// Returns facts about the simulation for the metadata of data files: names and values.
///
/// # Panics
/// Panics if there is no case.
pub fn simulation_facts(cases: &[Case]) -> Vec<(String, String)> {
    let run = &cases[0].runs[0];
    let mut facts = vec![("traxtent".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
    if let [case] = cases {
        facts.push(("drive".to_owned(), run.machine.target.clone()));
        facts.push(("workload".to_owned(), run.workload.describe()));
        if let ([run], true) = (&case.runs[..], run.workload.is_seeded()) {
            facts.push(("seed".to_owned(), run.seed.to_string()));
        }
    }
    if run.warmup > 0 {
        facts.push(("warmup".to_owned(), run.warmup.to_string()));
    }
    facts
}

impl SimulationRun {
    /// Returns the keys to add to a synthetic workload so that its writes cover whole physical
    /// sectors; `None` if they do, if no keys achieve it, or if the workload is not a
    /// [`Workload::Drawn`].
    pub fn alignment_fix(&self, summary: &Summary) -> Option<String> {
        let Workload::Drawn(spec) = &self.workload else {
            return None;
        };
        let sector = self.machine.drives[0].profile.sector;
        let mut keys = summary.alignment(sector)?;
        if sector.lowest_aligned_lbn == 0 && spec.offset.1 > 0 {
            keys += ",offset=0";
        }
        // Track sizes cannot be rounded.
        (spec.size != RequestSizes::Track || !keys.contains("round")).then_some(keys)
    }

    /// Checks that a key of `--set` exists, for another option that names it.
    ///
    /// # Errors
    /// Returns an error if neither the drives nor the workload have such a key.
    pub fn check_key(&self, key: &str) -> Result<()> {
        match key.strip_prefix("workload.") {
            Some(key) => self.workload.check_key(key),
            None => self.machine.check_key(key),
        }
    }

    /// Checks that the summary has a request.
    ///
    /// # Errors
    /// Returns an error if no request was served, or if the warm-up excludes all of them.
    pub fn check_requests(&self, summary: &Summary) -> Result<()> {
        if summary.requests() > 0 {
            return Ok(());
        }
        let of = self.workload.describe();
        Err(match self.warmup {
            0 => RunError::input(format!("{of}: no request was served")),
            warmup => RunError::input(format!("{of}: --warmup {warmup} excludes all requests")),
        })
    }
}
