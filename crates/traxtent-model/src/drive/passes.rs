//! The path of the head in the latest access, for tools that draw or explain a request.

use super::Drive;
use super::sweep::Leg;
use crate::geometry::Track;
use crate::mechanics::HeadMove;
use traxtent_units::{Lbn, SimTime, Span};

/// The pass of the head over consecutive sectors of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The track.
    pub track: Track,
    /// The first of the sectors in LBN order.
    pub lbn: Lbn,
    /// The number of sectors.
    pub sectors: u32,
    /// The movement to the track.
    pub moved: HeadMove,
    /// The time at which the head reached the track.
    pub landed: SimTime,
    /// The time at which the first sector to pass began to pass.
    pub begun: SimTime,
    /// The first sector to pass. It differs from `lbn` if a zero-latency access began within the
    /// sectors.
    pub first_passed: Lbn,
    /// The time at which `lbn` began to pass.
    pub lbn_begun: SimTime,
    /// The time at which the last of the sectors had passed.
    pub end: SimTime,
    /// The time on the track spent waiting for sectors of the access, including the revolutions of
    /// retries.
    pub rotation: Span,
}

impl Pass {
    fn new(leg: &Leg, revolution: Span) -> Pass {
        let in_order = leg.in_order == leg.piece.sectors;
        Pass {
            track: leg.piece.track,
            lbn: leg.piece.lbn,
            sectors: leg.piece.sectors,
            moved: leg.moved,
            landed: leg.landed,
            begun: if in_order {
                leg.first
            } else {
                leg.end - revolution
            },
            first_passed: if in_order {
                leg.piece.lbn
            } else {
                Lbn(leg.piece.lbn.0 + u64::from(leg.in_order))
            },
            lbn_begun: leg.first,
            end: leg.end,
            rotation: leg.rotation,
        }
    }
}

impl Drive {
    /// Iterates over the passes of the head in the latest access to the media, without read-ahead.
    /// However, the first pass of an access that continues read-ahead includes the sectors that
    /// read-ahead had already read in that pass.
    ///
    /// A write that covers physical sectors in part first has a pass for each of these that the
    /// drive reads. There is no pass before the first access.
    pub fn passes(&self) -> impl Iterator<Item = Pass> {
        let revolution = self.mechanics.revolution();
        self.legs.iter().map(move |leg| Pass::new(leg, revolution))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Caching;
    use crate::profile::builtin;
    use traxtent_units::request::Request;

    /// Do the passes of a read of a track and a half account for its sectors, rotation and
    /// transfer, and are the times of the first pass in order, with and without zero-latency
    /// access?
    #[test]
    fn passes_add_up_to_the_breakdown() {
        let mut profile = builtin("atlas10k2").expect("a built-in drive");
        for zero_latency in [true, false] {
            profile.access.zero_latency_read = zero_latency;
            for start_us in (0..6000).step_by(250) {
                let mut drive = Drive::new(&profile).expect("a valid profile");
                drive.set_caching(SimTime::ZERO, Caching::OFF);
                let now = SimTime(start_us * 1_000_000);
                let done = drive
                    .serve(now, Request::read(Lbn(100), 792))
                    .expect("a read");
                let passes: Vec<Pass> = drive.passes().collect();
                assert_eq!(passes.iter().map(|pass| pass.sectors).sum::<u32>(), 792);
                let rotation = passes.iter().map(|pass| pass.rotation.0).sum::<u64>();
                let on_tracks = passes.iter().map(|pass| pass.end.since(pass.landed).0);
                let parts = done.breakdown;
                assert_eq!(Span(rotation), parts.rotation);
                assert_eq!(
                    Span(on_tracks.sum::<u64>()),
                    parts.rotation + parts.transfer,
                    "{start_us}"
                );
                let first = passes[0];
                let in_order = first.first_passed == first.lbn;
                assert!(first.landed <= first.begun && first.begun <= first.lbn_begun);
                assert_eq!(in_order, first.begun == first.lbn_begun);
                assert!(in_order || zero_latency);
            }
        }
    }
}
