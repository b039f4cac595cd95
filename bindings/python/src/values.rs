//! Values between Python and Rust: settings, and the values of profiles and summaries.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use serde_json::Value;

/// The positional and the keyword arguments from which pickle makes an object again.
pub(crate) type NewArguments<'py, T> = (T, Bound<'py, PyDict>);

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
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
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
    if value.is_instance_of::<PyFloat>() {
        return Ok(value.repr()?.to_string());
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
