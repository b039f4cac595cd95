//! Values between Python and Rust: settings, and the values of profiles and summaries.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use pyo3::{Borrowed, IntoPyObjectExt};
use serde_json::Value;

use crate::errors::input_error;

/// The positional and the keyword arguments from which pickle makes an object again.
pub(crate) type NewArguments<'py, T> = (T, Bound<'py, PyDict>);

/// An integer argument without a sign.
///
/// Python's integers have no bounds. One that does not fit would raise an `OverflowError` that does
/// not name the argument; [`Whole::named`] raises an `InputError` that does.
pub(crate) struct Whole<T> {
    /// The integer, or the text of one that does not fit.
    value: Result<T, String>,
}

/// An integer type of arguments.
pub(crate) trait Unsigned: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr> {
    /// The largest integer.
    const MOST: u64;
}

impl Unsigned for u32 {
    const MOST: u64 = u32::MAX as u64;
}

impl Unsigned for u64 {
    const MOST: u64 = u64::MAX;
}

impl Unsigned for usize {
    const MOST: u64 = usize::MAX as u64;
}

impl<T: Unsigned> Whole<T> {
    /// Returns the integer.
    ///
    /// # Errors
    /// Returns an `InputError` with the name of the argument if the integer does not fit.
    pub(crate) fn named(self, name: &str) -> PyResult<T> {
        self.value
            .map_err(|text| input_error(format!("{name}: {text}: expected 0 to {}", T::MOST)))
    }
}

impl<T> From<T> for Whole<T> {
    fn from(value: T) -> Whole<T> {
        Whole { value: Ok(value) }
    }
}

impl<'a, 'py, T: Unsigned> FromPyObject<'a, 'py> for Whole<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Whole<T>> {
        match object.extract::<T>() {
            Ok(value) => Ok(value.into()),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                // Python refuses to write integers of thousands of digits.
                let text = object.str().map(|text| text.to_string());
                let text = text.unwrap_or_else(|_| "too many digits".to_owned());
                Ok(Whole { value: Err(text) })
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns an optional integer argument; see [`Whole::named`].
pub(crate) fn optional<T: Unsigned>(name: &str, value: Option<Whole<T>>) -> PyResult<Option<T>> {
    value.map(|value| value.named(name)).transpose()
}

/// Returns a Python value as the text that an option of the command would have.
///
/// # Errors
/// Returns a `TypeError` for anything but numbers, booleans, texts, and lists and dicts of these.
pub(crate) fn setting_text(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    nested_text(value, false).map_err(|_| {
        let kind = value.get_type().name();
        let kind = kind.map_or_else(|_| "value".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "{key}: expected a number, a boolean, a text, or a list or dict of these, not {kind}"
        ))
    })
}

fn nested_text(value: &Bound<'_, PyAny>, quoted: bool) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() || is_numpy_boolean(value) {
        return Ok(value.is_truthy()?.to_string());
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_string();
        return Ok(match quoted {
            true => Value::from(text).to_string(),
            false => text,
        });
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.to_string());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        // NumPy's subclass writes its own name.
        let number = PyFloat::new(value.py(), number.value());
        return Ok(number.repr()?.to_string());
    }
    if let Ok(list) = value.cast::<PyList>() {
        let items: Vec<String> = list
            .iter()
            .map(|item| nested_text(&item, true))
            .collect::<PyResult<_>>()?;
        return Ok(format!("[{}]", items.join(", ")));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let items: Vec<String> = dict
            .iter()
            .map(|(key, item)| Ok(format!("{key} = {}", nested_text(&item, true)?)))
            .collect::<PyResult<_>>()?;
        return Ok(format!("{{{}}}", items.join(", ")));
    }
    // Scalars of NumPy and others.
    if value.hasattr("__index__")? {
        return Ok(value.call_method0("__index__")?.str()?.to_string());
    }
    if value.hasattr("__float__")? {
        return Ok(value.call_method0("__float__")?.repr()?.to_string());
    }
    Err(PyTypeError::new_err(""))
}

/// Returns whether a value is a boolean of NumPy, which is not one of Python.
fn is_numpy_boolean(value: &Bound<'_, PyAny>) -> bool {
    let kind = value
        .getattr("dtype")
        .and_then(|dtype| dtype.getattr("kind"))
        .and_then(|kind| kind.extract::<String>());
    kind.is_ok_and(|kind| kind == "b")
}

/// Converts a value made by [`to_python`] back to JSON.
///
/// # Errors
/// Returns a `TypeError` for other values.
pub(crate) fn of_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if value.is_instance_of::<PyInt>() {
        let whole = value.extract::<u64>().map(Value::from);
        return whole.or_else(|_| value.extract::<i64>().map(Value::from));
    }
    if value.is_instance_of::<PyFloat>() {
        return value.extract::<f64>().map(Value::from);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return text.extract::<String>().map(Value::from);
    }
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().map(|item| of_python(&item)).collect();
    }
    let mut object = serde_json::Map::new();
    for (key, item) in value.cast::<PyDict>()? {
        object.insert(key.extract()?, of_python(&item)?);
    }
    Ok(Value::Object(object))
}

/// Returns a JSON value as a Python value.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), ..) => whole.into_bound_py_any(py),
            (_, Some(whole), _) => whole.into_bound_py_any(py),
            (.., real) => real.into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(list) => {
            let items: Vec<_> = list
                .iter()
                .map(|item| to_python(py, item))
                .collect::<PyResult<_>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Object(object) => {
            let dict = PyDict::new(py);
            for (key, item) in object {
                dict.set_item(key, to_python(py, item)?)?;
            }
            Ok(dict.into_any())
        }
    }
}
