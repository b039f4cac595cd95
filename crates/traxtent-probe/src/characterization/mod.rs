//! Characterization: measuring the properties that a drive's profile needs, except its track
//! boundaries, by timing requests and, if the drive supports them, by translations.
//!
//! [`characterize`] takes a [`Target`] and its [`TrackMap`]. It measures the rotational speed, the
//! physical sectors, the position and angle of each track, the seek curve, the head switch,
//! overheads, bus, cache and firmware behaviour. If writes are allowed, it also measures their
//! figures. Every figure has a confidence interval and a description of its measurement.
//! [`Characterization::to_profile`] converts the figures to a fitted profile, and [`fit()`]
//! measures how close the profile is to the drive.
//!
//! The methods are those of Worthington, Ganger, Patt, Wilkes, "On-line extraction of SCSI disk
//! drive parameters" (SIGMETRICS 1995), for the minimum time between completions and for caches; H.
//! Wong, "Discovering Hard Disk Physical Geometry through Microbenchmarking" (2019), for angles;
//! and paper Q, Figure 4, for reads in reverse order.
//!
//! Not measured: a drive's queue and its order of service, because a probe sends one request at a
//! time.

mod angles;
mod buffer;
mod crossing;
mod firmware;
mod fit;
mod fitted_profile;
mod layout;
mod measurement;
mod min_time;
mod order;
mod physical;
mod reporter;
mod sector_grouping;
mod seek;
mod stopwatch;
mod timed;
mod writes;

use std::collections::BTreeMap;

pub use fit::{Fit, Residual, fit, residuals};
pub use measurement::Measurement;
pub use order::{LayoutConfidence, LayoutOrder};
pub use reporter::CharacterizeProgress;

use angles::Angles;
use buffer::Buffer;
use layout::{TrackLayout, TrackPosition};
use measurement::Estimate;
use physical::Physical;
use reporter::Reporter;
use seek::KnownDrive;
use stopwatch::Stopwatch;
use writes::{ReadFigures, Writes};

use super::{Identity, ProbeError, Target, TargetError};
use traxtent_map::{MappedTrack, TrackMap};
use traxtent_model::profile::WriteBack;
use traxtent_units::{Lbn, Sectors};

/// Options of a characterization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CharacterizeOptions {
    /// Whether writes are allowed. Figures of writes require them, and overwritten data is lost.
    pub destructive: bool,
    /// The seed of all random choices, such as those of tracks and pauses.
    pub seed: u64,
}

/// The characterization of a drive.
#[derive(Clone, Debug)]
pub struct Characterization {
    identity: Identity,
    figures: Vec<Measurement>,
    /// The number of sectors of each track.
    sectors: Vec<u32>,
    layout: TrackLayout,
    angles: Angles,
    order: LayoutOrder,
    revolution: Estimate,
    overhead: f64,
    head_switch: f64,
    seek: Vec<(u32, Estimate)>,
    zero_latency: bool,
    buffer: Buffer,
    writes: Writes,
    physical: Physical,
    notes: Vec<String>,
    /// The number of requests sent.
    pub requests: u64,
    /// The number of translations made.
    pub translations: u64,
    /// The drive time taken, in milliseconds.
    pub drive_ms: f64,
}

/// The sections and dotted keys of a profile for which a fitted profile states the provenance.
const PROFILE_PATHS: &[&str] = &[
    "sector",
    "overheads",
    "access",
    "queue",
    "cache",
    "bus",
    "mechanics",
    "geometry",
    "mechanics.rpm",
    "mechanics.head_switch_ms",
    "mechanics.seek",
    "overheads.read_miss_after_read_ms",
    "overheads.read_hit_after_read_ms",
    "overheads.read_completion_ms",
    "bus.read_sector_ms",
    "bus.write_sector_ms",
    "cache.write_back",
    "cache.write_segments",
    "cache.write_watermark",
    "mechanics.write_settle_ms",
    "mechanics.seek.write",
    "overheads.write_miss_after_read_ms",
    "overheads.write_miss_after_write_ms",
    "overheads.read_miss_after_write_ms",
    "overheads.write_hit_after_read_ms",
    "overheads.write_hit_after_write_ms",
    "access.zero_latency_write",
    "sector.physical_bytes",
    "bus.delivery",
    "cache.segments",
    "cache.segment_sectors",
    "cache.read_ahead",
    "cache.read_watermark",
    "access.read_on_arrival",
    "access.zero_latency_read",
];

impl Characterization {
    /// The order in which LBNs are assigned to the tracks.
    pub fn layout_order(&self) -> LayoutOrder {
        self.order
    }

    /// Returns whether reads begin wherever the head arrives on the track.
    pub fn zero_latency(&self) -> bool {
        self.zero_latency
    }

    /// Revolutions per minute.
    pub fn rpm(&self) -> f64 {
        60_000.0 / self.revolution.value
    }

    /// The number of surfaces.
    pub fn surfaces(&self) -> u16 {
        self.layout.surfaces
    }

    /// Bytes per physical sector: as measured, or as the drive reports if its times are not
    /// conclusive. The figure `sector.physical_bytes` holds the range of possible sizes.
    pub fn physical_bytes(&self) -> u32 {
        self.physical.bytes()
    }

    /// The lowest LBN that begins a physical sector, or 0 if it was not measured.
    pub fn lowest_aligned_lbn(&self) -> u32 {
        self.physical.grouping().first
    }

    /// The figures, in the order of measurement.
    pub fn figures(&self) -> &[Measurement] {
        &self.figures
    }

    /// The seek curve: distance in cylinders, time in milliseconds, and half the width of its 95 %
    /// interval.
    pub fn seek_curve(&self) -> impl ExactSizeIterator<Item = (u32, f64, f64)> {
        self.seek
            .iter()
            .map(|(distance, time)| (*distance, time.value, time.half_width))
    }

    /// Notes for the reader in addition to the figures, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The number of revolutions of a read of a whole track below which the drive has zero-latency
/// access. Such a read takes about 1.0 with it, and about 1.5 without.
const ZERO_LATENCY_TURNS_MAX: f64 = 1.25;

/// The number of evenly spaced tracks at which the layout is always tested.
const EVEN_TEST_POINTS: usize = 128;
/// The smallest number of tracks that makes a size usual. Tracks of rarer sizes have defects.
const USUAL_TRACKS_MIN: usize = 8;

/// Measures the properties of a drive.
///
/// # Errors
/// Returns an error if the drive is gone, or if it refuses or fails a request that the measurement
/// needs. The drive must support VERIFY or READ with force unit access. Also returns an error if
/// its times are not those of a rotating disk, or if its skews do not result in a valid layout.
pub fn characterize(
    target: &mut dyn Target,
    map: &TrackMap,
    options: CharacterizeOptions,
    progress: &mut dyn FnMut(CharacterizeProgress),
) -> Result<Characterization, ProbeError> {
    let identity = target.identity().clone();
    let began = target.now();
    let tracks: Vec<MappedTrack> = map.tracks().collect();
    let mut watch = Stopwatch::new(target, options.seed);
    let mut reporter = Reporter::new(progress);

    reporter.stage("speed");
    watch.start(tracks[0].first_lbn + Sectors(tracks[0].sectors.0 / 2))?;

    reporter.stage("physical sectors");
    let claims = (identity.logical_bytes, identity.physical_bytes);
    let mut physical = Physical::by_reads(&mut watch, &tracks, claims)?;
    watch.grouping = physical.read_grouping();

    reporter.stage("layout");
    let (layout, confidence) = layout(&mut watch, &tracks, &mut reporter.notes)?;

    reporter.stage("angles");
    let angles = angles::angles(&mut watch, map, &layout, &mut |done| {
        reporter.progress("angles", done);
    })?;
    reporter.figures.extend(angles::figures(&angles, &layout));
    let known = KnownDrive {
        map,
        tracks: &tracks,
        layout: &layout,
        angles: &angles,
        grouping: watch.grouping,
    };

    let movement = Movement::measure(&mut watch, &known, &mut reporter)?;

    reporter.stage("bus and cache");
    let (overhead, zero_latency) = (movement.overhead.value, movement.zero_latency);
    let mut buffer = buffer::buffer(&mut watch, &known, overhead, zero_latency, &mut reporter)?;

    let mut writes = Writes::default();
    if options.destructive {
        reporter.stage("writes");
        physical.by_writes(&mut watch, &known)?;
        let reads = movement.read_figures(&physical, &buffer);
        writes = writes::writes(&mut watch, &known, reads, &mut reporter.figures)?;
        buffer.apply(&writes);
    } else {
        reporter.notes.push(
            "Writes were not timed. Assumed: no write settle time, no write-back, and the overheads and bus times of reads."
                .to_owned(),
        );
    }

    reporter.figures.push(physical.figure());
    reporter.notes.extend(physical.notes());

    watch.read_reference()?;
    let revolution = watch.revolution();
    reporter.figures.push(speed(revolution));
    reporter
        .notes
        .push(format!("The media were read by {}.", watch.method()));

    reporter.stage("firmware behaviour");
    let mut measured = Characterization {
        drive_ms: 0.0,
        physical,
        identity,
        figures: reporter.figures,
        sectors: tracks.iter().map(|track| track.sectors.0 as u32).collect(),
        angles,
        order: order::classify(&layout, confidence),
        layout,
        revolution,
        overhead: movement.overhead.or_zero().max(0.0),
        head_switch: movement.head_switch_ms,
        seek: movement.seek,
        zero_latency,
        buffer,
        writes,
        notes: reporter.notes,
        requests: 0,
        translations: watch.translations,
    };
    firmware::firmware(&mut watch, &mut measured, map.end())?;
    if options.destructive {
        firmware::write_watermark(&mut watch, &mut measured, map.end())?;
    }
    measured.requests = watch.requests;
    measured.drive_ms = watch.now() - began.as_ms();
    Ok(measured)
}

/// Determines the layout: by translation, or by timing if the drive does not translate.
fn layout(
    watch: &mut Stopwatch<'_>,
    tracks: &[MappedTrack],
    notes: &mut Vec<String>,
) -> Result<(TrackLayout, LayoutConfidence), ProbeError> {
    match by_translation(watch, tracks) {
        Err(ProbeError::Target(TargetError::Unsupported(_))) => {
            let layout = timed::layout(watch, tracks, notes)?;
            Ok((layout, LayoutConfidence::Timed))
        }
        layout => Ok((layout?, LayoutConfidence::Translated)),
    }
}

/// The overhead, zero-latency access, and the times of the arm and the heads, as measured by reads.
struct Movement {
    overhead: Estimate,
    zero_latency: bool,
    /// The time of a head switch, shortened if necessary so that the track crossings that lost no
    /// revolution on the drive lose none in the fitted profile.
    head_switch_ms: f64,
    /// The seek curve. Its point for one cylinder is shortened in the same way.
    seek: Vec<(u32, Estimate)>,
}

impl Movement {
    fn measure(
        watch: &mut Stopwatch<'_>,
        known: &KnownDrive<'_>,
        reporter: &mut Reporter<'_>,
    ) -> Result<Movement, ProbeError> {
        reporter.stage("overhead");
        let overhead = seek::overhead(watch, known)?;
        reporter.figures.push(Measurement::around(
            "overheads.read_miss_after_read_ms",
            overhead,
            "ms",
            "the minimum time between completions on one sector",
        ));
        let turns = seek::turns_of_a_track(watch, known, overhead.value)?;
        let zero_latency = turns.value < ZERO_LATENCY_TURNS_MAX;
        reporter.figures.push(Measurement::around(
            "access.zero_latency_read",
            turns,
            "revolutions",
            "reads of whole tracks from random angles: about 1.0 with zero-latency access, about 1.5 without",
        ));

        reporter.stage("head switch");
        let head_switch = seek::head_switch(watch, known, overhead)?;
        reporter.figures.extend(head_switch.map(|head_switch| {
            Measurement::around(
                "mechanics.head_switch_ms",
                head_switch,
                "ms",
                "the minimum time between completions on two surfaces of a cylinder",
            )
        }));

        reporter.stage("seeks");
        let mut seek = seek::curve(watch, known, overhead.value, zero_latency, &mut |done| {
            reporter.progress("seeks", done);
        })?;
        if !seek.is_empty() {
            let average = seek::average(&seek, known.layout.cylinders, zero_latency);
            reporter.figures.push(average);
        }

        reporter.stage("crossings");
        let media = watch.media;
        let crossings = crossing::crossings(watch, known, media, 1)?;
        let (switch_most, step_most) = crossing::bounds(&crossings);
        if let Some((1, step)) = seek.first_mut() {
            step.value = step.value.min(step_most);
        }
        Ok(Movement {
            overhead,
            zero_latency,
            head_switch_ms: head_switch
                .map_or(0.0, |switch| switch.value.max(0.0))
                .min(switch_most),
            seek,
        })
    }

    /// Returns the figures with which those of writes are compared.
    fn read_figures(&self, physical: &Physical, buffer: &Buffer) -> ReadFigures<'_> {
        ReadFigures {
            overhead_ms: self.overhead.value,
            head_switch_ms: self.head_switch_ms,
            sector_ms: buffer.sector_ms,
            segments: buffer.cache.segments,
            grouping: physical.grouping(),
            seek: &self.seek,
        }
    }
}

impl Buffer {
    /// Applies the measured use of the buffer by writes.
    fn apply(&mut self, writes: &Writes) {
        if writes.write_back {
            self.cache.write_back = WriteBack::Full;
            self.cache.writes_while_busy = writes.write_segments > 1;
            self.cache.write_segments = writes.write_segments.clamp(1, self.cache.segments);
        }
    }
}

/// The rotational speed as a figure.
fn speed(revolution: Estimate) -> Measurement {
    let rpm = |ms: f64| 60_000.0 / ms;
    Measurement {
        name: "mechanics.rpm".to_owned(),
        value: rpm(revolution.value),
        low: rpm(revolution.value + revolution.half_width),
        high: rpm(revolution.value - revolution.half_width),
        unit: "rpm",
        how: "one sector reread throughout the probe",
        samples: revolution.samples,
    }
}

/// Returns the layout according to the drive's translations.
fn by_translation(
    watch: &mut Stopwatch<'_>,
    tracks: &[MappedTrack],
) -> Result<TrackLayout, ProbeError> {
    let mut known: BTreeMap<usize, TrackPosition> = BTreeMap::new();
    layout::learn(tracks.len(), &test_points(tracks), &mut |index| {
        if let Some(spot) = known.get(&index) {
            return Ok(*spot);
        }
        let MappedTrack {
            first_lbn, sectors, ..
        } = tracks[index];
        let place = watch.translate(Lbn(first_lbn.0 + sectors.0 / 2))?;
        let spot = TrackPosition {
            cylinder: place.cylinder.0 as i32,
            surface: place.surface.0.into(),
        };
        known.insert(index, spot);
        Ok::<TrackPosition, ProbeError>(spot)
    })
}

/// Returns the tracks at which the layout is always tested: some at even distances, and, for each
/// usual size, some near its first and last tracks, where zones begin and end, and one midway.
fn test_points(tracks: &[MappedTrack]) -> Vec<usize> {
    let mut sizes: BTreeMap<u64, (usize, usize, usize)> = BTreeMap::new();
    for track in tracks {
        let size = sizes
            .entry(track.sectors.0)
            .or_insert((0, track.index, track.index));
        *size = (size.0 + 1, size.1, track.index);
    }
    let even = (0..EVEN_TEST_POINTS).map(|part| part * tracks.len() / EVEN_TEST_POINTS);
    let usual = sizes
        .values()
        .filter(|size| size.0 >= USUAL_TRACKS_MIN)
        .flat_map(|&(_, first, last)| {
            [
                first,
                first + 2,
                (first + last) / 2,
                last.saturating_sub(2),
                last + 1,
                last + 3,
            ]
        });
    let mut test_points: Vec<usize> = even
        .chain(usual)
        .filter(|&track| track < tracks.len())
        .collect();
    test_points.sort_unstable();
    test_points.dedup();
    test_points
}
