//! What a drive carries, or what a number of streams takes: the planner.

use traxtent_core::units::Span;
use traxtent_core::video::{BitRate, buffer_bytes, startup_latency};

use super::VideoError;
use super::extents::{Extents, Placement};
use super::rounds::Order;
use super::soft::{Alignment, PARTS, SoftServer, TRACKS_MAX};
use super::worst::{Accounting, worst_round};
use crate::bench::{Bench, LabError};

/// What admission promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Of 10,000 simulated rounds, one may be late: served in this order, so many simulated.
    Soft {
        /// How a round is served.
        order: Order,
        /// How many rounds are simulated.
        rounds: u32,
    },
    /// No round is ever late, wherever its requests are.
    Hard,
}

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// The bits that a stream plays in a second.
    pub bitrate: BitRate,
    /// The streams in all, or as many as there can be.
    pub streams: Option<u32>,
    /// The longest round, or the shortest there can be for the streams.
    pub round: Option<Span>,
    /// Disks over which the videos are spread.
    pub disks: u32,
    /// The zone that holds the videos.
    pub zone: u32,
    /// What is promised.
    pub guarantee: Guarantee,
}

/// What a server can do with I/Os of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// How videos are laid out.
    pub placement: Placement,
    /// Bytes of an I/O; where tracks differ, the least.
    pub io_bytes: u64,
    /// How long a round lasts.
    pub round: Span,
    /// The most streams a disk.
    pub streams_per_disk: u32,
    /// How many are served: those asked for, or else all that there can be.
    pub streams: u64,
    /// How long a viewer waits at worst.
    pub startup: Span,
    /// Memory for the streams served.
    pub buffer_bytes: u64,
}

/// What is possible with whole tracks, and without; none where nothing is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Bytes of the shortest track of the zone.
    pub track_bytes: u64,
    /// With whole tracks.
    pub aligned: Option<Offer>,
    /// With I/Os anywhere.
    pub unaligned: Option<Offer>,
}

/// Answers what is asked of a server with such drives.
///
/// # Errors
/// If the drive lacks the zone, or has no mechanics.
pub fn plan(bench: &Bench, ask: &Ask) -> Result<Plan, LabError> {
    let planner = Planner::new(bench, ask)?;
    // The two simulate apart.
    let (aligned, unaligned) = std::thread::scope(|scope| {
        let unaligned = scope.spawn(|| planner.offer(Alignment::Unaligned));
        let aligned = planner.offer(Alignment::Aligned);
        (
            aligned,
            unaligned.join().expect("planning does not panic"),
        )
    });
    Ok(Plan {
        track_bytes: planner.bytes(Placement::Aligned { tracks: 1 }),
        aligned: aligned?,
        unaligned: unaligned?,
    })
}

struct Planner<'a> {
    bench: &'a Bench,
    ask: &'a Ask,
    extents: Extents,
}

impl<'a> Planner<'a> {
    fn new(bench: &'a Bench, ask: &'a Ask) -> Result<Planner<'a>, VideoError> {
        if bench.profile.mechanics.is_none() {
            return Err(VideoError::NoMechanics {
                drive: bench.profile.name.clone(),
            });
        }
        let extents = Extents::in_zone(bench, ask.zone)?;
        Ok(Planner {
            bench,
            ask,
            extents,
        })
    }

    fn offer(&self, alignment: Alignment) -> Result<Option<Offer>, LabError> {
        let placement = match (self.ask.round, self.streams_per_disk()) {
            (Some(round), _) => self.longest_io(alignment, round),
            (None, Some(streams)) => self.least_io(alignment, streams)?,
            (None, None) => Some(self.server().of_size(alignment, one_track(alignment))),
        };
        let Some(placement) = placement else {
            return Ok(None);
        };
        let round = self.server().play_time(placement);
        let most = self.most_streams(placement, round)?;
        let streams = match self.ask.streams {
            Some(streams) => u64::from(streams),
            None => u64::from(most) * u64::from(self.ask.disks),
        };
        let io_bytes = self.bytes(placement);
        Ok(Some(Offer {
            placement,
            io_bytes,
            round,
            streams_per_disk: most,
            streams,
            startup: startup_latency(round, self.ask.disks),
            buffer_bytes: buffer_bytes(io_bytes, streams),
        }))
    }

    /// Streams of the fullest disk.
    fn streams_per_disk(&self) -> Option<u32> {
        Some(self.ask.streams?.div_ceil(self.ask.disks))
    }

    /// The longest I/O that plays no longer than a round.
    fn longest_io(&self, alignment: Alignment, round: Span) -> Option<Placement> {
        let bytes = self.ask.bitrate.bytes_in(round);
        let sectors = bytes / u64::from(self.bench.profile.sector.logical_bytes);
        match alignment {
            Alignment::Unaligned => {
                let sectors = u32::try_from(sectors).ok()?;
                let placement = Placement::Unaligned { sectors };
                (sectors > 0 && self.extents.room(placement) > 0).then_some(placement)
            }
            Alignment::Aligned => {
                let aligned = |tracks| Placement::Aligned { tracks };
                let plays = |tracks: &u32| self.server().play_time(aligned(*tracks)) <= round;
                let tracks = (1..=TRACKS_MAX).take_while(plays).last()?;
                (self.extents.room(aligned(tracks)) > 0).then_some(aligned(tracks))
            }
        }
    }

    /// The shortest I/O that carries so many streams.
    fn least_io(&self, alignment: Alignment, streams: u32) -> Result<Option<Placement>, LabError> {
        if let Guarantee::Soft { .. } = self.ask.guarantee {
            return self.server().least_io(alignment, streams, 1);
        }
        for size in 1..=TRACKS_MAX * one_track(alignment) {
            let placement = self.server().of_size(alignment, size);
            let round = self.server().play_time(placement);
            if self.most_streams(placement, round)? >= streams {
                return Ok(Some(placement));
            }
        }
        Ok(None)
    }

    fn most_streams(&self, placement: Placement, round: Span) -> Result<u32, LabError> {
        match self.ask.guarantee {
            Guarantee::Soft { .. } => self.server().most_streams(placement, round),
            Guarantee::Hard => {
                let worst = worst_round(
                    self.bench,
                    &self.extents,
                    placement,
                    Accounting::Complete,
                )?;
                Ok(worst.most_streams(round).min(self.extents.room(placement)))
            }
        }
    }

    fn server(&self) -> SoftServer<'_> {
        let (order, rounds) = match self.ask.guarantee {
            Guarantee::Soft { order, rounds } => (order, rounds),
            Guarantee::Hard => (Order::Sweep, 0),
        };
        SoftServer {
            bench: self.bench,
            extents: &self.extents,
            bitrate: self.ask.bitrate,
            order,
            rounds,
        }
    }

    fn bytes(&self, placement: Placement) -> u64 {
        let bytes = u64::from(self.bench.profile.sector.logical_bytes);
        self.extents.least_sectors(placement).saturating_mul(bytes)
    }
}

/// The size of a track in the steps of an alignment.
fn one_track(alignment: Alignment) -> u32 {
    match alignment {
        Alignment::Aligned => 1,
        Alignment::Unaligned => PARTS,
    }
}
