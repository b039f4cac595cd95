//! Does a probe by timed reads find the tracks at the beginning of a modelled drive?
//!
//! `cargo run --release -p traxtent-probe --example model_drive`

use std::error::Error;
use std::ops::ControlFlow;

use traxtent_map::MapBuilder;
use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_probe::{Algorithm, Identity, Region, Target, TargetError, Timing, Verify, extract};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};

/// A modelled drive on a virtual clock. A probe can only time its requests.
struct ModelDrive {
    drive: Drive,
    identity: Identity,
    now: SimTime,
}

impl Target for ModelDrive {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn wait_until(&mut self, at: SimTime) {
        self.now = self.now.max(at);
    }

    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        let sent = self.now;
        let served = self.drive.serve(sent, request);
        self.now = served
            .map_err(|error| TargetError::Refused(error.to_string()))?
            .completed;
        Ok(Timing {
            sent,
            completed: self.now,
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let drive = Drive::new(&builtin("atlas10k2").expect("a built-in drive"))?;
    let geometry = drive.geometry().clone();
    let mut target = ModelDrive {
        identity: Identity {
            capacity: geometry.capacity(),
            logical_bytes: 512,
            physical_bytes: 512,
            ..Identity::default()
        },
        drive,
        now: SimTime::ZERO,
    };
    let region = Region {
        end: Lbn(20_000),
        ..Region::whole(geometry.capacity())
    };
    let mut found = MapBuilder::default();
    extract(
        Algorithm::Angle,
        &mut target,
        region,
        Verify::Full,
        &mut |track| {
            found.push(track).expect("tracks come in order");
            ControlFlow::Continue(())
        },
    )?;
    let (map, _) = found.finish().expect("the region has tracks");
    for track in map.tracks() {
        let real = geometry
            .track_of(track.first_lbn)
            .expect("it is on the drive");
        assert_eq!(
            (track.first_lbn, track.end()),
            (real.first_lbn, real.end_lbn())
        );
    }
    println!(
        "{} tracks, all correct, after {:.0} ms",
        map.len(),
        target.now.as_ms()
    );
    Ok(())
}
