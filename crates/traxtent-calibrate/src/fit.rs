//! Fits times to the measured response times, by least squares.
//!
//! The simulated response time without its rotational latency changes almost linearly with each
//! figure. The derivatives are found by simulation, with one replay per figure. The rotational
//! latency of a single request cannot be known from a trace, so the mean over requests of the same
//! kind takes its place. Each correction has a normal prior distribution around zero; a figure that
//! the trace does not determine keeps its value. (The Gauss-Newton method; J. Nocedal and S.
//! Wright, "Numerical Optimization", 2006, chapter 10.)

use std::sync::Arc;

use traxtent_model::geometry::Geometry;
use traxtent_model::profile::Profile;
use traxtent_sim::agreement::{HIT_MARGIN_MS, ReplayedRequest};
use traxtent_units::Rng;
use traxtent_units::stats::demerit;

use crate::CalibrateError;
use crate::figures::Figure;
use crate::line::HitLine;
use crate::solve::Matrix;
use crate::trace::{MeasuredTrace, Replayed, StopSignal};

/// The change of a figure with which its derivative is found, in milliseconds.
const STEP_MS: f64 = 0.05;

/// If a response time changes by more than this multiple of a figure's change, events happen in
/// another order. The derivative then counts as 0.
const DERIVATIVE_MOST: f64 = 3.0;

/// The maximum number of iterations.
pub(crate) const ROUNDS: usize = 8;

/// An iteration that reduces the cost by less than this is the last.
const GAIN_LEAST: f64 = 1.0;

/// The number of step lengths that are tried, each half of the one before.
const STEP_LENGTHS: usize = 5;

/// A residual of more standard deviations counts as this many.
const OUTLIER_DEVIATIONS: f64 = 3.5;

/// The smallest standard deviation that is assumed for residuals, in milliseconds.
const DEVIATION_LEAST_MS: f64 = 0.02;

/// The standard deviation of the difference between neighbouring corrections of the seek curve,
/// each in units of its prior deviation.
const NEIGHBOUR_DEVIATION: f64 = 0.7;

/// The number of replays at random angles from which mean rotational latencies are taken, in
/// addition to the replay itself.
const ANGLE_REPLAYS: usize = 4;

/// The seed of the angles.
const ANGLE_SEED: u64 = 1;

/// The parts of the traces that are fitted, and the times of hits in them.
pub(crate) struct Fit<'a> {
    pub(crate) traces: &'a [MeasuredTrace],
    /// The number of records of each trace that are fitted.
    pub(crate) counts: Vec<usize>,
    pub(crate) geometry: &'a Arc<Geometry>,
    pub(crate) read_hit: Option<HitLine>,
    pub(crate) write_hit: Option<HitLine>,
    pub(crate) stop: StopSignal<'a>,
}

/// A fitted profile.
pub(crate) struct FitResult {
    pub(crate) profile: Profile,
    /// The standard deviation that remains for each figure, in milliseconds of correction.
    pub(crate) deviations_ms: Vec<f64>,
}

impl Fit<'_> {
    /// The number of records that are fitted.
    pub(crate) fn requests(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Replays the part that is fitted.
    pub(crate) fn replay(&self, profile: &Profile) -> Result<Vec<Replayed>, CalibrateError> {
        let mut all = Vec::new();
        for (trace, count) in self.traces.iter().zip(&self.counts) {
            all.extend(trace.replay(profile, self.geometry, *count, None, &self.stop)?);
        }
        Ok(all)
    }

    /// Returns the mean rotational latency of each kind of request, from `requests` and from
    /// replays at random angles.
    fn rotation(
        &self,
        profile: &Profile,
        requests: &[Replayed],
    ) -> Result<Rotation, CalibrateError> {
        let mut rotation = Rotation::default();
        rotation.add(requests);
        let mut rng = Rng::new(ANGLE_SEED);
        for _ in 0..ANGLE_REPLAYS {
            for (trace, count) in self.traces.iter().zip(&self.counts) {
                let rng = Some(&mut rng);
                rotation.add(&trace.replay(profile, self.geometry, *count, rng, &self.stop)?);
            }
        }
        Ok(rotation)
    }

    /// Whether the real drive served a request from its buffer, judged by the measured time.
    pub(crate) fn drive_hit(&self, request: &Replayed) -> bool {
        request.measured_ms < self.hit_limit_ms(request)
    }

    /// The time below which a request was served from the buffer.
    fn hit_limit_ms(&self, request: &Replayed) -> f64 {
        let line = if request.is_read {
            self.read_hit
        } else {
            self.write_hit
        };
        let limit = |line: HitLine| line.at(request.follows_read, request.sectors) + HIT_MARGIN_MS;
        line.map_or(f64::NEG_INFINITY, limit)
    }

    /// Whether model and drive both served a request from the buffer, or both did not, as far as
    /// times can tell.
    pub(crate) fn agrees_by_time(&self, request: &Replayed) -> bool {
        let in_model = ReplayedRequest::from(*request).is_model_hit(self.hit_limit_ms(request));
        self.drive_hit(request) == in_model
    }

    /// The same, but a read that found only its first sectors in the buffer is no hit, as in
    /// [`kind`]: the search compares it with reads from the media.
    fn agrees(&self, request: &Replayed) -> bool {
        self.drive_hit(request) == request.is_hit()
    }

    /// The number of requests that only the model or only the drive served from its buffer.
    pub(crate) fn disagreements(&self, requests: &[Replayed]) -> usize {
        requests.iter().filter(|one| !self.agrees(one)).count()
    }

    /// The root mean square of the demerits of the kinds of requests, weighted by their numbers, in
    /// milliseconds. Requests that only the model or only the drive served from its buffer
    /// contribute 0.
    pub(crate) fn distance(&self, requests: &[Replayed]) -> f64 {
        let mut by_kind: [(Vec<f64>, Vec<f64>); KINDS] = Default::default();
        for request in requests.iter().filter(|one| self.agrees(one)) {
            let (simulated, measured) = &mut by_kind[kind(request)];
            simulated.push(request.simulated_ms);
            measured.push(request.measured_ms);
        }
        let squares = by_kind.iter_mut().filter_map(|(simulated, measured)| {
            let count = simulated.len() as f64;
            Some(count * demerit(simulated, measured)?.powi(2))
        });
        (squares.sum::<f64>() / requests.len().max(1) as f64).sqrt()
    }

    /// Fits figures in at most `rounds` iterations, beginning with a profile.
    pub(crate) fn run(
        &self,
        start: &Profile,
        figures: &[Figure],
        rounds: usize,
    ) -> Result<FitResult, CalibrateError> {
        let corrected = |corrections: &[f64]| {
            let mut profile = start.clone();
            for (figure, ms) in figures.iter().zip(corrections) {
                figure.add(&mut profile, *ms);
            }
            profile
        };
        let prior = prior(figures);
        let mut corrections = vec![0.0; figures.len()];
        let mut replayed = self.replay(start)?;
        let mut rotation = self.rotation(start, &replayed)?;
        let mut deviations_ms: Vec<f64> = figures.iter().map(|one| one.prior_ms).collect();
        for _ in 0..rounds {
            let deviations = Deviations::of(self, &replayed, &rotation);
            let cost = self.cost(&replayed, &rotation, &deviations) + prior.square(&corrections);
            let profile = corrected(&corrections);
            let (mut normal, mut right) =
                self.equations(&profile, &replayed, &rotation, figures, &deviations)?;
            for (row, value) in prior.times(&corrections).into_iter().enumerate() {
                right[row] -= value;
            }
            normal.add_matrix(&prior);
            let Some(covariance) = normal.inverse() else {
                break;
            };
            for (index, deviation) in deviations_ms.iter_mut().enumerate() {
                *deviation = covariance.at(index, index).sqrt();
            }
            let step = covariance.times(&right);
            let mut better = None;
            for halvings in 0..STEP_LENGTHS {
                let scale = 0.5f64.powi(halvings as i32);
                let next: Vec<f64> = corrections
                    .iter()
                    .zip(&step)
                    .map(|(value, step)| value + scale * step)
                    .collect();
                let profile = corrected(&next);
                let replayed = self.replay(&profile)?;
                let rotation = self.rotation(&profile, &replayed)?;
                let found = self.cost(&replayed, &rotation, &deviations) + prior.square(&next);
                if found < cost {
                    better = Some((next, replayed, rotation, cost - found));
                    break;
                }
            }
            let Some((next, next_replayed, next_rotation, gain)) = better else {
                break;
            };
            (corrections, replayed, rotation) = (next, next_replayed, next_rotation);
            if gain < GAIN_LEAST {
                break;
            }
        }
        for (figure, deviation) in figures.iter().zip(&mut deviations_ms) {
            *deviation = deviation.hypot(self.bus_deviation_ms(figure, &replayed));
        }
        Ok(FitResult {
            profile: corrected(&corrections),
            deviations_ms,
        })
    }

    /// The part of the deviation of an overhead of hits that comes from the uncertain time of a
    /// sector on the bus; 0 for other figures.
    fn bus_deviation_ms(&self, figure: &Figure, requests: &[Replayed]) -> f64 {
        let (is_read, line) = match figure.hits_of_reads() {
            Some(true) => (true, self.read_hit),
            Some(false) => (false, self.write_hit),
            None => return 0.0,
        };
        let hits = requests
            .iter()
            .filter(|one| one.is_hit() && one.is_read == is_read);
        let (count, sectors) = hits.fold((0, 0.0), |(count, sum), one| {
            (count + 1, sum + f64::from(one.sectors))
        });
        let deviation = line.map_or(0.0, |line| line.sector_deviation_ms);
        deviation * sectors / f64::from(count.max(1))
    }

    /// The sum of the squared residuals in units of their deviations. A request that only the model
    /// or only the drive served from its buffer counts as an outlier.
    fn cost(&self, requests: &[Replayed], rotation: &Rotation, deviations: &Deviations) -> f64 {
        let residuals = rotation.residuals(requests);
        let squares = requests.iter().zip(residuals).map(|(request, residual)| {
            let share = match self.agrees(request) {
                true => residual / deviations.of_request(request),
                false => OUTLIER_DEVIATIONS,
            };
            share.clamp(-OUTLIER_DEVIATIONS, OUTLIER_DEVIATIONS).powi(2)
        });
        squares.sum()
    }

    /// Returns the normal equations of the residuals.
    fn equations(
        &self,
        profile: &Profile,
        replayed: &[Replayed],
        rotation: &Rotation,
        figures: &[Figure],
        deviations: &Deviations,
    ) -> Result<(Matrix, Vec<f64>), CalibrateError> {
        let mut derivatives = Vec::with_capacity(figures.len());
        for figure in figures {
            let mut changed = profile.clone();
            figure.add(&mut changed, STEP_MS);
            let changed = self.replay(&changed)?;
            let pairs = replayed.iter().zip(&changed);
            let of: Vec<f64> = pairs
                .map(|(one, changed)| derivative(one, changed))
                .collect();
            derivatives.push(of);
        }
        let mut normal = Matrix::zero(figures.len());
        let mut right = vec![0.0; figures.len()];
        let residuals = rotation.residuals(replayed);
        for (index, request) in replayed.iter().enumerate() {
            if !self.agrees(request) {
                continue;
            }
            let deviation = deviations.of_request(request);
            let limit = OUTLIER_DEVIATIONS * deviation;
            let residual = residuals[index].clamp(-limit, limit);
            let weight = 1.0 / (deviation * deviation);
            let row: Vec<(usize, f64)> = derivatives
                .iter()
                .map(|of| of[index])
                .enumerate()
                .filter(|(_, derivative)| *derivative != 0.0)
                .collect();
            for &(one, x) in &row {
                right[one] += weight * x * residual;
                for &(other, y) in &row {
                    normal.add(one, other, weight * x * y);
                }
            }
        }
        Ok((normal, right))
    }
}

/// The change of a response time without rotation, per change of the figure.
fn derivative(before: &Replayed, after: &Replayed) -> f64 {
    let change = after.without_rotation_ms() - before.without_rotation_ms();
    let derivative = change / STEP_MS;
    if derivative.abs() > DERIVATIVE_MOST {
        0.0
    } else {
        derivative
    }
}

/// The inverse covariance of the corrections if nothing is known about the drive.
fn prior(figures: &[Figure]) -> Matrix {
    let mut prior = Matrix::zero(figures.len());
    for (index, figure) in figures.iter().enumerate() {
        prior.add(index, index, figure.prior_ms.powi(-2));
        if figure.has_neighbour {
            let shares = [1.0 / figure.prior_ms, -1.0 / figures[index + 1].prior_ms];
            for (one, x) in shares.iter().enumerate() {
                for (other, y) in shares.iter().enumerate() {
                    let value = x * y / NEIGHBOUR_DEVIATION.powi(2);
                    prior.add(index + one, index + other, value);
                }
            }
        }
    }
    prior
}

/// The number of kinds of requests.
const KINDS: usize = 32;

/// The kind of a request. The rotational latencies of a kind have similar distributions.
fn kind(request: &Replayed) -> usize {
    let properties = [
        request.is_read,
        request.follows_read,
        request.is_sequential,
        request.is_hit(),
        request.has_seek,
    ];
    properties
        .into_iter()
        .fold(0, |kind, property| 2 * kind + usize::from(property))
}

/// The rotational latency of each kind of request: its sum in milliseconds, and the number of
/// requests.
#[derive(Default)]
struct Rotation([(f64, f64); KINDS]);

impl Rotation {
    fn add(&mut self, requests: &[Replayed]) {
        for request in requests {
            let (sum, count) = &mut self.0[kind(request)];
            *sum += request.rotation_ms;
            *count += 1.0;
        }
    }

    /// Returns measured minus simulated response times, the latter with the mean rotational latency
    /// of their kind.
    fn residuals(&self, requests: &[Replayed]) -> Vec<f64> {
        requests
            .iter()
            .map(|request| {
                let (sum, count) = self.0[kind(request)];
                request.measured_ms - request.without_rotation_ms() - sum / count
            })
            .collect()
    }
}

/// The standard deviations of the residuals of reads and writes, hits and misses.
struct Deviations([f64; 4]);

impl Deviations {
    fn of(fit: &Fit, requests: &[Replayed], rotation: &Rotation) -> Deviations {
        let mut by_class: [Vec<f64>; 4] = Default::default();
        for (request, residual) in requests.iter().zip(rotation.residuals(requests)) {
            if fit.agrees(request) {
                by_class[class(request)].push(residual.abs());
            }
        }
        Deviations(by_class.map(|mut residuals| {
            residuals.sort_unstable_by(f64::total_cmp);
            let median = residuals.get(residuals.len() / 2).copied();
            // Half of a normal distribution lies within 0.6745 standard deviations.
            (median.unwrap_or(1.0) / 0.6745).max(DEVIATION_LEAST_MS)
        }))
    }

    fn of_request(&self, request: &Replayed) -> f64 {
        self.0[class(request)]
    }
}

fn class(request: &Replayed) -> usize {
    2 * usize::from(request.is_read) + usize::from(request.is_hit())
}
