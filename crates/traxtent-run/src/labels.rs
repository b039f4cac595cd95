//! The columns that identify a run of a sweep: the drive, the values of `--set`, and the seed.

use crate::data_file::{Cell, Column, Kind};
use crate::run::{Case, SimulationRun};

/// The label columns, which precede the other columns of a data file.
pub struct LabelColumns {
    /// The type of each key's values.
    kinds: Vec<Kind>,
    /// The type of the seeds; `None` for traces.
    seed: Option<Kind>,
    columns: Vec<Column>,
}

impl LabelColumns {
    /// Chooses the type of each column: a number type if all values of the key are numbers.
    ///
    /// # Panics
    /// Panics if there is no case.
    pub fn of(cases: &[Case]) -> LabelColumns {
        let first = &cases[0];
        let mut columns = vec![Column::new("drive", Kind::Text)];
        for (index, (key, _)) in first.set.iter().enumerate() {
            let values = || cases.iter().map(|case| case.set[index].1.as_str());
            let finite = |text: &str| text.parse().is_ok_and(f64::is_finite);
            let kind = if values().all(|text| text.parse::<i64>().is_ok()) {
                Kind::Whole
            } else if values().all(finite) {
                Kind::Number
            } else {
                Kind::Text
            };
            columns.push(Column::new(key.clone(), kind));
        }
        let kinds = columns[1..].iter().map(|column| column.kind).collect();
        let seeded = first.runs[0].workload.is_seeded();
        let mut seeds = cases.iter().flat_map(|case| &case.runs).map(|run| run.seed);
        let seed = match seeded {
            false => None,
            true if seeds.all(|seed| i64::try_from(seed).is_ok()) => Some(Kind::Whole),
            true => Some(Kind::Text),
        };
        columns.extend(seed.map(|kind| Column::new("seed", kind)));
        LabelColumns {
            kinds,
            seed,
            columns,
        }
    }

    /// Returns the columns: `drive`, the keys of the settings, and `seed` if a seed determines the
    /// requests.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.columns.iter().cloned()
    }

    /// Returns the label cells of a run.
    pub fn cells(&self, case: &Case, run: &SimulationRun) -> Vec<Cell> {
        let mut cells = vec![Cell::Text(run.machine.target.clone())];
        for ((_, value), kind) in case.set.iter().zip(&self.kinds) {
            cells.push(match kind {
                Kind::Whole => Cell::Whole(value.parse().expect("all values are whole")),
                Kind::Number => Cell::Number(value.parse().expect("all values are numbers")),
                Kind::Text => Cell::Text(value.clone()),
            });
        }
        cells.extend(self.seed.map(|kind| match kind {
            Kind::Whole => Cell::Whole(run.seed as i64),
            _ => Cell::Text(run.seed.to_string()),
        }));
        cells
    }
}
