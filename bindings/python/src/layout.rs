//! Layouts of data by track maps.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict};
use traxtent_layout::Partition;
use traxtent_layout::raid::{Array, ArrayShape, ChunkContents, ChunkRule, Level, Member};
use traxtent_map::{Identity, MapFile, MapSource};
use traxtent_units::{Lbn, Sectors};

use crate::errors::{guarded, input_error};
use crate::track_map::{Boundaries, TrackMap};
use crate::values::{NewArguments, Whole, optional};

/// Returns the blocks that span a boundary between tracks, and are therefore excluded.
///
/// ``block_sectors`` is the size of a block. Blocks are counted from the beginning of the map. The
/// numbers are in ascending order, in the form of ``TrackMap.boundaries``.
///
/// Source: Schindler et al., FAST 2002, section 3.2.
#[pyfunction]
pub(crate) fn excluded_blocks(
    py: Python<'_>,
    map: &TrackMap,
    block_sectors: Whole<u32>,
) -> PyResult<Boundaries> {
    guarded(|| {
        let block_sectors = block_sectors.named("block_sectors")?;
        let tracks = Arc::new(map.file.tracks.clone());
        let excluded = py.detach(|| {
            let partition = Partition::whole(tracks, block_sectors)?;
            Ok(partition.excluded().map(|block| block.0 as i64).collect())
        });
        excluded
            .map(Boundaries::new)
            .map_err(|error: traxtent_layout::LayoutError| input_error(error))
    })
}

/// Several drives as one, in stripes whose chunks are whole tracks or have a fixed size.
///
/// ``level`` is ``raid-0``, ``raid-1``, ``raid-4`` or ``raid-5``. ``maps`` are the track maps of
/// the members. ``chunks`` is ``tracks``, ``largest-track`` or ``smallest-track``, or a number of
/// sectors. ``spares`` is the number of spare tracks per member, and all chunks are multiples of
/// ``granule`` sectors.
///
/// Raises ``InputError`` if these drives cannot form such an array.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct RaidArray {
    array: Array,
    maps: Vec<TrackMap>,
}

/// The place of an array's sector on its members.
///
/// ``member`` is the number of the drive, ``lbn`` the sector on it, ``stripe`` the number of the
/// stripe, and ``parity_member`` the number of the drive with the stripe's parity, or ``None``.
#[pyclass(frozen, get_all, eq, module = "traxtent")]
#[derive(Clone, PartialEq)]
pub(crate) struct ArrayLocation {
    member: usize,
    lbn: u64,
    stripe: u64,
    parity_member: Option<usize>,
}

#[pymethods]
impl ArrayLocation {
    #[new]
    #[pyo3(signature = (member, lbn, stripe, parity_member=None))]
    fn new(
        member: Whole<usize>,
        lbn: Whole<u64>,
        stripe: Whole<u64>,
        parity_member: Option<Whole<usize>>,
    ) -> PyResult<ArrayLocation> {
        Ok(ArrayLocation {
            member: member.named("member")?,
            lbn: lbn.named("lbn")?,
            stripe: stripe.named("stripe")?,
            parity_member: optional("parity_member", parity_member)?,
        })
    }

    fn __getnewargs__(&self) -> (usize, u64, u64, Option<usize>) {
        (self.member, self.lbn, self.stripe, self.parity_member)
    }

    fn __repr__(&self) -> String {
        format!(
            "ArrayLocation(member={}, lbn={}, stripe={})",
            self.member, self.lbn, self.stripe
        )
    }
}

fn level(name: &str) -> PyResult<Level> {
    let mut levels = Level::ALL.into_iter();
    let plain = name.replace('-', "").to_ascii_lowercase();
    let found = levels.find(|level| level.name().replace('-', "") == plain);
    found.ok_or_else(|| {
        let names = Level::ALL.map(Level::name).join(", ");
        input_error(format!("level: {name:?}: expected one of {names}"))
    })
}

fn rule(chunks: &Bound<'_, PyAny>) -> PyResult<ChunkRule> {
    if let Ok(name) = chunks.extract::<String>() {
        return match name.as_str() {
            "tracks" => Ok(ChunkRule::Tracks),
            "largest-track" => Ok(ChunkRule::LargestTrack),
            "smallest-track" => Ok(ChunkRule::SmallestTrack),
            _ => Err(input_error(format!(
                "chunks: {name:?}: expected tracks, largest-track, smallest-track or a number of \
                 sectors"
            ))),
        };
    }
    let sectors: Whole<u64> = chunks.extract()?;
    Ok(ChunkRule::Fixed(Sectors(sectors.named("chunks")?)))
}

#[pymethods]
impl RaidArray {
    #[new]
    #[pyo3(
        signature = (level, maps, *, chunks=None, granule=Whole::from(1), spares=Whole::from(0)),
        text_signature = "(level, maps, *, chunks=None, granule=1, spares=0)"
    )]
    fn new(
        py: Python<'_>,
        level: &str,
        maps: Vec<PyRef<'_, TrackMap>>,
        chunks: Option<&Bound<'_, PyAny>>,
        granule: Whole<u32>,
        spares: Whole<u32>,
    ) -> PyResult<RaidArray> {
        guarded(|| {
            let shape = ArrayShape {
                level: self::level(level)?,
                chunks: chunks.map_or(Ok(ChunkRule::Tracks), rule)?,
                granule: granule.named("granule")?,
                spares: spares.named("spares")?,
            };
            let maps: Vec<TrackMap> = maps.iter().map(|map| (**map).clone()).collect();
            let members = maps.iter().map(|map| {
                let tracks = &map.file.tracks;
                Member {
                    map: Arc::new(tracks.clone()),
                    data: tracks.first()..tracks.end(),
                }
            });
            let members: Vec<Member> = members.collect();
            let array = py
                .detach(|| Array::new(shape, members))
                .map_err(input_error)?;
            Ok(RaidArray { array, maps })
        })
    }

    /// The level.
    #[getter]
    fn level(&self) -> &'static str {
        self.array.shape().level.name()
    }

    /// The number of sectors of the array.
    #[getter]
    fn capacity(&self) -> u64 {
        self.array.capacity().0
    }

    /// The number of stripes.
    #[getter]
    fn stripes(&self) -> u64 {
        self.array.stripes()
    }

    /// The share of the members' sectors that holds neither data nor parity.
    #[getter]
    fn waste(&self) -> f64 {
        self.array.waste()
    }

    /// The track maps of the members.
    #[getter]
    fn maps(&self) -> Vec<TrackMap> {
        self.maps.clone()
    }

    /// The stripes of the array as a track map. A request within one uses a member at most once.
    #[getter]
    fn stripe_map(&self, py: Python<'_>) -> PyResult<TrackMap> {
        guarded(|| Ok(self.map(py.detach(|| self.array.stripe_map()))))
    }

    /// The data chunks of the array as a track map. A read within one uses one member.
    #[getter]
    fn chunk_map(&self, py: Python<'_>) -> PyResult<TrackMap> {
        guarded(|| Ok(self.map(py.detach(|| self.array.chunk_map()))))
    }

    /// The use of each member: a dict of ``sectors``, ``data``, ``parity`` and ``unused``.
    #[getter]
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        guarded(|| {
            let usage = self.array.usage();
            usage
                .iter()
                .map(|member| {
                    let dict = PyDict::new(py);
                    dict.set_item("sectors", member.sectors.0)?;
                    dict.set_item("data", member.data.0)?;
                    dict.set_item("parity", member.parity.0)?;
                    dict.set_item("unused", member.unused().0)?;
                    Ok(dict)
                })
                .collect()
        })
    }

    /// Returns the place of a sector of the array, or ``None`` if the array has no such sector.
    ///
    /// Raises ``InputError`` if ``sector`` is negative or at least 2**64.
    fn locate(&self, sector: Whole<u64>) -> PyResult<Option<ArrayLocation>> {
        guarded(|| {
            let sector = Lbn(sector.named("sector")?);
            Ok(self.array.locate(sector).map(|location| {
                let chunk = location.stripe.data(location.chunk);
                debug_assert!(matches!(chunk.holds, ChunkContents::Data(_)));
                ArrayLocation {
                    member: chunk.member,
                    lbn: chunk.lbn.0 + location.offset.0,
                    stripe: location.stripe.number(),
                    parity_member: location.stripe.parity_member(),
                }
            }))
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "<RaidArray {} of {} members, {} sectors in {} stripes>",
            self.level(),
            self.maps.len(),
            self.capacity(),
            self.stripes()
        )
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<NewArguments<'py, (&'static str, Vec<TrackMap>)>> {
        let shape = self.array.shape();
        let keywords = PyDict::new(py);
        match shape.chunks {
            ChunkRule::Fixed(sectors) => keywords.set_item("chunks", sectors.0)?,
            rule => keywords.set_item("chunks", rule.name())?,
        }
        keywords.set_item("granule", shape.granule)?;
        keywords.set_item("spares", shape.spares)?;
        Ok(((self.level(), self.maps.clone()), keywords))
    }
}

impl RaidArray {
    fn map(&self, tracks: traxtent_map::TrackMap) -> TrackMap {
        let first = self.maps.first();
        let bytes = first.map_or(512, |map| map.file.identity.logical_bytes);
        let identity = Identity {
            capacity: Sectors(tracks.end().0),
            logical_bytes: bytes,
            physical_bytes: bytes,
            ..Identity::default()
        };
        TrackMap::new(MapFile::new(identity, MapSource::List, tracks))
    }
}
