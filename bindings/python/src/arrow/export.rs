//! Batches handed to other packages. Exported structures refer to the batch's own buffers and keep
//! the batch alive until they are released.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::ffi::{
    ARRAY_CAPSULE, ArrowArray, ArrowArrayStream, ArrowSchema, FLAG_NULLABLE, SCHEMA_CAPSULE,
    STREAM_CAPSULE,
};
use super::table::Presence;
use super::{Batch, Column, ColumnKind, Field};

/// Returns batches as an Arrow stream of struct arrays with one child for each field.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    fields: Arc<[Field]>,
    batches: impl IntoIterator<Item = Arc<Batch>, IntoIter: Send + 'static>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let state = StreamState {
        fields,
        batches: Box::new(batches.into_iter()),
    };
    let stream = ArrowArrayStream {
        get_schema: Some(stream_schema),
        get_next: Some(stream_next),
        get_last_error: Some(stream_error),
        release: Some(stream_release),
        private_data: Box::into_raw(Box::new(state)).cast(),
    };
    PyCapsule::new_with_value(py, stream, STREAM_CAPSULE)
}

/// Returns a batch as one Arrow array: its only column, or a struct array of all columns.
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    fields: &[Field],
    batch: &Arc<Batch>,
) -> PyResult<Bound<'py, PyTuple>> {
    let (schema, array) = match fields {
        [only] => (field_schema(only), column_array(batch, 0)),
        _ => (struct_schema(fields), struct_array(batch)),
    };
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY_CAPSULE)?;
    PyTuple::new(py, [schema, array])
}

/// Returns fields as the Arrow schema of a struct array.
pub(crate) fn struct_schema(fields: &[Field]) -> ArrowSchema {
    let children = fields.iter().map(field_schema).collect();
    schema(c"+s", "", 0, children)
}

fn field_schema(field: &Field) -> ArrowSchema {
    let (format, flags) = match field.kind {
        ColumnKind::Whole => (c"l", 0),
        ColumnKind::Number => (c"g", 0),
        ColumnKind::OptionalNumber => (c"g", FLAG_NULLABLE),
        ColumnKind::OptionalWhole => (c"l", FLAG_NULLABLE),
        ColumnKind::Text => (c"u", 0),
        ColumnKind::OptionalText => (c"u", FLAG_NULLABLE),
    };
    schema(format, &field.name, flags, Vec::new())
}

/// The memory that an exported schema refers to.
struct SchemaOwner {
    _name: CString,
    children: Box<[*mut ArrowSchema]>,
}

fn schema(
    format: &'static std::ffi::CStr,
    name: &str,
    flags: i64,
    children: Vec<ArrowSchema>,
) -> ArrowSchema {
    let name = CString::new(name).expect("names of columns have no zero byte");
    let children = children
        .into_iter()
        .map(|child| Box::into_raw(Box::new(child)));
    let mut owner = Box::new(SchemaOwner {
        _name: name,
        children: children.collect(),
    });
    ArrowSchema {
        format: format.as_ptr(),
        name: owner._name.as_ptr(),
        metadata: ptr::null(),
        flags,
        n_children: owner.children.len() as i64,
        children: owner.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(schema_release),
        private_data: Box::into_raw(owner).cast(),
    }
}

/// The memory that an exported array refers to.
struct ArrayOwner {
    _batch: Arc<Batch>,
    buffers: Box<[*const c_void]>,
    children: Box<[*mut ArrowArray]>,
}

fn struct_array(batch: &Arc<Batch>) -> ArrowArray {
    let children = (0..batch.columns.len()).map(|index| column_array(batch, index));
    array(batch, vec![ptr::null()], 0, children.collect())
}

fn column_array(batch: &Arc<Batch>, index: usize) -> ArrowArray {
    let (buffers, absent) = match &batch.columns[index] {
        Column::Whole(values) => (vec![ptr::null(), values.as_ptr().cast()], 0),
        Column::Number(values) => (vec![ptr::null(), values.as_ptr().cast()], 0),
        Column::OptionalWhole(wholes) => optional(&wholes.presence, wholes.values.as_ptr().cast()),
        Column::OptionalNumber(numbers) => {
            optional(&numbers.presence, numbers.values.as_ptr().cast())
        }
        Column::Text(texts) => {
            let ends = texts.ends.as_ptr().cast();
            (vec![ptr::null(), ends, texts.bytes.as_ptr().cast()], 0)
        }
        Column::OptionalText(texts, presence) => {
            let (mut buffers, absent) = optional(presence, texts.ends.as_ptr().cast());
            buffers.push(texts.bytes.as_ptr().cast());
            (buffers, absent)
        }
    };
    array(batch, buffers, absent, Vec::new())
}

/// Returns the buffers of a column with absent values, and the number of absent values.
fn optional(presence: &Presence, values: *const c_void) -> (Vec<*const c_void>, usize) {
    (vec![presence.bits.as_ptr().cast(), values], presence.absent)
}

fn array(
    batch: &Arc<Batch>,
    buffers: Vec<*const c_void>,
    absent: usize,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    let children = children
        .into_iter()
        .map(|child| Box::into_raw(Box::new(child)));
    let mut owner = Box::new(ArrayOwner {
        _batch: Arc::clone(batch),
        buffers: buffers.into(),
        children: children.collect(),
    });
    ArrowArray {
        length: batch.rows as i64,
        null_count: absent as i64,
        offset: 0,
        n_buffers: owner.buffers.len() as i64,
        n_children: owner.children.len() as i64,
        buffers: owner.buffers.as_mut_ptr(),
        children: owner.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(array_release),
        private_data: Box::into_raw(owner).cast(),
    }
}

/// Releases a schema made by [`schema()`].
unsafe extern "C" fn schema_release(schema: *mut ArrowSchema) {
    // SAFETY: the interface calls this once, with a structure made by `schema`, whose
    // `private_data` is a `SchemaOwner` and whose children come from boxes. A consumer may have
    // moved a child away, and has then marked it as released; dropping it does nothing.
    unsafe {
        let owner = Box::from_raw((*schema).private_data.cast::<SchemaOwner>());
        for child in &owner.children {
            drop(Box::from_raw(*child));
        }
        (*schema).release = None;
    }
}

/// Releases an array made by [`array()`].
unsafe extern "C" fn array_release(array: *mut ArrowArray) {
    // SAFETY: as in `schema_release`.
    unsafe {
        let owner = Box::from_raw((*array).private_data.cast::<ArrayOwner>());
        for child in &owner.children {
            drop(Box::from_raw(*child));
        }
        (*array).release = None;
    }
}

struct StreamState {
    fields: Arc<[Field]>,
    batches: Box<dyn Iterator<Item = Arc<Batch>> + Send>,
}

unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the consumer passes a stream of `stream_capsule` that it has not released, and memory
    // for a schema, which need not be initialized.
    unsafe {
        let state = &*(*stream).private_data.cast::<StreamState>();
        out.write(struct_schema(&state.fields));
    }
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `stream_schema`; the interface forbids concurrent calls.
    unsafe {
        let state = &mut *(*stream).private_data.cast::<StreamState>();
        // A released array marks the end.
        let next = state.batches.next();
        out.write(next.map_or(ArrowArray::released(), |batch| struct_array(&batch)));
    }
    0
}

unsafe extern "C" fn stream_error(_: *mut ArrowArrayStream) -> *const c_char {
    // No call fails.
    ptr::null()
}

unsafe extern "C" fn stream_release(stream: *mut ArrowArrayStream) {
    // SAFETY: the interface calls this once, with a stream of `stream_capsule`.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamState>()));
        (*stream).release = None;
    }
}
