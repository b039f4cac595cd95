//! The columns that identify a run of a sweep: the drive, the values of `--set`, and the seed.

use crate::data_file::{Cell, Column, Kind};
use crate::run::{Case, SimulationRun, runs_with_cases};

/// The label columns, which precede the other columns of a data file.
pub struct LabelColumns {
    /// The type of each key's values.
    kinds: Vec<Kind>,
    /// The type of the seeds; `None` if no run has a seed.
    seed: Option<Kind>,
    columns: Vec<Column>,
}

impl LabelColumns {
    /// Chooses the type of each column for the runs of cases, like [`of_values`](Self::of_values).
    ///
    /// # Panics
    /// Panics if there is no case.
    pub fn of(cases: &[Case]) -> LabelColumns {
        let value = |index: usize| cases.iter().map(move |case| case.set[index].1.as_str());
        let keys = cases[0].set.iter().enumerate();
        let keys = keys.map(|(index, (key, _))| (key.as_str(), value(index)));
        LabelColumns::of_values(
            keys,
            runs_with_cases(cases).map(|(_, run)| run.label_seed()),
        )
    }

    /// Chooses the type of each column: a number type if all values of the key are numbers. `keys`
    /// are the keys of the settings, each with its values in all runs. `seeds` are the seeds of all
    /// runs; a run that needs none has `None`. Seeds are texts if one of them exceeds [`i64::MAX`].
    pub fn of_values<'a, V>(
        keys: impl Iterator<Item = (&'a str, V)>,
        seeds: impl Iterator<Item = Option<u64>>,
    ) -> LabelColumns
    where
        V: Iterator<Item = &'a str> + Clone,
    {
        let mut columns = vec![Column::new("drive", Kind::Text)];
        for (key, values) in keys {
            let finite = |text: &str| text.parse().is_ok_and(f64::is_finite);
            let kind = if values.clone().all(|text| text.parse::<i64>().is_ok()) {
                Kind::Whole
            } else if values.clone().all(finite) {
                Kind::Number
            } else {
                Kind::Text
            };
            columns.push(Column::new(key, kind));
        }
        let kinds = columns[1..].iter().map(|column| column.kind).collect();
        let (mut all_seeded, mut seed) = (true, None);
        for next in seeds {
            let Some(next) = next else {
                all_seeded = false;
                continue;
            };
            let fits = i64::try_from(next).is_ok();
            seed = match seed {
                Some(Kind::Text) => Some(Kind::Text),
                _ if fits => Some(Kind::Whole),
                _ => Some(Kind::Text),
            };
        }
        let column = |kind| Column::new("seed", kind).optional(!all_seeded);
        columns.extend(seed.map(column));
        LabelColumns {
            kinds,
            seed,
            columns,
        }
    }

    /// Returns the columns: `drive`, the keys of the settings, and `seed` if any run has one.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.columns.iter().cloned()
    }

    /// Returns the label cells of a run.
    pub fn cells(&self, case: &Case, run: &SimulationRun) -> Vec<Cell> {
        let set = case.set.iter().map(|(_, value)| value.as_str());
        self.cells_of(&run.machine.target, set, run.label_seed())
    }

    /// Returns the label cells of a run with these values of the settings.
    ///
    /// # Panics
    /// Panics if a value does not have the type of its column.
    pub fn cells_of<'a>(
        &self,
        drive: &str,
        values: impl Iterator<Item = &'a str>,
        seed: Option<u64>,
    ) -> Vec<Cell> {
        let mut cells = vec![Cell::Text(drive.to_owned())];
        for (value, kind) in values.zip(&self.kinds) {
            cells.push(match kind {
                Kind::Whole => Cell::Whole(value.parse().expect("all values are whole")),
                Kind::Number => Cell::Number(value.parse().expect("all values are numbers")),
                Kind::Text => Cell::Text(value.to_owned()),
            });
        }
        cells.extend(self.seed.map(|kind| match (seed, kind) {
            (None, _) => Cell::Empty,
            (Some(seed), Kind::Whole) => Cell::Whole(seed as i64),
            (Some(seed), _) => Cell::Text(seed.to_string()),
        }));
        cells
    }
}

impl SimulationRun {
    /// Returns the seed, if it determines the requests.
    fn label_seed(&self) -> Option<u64> {
        self.workload.is_seeded().then_some(self.seed)
    }
}
