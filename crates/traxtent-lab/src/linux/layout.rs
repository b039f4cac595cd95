//! Q2 to Q4: the layout of a serpentine drive by translation and by timing, and how drives of one model differ.

use traxtent_core::probe::{Algorithm, Target, Verify};

use super::{MAIN_DRIVE, NUMBERINGS};
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};
use crate::search::Search;

/// Width of the serpentine in tracks.
const WIDTH: u32 = 32;

/// Tracks in the picture: what Fig. 2 describes, twice.
const SHOWN: usize = 8 * WIDTH as usize;

/// Q2: the paper's steps beside ours.
pub(super) fn seven_minutes(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let bench = bench.with_drive(MAIN_DRIVE)?;
    let search = |algorithm| Search::run(&bench, algorithm, Verify::Sample);
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

/// Where a track lies: cylinder and surface.
type Lies = (u32, u16);

/// The place of the nth track by the words of section 2.3: cylinder 31 of the top surface outward to 0, the bottom
/// surface from 0 inward to 31; then 63 outward to 32 on the bottom and 32 inward to 63 on the top; and so on.
fn by_the_paper(n: u32) -> Lies {
    let (pass, step) = (n / WIDTH, n % WIDTH);
    let (cell, inward) = (pass / 2, pass % 2 == 1);
    let within = if inward { step } else { WIDTH - 1 - step };
    let surface = (cell % 2) ^ u32::from(inward);
    (cell * WIDTH + within, surface as u16)
}

/// A track found, with the place of its first LBN by translation.
struct Translated {
    first_lbn: u64,
    sectors: u32,
    lies: Lies,
}

/// The first so many tracks of the drive.
fn translated(bench: &Bench, count: usize) -> Result<Vec<Translated>, LabError> {
    let tracks = Search::run(bench, Algorithm::Tree, Verify::None)?.tracks;
    let mut target = bench.target();
    let mut found = Vec::new();
    for track in tracks.iter().take(count) {
        let place = target.translate(track.first_lbn)?;
        found.push(Translated {
            first_lbn: track.first_lbn.0,
            sectors: track.sectors,
            lies: (place.cylinder.0, place.surface.0),
        });
    }
    Ok(found)
}

/// Q3: the tracks of the first zone, which has one size a surface, and all.
pub(super) fn serpentine(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let tracks = translated(&bench.with_drive(MAIN_DRIVE)?, usize::MAX)?;
    let (_, sizes) = NUMBERINGS[0];
    let astray: Vec<bool> = (0..)
        .zip(&tracks)
        .map(|(n, track)| by_the_paper(n) != track.lies)
        .collect();
    let zone = tracks
        .iter()
        .position(|track| !sizes.contains(&track.sectors));
    let count = |tracks: &[bool]| tracks.iter().filter(|astray| **astray).count() as f64;
    Ok(vec![
        count(&astray[..zone.unwrap_or(astray.len())]),
        count(&astray),
    ])
}

/// Track number against LBN.
pub(super) fn figure(bench: &Bench) -> Result<Figure, LabError> {
    let tracks = translated(&bench.with_drive(MAIN_DRIVE)?, SHOWN)?;
    let series = ["top surface", "bottom surface"].into_iter().zip(0..);
    let series = series.map(|(name, surface)| {
        let on = tracks.iter().filter(|track| track.lies.1 == surface);
        Series {
            name: name.to_owned(),
            style: Style::Dots,
            points: on
                .map(|track| (track.first_lbn as f64 / 1000.0, f64::from(track.lies.0)))
                .collect(),
        }
    });
    let panel = Panel {
        title: "Where tracks lie: a serpentine of 32, by translation of each track's first LBN"
            .to_owned(),
        x: "LBN, thousands",
        y: "track number on its surface (cylinder)",
        series: series.collect(),
    };
    Ok(Figure {
        name: "q3",
        panels: vec![panel],
    })
}

/// Q4: what is found on a drive of each numbering.
pub(super) fn numberings(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut found = Vec::new();
    let mut by = [0; 2];
    for (name, _) in NUMBERINGS {
        let bench = bench.with_drive(name)?;
        let searches = [
            (Algorithm::Tree, Verify::None),
            (Algorithm::Angle, Verify::Full),
        ];
        for ((algorithm, verify), wrong) in searches.into_iter().zip(&mut by) {
            let search = Search::run(&bench, algorithm, verify)?;
            *wrong += search.wrong_boundaries(&bench.geometry);
            if algorithm == Algorithm::Tree {
                found.push(outermost(&bench, &search)?);
            }
        }
    }
    let published = NUMBERINGS.map(|(_, sectors)| sectors);
    let others = found
        .iter()
        .filter(|numbering| !published.contains(numbering))
        .count();
    found.sort_unstable();
    found.dedup();
    let [by_tree, by_angle] = by.map(|wrong| wrong as f64);
    Ok(vec![found.len() as f64, others as f64, by_tree, by_angle])
}

/// Sectors on the outermost track of each surface, of tracks found and translated.
fn outermost(bench: &Bench, search: &Search) -> Result<[u32; 2], LabError> {
    let mut target = bench.target();
    let mut sectors = [0; 2];
    for track in search.tracks.iter().take(2 * WIDTH as usize) {
        let place = target.translate(track.first_lbn)?;
        if place.cylinder.0 == 0 {
            sectors[usize::from(place.surface.0)] = track.sectors;
        }
    }
    Ok(sectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are the paper's corners where its words put them?
    #[test]
    fn corners() {
        let (top, bottom) = (0, 1);
        for (n, lies) in [
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
            assert_eq!(by_the_paper(n), lies, "track {n}");
        }
    }
}
