//! The planner: the number of streams that a drive carries, or the I/O size and round length that a
//! number of streams needs.

use traxtent_layout::video::{BitRate, buffer_bytes, startup_latency};
use traxtent_units::Span;

use super::VideoError;
use super::extents::{Alignment, Extents, Placement, TRACKS_MAX};
use super::rounds::Order;
use super::soft::{ProgressFn, SoftServer};
use super::worst::{Accounting, HardServer};
use crate::TestDrive;

/// The guarantee that admission gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// At most one request in 10,000 is late in the simulation.
    Soft {
        /// The order in which a round is served.
        order: Order,
        /// The number of rounds that are simulated.
        rounds: u32,
    },
    /// No round is ever late, wherever its requests are.
    Hard,
}

/// The requirements of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerRequirements {
    /// The bit rate of a stream.
    pub bitrate: BitRate,
    /// The total number of streams; `None` for the largest possible number.
    pub streams: Option<u32>,
    /// The longest round; `None` for the shortest that carries the streams. If `streams` is also
    /// `None`, an I/O has the size of a track.
    pub round: Option<Span>,
    /// The number of disks over which the videos are spread.
    pub disks: u32,
    /// The zone that holds the videos.
    pub zone: u32,
    /// The guarantee.
    pub guarantee: Guarantee,
}

/// The capability of a server with I/Os of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// The layout of the videos.
    pub placement: Placement,
    /// The number of bytes of an I/O. If tracks differ, the minimum.
    pub io_bytes: u64,
    /// The length of a round.
    pub round: Span,
    /// The largest number of streams per disk.
    pub streams_per_disk: u32,
    /// The number of streams: the requested number, even if the disks cannot serve that many; if
    /// none was requested, the largest possible number.
    pub streams: u64,
    /// The longest time that a viewer waits for the first picture.
    pub startup: Span,
    /// The buffer memory for these streams, in bytes, for I/Os of `io_bytes`.
    pub buffer_bytes: u64,
}

/// The offers with and without whole tracks; `None` if no size of an I/O is suitable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoPlan {
    /// The number of bytes of the shortest track of the zone.
    pub track_bytes: u64,
    /// The offer with whole tracks.
    pub aligned: Option<Offer>,
    /// The offer with I/Os at any place.
    pub unaligned: Option<Offer>,
}

/// Plans a server whose disks are all like `drive`. For a soft guarantee, `watch` is called from
/// time to time with the number of rounds simulated since its last call.
///
/// # Errors
/// Returns an error if the drive has no such zone or no mechanics, if the zone contains no whole
/// track, or if a simulation ends early.
pub fn plan(
    drive: &TestDrive,
    requirements: &ServerRequirements,
    watch: ProgressFn<'_>,
) -> Result<VideoPlan, VideoError> {
    let extents = Extents::in_zone(drive, requirements.zone)?;
    let planner = Planner::new(drive, &extents, requirements, watch)?;
    // The two offers are computed in parallel.
    let (aligned, unaligned) = std::thread::scope(|scope| {
        let unaligned = scope.spawn(|| planner.offer(Alignment::Unaligned));
        let aligned = planner.offer(Alignment::Aligned);
        (aligned, unaligned.join().expect("planning does not panic"))
    });
    Ok(VideoPlan {
        track_bytes: extents.least_bytes(Placement::Aligned { tracks: 1 }),
        aligned: aligned?,
        unaligned: unaligned?,
    })
}

struct Planner<'a> {
    requirements: &'a ServerRequirements,
    extents: &'a Extents,
    admission: Admission<'a>,
}

enum Admission<'a> {
    Soft(SoftServer<'a>),
    Hard(Box<HardServer<'a>>),
}

impl<'a> Planner<'a> {
    fn new(
        drive: &'a TestDrive,
        extents: &'a Extents,
        requirements: &'a ServerRequirements,
        watch: ProgressFn<'a>,
    ) -> Result<Planner<'a>, VideoError> {
        let hard = HardServer::new(drive, extents, requirements.bitrate)?;
        let admission = match requirements.guarantee {
            Guarantee::Hard => Admission::Hard(Box::new(hard)),
            Guarantee::Soft { order, rounds } => Admission::Soft(SoftServer {
                drive,
                extents,
                bitrate: requirements.bitrate,
                order,
                rounds,
                watch,
            }),
        };
        Ok(Planner {
            requirements,
            extents,
            admission,
        })
    }

    fn offer(&self, alignment: Alignment) -> Result<Option<Offer>, VideoError> {
        let placement = match (self.requirements.round, self.requested_per_disk()) {
            (Some(round), _) => self.longest_io(alignment, round),
            (None, Some(streams)) => self.least_io(alignment, streams)?,
            (None, None) => Some(self.extents.io(alignment, alignment.steps())),
        };
        let Some(placement) = placement else {
            return Ok(None);
        };
        let round = self.extents.play_time(placement, self.requirements.bitrate);
        let most = self.most_streams(placement)?;
        let streams = match self.requirements.streams {
            Some(streams) => u64::from(streams),
            None => u64::from(most) * u64::from(self.requirements.disks),
        };
        let io_bytes = self.extents.least_bytes(placement);
        Ok(Some(Offer {
            placement,
            io_bytes,
            round,
            streams_per_disk: most,
            streams,
            startup: startup_latency(round, self.requirements.disks),
            buffer_bytes: buffer_bytes(io_bytes, streams),
        }))
    }

    /// The number of requested streams on the fullest disk.
    fn requested_per_disk(&self) -> Option<u32> {
        Some(self.requirements.streams?.div_ceil(self.requirements.disks))
    }

    /// The longest I/O whose playing time does not exceed a round.
    fn longest_io(&self, alignment: Alignment, round: Span) -> Option<Placement> {
        let fits = |placement: &Placement| {
            self.extents
                .play_time(*placement, self.requirements.bitrate)
                <= round
                && self.extents.room(*placement) > 0
        };
        let sizes = 1..=TRACKS_MAX * alignment.steps();
        let placements = sizes.map(|steps| self.extents.io(alignment, steps));
        placements.take_while(fits).last()
    }

    /// The shortest I/O that carries `streams` streams.
    fn least_io(
        &self,
        alignment: Alignment,
        streams: u32,
    ) -> Result<Option<Placement>, VideoError> {
        match &self.admission {
            Admission::Soft(server) => Ok(server.least_io(alignment, streams, 1)?),
            Admission::Hard(server) => {
                let carries = |placement: &Placement| {
                    server.most_streams(*placement, Accounting::Complete) >= streams
                };
                let sizes = 1..=TRACKS_MAX * alignment.steps();
                let mut placements = sizes.map(|steps| self.extents.io(alignment, steps));
                Ok(placements.find(carries))
            }
        }
    }

    fn most_streams(&self, placement: Placement) -> Result<u32, VideoError> {
        match &self.admission {
            Admission::Hard(server) => Ok(server.most_streams(placement, Accounting::Complete)),
            Admission::Soft(server) => {
                let round = self.extents.play_time(placement, self.requirements.bitrate);
                Ok(server.most_streams(placement, round)?)
            }
        }
    }
}
