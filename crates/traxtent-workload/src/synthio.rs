//! DiskSim's synthetic workload: generators as processes that compute, issue requests and wait.
//!
//! Modelled on DiskSim 4.0: `disksim_synthio.c` for the requests issued, `disksim_pfsim.c` and
//! `disksim_pfdisp.c` for their times. The meaning is reproduced, not the sequence of random
//! numbers.
//!
//! # Requests that a generator issues
//! Addresses and sizes are counted in blocks of `block_sectors`. The device's last block stays
//! unused.
//! - The **first** request is random. Each later one draws u from [0, 1):
//!   - u <= `sequential`: it starts at the end of the last one, on the same device, with the same
//!     size and operation. If it would include the last block of the device or pass its end, it is
//!     random instead.
//!   - else u < `sequential` + `local`: it starts at the start of the last one plus a draw of
//!     `distances`, on the same device. Size and operation are drawn.
//!   - else it is **random**: the device is drawn from the list, and the start is uniform over the
//!     device.
//! - A size is the integer part of a draw of `sizes`, rounded up to blocks. If an address and size
//!   do not fit, or the size is zero, both are redrawn together.
//! - Each request is critical with probability `critical`, limited with probability `limited`, and
//!   otherwise plain.
//!
//! # Times at which a generator issues requests
//! A generator is a process that first computes for a time drawn from the inter-arrival
//! distribution of the request's access pattern (`general`, `sequential_gaps`, `local_gaps`), then
//! issues the request. An "inter-arrival time" is thus a think time: it begins when the process
//! continues. A process continues immediately after a plain request (an open process), and at the
//! completion of a critical one (a closed process).
//! - After a **critical** request the process waits for its completion.
//! - After a **limited** request it continues. It later waits for the completion, if the request is
//!   still outstanding when its limit expires. The limit is the request's own inter-arrival time
//!   plus a draw of `limits`. DiskSim counts it down only within a single later inter-arrival time,
//!   from its beginning, so the limit expires only if that one alone is longer. If several limits
//!   are pending, the expiry of one also shortens those after it. This is kept because DiskSim's
//!   published results depend on it.
//! - With `system_calls`, the process computes for the given times before and after a critical
//!   request.
//!
//! Computing occupies a **processor**, and processes are never preempted: a process that does not
//! wait keeps its processor forever. With three open generators and one processor, only the *last*
//! generator of the list ever issues anything. Processors start with the last generators, in
//! reverse order. A process that wakes up queues for a processor. If the first processor is idle,
//! it runs the process, because completions interrupt that processor. Otherwise the process waits
//! until another process gives up a processor by waiting. Other processors that become idle stay
//! idle forever. In most mixed workloads, therefore, only one process computes at a time after a
//! while, whatever the number of processors. The time for which the other processors stay busy is a
//! matter of chance: DiskSim's synthmixed has a median mean response time of 22.1 ms over 41 seeds,
//! with a range of 21.1 to 45.5 ms.
//!
//! The workload ends when a process would make another request although `count` have been made, or
//! at `time` or later. DiskSim then stops immediately and drops the outstanding requests; here the
//! caller may let them complete.
//!
//! Left out: generators that read trace files (dead code in DiskSim), times of interrupt handlers
//! and context switches (zero in DiskSim), clock interrupts (without effect).

use std::collections::{BTreeMap, VecDeque};

use super::distribution::Distribution;
use super::source::{Arrival, NextStep, RequestSource, Urgency};
use super::trace::TraceError;
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};

/// The number of draws of an address and a size, of which one must fit the device. DiskSim draws
/// without end.
const PLACE_DRAWS_MAX: usize = 1000;

/// A set of generators and the processors that run them.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthioSpec {
    /// The number of requests that all generators make together.
    pub count: u64,
    /// No request is made at this instant or later. DiskSim's parameter is in seconds.
    pub time: SimTime,
    /// The number of processors, from 1 to 4096.
    pub processors: u32,
    /// The computing times before and after a critical request; `None` if there are no system
    /// calls.
    pub system_calls: Option<(Span, Span)>,
    /// The generators, in the order of the parameter file.
    pub generators: Vec<SynthioGenerator>,
}

/// One generator. Times are in milliseconds, lengths in sectors.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthioGenerator {
    /// The devices it uses, by the caller's numbers.
    pub devices: Vec<u32>,
    /// DiskSim's "Storage capacity per device".
    pub device_sectors: u64,
    /// DiskSim's "Blocking factor".
    pub block_sectors: u32,
    /// The probability of a sequential request.
    pub sequential: f64,
    /// The probability of a local request.
    pub local: f64,
    /// The probability of a read.
    pub read: f64,
    /// The probability of a critical request.
    pub critical: f64,
    /// The probability of a limited request.
    pub limited: f64,
    /// DiskSim's "Time-limited think times".
    pub limits: Distribution,
    /// DiskSim's "General inter-arrival times".
    pub general: Distribution,
    /// DiskSim's "Sequential inter-arrival times".
    pub sequential_gaps: Distribution,
    /// DiskSim's "Local inter-arrival times".
    pub local_gaps: Distribution,
    /// DiskSim's "Local distances". DiskSim's manual calls the second parameter of its normal
    /// distributions the variance, but it acts as the standard deviation. Use it here unchanged.
    pub distances: Distribution,
    /// DiskSim's "Sizes".
    pub sizes: Distribution,
}

/// An error in a set of generators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SynthioError {
    /// A wrong value of the whole set.
    #[error("synthetic workload: {name}: {value}: {expected}")]
    Set {
        /// The name of the value.
        name: &'static str,
        /// The value found.
        value: String,
        /// The values expected.
        expected: &'static str,
    },
    /// A wrong value of one generator.
    #[error("synthetic workload: generator {generator}: {name}: {value}: {expected}")]
    Generator {
        /// The generator, counted from 0.
        generator: usize,
        /// The name of the value.
        name: &'static str,
        /// The value found.
        value: String,
        /// The values expected.
        expected: String,
    },
}

/// The requests of a [`SynthioSpec`] over simulated time.
#[derive(Clone, Debug)]
pub struct Synthio {
    rng: Rng,
    count: u64,
    time: SimTime,
    system_calls: Option<(Span, Span)>,
    generated: u64,
    stopped: bool,
    tag: u64,
    processes: Vec<Process>,
    processors: Vec<Processor>,
    /// Processes that are ready to run but have no processor.
    runnable: VecDeque<usize>,
    /// Outstanding requests, each with the process that waits for it, if any.
    outstanding: BTreeMap<u64, Option<usize>>,
    /// The tags of issued requests that a process may wait for later, by the number of the
    /// generated request.
    issued: BTreeMap<u64, u64>,
}

#[derive(Clone, Debug)]
struct Processor {
    process: Option<usize>,
    /// The instant at which the next step of its process is due.
    due: SimTime,
}

#[derive(Clone, Debug)]
struct Process {
    generator: SynthioGenerator,
    blocks: u64,
    steps: VecDeque<Step>,
    limits: Vec<Limit>,
    last: GeneratedRequest,
}

/// A period of computing, followed by an action that takes no time.
#[derive(Clone, Copy, Debug)]
struct Step {
    compute: Span,
    then: Action,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Issue(GeneratedRequest),
    /// Waits for the request with this number, if it has been issued and is not complete.
    Wait(u64),
    Compute,
    Make,
}

/// A request of a generator, in blocks.
#[derive(Clone, Copy, Debug)]
struct GeneratedRequest {
    number: u64,
    device: u32,
    start: u64,
    blocks: u64,
    read: bool,
    urgency: Urgency,
}

/// An entry in the list of limits. Each is counted from the one before it.
#[derive(Clone, Copy, Debug)]
struct Limit {
    after: Span,
    number: u64,
}

impl Synthio {
    /// Creates the workload of `spec`, drawn from `seed`.
    ///
    /// # Errors
    /// Returns an error if a value is out of its range.
    pub fn new(spec: &SynthioSpec, seed: u64) -> Result<Synthio, SynthioError> {
        check(spec)?;
        let mut processes: Vec<Process> = Vec::new();
        // DiskSim lists its processes in reverse order of the generators.
        for generator in spec.generators.iter().rev() {
            let blocks = generator.device_sectors / u64::from(generator.block_sectors);
            let last = GeneratedRequest {
                number: 0,
                device: 0,
                start: 0,
                blocks: 0,
                read: false,
                urgency: Urgency::None,
            };
            let generator = generator.clone();
            processes.push(Process {
                generator,
                blocks,
                steps: VecDeque::new(),
                limits: Vec::new(),
                last,
            });
        }
        let idle = Processor {
            process: None,
            due: SimTime::ZERO,
        };
        let mut synthio = Synthio {
            rng: Rng::new(seed),
            count: spec.count,
            time: spec.time,
            system_calls: spec.system_calls,
            generated: 0,
            stopped: false,
            tag: 0,
            runnable: (0..processes.len()).collect(),
            processes,
            processors: vec![idle; spec.processors as usize],
            outstanding: BTreeMap::new(),
            issued: BTreeMap::new(),
        };
        for process in 0..synthio.processes.len() {
            synthio.make(process, true);
        }
        for processor in 0..synthio.processors.len() {
            synthio.dispatch(processor, SimTime::ZERO);
        }
        Ok(synthio)
    }

    /// Returns the number of generators that have issued no request because their processes still
    /// wait for their first turn on a processor.
    pub fn idle_generators(&self) -> usize {
        let waits = |&&process: &&usize| {
            let Process { last, steps, .. } = &self.processes[process];
            // The first requests are numbered in the order of the processes.
            let is_first = last.number == process as u64 + 1;
            is_first
                && steps
                    .iter()
                    .any(|step| matches!(step.then, Action::Issue(_)))
        };
        self.runnable.iter().filter(waits).count()
    }

    /// Returns the number of requests that the generators made but did not issue before the
    /// workload ended; 0 before its end. They count towards [`SynthioSpec::count`], as in DiskSim.
    pub fn unissued(&self) -> u64 {
        if self.stopped {
            self.generated - self.tag
        } else {
            0
        }
    }

    /// Returns whether the workload ended at [`SynthioSpec::time`], before all requests were made.
    pub fn ended_by_time(&self) -> bool {
        self.stopped && self.generated < self.count
    }

    /// Assigns the next runnable process to a processor, which becomes idle if there is none.
    fn dispatch(&mut self, processor: usize, now: SimTime) {
        let process = self.runnable.pop_front();
        self.processors[processor].process = process;
        if let Some(process) = process {
            self.schedule(processor, process, now);
        }
    }

    fn schedule(&mut self, processor: usize, process: usize, now: SimTime) {
        let compute = self.processes[process]
            .steps
            .front()
            .map_or(Span::ZERO, |step| step.compute);
        self.processors[processor].due = SimTime(now.0.saturating_add(compute.0));
    }

    /// Returns the processor whose step comes next; the first one if several are due together.
    fn next_processor(&self) -> Option<usize> {
        let running = |&index: &usize| self.processors[index].process.is_some();
        (0..self.processors.len())
            .filter(running)
            .min_by_key(|&index| self.processors[index].due)
    }

    /// Makes the next request of a process and sets the steps that the process takes for it.
    fn make(&mut self, process: usize, first: bool) {
        self.generated += 1;
        let number = self.generated;
        let rng = &mut self.rng;
        let process = &mut self.processes[process];
        let (gap, made) = process.draw(number, first, rng);
        process.last = made;

        // The steps before the request and after it.
        let mut steps = vec![Step {
            compute: gap,
            then: Action::Issue(made),
        }];
        match (made.urgency, self.system_calls) {
            (Urgency::Critical, None) => steps.push(Step {
                compute: Span::ZERO,
                then: Action::Wait(number),
            }),
            (Urgency::Critical, Some((call, back))) => {
                steps.insert(
                    0,
                    Step {
                        compute: call,
                        then: Action::Compute,
                    },
                );
                steps.push(Step {
                    compute: back,
                    then: Action::Wait(number),
                });
            }
            (Urgency::Limited, _) => {
                let after = Span(
                    gap.0
                        .saturating_add(process.generator.limits.sample_time(rng).0),
                );
                process.add_limit(Limit { after, number });
            }
            (Urgency::None, _) => {}
        }
        // Limits that expire during the computing time of the first step come first.
        let mut waits = Vec::new();
        while let Some(&limit) = process
            .limits
            .first()
            .filter(|limit| limit.after < steps[0].compute)
        {
            process.limits.remove(0);
            steps[0].compute -= limit.after;
            waits.push(Step {
                compute: limit.after,
                then: Action::Wait(limit.number),
            });
        }
        steps.push(Step {
            compute: Span::ZERO,
            then: Action::Make,
        });
        process.steps = waits.into_iter().chain(steps).collect();
    }
}

impl Process {
    /// Returns the next request and the computing time before it.
    fn draw(&mut self, number: u64, first: bool, rng: &mut Rng) -> (Span, GeneratedRequest) {
        let generator = &self.generator;
        let mut made = GeneratedRequest {
            number,
            ..self.last
        };
        let way = if first { 1.0 } else { rng.fraction() };
        let gap;
        if way <= generator.sequential && !first && made.start + 2 * made.blocks < self.blocks {
            gap = generator.sequential_gaps.sample_time(rng);
            made.start += made.blocks;
        } else if !first
            && way > generator.sequential
            && way < generator.sequential + generator.local
        {
            gap = generator.local_gaps.sample_time(rng);
            let from = made.start;
            (made.start, made.blocks) = self.place(rng, |generator, rng| {
                let distance =
                    generator.distances.sample(rng) as i64 / i64::from(generator.block_sectors);
                from.checked_add_signed(distance)
            });
            made.read = rng.chance(generator.read);
        } else {
            gap = generator.general.sample_time(rng);
            made.device = generator.devices[rng.below(generator.devices.len() as u64) as usize];
            let blocks = self.blocks;
            (made.start, made.blocks) = self.place(rng, |_, rng| Some(rng.below(blocks)));
            made.read = rng.chance(generator.read);
        }
        let class = rng.fraction();
        made.urgency = if class < generator.critical {
            Urgency::Critical
        } else if class < generator.critical + generator.limited {
            Urgency::Limited
        } else {
            Urgency::None
        };
        (gap, made)
    }

    /// Draws start and size, in blocks, until they fit. If [`PLACE_DRAWS_MAX`] draws do not fit,
    /// returns block 0 and a size of 1.
    fn place(
        &self,
        rng: &mut Rng,
        mut start: impl FnMut(&SynthioGenerator, &mut Rng) -> Option<u64>,
    ) -> (u64, u64) {
        for _ in 0..PLACE_DRAWS_MAX {
            let start = start(&self.generator, rng);
            let sectors = self.generator.sizes.sample(rng).max(0.0) as u64;
            let blocks = sectors.div_ceil(u64::from(self.generator.block_sectors));
            if let Some(start) = start.filter(|start| start.saturating_add(blocks) < self.blocks) {
                let too_long = blocks.saturating_mul(u64::from(self.generator.block_sectors))
                    > u64::from(u32::MAX);
                if blocks > 0 && !too_long {
                    return (start, blocks);
                }
            }
        }
        (0, 1)
    }

    /// Adds a limit to the list, in which each is counted from the one before it.
    fn add_limit(&mut self, mut limit: Limit) {
        let mut at = 0;
        while let Some(earlier) = self
            .limits
            .get(at)
            .filter(|earlier| limit.after >= earlier.after)
        {
            limit.after -= earlier.after;
            at += 1;
        }
        if let Some(later) = self.limits.get_mut(at) {
            later.after -= limit.after;
        }
        self.limits.insert(at, limit);
    }
}

impl RequestSource for Synthio {
    fn due(&mut self) -> Result<NextStep, TraceError> {
        Ok(match self.next_processor() {
            _ if self.stopped => NextStep::Never,
            Some(processor) => NextStep::At(self.processors[processor].due),
            None => NextStep::AfterCompletion,
        })
    }

    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        while !self.stopped {
            let processor = self.next_processor()?;
            if self.processors[processor].due > now {
                return None;
            }
            let process = self.processors[processor].process?;
            let step = self.processes[process].steps.pop_front();
            match step
                .expect("a process always has a step: after issuing a request it makes the next")
                .then
            {
                Action::Compute => {}
                Action::Make if self.generated >= self.count || now >= self.time => {
                    self.stopped = true;
                    return None;
                }
                Action::Make => self.make(process, false),
                Action::Wait(number) => {
                    let tag = self.issued.remove(&number);
                    if let Some(waiter) = tag.and_then(|tag| self.outstanding.get_mut(&tag)) {
                        *waiter = Some(process);
                        self.dispatch(processor, now);
                        continue;
                    }
                }
                Action::Issue(made) => {
                    self.schedule(processor, process, now);
                    return Some(self.issue(process, made, now));
                }
            }
            self.schedule(processor, process, now);
        }
        None
    }

    fn complete(&mut self, tag: u64, at: SimTime) {
        if let Some(Some(process)) = self.outstanding.remove(&tag) {
            self.runnable.push_back(process);
            if self.processors[0].process.is_none() {
                self.dispatch(0, at);
            }
        }
    }
}

impl Synthio {
    fn issue(&mut self, process: usize, made: GeneratedRequest, now: SimTime) -> Arrival {
        let tag = self.tag;
        self.tag += 1;
        self.outstanding.insert(tag, None);
        if made.urgency != Urgency::None {
            self.issued.insert(made.number, tag);
        }
        let sectors = u64::from(self.processes[process].generator.block_sectors);
        let request = Request {
            op: if made.read { Op::Read } else { Op::Write },
            lbn: Lbn(made.start * sectors),
            sectors: (made.blocks * sectors) as u32,
            fua: false,
        };
        Arrival {
            at: now,
            tag,
            device: made.device,
            urgency: made.urgency,
            measured: None,
            request,
        }
    }
}

fn check(spec: &SynthioSpec) -> Result<(), SynthioError> {
    let whole = |name, value: String, expected| {
        Err(SynthioError::Set {
            name,
            value,
            expected,
        })
    };
    if spec.count == 0 {
        return whole(
            "number of requests",
            spec.count.to_string(),
            "expected at least 1",
        );
    }
    if spec.processors == 0 || spec.processors > 4096 {
        return whole(
            "number of processors",
            spec.processors.to_string(),
            "expected 1 to 4096",
        );
    }
    if spec.generators.is_empty() || spec.generators.len() > 65_536 {
        return whole(
            "generators",
            spec.generators.len().to_string(),
            "expected 1 to 65536",
        );
    }
    for (index, generator) in spec.generators.iter().enumerate() {
        check_generator(generator).map_err(|(name, value, expected)| SynthioError::Generator {
            generator: index,
            name,
            value,
            expected,
        })?;
    }
    Ok(())
}

fn check_generator(generator: &SynthioGenerator) -> Result<(), (&'static str, String, String)> {
    if generator.devices.is_empty() {
        return Err((
            "devices",
            "none".to_owned(),
            "expected at least one".to_owned(),
        ));
    }
    if generator.block_sectors == 0 {
        return Err((
            "blocking factor",
            "0".to_owned(),
            "expected at least 1".to_owned(),
        ));
    }
    let least = 2 * u64::from(generator.block_sectors);
    if generator.device_sectors < least || generator.device_sectors > i64::MAX as u64 {
        let expected = format!("expected {least} to {} sectors", i64::MAX);
        return Err((
            "storage capacity per device",
            generator.device_sectors.to_string(),
            expected,
        ));
    }
    for (name, value) in [
        ("probability of sequential access", generator.sequential),
        ("probability of local access", generator.local),
        ("probability of read access", generator.read),
        ("probability of time-critical request", generator.critical),
        ("probability of time-limited request", generator.limited),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return Err((name, value.to_string(), "expected 0 to 1".to_owned()));
        }
    }
    for (name, distribution, limit) in [
        (
            "time-limited think times",
            &generator.limits,
            super::quantity::TIME_MAX_MS,
        ),
        (
            "general inter-arrival times",
            &generator.general,
            super::quantity::TIME_MAX_MS,
        ),
        (
            "sequential inter-arrival times",
            &generator.sequential_gaps,
            super::quantity::TIME_MAX_MS,
        ),
        (
            "local inter-arrival times",
            &generator.local_gaps,
            super::quantity::TIME_MAX_MS,
        ),
        (
            "local distances",
            &generator.distances,
            super::quantity::LENGTH_MAX,
        ),
        ("sizes", &generator.sizes, super::quantity::LENGTH_MAX),
    ] {
        distribution
            .check(limit)
            .map_err(|why| (name, format!("{distribution:?}"), why))?;
    }
    check_draws(generator)
}

/// Checks that times are not always negative, and that sizes and distances fit the device at all.
/// DiskSim would draw without end.
fn check_draws(generator: &SynthioGenerator) -> Result<(), (&'static str, String, String)> {
    let device = generator.device_sectors as f64;
    let unit = u64::from(generator.block_sectors);
    let size = |sectors: f64| {
        let blocks = (sectors.max(0.0) as u64).div_ceil(unit);
        (1..generator.device_sectors / unit).contains(&blocks)
            && blocks.saturating_mul(unit) <= u64::from(u32::MAX)
    };
    let distance = |sectors: f64| sectors.abs() < device;
    let time = |ms: f64| ms >= 0.0;
    type Fits<'a> = &'a dyn Fn(f64) -> bool;
    let times: (Fits<'_>, &str) = (&time, "is 0 or more");
    let sizes: (Fits<'_>, &str) = (&size, "is at least 1 sector and below the device's size");
    let distances: (Fits<'_>, &str) = (&distance, "is below the device's size");
    let mut rng = Rng::new(0);
    for (name, distribution, probability, (fits, bound)) in [
        (
            "general inter-arrival times",
            &generator.general,
            1.0,
            times,
        ),
        (
            "sequential inter-arrival times",
            &generator.sequential_gaps,
            generator.sequential,
            times,
        ),
        (
            "local inter-arrival times",
            &generator.local_gaps,
            generator.local,
            times,
        ),
        (
            "time-limited think times",
            &generator.limits,
            generator.limited,
            times,
        ),
        (
            "local distances",
            &generator.distances,
            generator.local,
            distances,
        ),
        ("sizes", &generator.sizes, 1.0, sizes),
    ] {
        let mut draws = (0..PLACE_DRAWS_MAX).map(|_| distribution.sample(&mut rng));
        if probability > 0.0 && !draws.any(fits) {
            let problem = format!("none of {PLACE_DRAWS_MAX} drawn values {bound}");
            return Err((name, format!("{distribution:?}"), problem));
        }
    }
    Ok(())
}
