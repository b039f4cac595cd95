//! Where the I/Os of streams lie: on whole tracks of a zone, or anywhere in it.

use traxtent_core::geometry::Geometry;
use traxtent_core::request::Request;
use traxtent_core::units::{Lbn, Span};
use traxtent_core::video::BitRate;
use traxtent_core::workload::Rng;

use super::VideoError;
use crate::bench::Bench;

/// How videos are laid out, and how much of one is fetched in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// An I/O is so many whole tracks.
    Aligned {
        /// How many.
        tracks: u32,
    },
    /// An I/O is so many sectors, wherever they lie.
    Unaligned {
        /// How many.
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
    /// Both.
    pub const BOTH: [Alignment; 2] = [Alignment::Aligned, Alignment::Unaligned];

    /// By how many steps a search makes an I/O a track longer: unaligned ones need not be whole tracks.
    pub fn steps(self) -> u32 {
        match self {
            Alignment::Aligned => 1,
            Alignment::Unaligned => 4,
        }
    }
}

/// The longest I/O that is tried, in tracks.
pub const TRACKS_MAX: u32 = 64;

/// The tracks of a zone, which hold the videos.
#[derive(Clone, Debug)]
pub struct Extents {
    /// The first LBN of each track, and behind them the LBN after the last.
    starts: Vec<Lbn>,
    sector_bytes: u64,
}

impl Extents {
    /// The tracks that lie wholly in a zone, counted from 0 in LBN order.
    ///
    /// # Errors
    /// If the drive has no such zone, or no track lies in it.
    pub fn in_zone(bench: &Bench, zone: u32) -> Result<Extents, VideoError> {
        let geometry: &Geometry = &bench.geometry;
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
            sector_bytes: u64::from(bench.profile.sector.logical_bytes),
        })
    }

    /// How many tracks there are.
    pub fn tracks(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// The first LBN of all.
    pub(super) fn first(&self) -> Lbn {
        self.starts[0]
    }

    /// The sectors that every I/O has at least; more than the zone has, if it has none so long.
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

    /// The I/O of so many steps of an alignment.
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

    /// The bytes that every I/O has at least.
    pub fn least_bytes(&self, placement: Placement) -> u64 {
        self.least_sectors(placement)
            .saturating_mul(self.sector_bytes)
    }

    /// How long an I/O plays at least, which is how long a round may last.
    pub fn play_time(&self, placement: Placement, bitrate: BitRate) -> Span {
        bitrate.play_time(self.least_bytes(placement))
    }

    /// How many I/Os lie in the zone side by side, whatever gaps are between them: of half of it.
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

    /// Draws one I/O for each stream, in the order of their places. They do not overlap, as no two streams share data;
    /// but for ties between whole tracks, every such division of the zone is as likely.
    ///
    /// # Panics
    /// If the zone has no room for them.
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
