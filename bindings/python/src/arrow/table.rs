//! Batches of rows in columns, as Arrow lays them out in memory.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// 64-bit signed integers.
    Whole,
    /// 64-bit floating-point numbers.
    Number,
    /// 64-bit floating-point numbers, or nothing.
    OptionalNumber,
    /// UTF-8 texts.
    Text,
}

/// The name and type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
}

/// The values of a column.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Whole(Vec<i64>),
    Number(Vec<f64>),
    OptionalNumber(OptionalNumbers),
    Text(TextColumn),
}

/// Numbers, some of which are absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionalNumbers {
    pub(crate) values: Vec<f64>,
    /// One bit for each value, which is set if the value is present.
    pub(crate) present: Vec<u8>,
    pub(crate) absent: usize,
}

/// Texts, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct TextColumn {
    /// The end of each text, after a zero.
    pub(crate) ends: Vec<i32>,
    pub(crate) bytes: Vec<u8>,
}

/// Rows in columns.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
}

impl Column {
    /// Creates a column with room for `rows` values.
    pub(crate) fn with_capacity(kind: ColumnKind, rows: usize) -> Column {
        match kind {
            ColumnKind::Whole => Column::Whole(Vec::with_capacity(rows)),
            ColumnKind::Number => Column::Number(Vec::with_capacity(rows)),
            ColumnKind::OptionalNumber => Column::OptionalNumber(OptionalNumbers {
                values: Vec::with_capacity(rows),
                present: Vec::with_capacity(rows.div_ceil(8)),
                absent: 0,
            }),
            ColumnKind::Text => Column::Text(TextColumn::with_capacity(rows)),
        }
    }

    /// Returns the number of bytes in the column's buffers.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Column::Whole(values) => values.len() * 8,
            Column::Number(values) => values.len() * 8,
            Column::OptionalNumber(numbers) => numbers.values.len() * 8 + numbers.present.len(),
            Column::Text(texts) => texts.ends.len() * 4 + texts.bytes.len(),
        }
    }
}

impl OptionalNumbers {
    /// Appends a number or its absence.
    #[inline]
    pub(crate) fn push(&mut self, value: Option<f64>) {
        let index = self.values.len();
        if index.is_multiple_of(8) {
            self.present.push(0);
        }
        match value {
            Some(_) => *self.present.last_mut().expect("a byte was pushed") |= 1 << (index % 8),
            None => self.absent += 1,
        }
        self.values.push(value.unwrap_or_default());
    }

    /// Returns the value at an index.
    pub(crate) fn get(&self, index: usize) -> Option<f64> {
        (self.present[index / 8] >> (index % 8) & 1 == 1).then(|| self.values[index])
    }
}

impl TextColumn {
    /// The usual length of a text; the texts of a request log are words such as `read`.
    const USUAL_BYTES: usize = 6;

    /// Creates a column with room for `rows` short texts.
    fn with_capacity(rows: usize) -> TextColumn {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        TextColumn {
            ends,
            bytes: Vec::with_capacity(rows * TextColumn::USUAL_BYTES),
        }
    }

    /// Appends a text.
    ///
    /// # Panics
    /// Panics if the texts of the batch are longer than 2 GiB.
    #[inline]
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends
            .push(i32::try_from(self.bytes.len()).expect("a batch has fewer bytes of text"));
    }

    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Returns the text at an index.
    pub(crate) fn get(&self, index: usize) -> &str {
        let bytes = &self.bytes[self.ends[index] as usize..self.ends[index + 1] as usize];
        std::str::from_utf8(bytes).expect("only texts are appended")
    }
}

impl Default for TextColumn {
    fn default() -> TextColumn {
        TextColumn::with_capacity(0)
    }
}
