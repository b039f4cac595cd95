//! The extension module of the Python package `traxtent`.
//!
//! Logic is in the other crates; this one converts arguments, results and errors. The public names
//! of the package are in `python/traxtent/__init__.py`.
//!
//! # Invariants
//! The GIL is released during simulations, probes and work on files. Every error of the other
//! crates, and every panic, becomes an exception of `errors`. Drives, maps, requests and results
//! are immutable and can be pickled. A `Disk` is mutable, and cannot be pickled.

#![allow(
    unsafe_code,
    reason = "the interface to Arrow consists of structures in C"
)]

mod analysis;
mod arrow;
mod batches;
mod command;
mod disk;
mod drive;
mod errors;
mod lab;
mod layout;
mod observer;
mod policy;
mod probe;
mod request;
mod request_log;
mod result;
mod result_table;
mod simulate;
mod source;
mod sweep;
mod track_map;
mod values;

use pyo3::prelude::*;

/// Drives, simulations and track maps, written in Rust.
#[pymodule]
fn _traxtent(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TraxtentError", py.get_type::<errors::TraxtentError>())?;
    module.add("StoppedError", py.get_type::<errors::StoppedError>())?;
    module.add("InputError", errors::input_class(py)?)?;
    module.add("FileError", errors::file_class(py)?)?;
    module.add_class::<drive::Drive>()?;
    module.add_class::<track_map::TrackMap>()?;
    module.add_class::<track_map::Track>()?;
    module.add_class::<track_map::Boundaries>()?;
    module.add_class::<request::Request>()?;
    module.add_class::<request::Completion>()?;
    module.add_class::<request_log::RequestLog>()?;
    module.add_class::<request_log::RequestBatch>()?;
    module.add_class::<batches::BatchIterator>()?;
    module.add_class::<policy::Head>()?;
    module.add_class::<policy::PythonRequest>()?;
    module.add_class::<policy::PythonQueue>()?;
    module.add_class::<analysis::Calibration>()?;
    module.add_class::<disk::Disk>()?;
    module.add_class::<disk::PowerCut>()?;
    module.add_class::<layout::RaidArray>()?;
    module.add_class::<layout::ArrayLocation>()?;
    module.add_class::<probe::ProbeResult>()?;
    module.add_class::<result::SimulationResult>()?;
    module.add_class::<result_table::Table>()?;
    module.add_function(wrap_pyfunction!(result::save_picture, module)?)?;
    module.add_class::<sweep::StopFlag>()?;
    module.add_function(wrap_pyfunction!(errors::_panic, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_function(wrap_pyfunction!(lab::lab_experiments, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::check_run, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_figures, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::figure_names, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::setting_value, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_table, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::read_figures, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::workload_file, module)?)?;
    module.add_function(wrap_pyfunction!(drive::drives, module)?)?;
    module.add_function(wrap_pyfunction!(batches::simulate_in_batches, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate_run, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::validate_traces, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::calibrate_drive, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::check_targets, module)?)?;
    module.add_function(wrap_pyfunction!(layout::excluded_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(probe::probe, module)?)?;
    Ok(())
}
