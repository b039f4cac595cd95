//! Rounds of requests on a simulated drive.

use traxtent_model::drive::Caching;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::Scheduler;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Sectors, SimTime, Span};
use traxtent_workload::{Arrival, NextStep, RequestSource, TraceError, Urgency};

use crate::{Host, SimulateError, TestDrive, simulate};

/// The order in which the requests of a round are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order of their places, up or down from the end that is nearer to the arm (paper T,
    /// footnote 2: sorted to minimize the total seek distance). Two requests are at the drive, so
    /// it seeks while data still crosses the bus.
    #[default]
    Sweep,
    /// By the drive's own scheduler, which gets as many requests at once as it accepts.
    Drive,
}

impl Order {
    /// All orders.
    pub const ALL: [Order; 2] = [Order::Sweep, Order::Drive];

    /// The name of the order.
    pub fn name(self) -> &'static str {
        match self {
            Order::Sweep => "sweep",
            Order::Drive => "drive",
        }
    }

    fn depth(self) -> u32 {
        match self {
            Order::Sweep => 2,
            Order::Drive => u32::MAX,
        }
    }
}

/// Runs rounds on a drive, one after another. Each begins at the time and place at which the
/// previous one ended.
///
/// `draw` fills in the requests of a round in the order of their places, or returns false if there
/// are no more. `ended` receives the completion times of the requests, ascending and counted from
/// the beginning of the round. It may end the run by returning false.
///
/// The drive's buffer is switched off, if the drive obeys: a stream reads each of its extents once.
///
/// # Errors
/// Returns an error if the drive cannot serve a request.
pub fn run_rounds(
    drive: &TestDrive,
    order: Order,
    draw: impl FnMut(&mut Vec<Request>) -> bool,
    ended: impl FnMut(&[Span]) -> bool,
) -> Result<(), SimulateError> {
    let mut uncached = drive.at_rest();
    uncached.set_caching(SimTime::ZERO, Caching::OFF);
    let mut host = Host::new(vec![uncached]).with_queue(0, Scheduler::Fcfs, order.depth());
    let mut rounds = Rounds {
        geometry: &drive.geometry,
        draw,
        ended,
        requests: Vec::new(),
        issued: 0,
        complete: Vec::new(),
        tag: 0,
        begun: SimTime::ZERO,
        arm: Lbn(0),
    };
    rounds.begin(SimTime::ZERO);
    simulate(&mut host, &mut rounds, |_| true).map(drop)
}

/// The source of the requests.
struct Rounds<'a, Draw, Ended> {
    geometry: &'a Geometry,
    draw: Draw,
    ended: Ended,
    /// The requests of the round, in the order of service.
    requests: Vec<Request>,
    issued: usize,
    /// The completion times so far, counted from the beginning of the round.
    complete: Vec<Span>,
    tag: u64,
    begun: SimTime,
    /// The last sector of the round. The arm is assumed to be there when the round ends.
    arm: Lbn,
}

impl<Draw, Ended> Rounds<'_, Draw, Ended>
where
    Draw: FnMut(&mut Vec<Request>) -> bool,
{
    fn begin(&mut self, at: SimTime) {
        self.requests.clear();
        if !(self.draw)(&mut self.requests) {
            self.requests.clear();
        }
        self.complete.clear();
        (self.issued, self.begun) = (0, at);
        if let [lowest, .., highest] = self.requests[..] {
            // The sweep begins at the end that is nearer to the arm.
            let cylinder = |lbn| self.geometry.track_of(lbn).map_or(0, |t| t.cylinder.0);
            let away = |lbn| cylinder(self.arm).abs_diff(cylinder(lbn));
            if away(highest.lbn) < away(lowest.lbn) {
                self.requests.reverse();
            }
        }
        if let Some(last) = self.requests.last() {
            self.arm = last.end() - Sectors(1);
        }
    }
}

impl<Draw, Ended> RequestSource for Rounds<'_, Draw, Ended>
where
    Draw: FnMut(&mut Vec<Request>) -> bool,
    Ended: FnMut(&[Span]) -> bool,
{
    fn due(&mut self) -> Result<NextStep, TraceError> {
        Ok(if self.issued < self.requests.len() {
            NextStep::At(self.begun)
        } else if self.complete.len() < self.issued {
            NextStep::AfterCompletion
        } else {
            NextStep::Never
        })
    }

    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        let request = *self.requests.get(self.issued)?;
        self.issued += 1;
        self.tag += 1;
        Some(Arrival {
            at: now,
            tag: self.tag,
            device: 0,
            urgency: Urgency::None,
            measured: None,
            request,
        })
    }

    fn complete(&mut self, _: u64, at: SimTime) {
        self.complete.push(at.since(self.begun));
        if self.complete.len() == self.requests.len() {
            if (self.ended)(&self.complete) {
                self.begin(at);
            } else {
                self.requests.clear();
                self.complete.clear();
                self.issued = 0;
            }
        }
    }
}
