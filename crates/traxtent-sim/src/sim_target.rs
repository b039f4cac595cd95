//! A simulated drive as a probe's target, on the virtual clock.
//!
//! The host is ideal: it sends the next request at the earliest permitted instant. [`Noise`] makes
//! its clock and its drive as unsteady as real ones, and [`Faults`] makes the drive fail. No data
//! is generated or transferred. [`crate::SimTransport`] offers the same drive through SCSI
//! commands; here its methods are called directly.

use std::sync::Arc;

use traxtent_model::drive::{Caching, Drive};
use traxtent_model::geometry::{Geometry, Occupant, Place, Replacement};
use traxtent_model::profile::Profile;
use traxtent_probe::{Defects, Identity, Target, TargetError, Timing};
use traxtent_scsi::{AdditionalSense, CommandFailure, DeviceServer, Faults, SenseKey};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors, SimTime, Span};

use crate::sim_host::{Host, Noise};

/// A simulated drive that can be probed.
#[derive(Clone, Debug)]
pub struct SimTarget {
    server: DeviceServer,
    host: Host,
    identity: Identity,
    translates: bool,
    lists: DefectLists,
}

/// The defect lists that a drive reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefectLists {
    /// The drive does not support reading a list.
    Absent,
    /// One list holds the defects from manufacture, another the grown defects.
    Separate,
    /// One list of defects from manufacture holds all defects.
    Combined,
}

impl SimTarget {
    /// Creates a drive on a steady clock. Its profile determines whether it supports translation
    /// and defect lists.
    pub fn new(profile: Arc<Profile>, geometry: Arc<Geometry>) -> SimTarget {
        let scsi = &profile.scsi;
        SimTarget {
            identity: Identity {
                vendor: scsi.vendor.clone(),
                product: scsi.product_of(&profile.name),
                serial: scsi.serial.clone(),
                capacity: geometry.capacity(),
                logical_bytes: profile.sector.logical_bytes,
                physical_bytes: profile.sector.physical_bytes,
            },
            translates: scsi.translates,
            lists: if scsi.defect_lists {
                DefectLists::Separate
            } else {
                DefectLists::Absent
            },
            host: Host::new(&profile),
            server: DeviceServer::new(Drive::with_geometry(profile, geometry)),
        }
    }

    /// Returns the same drive without translation and defect lists.
    pub fn without_translation(mut self) -> SimTarget {
        self.translates = false;
        self.with_defect_lists(DefectLists::Absent)
    }

    /// Returns the same drive with other defect lists.
    pub fn with_defect_lists(mut self, lists: DefectLists) -> SimTarget {
        self.lists = lists;
        self
    }

    /// Returns the same drive with noise in its times.
    pub fn with_noise(mut self, noise: Noise, seed: u64) -> SimTarget {
        self.host.set_noise(noise, seed);
        self
    }

    /// Returns the same drive with faults.
    pub fn with_faults(mut self, faults: Faults) -> SimTarget {
        self.host.set_disconnect_after(faults.unresponsive_after);
        self.server = self.server.with_faults(faults);
        self
    }

    /// Sets the drive's caching from now on.
    pub fn set_caching(&mut self, caching: Caching) {
        self.server.set_caching(self.host.now, caching);
    }

    fn count(&mut self) -> Result<(), TargetError> {
        self.host.count().map_err(TargetError::Gone)
    }

    fn geometry(&self) -> &Geometry {
        self.server.drive().geometry()
    }

    /// Counts a translation or a read of a defect list, and advances the clock by the time that it
    /// takes. Returns an error if the drive does not support it.
    fn translating(&mut self, supported: bool, what: &'static str) -> Result<(), TargetError> {
        self.count()?;
        if !supported {
            return Err(TargetError::Unsupported(what));
        }
        self.host.now += Span::from_ms(self.server.drive().profile().scsi.translate_ms);
        Ok(())
    }
}

impl Target for SimTarget {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn now(&self) -> SimTime {
        self.host.now
    }

    fn wait_until(&mut self, at: SimTime) {
        self.host.now = self.host.now.max(at);
    }

    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        self.count()?;
        let sent = self.host.now;
        match self.server.request(sent, request) {
            Ok(served) => {
                let completed = self.host.observe_completion(served);
                Ok(Timing { sent, completed })
            }
            Err(CommandFailure { sense, at }) if sense.key == SenseKey::Medium => {
                self.host.observe_completion(at);
                let Request {
                    lbn, sectors, op, ..
                } = request;
                Err(match op {
                    Op::Read | Op::Verify => TargetError::Unreadable { lbn, sectors },
                    _ => TargetError::Refused(format!("{op} at LBN {lbn}: {sense}")),
                })
            }
            Err(CommandFailure { sense, .. }) => Err(match sense.code {
                AdditionalSense::LBN_OUT_OF_RANGE => {
                    TargetError::Refused(format!("{} at LBN {}: {sense}", request.op, request.lbn))
                }
                _ if request.sectors == 0 && request.op != Op::Flush => {
                    TargetError::Refused(format!("zero sectors at LBN {}", request.lbn))
                }
                _ => TargetError::Unsupported("this kind of request"),
            }),
        }
    }

    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        self.translating(self.translates, "address translation")?;
        let place = self.geometry().locate(lbn);
        place.ok_or_else(|| {
            let Sectors(end) = self.identity.capacity;
            TargetError::Refused(format!("LBN {lbn}: the drive ends before LBN {end}"))
        })
    }

    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        self.translating(self.translates, "address translation")?;
        Ok(match self.geometry().lbn_at(place) {
            Occupant::Lbn(lbn) => Some(lbn),
            Occupant::Bad | Occupant::Empty | Occupant::NoSuchPlace => None,
        })
    }

    fn defects(&mut self) -> Result<Defects, TargetError> {
        let together = self.lists == DefectLists::Combined;
        let mut list = |primary: bool| {
            self.translating(self.lists != DefectLists::Absent, "defect lists")?;
            let defects = self.geometry().defects();
            let list = defects
                .filter(|defect| (together || defect.remedy == Replacement::Slipped) == primary);
            let places = list.flat_map(|defect| {
                (0..defect.slots).map(move |k| Place {
                    slot: defect.place.slot + k,
                    ..defect.place
                })
            });
            Ok(places.collect())
        };
        Ok(Defects {
            primary: list(true)?,
            grown: list(false)?,
        })
    }

    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        self.count()?;
        let switched = self.server.switch_caching(self.host.now, on);
        switched.map_err(|_| TargetError::Unsupported("cache control"))
    }
}
