//! A simulated drive that is reached through SCSI commands, on the virtual clock.
//!
//! It is the same drive as [`crate::SimTarget`], with the same noise and faults. A `ScsiTarget`
//! over it sees the same times and physical locations.

use std::sync::Arc;

use traxtent_model::drive::Drive;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::Profile;
use traxtent_probe::Timing;
use traxtent_scsi::{
    Command, DataTransfer, DeviceServer, Faults, Reply, Transport, TransportError,
};
use traxtent_units::SimTime;

use crate::sim_host::{Host, Noise};

/// A connection to a simulated drive.
#[derive(Clone, Debug)]
pub struct SimTransport {
    server: DeviceServer,
    host: Host,
}

impl SimTransport {
    /// Creates a connection to a drive of the profile, on a steady clock.
    pub fn new(profile: Arc<Profile>, geometry: Arc<Geometry>) -> SimTransport {
        SimTransport {
            host: Host::new(&profile),
            server: DeviceServer::new(Drive::with_geometry(profile, geometry)),
        }
    }

    /// Returns the same drive with noise in its measured times.
    pub fn with_noise(mut self, noise: Noise, seed: u64) -> SimTransport {
        self.host.set_noise(noise, seed);
        self
    }

    /// Returns the same drive with faults.
    pub fn with_faults(mut self, faults: Faults) -> SimTransport {
        self.host.set_disconnect_after(faults.unresponsive_after);
        self.server = self.server.with_faults(faults);
        self
    }

    /// Returns the drive as a SCSI device.
    pub fn server(&self) -> &DeviceServer {
        &self.server
    }
}

impl Transport for SimTransport {
    fn now(&self) -> SimTime {
        self.host.now
    }

    fn wait_until(&mut self, at: SimTime) {
        self.host.now = self.host.now.max(at);
    }

    fn execute(&mut self, command: &[u8], data: DataTransfer<'_>) -> Result<Reply, TransportError> {
        // Requests, translations and reads of defect lists are counted. Of the two commands of a
        // translation, only SEND DIAGNOSTIC is counted.
        let counts = matches!(
            Command::decode(command),
            Ok(Command::Blocks(_)
                | Command::SynchronizeCache { .. }
                | Command::SendDiagnostic { .. }
                | Command::ReadDefectData(_))
        );
        let connected = if counts {
            self.host.count()
        } else {
            self.host.check_connected()
        };
        connected.map_err(TransportError::Unavailable)?;
        let sent = self.host.now;
        let out = match &data {
            DataTransfer::Out(bytes) => bytes,
            DataTransfer::None | DataTransfer::In(_) => &[][..],
        };
        let response = self.server.execute(sent, command, out);
        let completed = if response.worked {
            self.host.observe_completion(response.completed)
        } else {
            self.wait_until(response.completed);
            self.host.now
        };
        let received = match data {
            DataTransfer::In(room) => response.data.copy_to(room),
            DataTransfer::None | DataTransfer::Out(_) => 0,
        };
        Ok(Reply {
            status: response.status,
            received,
            sense: response.sense,
            timing: Timing { sent, completed },
        })
    }
}
