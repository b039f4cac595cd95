//! Probes of simulated drives.

use std::ops::ControlFlow;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyAny;
use traxtent_map::{
    Algorithm, Found, MapBuilder, MapFile, MapSource, ProbeCost, Region, Verify, lbn_ranges,
};
use traxtent_probe::{
    ObservedTarget, RequestCounts, Target as _, TargetError, TargetObserver, TargetOperation,
    extract,
};
use traxtent_run::{NamedDrive, Observer as _, RunError};
use traxtent_sim::{Noise, SimTarget};
use traxtent_units::{Lbn, Sectors, Span};

use crate::drive::Drive;
use crate::errors::{guarded, input_error};
use crate::observer::PythonObserver;
use crate::track_map::TrackMap;
use crate::values::{Whole, optional};

/// The tracks that a probe has found, and the cost of the search.
///
/// ``map`` is the ``TrackMap``, ``algorithm`` the name of the algorithm. ``seconds`` is the time on
/// the drive's clock, which the search would take on the real drive. ``reads`` and ``translations``
/// count requests. ``doubtful`` counts boundaries that may be wrong, and ``notes`` are remarks for
/// the reader.
#[pyclass(frozen, get_all, module = "traxtent")]
pub(crate) struct ProbeResult {
    map: TrackMap,
    algorithm: String,
    seconds: f64,
    reads: u64,
    translations: u64,
    doubtful: u64,
    notes: Vec<String>,
}

#[pymethods]
impl ProbeResult {
    #[new]
    fn new(
        map: &TrackMap,
        algorithm: String,
        seconds: f64,
        reads: Whole<u64>,
        translations: Whole<u64>,
        doubtful: Whole<u64>,
        notes: Vec<String>,
    ) -> PyResult<ProbeResult> {
        Ok(ProbeResult {
            map: map.clone(),
            algorithm,
            seconds,
            reads: reads.named("reads")?,
            translations: translations.named("translations")?,
            doubtful: doubtful.named("doubtful")?,
            notes,
        })
    }

    fn __getnewargs__(&self) -> (TrackMap, String, f64, u64, u64, u64, Vec<String>) {
        (
            self.map.clone(),
            self.algorithm.clone(),
            self.seconds,
            self.reads,
            self.translations,
            self.doubtful,
            self.notes.clone(),
        )
    }

    fn __repr__(&self) -> String {
        format!(
            "<ProbeResult by {}: {} tracks in {:.1} s of the drive's time>",
            self.algorithm,
            self.map.file.tracks.len(),
            self.seconds
        )
    }
}

/// Counts the operations of a probe, and asks Python whether to stop.
struct Watch<'a> {
    counts: RequestCounts,
    stopped: bool,
    observer: &'a PythonObserver,
}

/// The number of operations between two calls of the observer.
const OPERATIONS_OBSERVED: u64 = 256;

impl TargetObserver for Watch<'_> {
    fn before(&mut self, operation: TargetOperation) -> Result<(), TargetError> {
        self.counts.before(operation)?;
        let all = self.counts.requests + self.counts.translations;
        if all.is_multiple_of(OPERATIONS_OBSERVED) {
            self.observer.add(OPERATIONS_OBSERVED);
            self.stopped |= self.observer.stop();
        }
        match self.stopped {
            true => Err(TargetError::Gone("the probe was stopped".to_owned())),
            false => Ok(()),
        }
    }
}

/// The choices of a probe.
struct Choices {
    algorithm: Option<Algorithm>,
    verify: Verify,
    region: Option<(u64, u64)>,
    noise: Option<u64>,
}

/// Finds the tracks of a simulated drive by requests alone, as ``traxtent probe`` does.
///
/// ``algorithm`` is ``tree``, ``angle``, ``scan``, ``walk``, ``jump`` or ``dixtrac``; by default,
/// ``tree``. On a drive that does not translate addresses, ``angle`` replaces an algorithm that
/// needs translations. ``verify`` selects the predicted boundaries that are tested: ``none``,
/// ``sample`` or ``full``. ``region`` is a pair of LBNs; the second is the first LBN after the
/// region. ``noise`` is the seed of noise in the measured times, if any.
///
/// Raises ``InputError`` for a drive that does not rotate. Ctrl-C ends the search.
///
/// Source: Schindler et al., FAST 2002, section 4.1.
#[pyfunction]
#[pyo3(signature = (drive, algorithm=None, *, verify="sample", region=None, noise=None, progress=None))]
pub(crate) fn probe(
    py: Python<'_>,
    drive: &Bound<'_, PyAny>,
    algorithm: Option<&str>,
    verify: &str,
    region: Option<(Whole<u64>, Whole<u64>)>,
    noise: Option<Whole<u64>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ProbeResult> {
    guarded(|| {
        let drive = Drive::of_argument(drive)?;
        let only = drive.only()?;
        if only.profile.mechanics.is_none() {
            let what = "not a rotating disk: its profile has no mechanics";
            return Err(input_error(format!("{}: {what}", only.name)));
        }
        let choices = Choices {
            algorithm: algorithm.map(algorithm_named).transpose()?,
            verify: verify_named(verify)?,
            region: region
                .map(|(first, end)| Ok::<_, PyErr>((first.named("region")?, end.named("region")?)))
                .transpose()?,
            noise: optional("noise", noise)?,
        };
        let observer = PythonObserver::new(progress, None);
        let found = py.detach(|| search(only, &choices, &observer));
        observer.finish(py, found)
    })
}

fn algorithm_named(name: &str) -> PyResult<Algorithm> {
    Algorithm::by_name(name).ok_or_else(|| {
        let names = Algorithm::ALL.map(Algorithm::name).join(", ");
        input_error(format!("algorithm: {name:?}: expected one of {names}"))
    })
}

fn verify_named(name: &str) -> PyResult<Verify> {
    let mut all = Verify::ALL.into_iter();
    all.find(|verify| verify.name() == name).ok_or_else(|| {
        let names = Verify::ALL.map(Verify::name).join(", ");
        input_error(format!("verify: {name:?}: expected one of {names}"))
    })
}

/// Returns the region to search.
fn region_of(choices: &Choices, drive: &NamedDrive) -> Result<Region, RunError> {
    let whole = Region::whole(drive.geometry.capacity());
    let Some((first, end)) = choices.region else {
        return Ok(whole);
    };
    if first >= end || Lbn(end) > whole.end {
        return Err(RunError::at(
            format!("region: ({first}, {end})"),
            format!("expected two ascending LBNs up to {}", whole.end),
        ));
    }
    Ok(Region {
        first: Lbn(first),
        end: Lbn(end),
        aligned: first == 0,
    })
}

fn search(
    drive: &NamedDrive,
    choices: &Choices,
    observer: &PythonObserver,
) -> Result<ProbeResult, RunError> {
    let region = region_of(choices, drive)?;
    let mut target = SimTarget::new(Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
    if let Some(seed) = choices.noise {
        target = target.with_noise(Noise::TYPICAL, seed);
    }
    let identity = target.identity().clone();
    let watch = Watch {
        counts: RequestCounts::default(),
        stopped: false,
        observer,
    };
    let mut target = ObservedTarget::new(target, watch);
    let translates = target.translate(Lbn(0)).is_ok();
    let usual = match translates {
        true => Algorithm::Tree,
        false => Algorithm::Angle,
    };
    let algorithm = choices
        .algorithm
        .filter(|wanted| translates || !wanted.translates());
    let algorithm = algorithm.unwrap_or(usual);
    let mut tracks = MapBuilder::default();
    let mut refused = None;
    let mut sink = |found: Found| {
        // Timing does not measure beyond the region, so it cannot determine whether a track ends
        // with the region.
        let end = found.first_lbn + Sectors(u64::from(found.sectors));
        if !algorithm.translates() && end == region.end && end.0 < identity.capacity.0 {
            return ControlFlow::Continue(());
        }
        match tracks.push(found) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let found = extract(algorithm, &mut target, region, choices.verify, &mut sink);
    if target.observer.stopped {
        return Err(RunError::Stopped);
    }
    if let Some(error) = refused {
        return Err(RunError::at(&drive.name, error));
    }
    let found = found.map_err(|error| RunError::at(&drive.name, error))?;
    let (tracks, confidence) = tracks
        .finish()
        .ok_or_else(|| RunError::at(&drive.name, "no track begins in the region"))?;
    let counts = target.observer.counts;
    let cost = ProbeCost {
        reads: counts.requests,
        translations: counts.translations,
        drive_time: Span(target.now().0),
    };
    let doubtful = found.doubtful();
    let file = MapFile {
        method: MapSource::Probe(algorithm, choices.verify),
        complete: true,
        region: choices.region.map(|_| region),
        cost,
        tracks,
        confidence,
        unreadable: lbn_ranges(found.unreadable),
        remapped: lbn_ranges(found.remapped),
        notes: found.notes.clone(),
        identity,
    };
    Ok(ProbeResult {
        map: TrackMap::new(file),
        algorithm: algorithm.name().to_owned(),
        seconds: cost.drive_time.as_ms() / 1e3,
        reads: cost.reads,
        translations: cost.translations,
        doubtful,
        notes: found.notes,
    })
}
