//! Tables of other packages, read chunk by chunk.

use std::ffi::{CStr, c_char};
use std::slice;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::TextColumn;
use super::ffi::{
    ARRAY_CAPSULE, ArrowArray, ArrowArrayStream, ArrowSchema, SCHEMA_CAPSULE, STREAM_CAPSULE,
};
use crate::errors::input_error;

/// The values of a column in one chunk.
#[derive(Debug)]
pub(crate) enum Values {
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Text(TextColumn),
}

/// The reason why a chunk cannot be read.
#[derive(Debug)]
pub(crate) enum ImportError {
    /// A value is null or invalid: its row in the chunk, and the problem.
    Row(usize, String),
    /// The column has a type that is not supported, or its buffers cannot be used.
    Column(String),
    /// The producer of the stream failed.
    Producer(String),
}

/// A stream of chunks of one table.
pub(crate) struct TableStream {
    // Declared first, so that it is released before the schema.
    stream: ArrowArrayStream,
    schema: ArrowSchema,
    names: Vec<String>,
}

/// A chunk of a table.
pub(crate) struct Chunk<'a> {
    array: ArrowArray,
    schema: &'a ArrowSchema,
}

impl TableStream {
    /// Opens the stream of an object with `__arrow_c_stream__`.
    ///
    /// # Errors
    /// Returns an error if the object fails, or if its stream was already consumed or is not a
    /// table.
    pub(crate) fn open(object: &Bound<'_, PyAny>) -> PyResult<TableStream> {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(STREAM_CAPSULE))?;
        // SAFETY: a capsule of this name holds a stream. Moving it out and leaving a released one
        // is how the interface hands a stream over; the GIL excludes other readers meanwhile.
        let mut stream = unsafe {
            pointer
                .cast::<ArrowArrayStream>()
                .replace(ArrowArrayStream::released())
        };
        let mut schema = ArrowSchema::released();
        let Some(get_schema) = stream.get_schema.filter(|_| stream.release.is_some()) else {
            return Err(input_error("the Arrow stream was already consumed"));
        };
        // SAFETY: the stream is not released, and `schema` is memory for a schema.
        if unsafe { get_schema(&mut stream, &mut schema) } != 0 {
            return Err(input_error(last_error(&mut stream)));
        }
        // SAFETY: the producer has filled the schema.
        let (format, children) = unsafe { (text(schema.format), schema_children(&schema)) };
        if format != "+s" {
            let what = format!("a table is needed, not a column of type {format:?}");
            return Err(input_error(what));
        }
        // SAFETY: as above; a name may be null, which means that it is empty.
        let names = children
            .iter()
            .map(|child| unsafe { text((**child).name) }.to_owned())
            .collect();
        Ok(TableStream {
            stream,
            schema,
            names,
        })
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the next chunk, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the producer fails, or if the chunk does not have as many columns as the
    /// table.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>, ImportError> {
        let mut array = ArrowArray::released();
        let get_next = self.stream.get_next.expect("an open stream has `get_next`");
        // SAFETY: the stream is not released, and `array` is memory for an array.
        if unsafe { get_next(&mut self.stream, &mut array) } != 0 {
            return Err(ImportError::Producer(last_error(&mut self.stream)));
        }
        if array.release.is_none() {
            return Ok(None);
        }
        if array.n_children as usize != self.names.len() {
            let what = "a chunk does not have as many columns as the table";
            return Err(ImportError::Producer(what.to_owned()));
        }
        Ok(Some(Chunk {
            array,
            schema: &self.schema,
        }))
    }
}

impl Chunk<'_> {
    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.array.length as usize
    }

    /// Returns the values of a column.
    ///
    /// # Errors
    /// Returns an error if the type is not supported, the buffers cannot be used, or a value is
    /// null or invalid.
    pub(crate) fn column(&self, index: usize) -> Result<Values, ImportError> {
        let offset = self.array.offset as usize;
        // SAFETY: the chunk is not released, and has as many children as its schema.
        unsafe {
            let schema = &*schema_children(self.schema)[index];
            let array = &**self.array.children.add(index);
            read(schema, array, offset, self.rows())
        }
    }
}

/// Returns the whole numbers of an Arrow array, of a chunked array, or of a table with one column.
/// Returns `None` for an object that has neither `__arrow_c_array__` nor `__arrow_c_stream__`.
///
/// # Errors
/// Returns an error if the object fails or was already consumed, if it is a table with another
/// number of columns, or if a value is null or not a whole number.
pub(crate) fn whole_numbers(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    if object.hasattr("__arrow_c_array__")? {
        let capsules = object.call_method0("__arrow_c_array__")?;
        let capsules = capsules.cast::<PyTuple>()?;
        let take = |index: usize, name: &'static CStr| -> PyResult<_> {
            let item = capsules.get_item(index)?;
            item.cast::<PyCapsule>()?.pointer_checked(Some(name))
        };
        let (schema, array) = (take(0, SCHEMA_CAPSULE)?, take(1, ARRAY_CAPSULE)?);
        // SAFETY: as in `TableStream::open`.
        let (schema, array) = unsafe {
            let schema = schema
                .cast::<ArrowSchema>()
                .replace(ArrowSchema::released());
            (
                schema,
                array.cast::<ArrowArray>().replace(ArrowArray::released()),
            )
        };
        if schema.release.is_none() || array.release.is_none() {
            return Err(input_error("the Arrow array was already consumed"));
        }
        // SAFETY: neither structure is released.
        let values = unsafe { read(&schema, &array, 0, array.length as usize) };
        return whole(values).map(Some);
    }
    if !object.hasattr("__arrow_c_stream__")? {
        return Ok(None);
    }
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let pointer = capsule
        .cast::<PyCapsule>()?
        .pointer_checked(Some(STREAM_CAPSULE))?;
    // SAFETY: as in `TableStream::open`, for the rest of the function.
    unsafe {
        let mut stream = pointer
            .cast::<ArrowArrayStream>()
            .replace(ArrowArrayStream::released());
        let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
            return Err(input_error("the Arrow stream was already consumed"));
        };
        let mut schema = ArrowSchema::released();
        if get_schema(&mut stream, &mut schema) != 0 {
            return Err(input_error(last_error(&mut stream)));
        }
        let mut all = Vec::new();
        loop {
            let mut array = ArrowArray::released();
            if get_next(&mut stream, &mut array) != 0 {
                return Err(input_error(last_error(&mut stream)));
            }
            if array.release.is_none() {
                return Ok(Some(all));
            }
            let rows = array.length as usize;
            let values = match (text(schema.format), schema_children(&schema)) {
                ("+s", [only]) => read(&**only, &**array.children, array.offset as usize, rows),
                ("+s", _) => return Err(input_error("a table with one column is needed")),
                _ => read(&schema, &array, 0, rows),
            };
            all.extend(whole(values)?);
        }
    }
}

fn whole(values: Result<Values, ImportError>) -> PyResult<Vec<i64>> {
    match values {
        Ok(Values::Whole(values)) => Ok(values),
        Ok(_) => Err(input_error("whole numbers are needed")),
        Err(ImportError::Row(row, problem)) => Err(input_error(format!("value {row}: {problem}"))),
        Err(ImportError::Column(problem) | ImportError::Producer(problem)) => {
            Err(input_error(problem))
        }
    }
}

/// Reads `rows` values of an array from `offset`, which is added to the array's own.
///
/// # Safety
/// Neither structure may be released, and they must belong together.
unsafe fn read(
    schema: &ArrowSchema,
    array: &ArrowArray,
    offset: usize,
    rows: usize,
) -> Result<Values, ImportError> {
    let start = array.offset as usize + offset;
    if rows == 0 {
        // Buffers of an empty array may be null.
        return Ok(Values::Whole(Vec::new()));
    }
    // SAFETY: the caller guarantees structures as the interface describes them: buffers of
    // `offset + length` values of the type that the format names, except that the first buffer is
    // the validity bitmap, which may be a null pointer if no value is null.
    unsafe {
        let format = text(schema.format);
        if format == "n" {
            return Err(ImportError::Row(0, "is null".to_owned()));
        }
        if array.null_count != 0
            && let Some(row) = first_null(array, start, rows)
        {
            return Err(ImportError::Row(row, "is null".to_owned()));
        }
        if !schema.dictionary.is_null() {
            let indices = plain(format, array, start, rows)?;
            let dictionary = &*array.dictionary;
            let length = dictionary.length as usize;
            let words = read(&*schema.dictionary, dictionary, 0, length)?;
            return indexed(&indices, &words);
        }
        plain(format, array, start, rows)
    }
}

/// Returns the values of a dictionary at some indices.
fn indexed(indices: &Values, words: &Values) -> Result<Values, ImportError> {
    let Values::Whole(indices) = indices else {
        return Err(ImportError::Column(
            "its dictionary indices are not whole numbers".to_owned(),
        ));
    };
    let wrong = |row| ImportError::Row(row, "is not in its dictionary".to_owned());
    let places = || {
        indices
            .iter()
            .map(|index| usize::try_from(*index))
            .enumerate()
    };
    Ok(match words {
        Values::Text(words) => {
            let mut texts = TextColumn::default();
            for (row, place) in places() {
                let place = place.ok().filter(|place| *place < words.len());
                texts.push(words.get(place.ok_or_else(|| wrong(row))?));
            }
            Values::Text(texts)
        }
        Values::Whole(words) => {
            let found = places().map(|(row, place)| {
                let word = place.ok().and_then(|place| words.get(place));
                word.copied().ok_or_else(|| wrong(row))
            });
            Values::Whole(found.collect::<Result<_, _>>()?)
        }
        Values::Number(words) => {
            let found = places().map(|(row, place)| {
                let word = place.ok().and_then(|place| words.get(place));
                word.copied().ok_or_else(|| wrong(row))
            });
            Values::Number(found.collect::<Result<_, _>>()?)
        }
    })
}

/// Reads values without a dictionary; the caller has excluded nulls.
///
/// # Safety
/// As for [`read`].
unsafe fn plain(
    format: &str,
    array: &ArrowArray,
    start: usize,
    rows: usize,
) -> Result<Values, ImportError> {
    // SAFETY: see `read`.
    unsafe {
        Ok(match format {
            "b" => {
                let bits = buffer::<u8>(array, 1, (start + rows).div_ceil(8))?;
                let bit = |at: usize| i64::from(bits[at / 8] >> (at % 8) & 1);
                Values::Whole((start..start + rows).map(bit).collect())
            }
            "c" => wholes::<i8>(array, start, rows)?,
            "C" => wholes::<u8>(array, start, rows)?,
            "s" => wholes::<i16>(array, start, rows)?,
            "S" => wholes::<u16>(array, start, rows)?,
            "i" => wholes::<i32>(array, start, rows)?,
            "I" => wholes::<u32>(array, start, rows)?,
            "l" => wholes::<i64>(array, start, rows)?,
            "L" => wholes::<u64>(array, start, rows)?,
            "f" => {
                let values = &buffer::<f32>(array, 1, start + rows)?[start..];
                Values::Number(values.iter().map(|value| f64::from(*value)).collect())
            }
            "g" => Values::Number(buffer::<f64>(array, 1, start + rows)?[start..].to_vec()),
            "u" => {
                let ends = &buffer::<i32>(array, 1, start + rows + 1)?[start..];
                texts(array, ends.iter().map(|end| i64::from(*end)))?
            }
            "U" => {
                let ends = &buffer::<i64>(array, 1, start + rows + 1)?[start..];
                texts(array, ends.iter().copied())?
            }
            "vu" => views(array, start, rows)?,
            _ => {
                return Err(ImportError::Column(format!(
                    "its type is {}",
                    named(format)
                )));
            }
        })
    }
}

/// Reads integers.
///
/// # Safety
/// As for [`read`], with values of type `T`.
unsafe fn wholes<T: Copy + TryInto<i64>>(
    array: &ArrowArray,
    start: usize,
    rows: usize,
) -> Result<Values, ImportError> {
    // SAFETY: the caller guarantees values of this type.
    let values = unsafe { &buffer::<T>(array, 1, start + rows)?[start..] };
    let fits = |(row, value): (usize, &T)| {
        let value = (*value).try_into();
        value.map_err(|_| ImportError::Row(row, "is not below 2^63".to_owned()))
    };
    let values = values.iter().enumerate().map(fits);
    Ok(Values::Whole(values.collect::<Result<_, _>>()?))
}

/// Reads texts with offsets: the beginning of the first, followed by the end of each.
///
/// # Safety
/// As for [`read`].
unsafe fn texts(
    array: &ArrowArray,
    mut ends: impl Iterator<Item = i64>,
) -> Result<Values, ImportError> {
    let mut texts = TextColumn::default();
    let mut begin = ends.next().expect("there is at least one row");
    for (row, end) in ends.enumerate() {
        let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
        let range = range.filter(|(begin, end)| begin <= end);
        let (first, last) =
            range.ok_or_else(|| ImportError::Row(row, "has wrong offsets".to_owned()))?;
        // SAFETY: the interface guarantees as many bytes as the last offset.
        let bytes = unsafe { &buffer::<u8>(array, 2, last)?[first..] };
        push(&mut texts, row, bytes)?;
        begin = end;
    }
    Ok(Values::Text(texts))
}

/// The longest text, in bytes, that a view holds itself.
const INLINE_BYTES: u32 = 12;

/// Reads texts as views of 16 bytes: the length, and then the text itself or its place.
///
/// # Safety
/// As for [`read`].
unsafe fn views(array: &ArrowArray, start: usize, rows: usize) -> Result<Values, ImportError> {
    // SAFETY: the interface guarantees one view for each value, and as many buffers as views name.
    unsafe {
        let views = &buffer::<[u8; 16]>(array, 1, start + rows)?[start..];
        let mut texts = TextColumn::default();
        for (row, view) in views.iter().enumerate() {
            let part =
                |at: usize| u32::from_le_bytes(view[at..at + 4].try_into().expect("4 bytes"));
            let length = part(0);
            if length <= INLINE_BYTES {
                push(&mut texts, row, &view[4..4 + length as usize])?;
            } else {
                let (which, first) = (part(8) as usize, part(12) as usize);
                let bytes = buffer::<u8>(array, 2 + which, first + length as usize)?;
                push(&mut texts, row, &bytes[first..])?;
            }
        }
        Ok(Values::Text(texts))
    }
}

/// The longest text that is read, in bytes. The texts of a workload are short words.
const TEXT_BYTES_MAX: usize = 1 << 12;
/// Once the texts read from a column of a chunk have more bytes than this, the next is refused.
const COLUMN_BYTES_MAX: usize = 1 << 30;

fn push(texts: &mut TextColumn, row: usize, bytes: &[u8]) -> Result<(), ImportError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| ImportError::Row(row, "is not UTF-8 text".to_owned()))?;
    if text.len() > TEXT_BYTES_MAX || texts.bytes.len() > COLUMN_BYTES_MAX {
        return Err(ImportError::Row(row, "is too long".to_owned()));
    }
    texts.push(text);
    Ok(())
}

/// Returns a buffer of an array.
///
/// # Safety
/// The buffer must have `length` values of type `T`.
unsafe fn buffer<T>(array: &ArrowArray, index: usize, length: usize) -> Result<&[T], ImportError> {
    if index >= array.n_buffers as usize {
        return Err(ImportError::Column("its buffers are missing".to_owned()));
    }
    // SAFETY: the index is one of the array's.
    let pointer = unsafe { *array.buffers.add(index) }.cast::<T>();
    if pointer.is_null() || length == 0 {
        return match length {
            0 => Ok(&[]),
            _ => Err(ImportError::Column("its buffers are missing".to_owned())),
        };
    }
    if !pointer.is_aligned() {
        return Err(ImportError::Column(
            "its values are not aligned in memory".to_owned(),
        ));
    }
    // SAFETY: the caller guarantees the length; the pointer is aligned and not null.
    Ok(unsafe { slice::from_raw_parts(pointer, length) })
}

/// Returns the first row that is null.
///
/// # Safety
/// As for [`read`].
unsafe fn first_null(array: &ArrowArray, start: usize, rows: usize) -> Option<usize> {
    // SAFETY: the first buffer of the supported types is the validity bitmap, or a null pointer.
    let bits = unsafe { buffer::<u8>(array, 0, (start + rows).div_ceil(8)) }.ok()?;
    (0..rows).find(|row| {
        let at = start + row;
        bits[at / 8] >> (at % 8) & 1 == 0
    })
}

/// Returns the name of a type for an error.
fn named(format: &str) -> String {
    match format.split([':', ',']).next().unwrap_or_default() {
        "tsn" | "tsu" | "tsm" | "tss" => "a timestamp; give milliseconds as numbers".to_owned(),
        "tDn" | "tDu" | "tDm" | "tDs" => "a duration; give milliseconds as numbers".to_owned(),
        "z" | "Z" | "vz" | "w" => "bytes".to_owned(),
        "+l" | "+L" | "+w" | "+vl" => "a list".to_owned(),
        "+s" => "a struct".to_owned(),
        "d" => "a decimal".to_owned(),
        "e" => "a 16-bit number".to_owned(),
        other => format!("{other:?} (in Arrow's notation)"),
    }
}

fn last_error(stream: &mut ArrowArrayStream) -> String {
    let call = stream.get_last_error;
    // SAFETY: the stream is not released; the text is valid until the next call.
    let message = call.map(|call| unsafe { text(call(stream)) }.to_owned());
    let message = message.filter(|message| !message.is_empty());
    message.unwrap_or_else(|| "the Arrow stream failed".to_owned())
}

/// Returns a C string as text: an empty text for a null pointer, and `?` if it is not UTF-8.
///
/// # Safety
/// The pointer must be null, or point to a C string that lives for `'a`.
unsafe fn text<'a>(pointer: *const c_char) -> &'a str {
    if pointer.is_null() {
        return "";
    }
    // SAFETY: the caller guarantees a text.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or("?")
}

/// Returns the children of a schema.
///
/// # Safety
/// The schema must not be released.
unsafe fn schema_children(schema: &ArrowSchema) -> &[*mut ArrowSchema] {
    if schema.n_children <= 0 || schema.children.is_null() {
        return &[];
    }
    // SAFETY: the interface guarantees this number of pointers.
    unsafe { slice::from_raw_parts(schema.children, schema.n_children as usize) }
}
