//! The results on standard output, as text or JSON.

use std::io::Write;

use serde_json::{Map, Value, json};

use super::run::Case;
use super::summary::{Figures, show};
use super::workload::Workload;
use crate::failure::Result;
use crate::output;
use crate::table::{Side, Table};

/// The results of all cases.
pub(crate) struct Report<'a> {
    /// The `--set` options.
    pub(crate) settings: &'a [String],
    pub(crate) cases: &'a [Case],
    /// The keys that align each case's writes, if it has partial ones.
    pub(crate) remedies: &'a [Option<String>],
    /// The figures of each case.
    pub(crate) figures: &'a [Figures],
}

impl Report<'_> {
    /// Prints an object for one case, or a list of objects for several.
    pub(crate) fn print_json(&self) -> Result<()> {
        match self.cases {
            [case] => output::json(&self.json(case, 0)),
            cases => {
                let rows = cases.iter().enumerate();
                let rows: Value = rows.map(|(index, case)| self.json(case, index)).collect();
                output::json(&rows)
            }
        }
    }

    /// Prints the figures of one case, or a table with a row for each of several.
    pub(crate) fn print(&self) -> Result<()> {
        let mut out = output::stdout();
        self.write_head(&mut out)?;
        if self.cases.len() > 1 {
            writeln!(out)?;
            self.table().write(&mut out)?;
            return output::finish(out);
        }
        self.figures[0].write(&mut out)?;
        if let Some(keys) = &self.remedies[0] {
            writeln!(
                out,
                "  the drive must read the rest of such a sector first; {keys} avoids this"
            )?;
        }
        output::finish(out)
    }

    fn json(&self, case: &Case, index: usize) -> Value {
        let run = &case.runs[0];
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("target", json!(run.machine.target));
        put("workload", json!(run.workload.describe()));
        let seeds: Vec<u64> = case.runs.iter().map(|run| run.seed).collect();
        match (&run.workload, &seeds[..]) {
            (Workload::Trace(_), _) => {}
            (_, [seed]) => drop(put("seed", json!(seed))),
            (_, seeds) => drop(put("seeds", json!(seeds))),
        }
        if run.warmup > 0 {
            put("warmup", json!(run.warmup));
        }
        if !self.settings.is_empty() {
            let set = case.set.iter();
            let set: Map<String, Value> = set
                .map(|(key, value)| (key.clone(), setting(value)))
                .collect();
            put("set", Value::Object(set));
        }
        self.figures[index].json(&mut object);
        if let Some(keys) = &self.remedies[index] {
            object.insert("partial_sector_writes_remedy".to_owned(), json!(keys));
        }
        Value::Object(object)
    }

    fn write_head(&self, out: &mut impl Write) -> Result<()> {
        let first = &self.cases[0];
        let run = &first.runs[0];
        let target = &run.machine.target;
        match &run.machine.drives[..] {
            _ if first.drive.is_some() => {}
            [drive] => writeln!(out, "drive       {target} ({})", drive.profile.model)?,
            drives => writeln!(out, "drives      {} of {target}", drives.len())?,
        }
        // In a sweep over drives, each can have its own workload in its DiskSim parameters.
        let workload = run.workload.describe();
        let same =
            |case: &Case| case.set != first.set || case.runs[0].workload.describe() == workload;
        if self.cases.iter().all(same) {
            writeln!(out, "workload    {workload}")?;
        }
        match &first.runs[..] {
            _ if matches!(run.workload, Workload::Trace(_)) => {}
            [only] if self.cases.iter().all(|case| case.runs[0].seed == only.seed) => {
                writeln!(out, "seed        {}", only.seed)?;
            }
            [_] => {}
            [from, .., to] => writeln!(
                out,
                "seeds       {} to {}: means ± half of their 95 % intervals",
                from.seed, to.seed
            )?,
            [] => unreachable!("a case has a run"),
        }
        Ok(())
    }

    /// Returns a table with a row for each case.
    fn table(&self) -> Table {
        const TITLES: [&str; 8] = [
            "requests",
            "requests/s",
            "MB/s",
            "mean ms",
            "deviation",
            "50 %",
            "99 %",
            "max",
        ];
        let labels = self.cases[0].labels().map(|(key, _)| {
            let side = if key == "drive" {
                Side::Left
            } else {
                Side::Right
            };
            (key, side)
        });
        let figures = TITLES.map(|title| (title, Side::Right));
        let mut table = Table::new(labels.chain(figures));
        for (case, figures) in self.cases.iter().zip(self.figures) {
            let response = |key| show(figures.get(Some("response_ms"), key), 3);
            let plain = |key, decimals| show(figures.get(None, key), decimals);
            let figures = [
                plain("requests", 0),
                plain("requests_per_s", 2),
                plain("mb_per_s", 3),
                response("mean"),
                response("deviation"),
                response("p50"),
                response("p99"),
                response("max"),
            ];
            let labels = case.labels().map(|(_, value)| value.to_owned());
            table.row(labels.chain(figures));
        }
        table
    }
}

/// Returns the value of a `--set` option: a number or a boolean if the text is one, or else a text.
fn setting(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => json!(text),
    }
}
