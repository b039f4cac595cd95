//! How close a twin comes to its drive.
//!
//! Both are given the same requests, none of which the twin was made from: one at a time, each sent
//! when the one before it is complete. What is compared is the mean response, and the demerit of
//! Ruemmler and Wilkes against the mean.

use super::{Character, Options, Progress, characterize};
use crate::drive::Drive;
use crate::probe::{ProbeError, Target};
use crate::profile::Profile;
use crate::request::Request;
use crate::stats::demerit;
use crate::trackmap::TrackMap;
use crate::units::{Lbn, SimTime};
use crate::workload::Rng;

/// How one workload went on drive and twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// Which workload.
    pub workload: &'static str,
    /// How many requests.
    pub requests: usize,
    /// Mean response of the drive, in milliseconds.
    pub source_ms: f64,
    /// Mean response of the twin, in milliseconds.
    pub twin_ms: f64,
    /// Root mean square of the distance between the two distributions, in milliseconds.
    pub demerit_ms: f64,
}

impl Residual {
    /// By which part of the drive's mean response the twin's differs.
    pub fn mean_error(&self) -> f64 {
        self.twin_ms / self.source_ms - 1.0
    }

    /// The demerit as a part of the drive's mean response.
    pub fn relative_demerit(&self) -> f64 {
        self.demerit_ms / self.source_ms
    }
}

/// A character, its twin, and how close that is.
#[derive(Clone, Debug)]
pub struct Fit {
    /// What was measured.
    pub character: Character,
    /// The twin.
    pub profile: Profile,
    /// A residual a workload.
    pub residuals: Vec<Residual>,
}

/// Characterizes a drive, builds its twin, and compares the two on requests of their own.
///
/// # Errors
/// As [`characterize`].
pub fn fit(
    target: &mut dyn Target,
    map: &TrackMap,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Fit, ProbeError> {
    let character = characterize(target, map, options, progress)?;
    let profile = character.to_profile();
    let residuals = residuals(target, &profile, options, progress)?;
    Ok(Fit {
        character,
        profile,
        residuals,
    })
}

/// Compares a drive with a twin of it.
///
/// # Errors
/// Where the drive does not answer, or the twin's profile is none.
pub fn residuals(
    target: &mut dyn Target,
    twin: &Profile,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Residual>, ProbeError> {
    let mut twin = Drive::new(twin).map_err(|error| ProbeError::Baffled {
        lbn: Lbn(0),
        problem: format!("the twin's profile: {error}"),
    })?;
    // The twin serves all workloads in a row, as the drive does. A request that waits for the media
    // is complete at an angle of its own, so drive and twin are in step after the first. If the
    // twin began each workload anew, its first request could differ by a revolution. In a
    // sequential workload, that one request of 8,000 makes a demerit of up to 6 % of the mean, even
    // between a drive and itself.
    let mut now = SimTime::ZERO;
    let end = Lbn(target
        .identity()
        .capacity
        .0
        .min(twin.geometry().capacity().0));
    let mut residuals = Vec::new();
    for (number, &workload) in WORKLOADS.iter().enumerate() {
        progress(Progress {
            stage: "fit",
            done: number as f64 / WORKLOADS.len() as f64,
        });
        let requests = requests(
            workload,
            RUN,
            REQUESTS,
            end,
            options.seed ^ 0x5eed_0f17,
            options.destructive,
        );
        let mut source: Vec<f64> = Vec::new();
        for &request in &requests {
            source.push(target.request(request)?.response().as_ms());
        }
        let mut simulated = run(&mut twin, &mut now, &requests);
        residuals.push(compare(workload, &mut source, &mut simulated));
    }
    Ok(residuals)
}

fn compare(workload: &'static str, source: &mut [f64], twin: &mut [f64]) -> Residual {
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    Residual {
        workload,
        requests: source.len(),
        source_ms: mean(source),
        twin_ms: mean(twin),
        demerit_ms: demerit(twin, source).unwrap_or(0.0),
    }
}

/// The response times of a drive to requests one after another, from `now` on, in milliseconds.
fn run(drive: &mut Drive, now: &mut SimTime, requests: &[Request]) -> Vec<f64> {
    let response = |&request| {
        let completion = drive.serve(*now, request);
        let completion = completion.expect("the drive has so many sectors");
        *now = completion.completed;
        completion.response().as_ms()
    };
    requests.iter().map(response).collect()
}

/// The workloads of a fit.
const WORKLOADS: [&str; 3] = ["random", "sequential", "mixed"];
/// Requests of each.
const REQUESTS: usize = 8_000;

/// Requests of a sequential run.
const RUN: u32 = 200;

/// The requests of a workload, whose sequential runs have `run` requests at most.
pub(super) fn requests(
    workload: &str,
    run: u32,
    count: usize,
    end: Lbn,
    seed: u64,
    writes: bool,
) -> Vec<Request> {
    let mut rng = Rng::new(seed);
    let mut next = 0;
    let mut left = 0;
    (0..count)
        .map(|_| {
            let sectors = 1 << rng.below(8);
            let sequential = match workload {
                "random" => false,
                "sequential" => left > 0,
                _ => left > 0 && rng.chance(0.7),
            };
            let sectors = if workload == "sequential" {
                128
            } else {
                sectors
            };
            if !sequential || next + u64::from(sectors) > end.0 {
                next = rng.below(end.0 - u64::from(sectors));
                left = run;
            }
            left -= 1;
            let lbn = Lbn(next);
            next += u64::from(sectors);
            let write = writes && rng.chance(0.3);
            if write {
                Request::write(lbn, sectors)
            } else {
                Request::read(lbn, sectors)
            }
        })
        .collect()
}
