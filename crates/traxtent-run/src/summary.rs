//! The results of a simulation, as figures.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use traxtent_model::drive::{Breakdown, ServedBy};
use traxtent_model::profile::SectorSpec;
use traxtent_sim::Outcome;
use traxtent_units::SimTime;
use traxtent_units::request::{Op, Request};
use traxtent_units::stats::{
    ComponentMeans, ConfidenceInterval, ConfidenceLevel, Moments, Quantiles,
};

use crate::overload::ArrivalCounts;

/// The percentiles of a summary: key, title and share.
const PERCENTILES: [(&str, &str, f64); 5] = [
    ("p50", "50 %", 0.5),
    ("p90", "90 %", 0.9),
    ("p95", "95 %", 0.95),
    ("p99", "99 %", 0.99),
    ("p99_9", "99.9 %", 0.999),
];

/// The maximum number of decimals of a rate.
const RATE_DECIMALS_MAX: usize = 9;

/// The results of one run. Its size is bounded, however long the run is.
#[derive(Clone, Default)]
pub struct Summary {
    /// The number of requests still to be discarded.
    warmup: u64,
    /// The beginning of the time that counts: the completion of the last discarded request.
    from: SimTime,
    /// The end of the time that counts: the completion of the last request.
    until: SimTime,
    bytes: u64,
    from_buffer: u64,
    from_both: u64,
    /// The number of writes that cover a physical sector only in part.
    partial_writes: u64,
    /// The number of writes whose size is not a multiple of the physical sector's. Alignment alone
    /// does not fix them.
    odd_sized_writes: u64,
    response: Moments,
    /// The distribution of response times.
    pub quantiles: Quantiles,
    parts: ComponentMeans<8>,
    /// The mean response time of the requests that arrays sent to their drives, if there are
    /// arrays.
    pub drive_response_ms: Option<f64>,
    /// The numbers of requests, including those of the warm-up.
    pub(crate) arrivals: ArrivalCounts,
    /// The requests of each device; empty if there is only one.
    devices: Vec<Summary>,
}

/// A figure of a summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The JSON object that contains it, if any.
    pub group: Option<&'static str>,
    /// The JSON key.
    pub key: &'static str,
    /// The value.
    pub value: f64,
}

impl Summary {
    /// Creates a summary that excludes the first `requests` requests to complete from all figures.
    pub fn after_warmup(requests: u64) -> Summary {
        Summary {
            warmup: requests,
            ..Summary::default()
        }
    }

    /// Also summarizes the requests of each of `count` devices.
    pub fn with_devices(self, count: usize) -> Summary {
        Summary {
            devices: vec![Summary::default(); count],
            ..self
        }
    }

    /// Adds a request; returns false if it is excluded.
    #[inline]
    pub fn add(&mut self, outcome: &Outcome, sector: SectorSpec) -> bool {
        let completed = outcome.completion.completed;
        if self.warmup > 0 {
            self.warmup -= 1;
            self.from = completed;
            return false;
        }
        self.count(outcome, sector);
        if let Some(device) = self.devices.get_mut(outcome.arrival.device as usize) {
            device.count(outcome, sector);
        }
        true
    }

    /// Counts a request in all figures.
    #[inline]
    fn count(&mut self, outcome: &Outcome, sector: SectorSpec) {
        let response = outcome.response();
        self.until = outcome.completion.completed;
        let request = &outcome.arrival.request;
        self.bytes += u64::from(request.sectors) * u64::from(sector.logical_bytes);
        match outcome.completion.served {
            ServedBy::Media => {}
            ServedBy::Buffer => self.from_buffer += 1,
            ServedBy::Both => self.from_both += 1,
        }
        if request.op == Op::Write && sector.ratio() > 1 {
            self.partial_writes += u64::from(is_partial(request, sector));
            self.odd_sized_writes += u64::from(!request.sectors.is_multiple_of(sector.ratio()));
        }
        self.response.push(response.as_ms());
        self.quantiles.push(response);
        self.parts.push(&outcome.breakdown().parts());
    }

    /// Returns the summaries of the devices, over the same time as this one. Empty if there is only
    /// one device.
    pub fn devices(&mut self) -> &mut [Summary] {
        for device in &mut self.devices {
            (device.from, device.until) = (self.from, self.until);
        }
        &mut self.devices
    }

    /// Returns the number of requests in the summary.
    pub fn requests(&self) -> u64 {
        self.response.count()
    }

    /// Returns the mean of each component of the response time, in milliseconds.
    pub fn part_means_ms(&self) -> [f64; 8] {
        self.parts.means_ms()
    }

    /// Returns every figure, in the order of the JSON text.
    pub fn figures(&mut self) -> Vec<Figure> {
        let span = self.until.saturating_since(self.from).as_ms();
        let per_second = |count: f64| if span > 0.0 { count / span * 1e3 } else { 0.0 };
        let count = self.requests() as f64;
        let mut figures = Vec::new();
        let mut add = |group, key, value| figures.push(Figure { group, key, value });
        add(None, "requests", count);
        add(None, "simulated_ms", span);
        add(None, "requests_per_s", per_second(count));
        add(None, "mb_per_s", per_second(self.bytes as f64 / 1e6));
        let response = Some("response_ms");
        add(response, "mean", self.response.mean());
        add(response, "deviation", self.response.deviation());
        add(response, "min", self.response.min().unwrap_or(0.0));
        for (key, _, share) in PERCENTILES {
            let time = self.quantiles.at(share);
            add(response, key, time.map_or(0.0, |time| time.as_ms()));
        }
        add(response, "max", self.response.max().unwrap_or(0.0));
        for (name, mean) in Breakdown::NAMES.into_iter().zip(self.parts.means_ms()) {
            add(Some("breakdown_ms"), name, mean);
        }
        if let Some(mean) = self.drive_response_ms {
            add(None, DRIVE_RESPONSE, mean);
        }
        let share = |part: u64| {
            if count > 0.0 {
                part as f64 / count
            } else {
                0.0
            }
        };
        add(None, "buffer_share", share(self.from_buffer));
        add(None, "buffer_and_media_share", share(self.from_both));
        add(None, PARTIAL_WRITES, self.partial_writes as f64);
        figures
    }

    /// Returns the keys of a synthetic workload that avoid partial writes of physical sectors;
    /// `None` if there are no such writes.
    pub fn alignment(&self, sector: SectorSpec) -> Option<String> {
        let SectorSpec {
            lowest_aligned_lbn: offset,
            ..
        } = sector;
        let ratio = sector.ratio();
        (self.partial_writes > 0).then(|| {
            let mut keys = format!("align={ratio}");
            if offset > 0 {
                keys += &format!(",offset={offset}");
            }
            if self.odd_sized_writes > 0 {
                keys += &format!(",round={ratio}");
            }
            keys
        })
    }
}

/// The key of the mean of the arrays' requests to drives, which only machines with arrays have.
pub const DRIVE_RESPONSE: &str = "drive_response_ms";

/// The key of the number of writes that cover a physical sector only in part.
pub const PARTIAL_WRITES: &str = "partial_sector_writes";

/// Returns whether a request begins or ends inside a physical sector.
fn is_partial(request: &Request, sector: SectorSpec) -> bool {
    let ratio = u64::from(sector.ratio());
    let begins = |lbn: u64| lbn % ratio == u64::from(sector.lowest_aligned_lbn);
    !(begins(request.lbn.0) && begins(request.end().0))
}

/// The figures of one run, or their means over several.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    all: Vec<(Figure, Option<f64>)>,
    /// The figures of each device; empty if there is only one.
    devices: Vec<Figures>,
}

impl Figures {
    /// Returns the figures of one run, or their means over several.
    pub fn of(summaries: &mut [Summary]) -> Figures {
        match summaries {
            [one] => Figures::of_one(one),
            several => Figures::of_runs(several),
        }
    }

    /// Returns the figures of one run.
    pub fn of_one(summary: &mut Summary) -> Figures {
        let all = summary.figures().into_iter();
        Figures {
            all: all.map(|figure| (figure, None)).collect(),
            devices: summary.devices().iter_mut().map(Figures::of_one).collect(),
        }
    }

    /// Returns means over several runs with the half widths of their 95 % intervals.
    pub fn of_runs(summaries: &mut [Summary]) -> Figures {
        let all = summaries.iter_mut().map(Summary::figures).collect();
        let devices = summaries.first().map_or(0, |run| run.devices.len());
        let of_device = |device: usize| {
            let runs = summaries.iter_mut();
            Figures::means(runs.map(|run| run.devices()[device].figures()).collect())
        };
        Figures {
            devices: (0..devices).map(of_device).collect(),
            ..Figures::means(all)
        }
    }

    /// Returns the means of the figures of several runs.
    fn means(runs: Vec<Vec<Figure>>) -> Figures {
        let over_runs = |(index, figure): (usize, &Figure)| {
            let values: Vec<f64> = runs.iter().map(|run| run[index].value).collect();
            let interval =
                ConfidenceInterval::of(&values, ConfidenceLevel::P95).expect("there is a run");
            let figure = Figure {
                value: interval.mean,
                ..*figure
            };
            (figure, interval.half_width)
        };
        let first = runs.first().into_iter().flatten();
        Figures {
            all: first.enumerate().map(over_runs).collect(),
            devices: Vec::new(),
        }
    }

    /// Returns the figures of each device. Empty if there is only one device.
    pub fn devices(&self) -> &[Figures] {
        &self.devices
    }

    /// Returns all figures in the order of the JSON text, each with the half width of its interval
    /// if it is a mean over runs.
    pub fn iter(&self) -> impl Iterator<Item = (Figure, Option<f64>)> {
        self.all.iter().copied()
    }

    /// Returns a figure and the half width of its interval; 0 if there is no such figure.
    pub fn get(&self, group: Option<&str>, key: &str) -> (f64, Option<f64>) {
        let found = self
            .all
            .iter()
            .find(|(figure, _)| figure.group == group && figure.key == key);
        found.map_or((0.0, None), |(figure, half_width)| {
            (figure.value, *half_width)
        })
    }

    /// Returns whether there is a figure.
    pub fn has(&self, group: Option<&str>, key: &str) -> bool {
        let mut all = self.all.iter();
        all.any(|(figure, _)| figure.group == group && figure.key == key)
    }

    /// Adds the figures to a JSON object.
    pub fn json(&self, object: &mut Map<String, Value>) {
        for (figure, half_width) in &self.all {
            let value = match half_width {
                None if ["requests", PARTIAL_WRITES].contains(&figure.key) => {
                    json!(figure.value as u64)
                }
                None => json!(figure.value),
                Some(half_width) => json!({ "mean": figure.value, "half_width": half_width }),
            };
            let place = match figure.group {
                Some(group) => object
                    .entry(group)
                    .or_insert_with(|| json!({}))
                    .as_object_mut()
                    .expect("groups are objects"),
                None => &mut *object,
            };
            place.insert(figure.key.to_owned(), value);
        }
    }

    /// Writes the figures as the text that the command prints.
    ///
    /// # Errors
    /// Returns an error of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let plain = |key| self.get(None, key);
        let response = |key| self.get(Some("response_ms"), key);
        let seconds = {
            let (ms, half_width) = plain("simulated_ms");
            format_figure((ms / 1e3, half_width.map(|ms| ms / 1e3)), 3)
        };
        writeln!(
            out,
            "requests    {} in {seconds} s of simulated time",
            format_figure(plain("requests"), 0)
        )?;
        let (requests, megabytes) = (plain("requests_per_s"), plain("mb_per_s"));
        writeln!(
            out,
            "throughput  {} requests/s, {} MB/s",
            format_figure(requests, decimals_of_rate(requests.0, 2)),
            format_figure(megabytes, decimals_of_rate(megabytes.0, 3))
        )?;
        writeln!(out, "\nresponse time, ms")?;
        for key in ["mean", "deviation", "min"] {
            writeln!(out, "  {key:<12}{}", column(response(key)))?;
        }
        for (key, title, _) in PERCENTILES {
            writeln!(out, "  {title:<12}{}", column(response(key)))?;
        }
        writeln!(out, "  {:<12}{}", "max", column(response("max")))?;

        if self.has(None, DRIVE_RESPONSE) {
            let mean = plain(DRIVE_RESPONSE);
            writeln!(
                out,
                "  mean of the arrays' requests to drives: {}",
                format_figure(mean, 3)
            )?;
        }

        writeln!(out, "\nwhere the time went, ms")?;
        let mean = response("mean").0;
        for name in Breakdown::NAMES {
            let part = self.get(Some("breakdown_ms"), name);
            let share = if mean > 0.0 {
                part.0 / mean * 100.0
            } else {
                0.0
            };
            let title = name.replace('_', " ");
            writeln!(out, "  {title:<12}{}{share:>8.1} %", column(part))?;
        }
        let percent = |value: f64| value * 100.0;
        let share = |key| {
            let (share, half_width) = plain(key);
            format_figure((percent(share), half_width.map(percent)), 1)
        };
        writeln!(
            out,
            "\nserved: {} % from the buffer, {} % from buffer and media",
            share("buffer_share"),
            share("buffer_and_media_share")
        )?;
        let (partial, half_width) = plain(PARTIAL_WRITES);
        if partial > 0.0 {
            let decimals = usize::from(half_width.is_some());
            writeln!(
                out,
                "partial writes of physical sectors: {}",
                format_figure((partial, half_width), decimals)
            )?;
        }
        Ok(())
    }
}

/// Returns the number of decimals for a rate: `usual`, or more for a small rate, so that two
/// significant digits remain.
fn decimals_of_rate(rate: f64, usual: usize) -> usize {
    let digits_remain = |decimals: &usize| rate * 10f64.powi(*decimals as i32) >= 10.0;
    (usual..RATE_DECIMALS_MAX)
        .find(digits_remain)
        .unwrap_or(if rate > 0.0 { RATE_DECIMALS_MAX } else { usual })
}

/// Formats a figure and its interval with the given number of decimals.
pub fn format_figure((value, half_width): (f64, Option<f64>), decimals: usize) -> String {
    match half_width {
        None => format!("{value:.decimals$}"),
        Some(half_width) => format!("{value:.decimals$} ± {half_width:.decimals$}"),
    }
}

/// Formats a figure and its interval for a column of times.
fn column((value, half_width): (f64, Option<f64>)) -> String {
    match half_width {
        None => format!("{value:>10.3}"),
        Some(half_width) => format!("{value:>10.3} ± {half_width:<7.3}"),
    }
}
