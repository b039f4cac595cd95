//! Pictures of maps.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use traxtent_map::TrackMap;
use traxtent_model::geometry::{Geometry, Track};
use traxtent_plot::{Bar, Tracks, TracksPanel};
use traxtent_units::Lbn;

use super::Subject;
use crate::failure::{Failure, Result};
use crate::plot;

/// The maximum number of tracks that are drawn individually.
const SINGLE_TRACKS_MAX: usize = 600;

/// The minimum and maximum number of tracks in the enlarged part of a longer range.
const ENLARGED_TRACKS: RangeInclusive<u64> = 200..=100_000;

/// The number of runs of tracks on one surface that the enlarged part shows, within the bounds of
/// [`ENLARGED_TRACKS`].
const SURFACE_RUNS: usize = 4;

/// The maximum number of columns in a panel with more tracks than [`SINGLE_TRACKS_MAX`].
const COLUMNS_MAX: u64 = 450;

/// The maximum number of different values that a column shows individually. More values are shown
/// as a bar from the lowest to the highest.
const VALUES_MAX: usize = 4;

/// The maximum number of surfaces that are distinguished by colours.
const COLOURED_SURFACES_MAX: u16 = 3;

/// Draws cylinders and surfaces if they are known (paper Q, Figure 2), otherwise the sizes of
/// tracks. If they are known but the range has many tracks, draws the sizes of all tracks, and the
/// cylinders and surfaces of the first ones.
pub(super) fn draw(subject: &Subject, lbns: Option<Range<Lbn>>, path: &Path) -> Result<()> {
    let all = match subject {
        Subject::Drive(drive) => 0..drive.geometry.capacity().0,
        Subject::Map(_, file) => file.tracks.first().0..file.tracks.end().0,
    };
    let wanted = lbns.map_or(all.clone(), |lbns| lbns.start.0..lbns.end.0);
    let range = wanted.start.max(all.start)..wanted.end.min(all.end);
    if range.is_empty() {
        return Err(Failure::input(format!(
            "--lbn-range {}..{}: {} has LBNs {} to {}",
            wanted.start,
            wanted.end,
            subject.name(),
            all.start,
            all.end - 1
        )));
    }
    let panels = match subject {
        Subject::Drive(drive) => places(&drive.geometry, &range),
        Subject::Map(_, file) => sizes(&file.tracks, &range),
    };
    let title = match subject {
        Subject::Drive(drive) => format!("{}: the positions of its LBNs", drive.name),
        Subject::Map(name, _) => format!("{name}: the sizes of its tracks"),
    };
    plot::write(path, &Tracks { title, panels })
}

/// Draws the sizes of the tracks that a probe has found.
pub(crate) fn draw_tracks(name: &str, tracks: &TrackMap, path: &Path) -> Result<()> {
    let range = tracks.first().0..tracks.end().0;
    plot::write(
        path,
        &Tracks {
            title: format!("{name}: the sizes of its tracks, as probed"),
            panels: sizes(tracks, &range),
        },
    )
}

/// Returns panels with the cylinder and the surface of each track. If there are many tracks,
/// returns panels with the sizes of all, and the cylinders and surfaces of the first ones.
fn places(geometry: &Geometry, range: &Range<u64>) -> Vec<TracksPanel> {
    let first = geometry.track_of(Lbn(range.start));
    let first = first.map_or(0, |track| track.index);
    let end = |index| geometry.track(index).map(|track| track.end_lbn().0);
    if end(first + SINGLE_TRACKS_MAX as u64 - 1).is_none_or(|end| end >= range.end) {
        return places_of_each(geometry, range);
    }
    let mut all = Panel::new(range);
    for track in tracks_of(geometry, range) {
        let lbns = track.first_lbn.0..track.end_lbn().0;
        all.add(&lbns, lbns.end - lbns.start, 0);
    }
    let mut all = all.done("sectors on the track");
    all.from_zero = true;
    let count = enlarged_tracks(geometry, range);
    let enlarged = range.start..end(first + count - 1).unwrap_or(range.end).min(range.end);
    let mut panels = places_of_each(geometry, &enlarged);
    panels[0].heading = Some(format!(
        "Enlarged: the first {count} tracks, LBNs {} to {}",
        enlarged.start,
        enlarged.end - 1
    ));
    panels.insert(0, all);
    panels
}

/// Returns the number of tracks to enlarge, so that the order of surfaces is visible.
fn enlarged_tracks(geometry: &Geometry, range: &Range<u64>) -> u64 {
    let mut changes = 0;
    let mut before = None;
    let more = |track: &Track| {
        changes += usize::from(before.is_some_and(|before| before != track.surface));
        before = Some(track.surface);
        changes < SURFACE_RUNS
    };
    let count = tracks_of(geometry, range).take_while(more).count() as u64;
    count.clamp(*ENLARGED_TRACKS.start(), *ENLARGED_TRACKS.end())
}

/// Returns the tracks in a range. Walking past those before it is faster than looking each one up.
fn tracks_of<'a>(
    geometry: &'a Geometry,
    range: &Range<u64>,
) -> impl Iterator<Item = Track> + use<'a> {
    let Range { start, end } = *range;
    geometry
        .tracks()
        .skip_while(move |track| track.end_lbn().0 <= start)
        .take_while(move |track| track.first_lbn.0 < end)
}

/// Returns panels with the cylinder and the surface of each track.
fn places_of_each(geometry: &Geometry, range: &Range<u64>) -> Vec<TracksPanel> {
    let surfaces = geometry.surfaces();
    let coloured = (2..=COLOURED_SURFACES_MAX).contains(&surfaces);
    let mut cylinders = Panel::new(range);
    let mut heads = Panel::new(range);
    for track in tracks_of(geometry, range) {
        let lbns = track.first_lbn.0..track.end_lbn().0;
        let surface = track.surface.0;
        let colour = if coloured { surface.into() } else { 0 };
        cylinders.add(&lbns, u64::from(track.cylinder.0), colour);
        heads.add(&lbns, u64::from(surface), colour);
    }
    let mut cylinders = cylinders.done("cylinder");
    let drawn_in_colour = cylinders.bars.iter().any(|bar| bar.colour > 0);
    if drawn_in_colour {
        cylinders.legend = (0..surfaces).map(|k| format!("surface {k}")).collect();
    }
    vec![cylinders, heads.done("surface")]
}

/// Returns a panel with the size of each track.
fn sizes(map: &TrackMap, range: &Range<u64>) -> Vec<TracksPanel> {
    let first = map
        .track_of(Lbn(range.start))
        .map_or(0, |track| track.index);
    let tracks = (first..map.len())
        .map_while(|index| map.track(index))
        .take_while(|track| track.first_lbn.0 < range.end);
    let mut sizes = Panel::new(range);
    for track in tracks {
        sizes.add(&(track.first_lbn.0..track.end().0), track.sectors.0, 0);
    }
    vec![sizes.done("sectors on the track")]
}

/// A panel that is being built. It holds both the individual tracks and the columns that replace
/// them if there are too many.
struct Panel {
    range: Range<u64>,
    single: Vec<Bar>,
    columns: Columns,
}

impl Panel {
    fn new(range: &Range<u64>) -> Panel {
        Panel {
            range: range.clone(),
            single: Vec::new(),
            columns: Columns::new(range),
        }
    }

    fn add(&mut self, lbns: &Range<u64>, value: u64, colour: usize) {
        let lbns = lbns.start.max(self.range.start)..lbns.end.min(self.range.end);
        if self.single.len() <= SINGLE_TRACKS_MAX {
            self.single.push(Bar {
                lbns: (lbns.start as f64, lbns.end as f64),
                values: (value as f64, value as f64),
                colour,
            });
        }
        self.columns.add(&lbns, value);
    }

    fn done(self, title: &'static str) -> TracksPanel {
        let few = self.single.len() <= SINGLE_TRACKS_MAX;
        TracksPanel {
            title,
            heading: None,
            lbns: self.range.start as f64..self.range.end as f64,
            from_zero: false,
            legend: Vec::new(),
            bars: if few {
                self.single
            } else {
                joined(self.columns.bars())
            },
        }
    }
}

/// Joins adjacent bars of the same value.
fn joined(bars: Vec<Bar>) -> Vec<Bar> {
    let mut kept: Vec<Bar> = Vec::new();
    for bar in bars {
        let touches = |one: &&mut Bar| one.lbns.1 >= bar.lbns.0;
        let mut last = kept.iter_mut().rev().take(2 * VALUES_MAX);
        match last.find(|one| one.values == bar.values).filter(touches) {
            Some(before) => before.lbns.1 = bar.lbns.1,
            None => kept.push(bar),
        }
    }
    kept
}

/// The values in each part of a range.
struct Columns {
    start: u64,
    width: u64,
    values: Vec<Column>,
    /// The first column, the last column and the value of the track that was added last.
    last: (usize, usize, u64),
}

#[derive(Clone, Default)]
struct Column {
    values: BTreeSet<u64>,
    /// Whether there were more values than are kept.
    many: bool,
}

impl Columns {
    fn new(range: &Range<u64>) -> Columns {
        let length = range.end - range.start;
        let width = length.div_ceil(COLUMNS_MAX).max(1);
        Columns {
            start: range.start,
            width,
            values: vec![Column::default(); length.div_ceil(width) as usize],
            last: (usize::MAX, usize::MAX, 0),
        }
    }

    fn add(&mut self, lbns: &Range<u64>, value: u64) {
        let column = |lbn: u64| ((lbn - self.start) / self.width) as usize;
        let at = (column(lbns.start), column(lbns.end - 1), value);
        if std::mem::replace(&mut self.last, at) == at {
            return;
        }
        for column in &mut self.values[column(lbns.start)..=column(lbns.end - 1)] {
            column.values.insert(value);
            if column.values.len() > VALUES_MAX {
                column.many = true;
                // Values between the lowest and the highest no longer matter.
                let between = column.values.iter().copied().nth(VALUES_MAX / 2);
                between.map(|value| column.values.remove(&value));
            }
        }
    }

    fn bars(self) -> Vec<Bar> {
        let (start, width) = (self.start, self.width);
        let columns = self.values.into_iter().zip(0..);
        columns
            .flat_map(|(column, k)| {
                let left = (start + width * k) as f64;
                let bar = |low: u64, high: u64| Bar {
                    lbns: (left, left + width as f64),
                    values: (low as f64, high as f64),
                    colour: 0,
                };
                match (column.many, column.values.first(), column.values.last()) {
                    (true, Some(&low), Some(&high)) => vec![bar(low, high)],
                    _ => column
                        .values
                        .iter()
                        .map(|&value| bar(value, value))
                        .collect(),
                }
            })
            .collect()
    }
}
