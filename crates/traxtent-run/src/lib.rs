#![doc = include_str!("../README.md")]

mod atomic_file;
pub mod data_file;
mod error;
pub mod input;
mod labels;
mod log;
mod map;
mod notes;
mod observer;
mod output_format;
mod overload;
mod pace;
mod plan;
pub mod profile_schema;
mod report;
mod results;
mod run;
mod summary;
mod sweep;
mod target;
pub mod validation;
mod workload;

pub use atomic_file::AtomicFile;
pub use error::{FileProblem, Result, RunError};
pub use labels::LabelColumns;
pub use log::{Log, push_request_cells, request_columns, run_logged};
pub use map::read_map;
pub use notes::case_notes;
pub use observer::{OBSERVED_REQUESTS, Observer};
pub use output_format::OutputFormat;
pub use pace::{parse_pace, parse_speed};
pub use plan::{SweepPlan, simulation_facts};
pub use report::{ReportHead, json_text};
pub use results::{ResultsFile, figure_cells, figure_columns, result_cells, result_columns};
pub use run::{
    Case, SimulationRun, TracePlan, execute, run_all, run_each, runs_with_cases, simulation_error,
    total_requests,
};
pub use summary::{DRIVE_RESPONSE, Figure, Figures, PARTIAL_WRITES, Summary, format_figure};
pub use sweep::{Point, Setting, combinations};
pub use target::{Machine, NamedDrive, Target, refuse_parameters};
pub use workload::{Trace, Workload, trace_error};
