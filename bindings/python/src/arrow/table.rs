//! Batches of rows in columns, as Arrow lays them out in memory.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// 64-bit signed integers.
    Whole,
    /// 64-bit floating-point numbers.
    Number,
    /// 64-bit signed integers, or nothing.
    OptionalWhole,
    /// 64-bit floating-point numbers, or nothing.
    OptionalNumber,
    /// UTF-8 texts.
    Text,
    /// UTF-8 texts, or nothing.
    OptionalText,
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
    OptionalWhole(OptionalValues<i64>),
    OptionalNumber(OptionalValues<f64>),
    Text(TextColumn),
    OptionalText(TextColumn, Presence),
}

/// Values, some of which are absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionalValues<T> {
    pub(crate) values: Vec<T>,
    pub(crate) presence: Presence,
}

/// The rows of a column that have a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Presence {
    rows: usize,
    /// One bit for each row, which is set if the row has a value.
    pub(crate) bits: Vec<u8>,
    pub(crate) absent: usize,
}

/// Texts, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct TextColumn {
    /// A zero, and then the end of each text in `bytes`.
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
            ColumnKind::OptionalWhole => Column::OptionalWhole(OptionalValues::with_capacity(rows)),
            ColumnKind::OptionalNumber => {
                Column::OptionalNumber(OptionalValues::with_capacity(rows))
            }
            ColumnKind::Text => Column::Text(TextColumn::with_capacity(rows)),
            ColumnKind::OptionalText => Column::OptionalText(
                TextColumn::with_capacity(rows),
                Presence::with_capacity(rows),
            ),
        }
    }

    /// Returns the number of bytes in the column's buffers.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Column::Whole(values) => values.len() * 8,
            Column::Number(values) => values.len() * 8,
            Column::OptionalWhole(wholes) => wholes.values.len() * 8 + wholes.presence.bits.len(),
            Column::OptionalNumber(numbers) => {
                numbers.values.len() * 8 + numbers.presence.bits.len()
            }
            Column::Text(texts) => texts.ends.len() * 4 + texts.bytes.len(),
            Column::OptionalText(texts, presence) => {
                texts.ends.len() * 4 + texts.bytes.len() + presence.bits.len()
            }
        }
    }
}

/// A text of at most 16 bytes, such as a word of the request log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// The text, followed by zeros.
    bytes: [u8; Word::BYTES_MAX],
    len: u8,
}

impl Word {
    const BYTES_MAX: usize = 16;

    /// Creates a word.
    ///
    /// # Panics
    /// Panics if the text is too long.
    pub(crate) const fn new(text: &str) -> Word {
        let mut bytes = [0; Word::BYTES_MAX];
        let (word, _) = bytes.split_at_mut(text.len());
        word.copy_from_slice(text.as_bytes());
        Word {
            bytes,
            len: text.len() as u8,
        }
    }
}

impl<T: Copy + Default> OptionalValues<T> {
    fn with_capacity(rows: usize) -> OptionalValues<T> {
        OptionalValues {
            values: Vec::with_capacity(rows),
            presence: Presence::with_capacity(rows),
        }
    }

    /// Appends a value or its absence.
    #[inline]
    pub(crate) fn push(&mut self, value: Option<T>) {
        self.presence.push(value.is_some());
        self.values.push(value.unwrap_or_default());
    }

    /// Appends the absence of `rows` values.
    pub(crate) fn push_absent(&mut self, rows: usize) {
        self.presence.push_absent(rows);
        self.values.resize(self.values.len() + rows, T::default());
    }

    /// Returns the value at an index.
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        self.presence.at(index).then(|| self.values[index])
    }
}

impl Presence {
    fn with_capacity(rows: usize) -> Presence {
        Presence {
            bits: Vec::with_capacity(rows.div_ceil(8)),
            ..Presence::default()
        }
    }

    /// Appends a row.
    #[inline]
    pub(crate) fn push(&mut self, present: bool) {
        let bit = self.rows % 8;
        if bit == 0 {
            self.bits.push(0);
        }
        if present {
            *self.bits.last_mut().expect("a byte was pushed") |= 1 << bit;
        } else {
            self.absent += 1;
        }
        self.rows += 1;
    }

    /// Appends rows without a value.
    pub(crate) fn push_absent(&mut self, rows: usize) {
        self.rows += rows;
        self.absent += rows;
        self.bits.resize(self.rows.div_ceil(8), 0);
    }

    /// Returns whether the row at an index has a value.
    pub(crate) fn at(&self, index: usize) -> bool {
        self.bits[index / 8] >> (index % 8) & 1 == 1
    }
}

impl TextColumn {
    /// The usual length of a text in bytes. The texts of a request log are words such as `read`.
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
    /// Panics if the texts of the batch reach 2 GiB.
    #[inline]
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends
            .push(i32::try_from(self.bytes.len()).expect(TOO_LONG));
    }

    /// Appends words. Each is copied with its zeros, which the next one overwrites: that is several
    /// times as fast as a copy of its exact length.
    ///
    /// # Panics
    /// Panics if the texts of the batch reach 2 GiB, with the zeros of the new words.
    pub(crate) fn push_words(&mut self, words: impl ExactSizeIterator<Item = Word>) {
        let mut end = self.bytes.len();
        self.bytes.resize(end + words.len() * Word::BYTES_MAX, 0);
        assert!(i32::try_from(self.bytes.len()).is_ok(), "{TOO_LONG}");
        let bytes = &mut self.bytes;
        self.ends.extend(words.map(|word| {
            bytes[end..end + Word::BYTES_MAX].copy_from_slice(&word.bytes);
            end += usize::from(word.len);
            end as i32
        }));
        self.bytes.truncate(end);
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

const TOO_LONG: &str = "the texts of a batch are shorter than 2 GiB";

impl Default for TextColumn {
    fn default() -> TextColumn {
        TextColumn::with_capacity(0)
    }
}
