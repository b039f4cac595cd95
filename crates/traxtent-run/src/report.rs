//! The results as JSON.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::run::Case;
use crate::summary::Figures;
use crate::sweep::Point;

/// The first keys of the JSON object of the results, which identify the simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportHead {
    /// The target as the user wrote it.
    pub target: String,
    /// The description of the workload.
    pub workload: String,
    /// The seed of each run; none if no seed determines the requests.
    pub seeds: Vec<u64>,
    /// The number of requests that are excluded from all figures: the first to complete.
    pub warmup: u64,
    /// The values of the settings; `None` if there were no settings.
    pub set: Option<Point>,
    /// The names of the devices that serve requests, in the order of their numbers; none if there
    /// is only one.
    pub devices: Vec<String>,
}

impl ReportHead {
    /// Returns the head for a case.
    ///
    /// # Panics
    /// Panics if the case has no run.
    pub fn of(case: &Case) -> ReportHead {
        let run = &case.runs[0];
        ReportHead {
            target: run.machine.target.clone(),
            workload: run.workload.describe(),
            seeds: match run.workload.is_seeded() {
                true => case.runs.iter().map(|run| run.seed).collect(),
                false => Vec::new(),
            },
            warmup: run.warmup,
            set: (!case.set.is_empty()).then(|| case.set.clone()),
            devices: run.machine.several_names(),
        }
    }

    /// Returns the object that `traxtent sim --json` prints. `remedy` holds the keys that
    /// [`alignment_fix`](crate::SimulationRun::alignment_fix) returned.
    pub fn json(&self, figures: &Figures, remedy: Option<&str>) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("target", json!(self.target));
        put("workload", json!(self.workload));
        match &self.seeds[..] {
            [] => {}
            [seed] => drop(put("seed", json!(seed))),
            seeds => drop(put("seeds", json!(seeds))),
        }
        if self.warmup > 0 {
            put("warmup", json!(self.warmup));
        }
        if let Some(set) = &self.set {
            let set: Map<String, Value> = set
                .iter()
                .map(|(key, value)| (key.clone(), setting(value)))
                .collect();
            put("set", Value::Object(set));
        }
        figures.json(&mut object);
        if let Some(keys) = remedy {
            object.insert("partial_sector_writes_remedy".to_owned(), json!(keys));
        }
        if !self.devices.is_empty() {
            object.insert("devices".to_owned(), self.devices_json(figures));
        }
        Value::Object(object)
    }

    /// Returns a list with the number, name and figures of each device.
    fn devices_json(&self, figures: &Figures) -> Value {
        let devices = (0..).zip(&self.devices).zip(figures.devices());
        let devices = devices.map(|((number, name), figures): ((u32, _), _)| {
            let mut object = Map::new();
            object.insert("device".to_owned(), json!(number));
            object.insert("name".to_owned(), json!(name));
            figures.json(&mut object);
            Value::Object(object)
        });
        devices.collect()
    }
}

/// Returns the text that the command prints for a value: indented JSON with a final line feed.
///
/// # Panics
/// Panics if a key of a map is not a text.
pub fn json_text(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("keys are texts");
    text.push('\n');
    text
}

/// Returns the value of a setting: a number or a boolean if the text is one, or else a text.
fn setting(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => json!(text),
    }
}
