//! The places of the streams' I/Os: on whole tracks of a zone, or anywhere in it.

use traxtent_layout::video::BitRate;
use traxtent_model::geometry::Geometry;
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Span};

use super::VideoError;
use crate::TestDrive;

/// The layout of videos, and the amount fetched in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// An I/O is a number of whole tracks.
    Aligned {
        /// The number of tracks.
        tracks: u32,
    },
    /// An I/O is a number of sectors at any place.
    Unaligned {
        /// The number of sectors.
        sectors: u32,
    },
}

/// Whether I/Os are whole tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Whole tracks.
    Aligned,
    /// Any place.
    Unaligned,
}

impl Alignment {
    /// Both alignments.
    pub const BOTH: [Alignment; 2] = [Alignment::Aligned, Alignment::Unaligned];

    /// The number of steps per track in a search for the size of an I/O. Unaligned I/Os need not be
    /// whole tracks.
    pub fn steps(self) -> u32 {
        match self {
            Alignment::Aligned => 1,
            Alignment::Unaligned => 4,
        }
    }
}

/// The longest I/O that is tried, in tracks.
pub const TRACKS_MAX: u32 = 64;

/// The tracks of a zone that holds the videos.
#[derive(Clone, Debug)]
pub struct Extents {
    /// The first LBN of each track, followed by the first LBN after the last track.
    starts: Vec<Lbn>,
    sector_bytes: u64,
}

impl Extents {
    /// Returns the tracks that lie wholly in a zone. Zones are numbered from 0 in LBN order.
    ///
    /// # Errors
    /// Returns an error if the drive has no such zone, or no track lies wholly in it.
    pub fn in_zone(drive: &TestDrive, zone: u32) -> Result<Extents, VideoError> {
        let geometry: &Geometry = &drive.geometry;
        let zones = geometry.zones();
        let none = VideoError::NoSuchZone {
            zone,
            zones: zones.len(),
        };
        let Some(bounds) = zones.get(zone as usize) else {
            return Err(none);
        };
        let first = geometry.track_of(bounds.first_lbn).map(|track| track.index);
        let tracks = (first.unwrap_or(u64::MAX)..geometry.track_count())
            .map_while(|index| geometry.track(index))
            .skip_while(|track| track.first_lbn < bounds.first_lbn)
            .take_while(|track| track.end_lbn() <= bounds.end_lbn);
        let mut starts = Vec::new();
        let mut end = bounds.first_lbn;
        for track in tracks {
            starts.push(track.first_lbn);
            end = track.end_lbn();
        }
        if starts.is_empty() {
            return Err(none);
        }
        starts.push(end);
        Ok(Extents {
            starts,
            sector_bytes: u64::from(drive.profile.sector.logical_bytes),
        })
    }

    /// The number of tracks.
    pub fn tracks(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// The first LBN of the first track.
    pub(super) fn first(&self) -> Lbn {
        self.starts[0]
    }

    /// The minimum number of sectors of an I/O; `u64::MAX` for more whole tracks than the zone has.
    pub fn least_sectors(&self, placement: Placement) -> u64 {
        match placement {
            Placement::Unaligned { sectors } => u64::from(sectors),
            Placement::Aligned { tracks } => {
                let runs = self.starts.windows(tracks as usize + 1);
                let sectors = runs.map(|run| run[tracks as usize].0 - run[0].0);
                sectors.min().unwrap_or(u64::MAX)
            }
        }
    }

    /// Returns the I/O whose size is a number of steps of an alignment.
    pub fn io(&self, alignment: Alignment, steps: u32) -> Placement {
        match alignment {
            Alignment::Aligned => Placement::Aligned { tracks: steps },
            Alignment::Unaligned => {
                let track = self.least_sectors(Placement::Aligned { tracks: 1 });
                let sectors = (track * u64::from(steps)).div_ceil(u64::from(alignment.steps()));
                Placement::Unaligned {
                    sectors: u32::try_from(sectors).unwrap_or(u32::MAX),
                }
            }
        }
    }

    /// The minimum number of bytes of an I/O.
    pub fn least_bytes(&self, placement: Placement) -> u64 {
        self.least_sectors(placement)
            .saturating_mul(self.sector_bytes)
    }

    /// The minimum playing time of an I/O, which is the maximum length of a round.
    pub fn play_time(&self, placement: Placement, bitrate: BitRate) -> Span {
        bitrate.play_time(self.least_bytes(placement))
    }

    /// The maximum number of I/Os in the zone: as many as fit in half of it, which leaves room for
    /// gaps.
    pub fn room(&self, placement: Placement) -> u32 {
        let half = match placement {
            Placement::Aligned { tracks } => u64::from(self.tracks() / 2 / tracks.max(1)),
            Placement::Unaligned { sectors } => self.sectors() / 2 / u64::from(sectors.max(1)),
        };
        u32::try_from(half).unwrap_or(u32::MAX)
    }

    fn sectors(&self) -> u64 {
        self.starts[self.starts.len() - 1].0 - self.starts[0].0
    }

    /// Draws one I/O for each stream, in the order of their places. They do not overlap, because no
    /// two streams share data. All such arrangements are equally likely, except that those with
    /// adjacent I/Os are less likely.
    ///
    /// # Panics
    /// Panics if the zone has no room for them.
    pub fn draw(
        &self,
        placement: Placement,
        streams: u32,
        rng: &mut Rng,
        requests: &mut Vec<Request>,
    ) {
        let (all, each) = match placement {
            Placement::Aligned { tracks } => (u64::from(self.tracks()), u64::from(tracks)),
            Placement::Unaligned { sectors } => (self.sectors(), u64::from(sectors)),
        };
        let gaps = all - u64::from(streams) * each;
        requests.clear();
        requests.extend((0..streams).map(|_| Request::read(Lbn(rng.below(gaps + 1)), 0)));
        requests.sort_unstable_by_key(|request| request.lbn);
        for (request, before) in requests.iter_mut().zip((0..).map(|i| i * each)) {
            let place = request.lbn.0 + before;
            *request = match placement {
                Placement::Unaligned { sectors } => {
                    Request::read(Lbn(self.starts[0].0 + place), sectors)
                }
                Placement::Aligned { tracks } => {
                    let track = place as usize;
                    let (from, to) = (self.starts[track], self.starts[track + tracks as usize]);
                    Request::read(from, (to.0 - from.0) as u32)
                }
            };
        }
    }
}
