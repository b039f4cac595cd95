//! `traxtent plan`: plans for stacks and video servers.

use std::io::Write;

use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use traxtent_layout::video::BitRate;
use traxtent_run::NamedDrive;
use traxtent_sim::TestDrive;
use traxtent_sim::video::{
    self, Guarantee, Offer, Order, Placement, ROUNDS, ServerRequirements, VideoPlan,
};
use traxtent_units::{Count, Span};

use crate::drives::bytes;
use crate::failure::{Failure, Result};
use crate::machine::{TARGET_HELP, load};
use crate::output;
use crate::parse;
use crate::plan_stack::{self, StackArgs};
use crate::progress::Progress;
use crate::table::{Side, Table};

/// Plan a stack or a video server on a drive
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Stack(StackArgs),
    Video(VideoArgs),
}

/// Find the number of video streams that disks support, with I/O size, round, startup latency and
/// memory
///
/// The server fetches an I/O for every stream in each round. Aligned I/Os are whole tracks;
/// unaligned I/Os can begin anywhere. Results for both are shown side by side. Use --streams to
/// find the shortest round that supports this number of streams, --round to find how many streams
/// it supports, both to test the combination, or neither for rounds that last as long as a track
/// plays. Exit status 1 means that neither aligned nor unaligned I/Os support the request.
/// docs/guides/video.md explains the terms.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
struct VideoArgs {
    #[arg(value_name = "DRIVE", help = TARGET_HELP)]
    target: String,
    /// The bit rate of a stream: 4Mb/s, 500kB/s
    #[arg(long, value_name = "RATE", value_parser = parse::bitrate, allow_hyphen_values = true)]
    bitrate: BitRate,
    /// The total number of streams
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    streams: Option<u32>,
    /// The longest round: 500ms, 2s
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    round: Option<Span>,
    /// The number of disks of this kind over which the videos are distributed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    disks: u32,
    /// The zone that holds the videos; 0 is the outermost
    #[arg(long, value_name = "N", default_value_t = 0)]
    zone: u32,
    /// Guarantee every deadline, from the drive's worst case; without this, 99.99 % of deadlines,
    /// by simulation
    #[arg(long)]
    hard: bool,
    /// The order in which a round is served: sorted by position, or by the drive's own scheduling
    #[arg(long, value_name = "ORDER", value_parser = orders(), default_value = Order::Sweep.name(), conflicts_with = "hard")]
    order: Order,
    /// The number of simulated rounds
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..=10_000_000), conflicts_with = "hard")]
    rounds: u32,
    /// Change a parameter of the drive; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::setting)]
    set: Vec<(String, String)>,
    /// The seed of the streams' positions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn orders() -> impl clap::builder::TypedValueParser<Value = Order> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Order::ALL.map(Order::name)).map(|name| {
        let mut orders = Order::ALL.into_iter();
        let order = orders.find(|order| order.name() == name);
        order.expect("only names of orders pass")
    })
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Stack(args) => plan_stack::run(args),
        Verb::Video(args) => plan_video(args),
    }
}

fn plan_video(args: &VideoArgs) -> Result<()> {
    let mut machine = load(&args.target)?;
    machine.set_all(&args.set)?;
    let drive = machine.only_drive()?;
    let requirements = args.requirements();
    let test_drive = TestDrive::new(drive.profile.as_ref().clone(), args.seed);
    let test_drive = test_drive.map_err(|error| Failure::at(&args.target, error))?;
    let plan = {
        let progress = Progress::new("rounds", None);
        video::plan(&test_drive, &requirements, &|rounds| progress.add(rounds))
    };
    let plan = plan.map_err(|error| Failure::at(&args.target, error))?;
    let answer = VideoResult {
        drive: &drive,
        requirements: &requirements,
        plan: &plan,
    };
    if args.json {
        output::json(&answer.json())?;
    } else {
        answer.print()?;
    }
    answer.verdict()
}

impl VideoArgs {
    fn requirements(&self) -> ServerRequirements {
        ServerRequirements {
            bitrate: self.bitrate,
            streams: self.streams,
            round: self.round,
            disks: self.disks,
            zone: self.zone,
            guarantee: if self.hard {
                Guarantee::Hard
            } else {
                Guarantee::Soft {
                    order: self.order,
                    rounds: self.rounds,
                }
            },
        }
    }
}

/// A plan, and the requirements and drive that it is for.
struct VideoResult<'a> {
    drive: &'a NamedDrive,
    requirements: &'a ServerRequirements,
    plan: &'a VideoPlan,
}

/// An offer as JSON.
#[derive(Serialize)]
struct OfferJson {
    io_bytes: u64,
    io_tracks: Option<u32>,
    round_s: f64,
    streams: u64,
    streams_per_disk_most: u32,
    carries: bool,
    startup_s: f64,
    memory_bytes: u64,
}

impl VideoResult<'_> {
    fn offers(&self) -> [Option<&Offer>; 2] {
        [self.plan.aligned.as_ref(), self.plan.unaligned.as_ref()]
    }

    /// Returns the number of streams on the fullest disk.
    fn streams_per_disk(&self, offer: &Offer) -> u64 {
        offer.streams.div_ceil(u64::from(self.requirements.disks))
    }

    fn carries(&self, offer: &Offer) -> bool {
        let most = offer.streams_per_disk;
        most > 0 && self.streams_per_disk(offer) <= u64::from(most)
    }

    fn json(&self) -> serde_json::Value {
        let offer = |offer: Option<&Offer>| {
            offer.map(|offer| OfferJson {
                io_bytes: offer.io_bytes,
                io_tracks: match offer.placement {
                    Placement::Aligned { tracks } => Some(tracks),
                    Placement::Unaligned { .. } => None,
                },
                round_s: seconds(offer.round),
                streams: offer.streams,
                streams_per_disk_most: offer.streams_per_disk,
                carries: self.carries(offer),
                startup_s: seconds(offer.startup),
                memory_bytes: offer.buffer_bytes,
            })
        };
        let [aligned, unaligned] = self.offers().map(offer);
        let (order, rounds) = match self.requirements.guarantee {
            Guarantee::Hard => (None, None),
            Guarantee::Soft { order, rounds } => (Some(order.name()), Some(rounds)),
        };
        json!({
            "drive": self.drive.name,
            "zone": self.requirements.zone,
            "track_bytes": self.plan.track_bytes,
            "bits_per_s": self.requirements.bitrate.0,
            "disks": self.requirements.disks,
            "guarantee": if order.is_none() { "hard" } else { "soft" },
            "order": order,
            "rounds": rounds,
            "aligned": aligned,
            "unaligned": unaligned,
        })
    }

    fn print(&self) -> Result<()> {
        let mut out = output::stdout();
        writeln!(
            out,
            "{}, zone {}, where a track has {} and plays for {}; {}",
            self.drive.profile.model,
            self.requirements.zone,
            bytes(self.plan.track_bytes),
            time(self.requirements.bitrate.play_time(self.plan.track_bytes)),
            match self.requirements.guarantee {
                Guarantee::Hard => "every deadline met".to_owned(),
                Guarantee::Soft { rounds, .. } => format!(
                    "99.99 % of deadlines met in {}",
                    Count(rounds, "simulated round")
                ),
            }
        )?;
        let mut table = Table::new([
            ("", Side::Left),
            ("ALIGNED", Side::Right),
            ("UNALIGNED", Side::Right),
        ]);
        let mut row = |title: &str, show: &dyn Fn(&Offer) -> String| {
            let cells = self
                .offers()
                .map(|offer| offer.map_or("-".to_owned(), show));
            table.row([title.to_owned()].into_iter().chain(cells));
        };
        row("I/O", &|offer| match offer.placement {
            Placement::Aligned { tracks } => {
                format!("{}, {}", Count(tracks, "track"), bytes(offer.io_bytes))
            }
            Placement::Unaligned { .. } => bytes(offer.io_bytes),
        });
        row("round", &|offer| time(offer.round));
        row("streams per disk, at most", &|offer| {
            offer.streams_per_disk.to_string()
        });
        row("streams", &|offer| {
            if self.carries(offer) {
                offer.streams.to_string()
            } else {
                format!("not {}", offer.streams)
            }
        });
        row("startup latency, at most", &|offer| time(offer.startup));
        row("memory", &|offer| bytes(offer.buffer_bytes));
        table.write(&mut out)?;
        output::finish(out)
    }

    /// Returns an error, which sets the exit status, if no offer supports the streams.
    fn verdict(&self) -> Result<()> {
        if self
            .offers()
            .into_iter()
            .flatten()
            .any(|offer| self.carries(offer))
        {
            return Ok(());
        }
        let streams = self
            .requirements
            .streams
            .map_or("a stream".to_owned(), |n| Count(n, "stream").to_string());
        let within = match (self.requirements.round, self.requirements.streams) {
            (Some(round), _) => format!("within rounds of {}", time(round)),
            (None, Some(_)) => format!("with I/Os of up to {} tracks", video::TRACKS_MAX),
            (None, None) => "with I/Os of one track".to_owned(),
        };
        Err(Failure::Finding(format!(
            "{} not carry {streams} {within}, aligned or not",
            match self.requirements.disks {
                1 => "one disk does".to_owned(),
                disks => format!("{disks} disks do"),
            },
        )))
    }
}

fn seconds(span: Span) -> f64 {
    span.as_ms() / 1e3
}

/// Formats a time with about three significant digits.
fn time(span: Span) -> String {
    let s = seconds(span);
    let decimals = [1.0, 10.0, 100.0]
        .iter()
        .filter(|bound| s < **bound)
        .count();
    if s < 0.1 {
        format!("{:.1} ms", span.as_ms())
    } else {
        format!("{s:.decimals$} s")
    }
}
