//! Exceptions. An error of a library becomes an exception with the text that the command prints,
//! and a panic becomes one too.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::Once;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyErrArguments, PyTypeInfo};
use rustix::io::Errno;
use traxtent_run::RunError;

pyo3::create_exception!(
    traxtent,
    TraxtentError,
    pyo3::exceptions::PyException,
    "The base class of all errors of this package.\n\nThe text is that of the command's error, \
     without the leading `traxtent: `."
);
pyo3::create_exception!(
    traxtent,
    StoppedError,
    TraxtentError,
    "Work that was stopped before its end."
);

/// The class `InputError`. It has two base classes, so the macro cannot create it.
static INPUT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
/// The class `FileError`, with two base classes too.
static FILE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The methods of `FileError`. The text of an `OSError` would begin with its number, and its copy
/// would lose the attributes.
const FILE_ERROR_METHODS: &CStr = cr#"
def __init__(self, message, errno=None, filename=None):
    OSError.__init__(self, message)
    if errno is not None:
        import os
        self.errno, self.strerror = errno, os.strerror(errno)
    self.filename = filename

def __str__(self):
    return self.args[0]

def __reduce__(self):
    return type(self), (self.args[0], self.errno, self.filename), self.__dict__ or None
"#;

fn two_bases<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
    doc: &str,
    second: Bound<'py, PyType>,
    methods: &CStr,
) -> PyResult<Bound<'py, PyType>> {
    let made = cell.get_or_try_init(py, || {
        let bases = PyTuple::new(py, [TraxtentError::type_object(py), second])?;
        let members = PyDict::new(py);
        py.run(methods, Some(&PyDict::new(py)), Some(&members))?;
        members.set_item("__doc__", doc)?;
        members.set_item("__module__", "traxtent")?;
        let made = py.get_type::<PyType>().call1((name, bases, members))?;
        Ok::<_, PyErr>(made.cast_into::<PyType>()?.unbind())
    })?;
    Ok(made.bind(py).clone())
}

/// Returns the class of errors in the user's input.
pub(crate) fn input_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let doc = "An invalid argument, or a file with invalid content.";
    two_bases(
        py,
        &INPUT_ERROR,
        "InputError",
        doc,
        py.get_type::<PyValueError>(),
        c"",
    )
}

/// Returns the class of errors of files and devices.
pub(crate) fn file_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let doc = "A file or device that cannot be used.\n\n`errno` and `strerror` are those of the \
               operating system's error, and None if it reported none; those of EIO for a simulated \
               drive that fails. `filename` is None if no file is known.";
    two_bases(
        py,
        &FILE_ERROR,
        "FileError",
        doc,
        py.get_type::<PyOSError>(),
        FILE_ERROR_METHODS,
    )
}

fn of_class(
    class: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyType>>,
    arguments: impl PyErrArguments + 'static,
) -> PyErr {
    Python::attach(|py| match class(py) {
        Ok(class) => PyErr::from_type(class, arguments),
        Err(error) => error,
    })
}

/// Returns an error in the user's input.
pub(crate) fn input_error(what: impl std::fmt::Display) -> PyErr {
    of_class(input_class, what.to_string())
}

/// Returns the error of a simulated drive, with the number that the kernel returns for a failed
/// drive.
pub(crate) fn device_error(what: impl std::fmt::Display) -> PyErr {
    of_class(file_class, (what.to_string(), Errno::IO.raw_os_error()))
}

/// Returns the error of a file.
pub(crate) fn file_error(path: &Path, error: &std::io::Error) -> PyErr {
    run_error(RunError::file(path, error))
}

/// Returns the exception for an error of `traxtent-run`.
pub(crate) fn run_error(error: RunError) -> PyErr {
    match error {
        // The options of the command are arguments here.
        RunError::Input(text) => of_class(
            input_class,
            text.strip_prefix("--set ")
                .map_or(text.clone(), str::to_owned),
        ),
        RunError::Io(problem) => {
            let path = problem.path.map(PathBuf::into_os_string);
            of_class(file_class, (problem.line, problem.errno, path))
        }
        other => StoppedError::new_err(other.to_string()),
    }
}

thread_local! {
    /// The number of nested calls of [`guarded`] in this thread. Unless it is 0, a panic becomes an
    /// exception.
    static GUARDED: Cell<u32> = const { Cell::new(0) };
    /// The message and the place of the last guarded panic.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a function. A panic becomes a [`TraxtentError`].
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    install_hook();
    GUARDED.set(GUARDED.get() + 1);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(GUARDED.get() - 1);
    result.unwrap_or_else(|payload| Err(internal_error(&*payload)))
}

fn internal_error(payload: &(dyn Any + Send)) -> PyErr {
    let noted = LAST_PANIC.take();
    let text = noted.unwrap_or_else(|| message(payload));
    TraxtentError::new_err(format!("internal error: {text}"))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Keeps guarded panics from printing: their message is in the exception.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if GUARDED.get() == 0 {
                return before(info);
            }
            let place = info.location().map(|place| format!(" ({place})"));
            let text = message(info.payload()) + &place.unwrap_or_default();
            LAST_PANIC.set(Some(text));
        }));
    });
}

/// Panics, for the test that a panic becomes an exception.
#[pyfunction]
pub(crate) fn _panic() -> PyResult<()> {
    guarded(|| panic!("a planted panic"))
}
