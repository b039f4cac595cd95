//! The track map.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyTuple, PyType};
use traxtent_map::{Confirm, Found, Identity, MapBuilder, MapFile, MapSource};
use traxtent_run::{AtomicFile, OutputFormat};
use traxtent_units::{Lbn, Sectors};

use crate::arrow::{self, Batch, Column, ColumnKind, Field};
use crate::errors::{guarded, input_error};
use crate::values::Whole;

/// The sector size in bytes assumed for a list of tracks, which does not state it.
const LIST_SECTOR_BYTES: u32 = 512;

/// The tracks of a drive: the LBNs at which they begin, in order and without gaps.
///
/// A map has a length (the number of tracks) and can be indexed and iterated; its items are
/// ``Track``. It is immutable and can be pickled.
///
/// Source: Schindler, Griffin, Lumb and Ganger, "Track-aligned extents: matching access patterns to
/// disk drive characteristics", FAST 2002, section 3.
#[pyclass(frozen, eq, module = "traxtent")]
#[derive(Clone)]
pub(crate) struct TrackMap {
    pub(crate) file: Arc<MapFile>,
}

/// A track of a map.
///
/// ``index`` counts from 0. ``first_lbn`` is the lowest LBN, ``sectors`` the number of LBNs, and
/// ``end`` the first LBN after the track.
#[pyclass(frozen, eq, hash, get_all, module = "traxtent")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Track {
    index: usize,
    first_lbn: u64,
    sectors: u64,
}

#[pymethods]
impl Track {
    /// The first LBN after the track.
    #[getter]
    fn end(&self) -> u64 {
        self.first_lbn + self.sectors
    }

    fn __repr__(&self) -> String {
        format!(
            "Track(index={}, first_lbn={}, sectors={})",
            self.index, self.first_lbn, self.sectors
        )
    }

    /// Returns whether the track holds an LBN. No track holds an integer that cannot be an LBN.
    fn __contains__(&self, lbn: Whole<u64>) -> bool {
        let lbn = lbn.named("lbn");
        lbn.is_ok_and(|lbn| (self.first_lbn..self.end()).contains(&lbn))
    }

    #[new]
    fn new(index: Whole<usize>, first_lbn: Whole<u64>, sectors: Whole<u64>) -> PyResult<Track> {
        let index = index.named("index")?;
        let (first_lbn, sectors) = (first_lbn.named("first_lbn")?, sectors.named("sectors")?);
        if first_lbn.checked_add(sectors).is_none() || sectors == 0 {
            return Err(input_error(
                "a track has at least 1 sector, and ends below 2^64",
            ));
        }
        Ok(Track {
            index,
            first_lbn,
            sectors,
        })
    }

    fn __getnewargs__(&self) -> (usize, u64, u64) {
        (self.index, self.first_lbn, self.sectors)
    }
}

impl From<traxtent_map::MappedTrack> for Track {
    fn from(track: traxtent_map::MappedTrack) -> Track {
        Track {
            index: track.index,
            first_lbn: track.first_lbn.0,
            sectors: track.sectors.0,
        }
    }
}

impl PartialEq for TrackMap {
    fn eq(&self, other: &TrackMap) -> bool {
        self.file.tracks == other.file.tracks
    }
}

impl TrackMap {
    pub(crate) fn new(file: MapFile) -> TrackMap {
        TrackMap {
            file: Arc::new(file),
        }
    }

    fn of_list(tracks: traxtent_map::TrackMap) -> TrackMap {
        let identity = Identity {
            capacity: Sectors(tracks.end().0),
            logical_bytes: LIST_SECTOR_BYTES,
            physical_bytes: LIST_SECTOR_BYTES,
            ..Identity::default()
        };
        TrackMap::new(MapFile::new(identity, MapSource::List, tracks))
    }

    /// Returns the beginnings of all tracks, and the end of the last one.
    fn boundary_lbns(&self) -> Vec<i64> {
        let tracks = &self.file.tracks;
        // LBNs are far below 2^63 on any drive; a map of larger ones cannot be made here.
        let firsts = tracks.tracks().map(|track| track.first_lbn.0 as i64);
        firsts.chain([tracks.end().0 as i64]).collect()
    }
}

#[pymethods]
impl TrackMap {
    /// Returns the map with the given boundaries.
    ///
    /// ``boundaries`` are the LBNs at which tracks begin, in ascending order, and at the end the
    /// LBN after the last track: n + 1 numbers for n tracks. They can be an Arrow array, a table
    /// with one column, a NumPy array, or any iterable of integers. ``sector_bytes`` is the size of
    /// a sector.
    ///
    /// Raises ``InputError`` if a number is negative or not above the one before it, if a track is
    /// too long, if there are fewer than two numbers, or if ``sector_bytes`` is neither 512 nor
    /// 4096.
    #[classmethod]
    #[pyo3(
        signature = (boundaries, *, sector_bytes=Whole::from(512)),
        text_signature = "($cls, boundaries, *, sector_bytes=512)"
    )]
    fn from_boundaries(
        _class: &Bound<'_, PyType>,
        boundaries: &Bound<'_, PyAny>,
        sector_bytes: Whole<u32>,
    ) -> PyResult<TrackMap> {
        guarded(|| {
            let sector_bytes = sector_bytes.named("sector_bytes")?;
            if ![512, 4096].contains(&sector_bytes) {
                let what = format!("sector_bytes: {sector_bytes}: expected 512 or 4096");
                return Err(input_error(what));
            }
            let lbns = whole_numbers(boundaries)?;
            let mut builder = MapBuilder::default();
            for (index, pair) in lbns.windows(2).enumerate() {
                let wrong =
                    |what: String| input_error(format!("boundaries: value {}: {what}", index + 1));
                let first = u64::try_from(pair[0]).map_err(|_| {
                    input_error(format!(
                        "boundaries: value {index}: {} is negative",
                        pair[0]
                    ))
                })?;
                let sectors = pair[1].checked_sub(pair[0]).filter(|sectors| *sectors > 0);
                let sectors = sectors
                    .ok_or_else(|| wrong(format!("{} is not above {}", pair[1], pair[0])))?;
                let sectors = u32::try_from(sectors)
                    .map_err(|_| wrong(format!("a track of {sectors} sectors is too long")))?;
                let track = Found {
                    first_lbn: Lbn(first),
                    sectors,
                    confirm: Confirm::Tested,
                };
                builder
                    .push(track)
                    .map_err(|error| wrong(error.to_string()))?;
            }
            let (tracks, _) = builder
                .finish()
                .ok_or_else(|| input_error("boundaries: at least 2 numbers are needed"))?;
            let mut map = TrackMap::of_list(tracks);
            let file = Arc::get_mut(&mut map.file).expect("the map was just made");
            file.identity.logical_bytes = sector_bytes;
            file.identity.physical_bytes = sector_bytes;
            Ok(map)
        })
    }

    /// Returns the map in a file: a map file of this project, or a list of tracks as CSV.
    ///
    /// Raises ``FileError`` if the file cannot be read, and ``InputError`` if it is not a map.
    #[classmethod]
    fn open(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<TrackMap> {
        guarded(|| {
            let file = py
                .detach(|| traxtent_run::read_map(&path))
                .map_err(crate::errors::run_error)?;
            file.map(TrackMap::new)
                .ok_or_else(|| input_error(format!("{}: is not a track map", path.display())))
        })
    }

    /// Writes the map to a file: as CSV if its name ends in ``.csv``, otherwise as a map file.
    ///
    /// The file appears whole or not at all. Raises ``InputError`` for a name of a compressed file,
    /// or if the file exists and is not a map in the same format, and ``FileError`` if it cannot be
    /// written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guarded(|| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            if let Some(ending @ ("gz" | "zst")) = ending {
                let why = format!("maps are not compressed; omit .{ending}");
                return Err(input_error(format!("{}: {why}", path.display())));
            }
            let csv = ending == Some("csv");
            let format = match csv {
                true => OutputFormat::TrackList,
                false => OutputFormat::Map,
            };
            py.detach(|| {
                format.check_output(&path)?;
                let mut out = AtomicFile::create(&path)?;
                let written = match csv {
                    true => self.file.tracks.write_csv(&mut out),
                    false => self.file.write(&mut out),
                };
                written
                    .and_then(|()| out.flush())
                    .map_err(|error| out.error(&error))?;
                out.finish()
            })
            .map_err(crate::errors::run_error)
        })
    }

    /// Returns the track that holds an LBN, or ``None`` if the map has no such LBN.
    ///
    /// Raises ``InputError`` if ``lbn`` is negative or at least 2**64.
    fn track_of(&self, lbn: Whole<u64>) -> PyResult<Option<Track>> {
        let lbn = Lbn(lbn.named("lbn")?);
        Ok(self.file.tracks.track_of(lbn).map(Track::from))
    }

    /// The LBNs at which tracks begin, followed by the LBN after the last track.
    ///
    /// An object with ``__arrow_c_array__`` and n + 1 64-bit integers for n tracks:
    /// ``pyarrow.array(map.boundaries)``, ``polars.Series(map.boundaries)``.
    #[getter]
    fn boundaries(&self) -> Boundaries {
        Boundaries::new(self.boundary_lbns())
    }

    /// The number of sectors of each track, in the same form as ``boundaries``.
    #[getter]
    fn sizes(&self) -> Boundaries {
        let sizes = self.file.tracks.tracks();
        Boundaries::new(sizes.map(|track| track.sectors.0 as i64).collect())
    }

    /// The first LBN of the map.
    #[getter]
    fn first_lbn(&self) -> u64 {
        self.file.tracks.first().0
    }

    /// The first LBN after the map.
    #[getter]
    fn end(&self) -> u64 {
        self.file.tracks.end().0
    }

    /// The size of a logical sector in bytes.
    #[getter]
    fn sector_bytes(&self) -> u32 {
        self.file.identity.logical_bytes
    }

    /// The origin of the map, such as ``model`` or the algorithm of a probe.
    #[getter]
    fn method(&self) -> String {
        self.file.method.to_string()
    }

    fn __len__(&self) -> usize {
        self.file.tracks.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<Track> {
        let place = match index {
            0.. => Some(index as usize),
            _ => self.__len__().checked_sub(index.unsigned_abs()),
        };
        let track = place.and_then(|place| self.file.tracks.track(place));
        track
            .map(Track::from)
            .ok_or_else(|| PyIndexError::new_err(format!("the map has {} tracks", self.__len__())))
    }

    fn __iter__(&self) -> TrackIterator {
        TrackIterator {
            map: self.clone(),
            next: 0,
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "TrackMap({} tracks, LBNs {} to {})",
            self.__len__(),
            self.first_lbn(),
            self.end() - 1
        )
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (self.first_lbn(), self.end(), self.__len__()).hash(&mut hasher);
        hasher.finish()
    }

    /// Creates a map from the text of a map file, which `__reduce__` returns.
    #[staticmethod]
    fn _from_text(text: &[u8]) -> PyResult<TrackMap> {
        guarded(|| MapFile::read(text).map(TrackMap::new).map_err(input_error))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let text = PyBytes::new(py, self.file.to_text().as_bytes());
        let make = py.get_type::<TrackMap>().getattr("_from_text")?;
        Ok((make, PyTuple::new(py, [text])?))
    }
}

#[pyclass(module = "traxtent")]
pub(crate) struct TrackIterator {
    map: TrackMap,
    next: usize,
}

#[pymethods]
impl TrackIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self) -> Option<Track> {
        let track = self.map.file.tracks.track(self.next)?;
        self.next += 1;
        Some(track.into())
    }
}

/// Whole numbers as an Arrow array.
///
/// ``pyarrow.array``, ``polars.Series`` and others take it without a copy. ``tolist()`` returns a
/// list of integers. It can be pickled.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct Boundaries {
    batch: Arc<Batch>,
}

impl Boundaries {
    pub(crate) fn new(values: Vec<i64>) -> Boundaries {
        Boundaries {
            batch: Arc::new(Batch {
                rows: values.len(),
                columns: vec![Column::Whole(values)],
            }),
        }
    }

    fn values(&self) -> &[i64] {
        match &self.batch.columns[0] {
            Column::Whole(values) => values,
            _ => unreachable!("the column was made of whole numbers"),
        }
    }
}

#[pymethods]
impl Boundaries {
    /// Returns the numbers as a list.
    fn tolist(&self) -> Vec<i64> {
        self.values().to_vec()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The interface allows a producer to ignore the requested schema.
        let _ = requested_schema;
        let field = Field {
            name: String::new(),
            kind: ColumnKind::Whole,
        };
        arrow::array_capsules(py, &[field], &self.batch)
    }

    fn __len__(&self) -> usize {
        self.batch.rows
    }

    fn __getitem__(&self, index: isize) -> PyResult<i64> {
        let place = match index {
            0.. => Some(index as usize),
            _ => self.batch.rows.checked_sub(index.unsigned_abs()),
        };
        let value = place.and_then(|place| self.values().get(place));
        value
            .copied()
            .ok_or_else(|| PyIndexError::new_err(format!("there are {} numbers", self.batch.rows)))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.values())?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<{} numbers>", self.batch.rows)
    }

    /// Creates the object from the bytes that `__reduce__` returns.
    #[staticmethod]
    fn _from_bytes(bytes: &[u8]) -> PyResult<Boundaries> {
        guarded(|| match bytes.as_chunks() {
            (values, []) => {
                let values = values.iter().copied().map(i64::from_le_bytes);
                Ok(Boundaries::new(values.collect()))
            }
            _ => Err(input_error("the pickled numbers are damaged")),
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let values = self.values().iter();
        let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
        let make = py.get_type::<Boundaries>().getattr("_from_bytes")?;
        Ok((make, PyTuple::new(py, [PyBytes::new(py, &bytes)])?))
    }
}

/// Returns the integers of an Arrow array, of a table with one column, or of any iterable.
pub(crate) fn whole_numbers(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Some(values) = arrow::whole_numbers(object)? {
        return Ok(values);
    }
    let mut values = Vec::new();
    for item in object.try_iter()? {
        let item = item?;
        let value = item.extract::<i64>().map_err(|error| {
            let text = format!("value {}: {}", values.len(), error.value(object.py()));
            match error.is_instance_of::<PyTypeError>(object.py()) {
                true => PyTypeError::new_err(text),
                false => input_error(text),
            }
        })?;
        values.push(value);
    }
    Ok(values)
}
