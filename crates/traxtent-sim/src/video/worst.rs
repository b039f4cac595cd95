//! Hard real time: the longest time that a round can take, computed from a drive's profile.
//!
//! There are two ways of accounting. [`Accounting::Published`] is that of paper T (section 5.4.2):
//! the worst route of seeks, a revolution of latency if the drive must wait, transfer at the rate
//! of the zone, and head switches. [`Accounting::Complete`] is what can be guaranteed. It adds the
//! parts that the paper leaves out: the first seek of a round from an arbitrary arm position,
//! changes of the cylinder within an I/O, tracks of which an I/O has only a part, commands,
//! read-ahead that must be stopped, and the last transfer over the bus. Both assume that seeks
//! cover the whole drive.
//!
//! Left out of both: extents with remapped sectors, which a server with deadlines leaves unused,
//! and requests of other clients.

use traxtent_layout::video::{BitRate, RoundBound, SeekBound};
use traxtent_model::geometry::Track;
use traxtent_model::mechanics::{HeadPosition, Mechanics};
use traxtent_model::profile::{Preseek, Profile};
use traxtent_units::{SimTime, Span};

use super::VideoError;
use super::extents::{Extents, Placement};
use crate::TestDrive;

/// The parts that a bound on a round includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// The parts that paper T names.
    Published,
    /// Everything that the drive does.
    Complete,
}

/// The part of the media that an I/O reads.
struct Io {
    /// The number of sectors. Each whole track counts as the smallest track of the zone.
    sectors: u64,
    /// The largest number of tracks that it touches.
    tracks: usize,
    aligned: bool,
}

/// A server that admits streams by the worst case of its disk.
#[derive(Clone, Debug)]
pub struct HardServer<'a> {
    profile: &'a Profile,
    extents: &'a Extents,
    bitrate: BitRate,
    mechanics: Mechanics,
    head_switch: Span,
    /// Seek times, at least as long as a head switch.
    seeks: SeekBound,
    /// The longest seek distance in cylinders.
    stroke: u64,
    tracks: Vec<Track>,
    least_sectors: u64,
}

impl<'a> HardServer<'a> {
    /// Creates a server of streams of a bit rate, with videos in some extents of a disk.
    ///
    /// # Errors
    /// Returns an error if the drive has no mechanics, and therefore no worst case.
    pub fn new(
        drive: &'a TestDrive,
        extents: &'a Extents,
        bitrate: BitRate,
    ) -> Result<HardServer<'a>, VideoError> {
        let (profile, geometry) = (&*drive.profile, &*drive.geometry);
        let Some(spec) = &profile.mechanics else {
            return Err(VideoError::NoMechanics);
        };
        let mechanics = Mechanics::new(spec, geometry.cylinders());
        let curve = mechanics.seek_curve(false);
        let head_switch = Span::from_ms(spec.head_switch_ms);
        let distances = 0..=curve.stroke();
        let seeks: Vec<Span> = distances
            .map(|distance| curve.time(distance).max(head_switch))
            .collect();
        let first = geometry.track_of(extents.first());
        let indices = first.map_or(0, |track| track.index)..;
        let tracks = indices.map_while(|index| geometry.track(index));
        Ok(HardServer {
            profile,
            extents,
            bitrate,
            head_switch,
            seeks: SeekBound::new(&seeks),
            stroke: u64::from(curve.stroke()),
            tracks: tracks.take(extents.tracks() as usize).collect(),
            least_sectors: extents.least_sectors(Placement::Aligned { tracks: 1 }),
            mechanics,
        })
    }

    /// The largest number of streams whose rounds never last longer than their I/Os play.
    pub fn most_streams(&self, placement: Placement, accounting: Accounting) -> u32 {
        let round = self.extents.play_time(placement, self.bitrate);
        let most = self.worst_round(placement, accounting).max_streams(round);
        most.min(self.extents.room(placement))
    }

    /// A bound on the time that rounds of such I/Os take, served in [`super::Order::Sweep`].
    pub fn worst_round(&self, placement: Placement, accounting: Accounting) -> RoundBound {
        match accounting {
            Accounting::Published => self.published(placement),
            Accounting::Complete => self.complete(placement),
        }
    }

    fn io(&self, placement: Placement) -> Io {
        match placement {
            Placement::Aligned { tracks } => Io {
                sectors: u64::from(tracks) * self.least_sectors,
                tracks: tracks as usize,
                aligned: true,
            },
            // One sector of the first track, whole tracks, and the rest.
            Placement::Unaligned { sectors } => Io {
                sectors: u64::from(sectors),
                tracks: 1 + (u64::from(sectors.max(1)) - 1).div_ceil(self.least_sectors) as usize,
                aligned: false,
            },
        }
    }

    fn published(&self, placement: Placement) -> RoundBound {
        let io = self.io(placement);
        let revolution = self.mechanics.revolution();
        let latency = if io.aligned && self.profile.access.zero_latency_read {
            Span::ZERO
        } else {
            revolution
        };
        let switches = times(self.head_switch, io.tracks as u64 - 1);
        RoundBound {
            fixed: Span::ZERO,
            request: latency + part(revolution, io.sectors, self.least_sectors) + switches,
            seeks: self.seeks.clone(),
            stroke: self.stroke,
            extra_cylinders: 0,
        }
    }

    fn complete(&self, placement: Placement) -> RoundBound {
        let io = self.io(placement);
        let media = self.media(&io);
        let commands = self.commands();
        let longest_io = u64::from(self.longest_track()) * io.tracks as u64;
        let bus = times(
            Span::from_ms(self.profile.bus.read_sector_ms),
            if io.aligned { longest_io } else { io.sectors },
        );
        let delivered = commands + bus + commands;
        RoundBound {
            fixed: commands + self.reading_ahead() + self.seeks.longest() + delivered,
            // If the drive seeks before a completion, the next I/O is read while one crosses the
            // bus, and the slower of the two decides.
            request: match self.profile.queue.preseek {
                Preseek::BeforeCompletion => media.max(delivered),
                Preseek::DuringCompletion | Preseek::None => media + delivered,
            },
            seeks: self.seeks.clone(),
            stroke: self.stroke,
            extra_cylinders: self.extra_cylinders(io.tracks),
        }
    }

    /// The longest time that the media need for an I/O, once the head is on its first track.
    fn media(&self, io: &Io) -> Span {
        let revolution = self.mechanics.revolution();
        let between = self.longest_run(io.tracks - 1);
        if self.profile.access.zero_latency_read {
            // Starting with the next sector, each track takes at most a revolution after the wait
            // for that sector, whatever part of the track is needed.
            let slots = self.tracks.iter().map(|track| track.slots).min();
            let slot = Span(revolution.0.div_ceil(u64::from(slots.unwrap_or(1))));
            return times(revolution + slot, io.tracks as u64) + between;
        }
        // Slots that hold none of the I/O's sectors pass as well.
        let unused = self.tracks.iter().map(|track| track.slots - track.sectors);
        let slots = io.sectors + u64::from(unused.max().unwrap_or(0)) * io.tracks as u64;
        let passing = part(revolution, slots, self.least_sectors);
        let passing = if io.aligned {
            times(revolution, io.tracks as u64)
        } else {
            passing.min(times(revolution, io.tracks as u64))
        };
        revolution + passing + between
    }

    /// The longest total time of `changes` consecutive track changes. A change ends on arrival at
    /// the next track if any of its sectors will do, otherwise at its first sector.
    fn longest_run(&self, changes: usize) -> Span {
        let any_sector = self.profile.access.zero_latency_read;
        let change = |pair: &[Track]| {
            let moved = self.change(&pair[0], &pair[1]);
            if any_sector {
                moved
            } else {
                moved + self.wait_after(&pair[0], moved, &pair[1])
            }
        };
        let times: Vec<u64> = self.tracks.windows(2).map(|pair| change(pair).0).collect();
        let changes = changes.min(times.len());
        let mut sum: u64 = times[..changes].iter().sum();
        let mut longest = sum;
        for (leaves, comes) in times.iter().zip(&times[changes..]) {
            sum = sum + comes - leaves;
            longest = longest.max(sum);
        }
        Span(longest)
    }

    fn change(&self, from: &Track, to: &Track) -> Span {
        let positions = (HeadPosition::from(from), HeadPosition::from(to));
        self.mechanics
            .reposition(positions.0, positions.1, false)
            .total()
    }

    /// The time for which the head, after reading a track to its end and moving, waits for the
    /// first sector of the next.
    fn wait_after(&self, track: &Track, moved: Span, next: &Track) -> Span {
        let left = SimTime(self.mechanics.edge(track, track.slots).0);
        self.mechanics
            .wait(left + moved, self.mechanics.edge(next, 0))
    }

    /// The number of cylinders by which a seek may exceed its share of the stroke. There are two
    /// causes: the order of LBNs can return to earlier cylinders, and while the sweep runs
    /// downward, each I/O moves the arm upward.
    fn extra_cylinders(&self, tracks: usize) -> u64 {
        let cylinders = self.tracks.iter().map(|track| track.cylinder.0);
        let farthest = cylinders.scan(0, |most, cylinder| {
            *most = cylinder.max(*most);
            Some(*most)
        });
        let farthest: Vec<u32> = farthest.collect();
        let back = self.tracks.iter().zip(&farthest);
        let back = back.map(|(track, most)| most - track.cylinder.0).max();
        let last = tracks.min(farthest.len()) - 1;
        let within = farthest.iter().zip(&farthest[last..]);
        let within = within.map(|(first, last)| last - first).max();
        u64::from(back.unwrap_or(0)) + u64::from(within.unwrap_or(0))
    }

    /// The longest time that the controller and the bus protocol take for a command.
    fn commands(&self) -> Span {
        let o = &self.profile.overheads;
        Span::from_ms(
            o.per_request_ms
                + o.read_miss_after_read_ms.max(o.read_miss_after_write_ms)
                + o.read_disconnect_after_read_ms
                    .max(o.read_disconnect_after_write_ms)
                + o.first_reselect_ms
                + o.other_reselect_ms
                + o.data_preparation_ms
                + o.read_completion_ms,
        )
    }

    /// The longest time to stop a read-ahead that the drive performs although the host has disabled
    /// it.
    fn reading_ahead(&self) -> Span {
        if self.profile.cache.read_ahead.ignores_host {
            self.mechanics.revolution() + self.longest_run(1)
        } else {
            Span::ZERO
        }
    }

    fn longest_track(&self) -> u32 {
        let sectors = self.tracks.iter().map(|track| track.sectors);
        sectors.max().unwrap_or(0)
    }
}

fn times(span: Span, count: u64) -> Span {
    Span(span.0 * count)
}

/// `of` / `whole` of a span, rounded up.
fn part(span: Span, of: u64, whole: u64) -> Span {
    Span((u128::from(span.0) * u128::from(of)).div_ceil(u128::from(whole)) as u64)
}
