//! Measuring how close a fitted profile comes to its drive.
//!
//! Both serve the same requests, none of which was used to create the profile. Requests are sent
//! one at a time, each when the previous one completes. The comparison uses the mean response time,
//! and the demerit of Ruemmler and Wilkes relative to the mean.

use super::{Characterization, CharacterizeOptions, CharacterizeProgress, characterize};
use crate::{ProbeError, Target};
use traxtent_map::TrackMap;
use traxtent_model::drive::Drive;
use traxtent_model::profile::Profile;
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::stats::demerit;
use traxtent_units::{Lbn, SimTime};

/// The results of one workload on the drive and on the fitted profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The name of the workload.
    pub workload: &'static str,
    /// The number of requests.
    pub requests: usize,
    /// The mean response time of the drive, in milliseconds.
    pub drive_ms: f64,
    /// The mean response time of the fitted profile, in milliseconds.
    pub fitted_ms: f64,
    /// The root mean square of the distance between the two distributions, in milliseconds.
    pub demerit_ms: f64,
}

impl Residual {
    /// The difference of the mean response times, relative to the drive's.
    pub fn mean_error(&self) -> f64 {
        self.fitted_ms / self.drive_ms - 1.0
    }

    /// The demerit relative to the drive's mean response time.
    pub fn relative_demerit(&self) -> f64 {
        self.demerit_ms / self.drive_ms
    }
}

/// A characterization, the fitted profile, and how close the profile is to the drive.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The measured properties of the drive.
    pub characterization: Characterization,
    /// The fitted profile.
    pub profile: Profile,
    /// One residual per workload.
    pub residuals: Vec<Residual>,
}

/// Characterizes a drive, builds the fitted profile, and compares the two on separate requests.
///
/// # Errors
/// Returns the errors of [`characterize`] and of [`residuals`].
pub fn fit(
    target: &mut dyn Target,
    map: &TrackMap,
    options: CharacterizeOptions,
    progress: &mut dyn FnMut(CharacterizeProgress),
) -> Result<Fit, ProbeError> {
    let characterization = characterize(target, map, options, progress)?;
    let profile = characterization.to_profile();
    let residuals = residuals(target, &profile, options, progress)?;
    Ok(Fit {
        characterization,
        profile,
        residuals,
    })
}

/// Compares a drive with a fitted profile of it.
///
/// # Errors
/// Returns an error if the drive refuses or fails a request, or if the profile is invalid.
pub fn residuals(
    target: &mut dyn Target,
    fitted: &Profile,
    options: CharacterizeOptions,
    progress: &mut dyn FnMut(CharacterizeProgress),
) -> Result<Vec<Residual>, ProbeError> {
    let mut fitted = Drive::new(fitted).map_err(|error| ProbeError::Inconsistent {
        lbn: Lbn(0),
        problem: format!("the fitted profile is invalid: {error}"),
    })?;
    // The fitted profile serves all workloads in a row, like the drive. A request that waits for
    // the media completes at an angle that its sectors determine, so drive and fitted profile are
    // in step after the first. If the fitted profile began each workload from scratch, its first
    // request could differ by a revolution. In a sequential workload, that one request out of 8,000
    // causes a demerit of up to 6 % of the mean, even between a drive and itself.
    let mut now = SimTime::ZERO;
    let end = Lbn(target
        .identity()
        .capacity
        .0
        .min(fitted.geometry().capacity().0));
    let mut residuals = Vec::new();
    for (number, &workload) in WORKLOADS.iter().enumerate() {
        progress(CharacterizeProgress {
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
        let mut measured: Vec<f64> = Vec::new();
        for &request in &requests {
            measured.push(target.request(request)?.response().as_ms());
        }
        let mut simulated = run(&mut fitted, &mut now, &requests);
        residuals.push(compare(workload, &mut measured, &mut simulated));
    }
    Ok(residuals)
}

fn compare(workload: &'static str, measured: &mut [f64], simulated: &mut [f64]) -> Residual {
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    Residual {
        workload,
        requests: measured.len(),
        drive_ms: mean(measured),
        fitted_ms: mean(simulated),
        demerit_ms: demerit(simulated, measured).unwrap_or(0.0),
    }
}

/// Returns the response times of a drive to requests sent one after another from `now` on, in
/// milliseconds.
fn run(drive: &mut Drive, now: &mut SimTime, requests: &[Request]) -> Vec<f64> {
    let response = |&request| {
        let completion = drive.serve(*now, request);
        let completion = completion.expect("the requests are within the drive");
        *now = completion.completed;
        completion.response().as_ms()
    };
    requests.iter().map(response).collect()
}

/// The workloads of the comparison.
const WORKLOADS: [&str; 3] = ["random", "sequential", "mixed"];
/// The number of requests of each workload.
const REQUESTS: usize = 8_000;

/// The largest number of requests of a sequential run.
const RUN: u32 = 200;

/// The number of random request sizes: the powers of two from one sector.
const SIZES: u64 = 8;
/// The request size of the sequential workload, in sectors.
const SEQUENTIAL_SECTORS: u32 = 128;
/// The probability that a request of the mixed workload continues a run.
const MIXED_SEQUENTIAL: f64 = 0.7;
/// The share of writes in each workload, if writes are allowed.
const WRITES: f64 = 0.3;

/// Returns the requests of a workload. Its sequential runs have at most `run` requests.
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
            let sectors = 1 << rng.below(SIZES);
            let sequential = match workload {
                "random" => false,
                "sequential" => left > 0,
                _ => left > 0 && rng.chance(MIXED_SEQUENTIAL),
            };
            let sectors = if workload == "sequential" {
                SEQUENTIAL_SECTORS
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
            let write = writes && rng.chance(WRITES);
            if write {
                Request::write(lbn, sectors)
            } else {
                Request::read(lbn, sectors)
            }
        })
        .collect()
}
