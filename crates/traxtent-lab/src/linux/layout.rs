//! The layout of a serpentine drive by translation and by timing, and the differences between
//! drives of one model.

use std::collections::BTreeSet;

use traxtent_probe::{Algorithm, Found, Target, Verify};

use super::ONE_MODEL;
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};
use crate::search::Search;

/// The number of tracks in the figure: twice as many as Fig. 2 describes.
const SHOWN: usize = 256;

/// The paper's steps: drive time in minutes, and translations. Ours: drive times in minutes by
/// translation and by timing; the slower of them over the paper's; and the number of boundaries
/// that the three missed or invented in total.
pub(crate) fn mapping_time(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let search = |algorithm| Search::run(bench, algorithm, Verify::Sample);
    let jump = search(Algorithm::Jump)?;
    let (tree, angle) = (search(Algorithm::Tree)?, search(Algorithm::Angle)?);
    let wrong = |search: &Search| search.wrong_boundaries(&bench.geometry);
    let slower = tree.drive_time.max(angle.drive_time);
    Ok(vec![
        jump.minutes(),
        jump.counts.translations as f64,
        tree.minutes(),
        angle.minutes(),
        slower.as_ms() / jump.drive_time.as_ms(),
        (wrong(&jump) + wrong(&tree) + wrong(&angle)) as f64,
    ])
}

/// The place of a track: cylinder and surface.
type TrackPlace = (u32, u16);

/// Returns the place of the nth track in the serpentine of section 2.3: the first `width` tracks
/// run outward to cylinder 0 of the top surface, and as many run back inward on the bottom one. The
/// next `width` cylinders run outward on the bottom and inward on the top, and so on.
fn in_serpentine(n: u32, width: u32) -> TrackPlace {
    let (pass, step) = (n / width, n % width);
    let (cell, inward) = (pass / 2, pass % 2 == 1);
    let within = if inward { step } else { width - 1 - step };
    let surface = (cell % 2) ^ u32::from(inward);
    (cell * width + within, surface as u16)
}

/// A track that was found, with the place of its first LBN by translation.
struct Translated {
    first_lbn: u64,
    sectors: u32,
    place: TrackPlace,
}

/// The first `count` tracks of the drive.
fn translated(bench: &Bench, count: usize) -> Result<Vec<Translated>, LabError> {
    let tracks = Search::run(bench, Algorithm::Tree, Verify::None)?.tracks;
    translate(bench, &tracks[..tracks.len().min(count)])
}

fn translate(bench: &Bench, tracks: &[Found]) -> Result<Vec<Translated>, LabError> {
    let mut target = bench.target();
    let translated = tracks.iter().map(|track| {
        let place = target.translate(track.first_lbn)?;
        Ok(Translated {
            first_lbn: track.first_lbn.0,
            sectors: track.sectors,
            place: (place.cylinder.0, place.surface.0),
        })
    });
    translated.collect()
}

/// The number of tracks, in the first zone and on the drive, that are not at their place in the
/// serpentine; the width of the serpentine, which is the number of tracks before the surface
/// changes; and the cylinder of LBN 0.
pub(crate) fn serpentine(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let tracks = translated(bench, usize::MAX)?;
    let on_first_surface = |track: &&Translated| track.place.1 == tracks[0].place.1;
    let width = tracks.iter().take_while(on_first_surface).count() as u32;
    let astray: Vec<bool> = (0..)
        .zip(&tracks)
        .map(|(n, track)| in_serpentine(n, width) != track.place)
        .collect();
    let sizes = sizes_of_cylinder_0(&tracks);
    let zone = tracks
        .iter()
        .position(|track| !sizes.contains(&track.sectors));
    let count = |tracks: &[bool]| tracks.iter().filter(|astray| **astray).count() as f64;
    Ok(vec![
        count(&astray[..zone.unwrap_or(astray.len())]),
        count(&astray),
        f64::from(width),
        f64::from(tracks[0].place.0),
    ])
}

/// Draws track number against LBN.
pub(crate) fn figure(bench: &Bench) -> Result<Figure, LabError> {
    let tracks = translated(bench, SHOWN)?;
    let series = ["top surface", "bottom surface"].into_iter().zip(0..);
    let series = series.map(|(name, surface)| {
        let on = tracks.iter().filter(|track| track.place.1 == surface);
        Series {
            name: name.to_owned(),
            style: Style::Dots,
            points: on
                .map(|track| (track.first_lbn as f64 / 1000.0, f64::from(track.place.0)))
                .collect(),
        }
    });
    let panel = Panel {
        title: "Places of tracks, by translation of their first LBNs".to_owned(),
        x: "LBN, thousands".to_owned(),
        y: "track number on its surface (cylinder)".to_owned(),
        series: series.collect(),
        ..Panel::default()
    };
    Ok(Figure::of(panel))
}

/// Drives of one model: the number of different numberings, the boundaries missed or invented by
/// translation and by timing, and the sectors of each drive's outermost tracks, surface by surface.
pub(crate) fn numberings(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut found = Vec::new();
    let mut wrong = [0; 2];
    for name in ONE_MODEL {
        let bench = bench.with_drive(name)?;
        let tree = Search::run(&bench, Algorithm::Tree, Verify::None)?;
        let angle = Search::run(&bench, Algorithm::Angle, Verify::Full)?;
        wrong[0] += tree.wrong_boundaries(&bench.geometry);
        wrong[1] += angle.wrong_boundaries(&bench.geometry);
        found.push(outermost(&bench, &tree.tracks)?);
    }
    let different: BTreeSet<[u32; 2]> = found.iter().copied().collect();
    let mut values = vec![different.len() as f64, wrong[0] as f64, wrong[1] as f64];
    values.extend(found.into_iter().flatten().map(f64::from));
    Ok(values)
}

/// The number of tracks that are translated to find those of the outermost cylinder.
const FIRST_TRACKS: usize = 1024;

/// The sectors of the outermost track of each surface, from tracks found and translated.
pub(crate) fn outermost(bench: &Bench, tracks: &[Found]) -> Result<[u32; 2], LabError> {
    let first = &tracks[..tracks.len().min(FIRST_TRACKS)];
    Ok(sizes_of_cylinder_0(&translate(bench, first)?))
}

/// The sectors of the tracks of the outermost cylinder, by surface.
fn sizes_of_cylinder_0(tracks: &[Translated]) -> [u32; 2] {
    let mut sizes = [0; 2];
    for track in tracks.iter().filter(|track| track.place.0 == 0) {
        sizes[usize::from(track.place.1)] = track.sectors;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are the corners of the serpentine where the paper's description puts them?
    #[test]
    fn corners() {
        let (top, bottom) = (0, 1);
        for (n, place) in [
            (0, (31, top)),
            (31, (0, top)),
            (32, (0, bottom)),
            (63, (31, bottom)),
            (64, (63, bottom)),
            (95, (32, bottom)),
            (96, (32, top)),
            (127, (63, top)),
            (128, (95, top)),
        ] {
            assert_eq!(in_serpentine(n, 32), place, "track {n}");
        }
    }
}
