//! Verification of track maps: whether drives still have the tracks along which volumes are laid
//! out.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use traxtent_map::{MapFile, TrackMap};
use traxtent_server::volume::{Found, MapVerdict, verify_map};

use super::args::Create;
use crate::failure::{Failure, Result, note, warn};
use crate::progress::Progress;

/// The poll interval during map verification.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The duration after which the verification is announced.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);

/// An arbitrary fixed seed, so that verifications are repeatable.
const SEED: u64 = 0x766f_6c75_6d65;

/// Checks that drives have the tracks in a new volume's maps.
pub(super) fn verify_new(args: &Create) -> Result<()> {
    let mut maps = Vec::new();
    for (path, map) in args.members.iter().zip(&args.maps) {
        // A map that cannot be read is refused, with the reason, when the volume is created.
        let file = File::open(map).ok();
        let file = file.and_then(|file| MapFile::read_from(file).ok());
        maps.extend(file.map(|file| (path.clone(), Arc::new(file.tracks))));
    }
    match verify(&maps).into_iter().next() {
        None => Ok(()),
        Some(mismatch) => Err(Failure::input(mismatch)),
    }
}

/// Checks that members still have the tracks in their maps. A moved boundary costs speed, not data,
/// so this only warns.
pub(super) fn verify_known(found: &Found) {
    verify(&found.maps()).into_iter().for_each(warn);
}

/// Checks a sample of the boundaries of each map, all maps in parallel. Prints a note for each map
/// that matches or cannot be verified, and returns a message for each one that does not match.
fn verify(maps: &[(PathBuf, Arc<TrackMap>)]) -> Vec<String> {
    let progress = Progress::new("boundaries", None);
    let verdicts: Vec<MapVerdict> = std::thread::scope(|scope| {
        let threads: Vec<_> = maps
            .iter()
            .map(|(path, map)| {
                let mut report_boundary = |_, _| progress.add(1);
                scope.spawn(move || verify_map(path, map, SEED, &mut report_boundary))
            })
            .collect();
        // Most of the time is spent choosing a method to time the drive, before the first
        // boundary.
        let (started, mut announced) = (Instant::now(), false);
        while !threads
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(POLL_INTERVAL);
            if !announced && started.elapsed() > ANNOUNCE_AFTER {
                note("verifying the drives' track maps; --trust-map skips this");
                announced = true;
            }
        }
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|verdict| verdict.expect("verification does not panic"))
            .collect()
    });
    let mut wrong = Vec::new();
    for ((path, _), verdict) in maps.iter().zip(verdicts) {
        let path = path.display();
        match verdict {
            MapVerdict::Holds { tested, by } => {
                note(format!(
                    "{path}: boundaries of its map confirmed by {by}: {tested}"
                ));
            }
            MapVerdict::Unknown(why) => note(format!("{path}: its map was not verified: {why}")),
            MapVerdict::Moved(boundary) => wrong.push(format!(
                "{path}: its map does not match the drive: the boundary at LBN {} is elsewhere: {}",
                boundary.lbn, boundary.says
            )),
        }
    }
    wrong
}
