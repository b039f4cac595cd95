//! The look at track maps: whether drives still have the tracks that volumes lie along.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use traxtent_core::trackmap::{MapFile, TrackMap};
use traxtent_exec::volume::{Found, Verdict, verify_map};

use super::Create;
use crate::failure::{Failure, Result, note, warn};
use crate::progress::Progress;

/// So often it is looked whether drives have been.
const TICK: Duration = Duration::from_millis(5);

/// What takes longer is announced.
const PATIENCE: Duration = Duration::from_secs(2);

/// Any number: a fixed one, so that a look at maps repeats itself.
const SEED: u64 = 0x766f_6c75_6d65;

/// Looks whether drives have the tracks that a new volume is to lie on.
pub(super) fn verify_new(args: &Create) -> Result<()> {
    let mut maps = Vec::new();
    for (path, map) in args.members.iter().zip(&args.maps) {
        // What cannot be read is refused with its reason when the volume is made.
        let file = std::fs::read(map).ok();
        let file = file.and_then(|bytes| MapFile::read(&bytes[..]).ok());
        maps.extend(file.map(|file| (path.clone(), Arc::new(file.tracks))));
    }
    match verify(&maps).into_iter().next() {
        None => Ok(()),
        Some(moved) => Err(Failure::input(moved)),
    }
}

/// Looks whether members still have the tracks that their maps say. What has moved costs speed, not data.
pub(super) fn verify_known(found: &Found) {
    verify(&found.maps()).into_iter().for_each(warn);
}

/// Looks at a sample of the boundaries of all maps at once; says what cannot be known, and returns what is wrong.
fn verify(maps: &[(PathBuf, Arc<TrackMap>)]) -> Vec<String> {
    let progress = Progress::new("boundaries", None);
    let verdicts: Vec<Verdict> = std::thread::scope(|scope| {
        let threads: Vec<_> = maps
            .iter()
            .map(|(path, map)| {
                let mut tell = |_, _| progress.add(1);
                scope.spawn(move || verify_map(path, map, SEED, &mut tell))
            })
            .collect();
        // Before the first boundary it is found out how a drive can be timed, which takes the longest.
        let (begun, mut told) = (Instant::now(), false);
        while !threads
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(TICK);
            if !told && begun.elapsed() > PATIENCE {
                note(
                    "looking whether drives have the tracks of their maps; --trust-map does without",
                );
                told = true;
            }
        }
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|verdict| verdict.expect("it does not panic"))
            .collect()
    });
    let mut wrong = Vec::new();
    for ((path, _), verdict) in maps.iter().zip(verdicts) {
        let path = path.display();
        match verdict {
            Verdict::Holds { tested, by } => {
                note(format!(
                    "{path}: {tested} boundaries of its map hold, by {by}"
                ));
            }
            Verdict::Unknown(why) => note(format!("{path}: its map is not tested: {why}")),
            Verdict::Moved(moved) => wrong.push(format!(
                "{path}: its map is not this drive's: the boundary at LBN {} is not there: {}",
                moved.lbn, moved.says
            )),
        }
    }
    wrong
}
