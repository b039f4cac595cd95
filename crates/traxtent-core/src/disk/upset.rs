//! How each fault happens to a disk.

use std::ops::Range;
use std::sync::Arc;

use super::cut::Grain;
use super::volatile::Data;
use super::{Cut, Disk, DiskError, FLUSH, FUA, Fault, Media, Scenario, Tearing, Work};
use crate::geometry::{Geometry, MovedSpec, Place};
use crate::units::{Lbn, SimTime, Span};
use crate::workload::Rng;

/// A fault of a scenario that has happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: SimTime,
    /// What.
    pub fault: Fault,
    /// What it did: of a power cut, what was left.
    pub outcome: Result<Option<Cut>, DiskError>,
}

impl<M: Media> Disk<M> {
    /// Lets the faults of a scenario happen at their times, in place of any that were to come;
    /// what is past happens at once. [`Disk::next_event`] tells of each.
    ///
    /// # Errors
    /// If a fault names sectors that the drive does not have; nothing has changed then.
    pub fn play(&mut self, scenario: &Scenario) -> Result<(), DiskError> {
        for scheduled in &scenario.faults {
            self.check_fault(&scheduled.fault)?;
        }
        self.seeds = Rng::new(scenario.seed);
        self.upcoming = scenario.faults.iter().copied().collect();
        Ok(())
    }

    /// The next of the scenario's faults that have happened.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Lets a fault happen at `now`, which is no earlier than any time before. Returns what a power
    /// cut left.
    ///
    /// # Errors
    /// If the fault names sectors that the drive does not have, or finds no spare; or if the medium
    /// fails.
    pub fn inject(&mut self, now: SimTime, fault: Fault) -> Result<Option<Cut>, DiskError> {
        self.check_fault(&fault)?;
        self.advance(now);
        self.apply(fault)
    }

    /// A fault of the scenario happens now.
    pub(super) fn happens(&mut self, fault: Fault) {
        let at = self.now;
        let outcome = self.apply(fault);
        self.events.push_back(Event { at, fault, outcome });
    }

    fn check_fault(&self, fault: &Fault) -> Result<(), DiskError> {
        let Some((lbn, sectors)) = fault.sectors() else {
            return Ok(());
        };
        let capacity = self.capacity().0;
        match lbn.0.checked_add(sectors.into()) {
            Some(end) if end <= capacity => Ok(()),
            _ => Err(DiskError::FaultBeyondEnd {
                fault: fault.name(),
                lbn: lbn.0,
                sectors,
                capacity,
            }),
        }
    }

    fn apply(&mut self, fault: Fault) -> Result<Option<Cut>, DiskError> {
        let now = self.now;
        let until = |length: Span| SimTime(now.0.saturating_add(length.0));
        let for_good = SimTime(u64::MAX);
        match fault {
            Fault::PowerCut { seed, tearing, off } => {
                let seed = seed.unwrap_or_else(|| self.seeds.bits());
                self.gone_until = until(off);
                return self.cut_power(seed, tearing).map(Some);
            }
            Fault::LatentError {
                lbn,
                sectors,
                revolutions,
            } => {
                let lbns = self.drive.physical_range(lbn, sectors);
                self.store.hurt(self.byte(lbns.start)..self.byte(lbns.end));
                self.drive.set_retries(now, lbns, revolutions);
            }
            Fault::SlowSector {
                lbn,
                sectors,
                revolutions,
            } => {
                let lbns = self.drive.physical_range(lbn, sectors);
                self.drive.set_retries(now, lbns, revolutions);
            }
            Fault::GrownDefect { lbn, sectors } => {
                let lbns = self.drive.physical_range(lbn, sectors);
                self.move_to_spares(lbns)?;
            }
            Fault::Stall { length } => self.drive.stall(now, until(length)),
            Fault::Vanish { length } => {
                self.gone_until = until(length);
                self.drop_under_way(&DiskError::Gone);
            }
            Fault::LyingFlush { length } => {
                self.lies_until[FLUSH] = length.map_or(for_good, until);
            }
            Fault::LyingFua { length } => {
                self.lies_until[FUA] = length.map_or(for_good, until);
            }
        }
        Ok(None)
    }

    /// The power goes: of what is not durable is left what the seed says, and the drive starts over.
    fn cut_power(&mut self, seed: u64, tearing: Tearing) -> Result<Cut, DiskError> {
        let sector = &self.drive.profile().sector;
        let unit = match tearing {
            Tearing::Physical => sector.physical_bytes,
            Tearing::Bytes512 => 512,
        };
        let first = sector.lowest_aligned_lbn * sector.logical_bytes;
        let grain = Grain {
            unit: unit.into(),
            first: first.into(),
        };
        let bytes = self.sector_bytes();
        let under_way = self.drop_under_way(&DiskError::PowerCut);
        let under_way = under_way
            .into_iter()
            .map(|(lbn, data)| (lbn.0 * u64::from(bytes), data));
        let cut = self.store.cut(under_way, seed, grain);
        self.note_mended();
        Ok(cut?)
    }

    /// Fails what is under way and starts the drive over; returns the writes among it, in order of
    /// submission.
    fn drop_under_way(&mut self, why: &DiskError) -> Vec<(Lbn, Data)> {
        let mut writes = Vec::new();
        for (_, (job, work)) in std::mem::take(&mut self.under_way) {
            if let Work::Write { data, .. } = work {
                writes.push((job.command.sectors().0, data));
            }
            self.end_unserved(job, Err(why.clone()));
        }
        self.drive.restart();
        writes
    }

    /// What was hurt and has been written is read at once again.
    pub(super) fn note_mended(&mut self) {
        for bytes in self.store.take_mended() {
            let size = u64::from(self.sector_bytes());
            let lbns = Lbn(bytes.start / size)..Lbn(bytes.end.div_ceil(size));
            self.drive.set_retries(self.now, lbns, 0);
        }
    }

    /// Moves physical sectors to the nearest spares. The accesses that come go there.
    fn move_to_spares(&mut self, lbns: Range<Lbn>) -> Result<(), DiskError> {
        let mut from = lbns.start;
        while from < lbns.end {
            let sector = self.drive.physical_range(from, 1);
            self.move_to_spare(sector.clone())?;
            from = sector.end;
        }
        Ok(())
    }

    fn move_to_spare(&mut self, sector: Range<Lbn>) -> Result<(), DiskError> {
        let lbn = sector.start.0;
        let refused = |problem: String| DiskError::NoSpare { lbn, problem };
        let geometry = Arc::clone(self.drive.geometry());
        let sectors = (sector.end.0 - lbn) as u32;
        let mut numbers = lbn..sector.end.0;
        if numbers.any(|lbn| geometry.is_moved(Lbn(lbn))) {
            return Err(refused("it is on one already".to_owned()));
        }
        let mut layout = (*self.layout).clone();
        // A layout whose places are shared has been searched before, or says nothing of spares.
        let searched = layout.shared_places;
        let spare = (!searched)
            .then(|| geometry.nearest_spare(sector.start, sectors))
            .flatten()
            .or_else(|| {
                layout.shared_places = true;
                place_at_end(&geometry, layout.moved.len() as u64, sectors)
            });
        let spare = spare.ok_or_else(|| refused("the layout has none left".to_owned()))?;
        layout.moved.push(MovedSpec {
            lbn,
            sectors,
            cylinder: spare.cylinder.0,
            surface: spare.surface.0,
            slot: spare.slot,
            slots: None,
        });
        let geometry = Geometry::build(&layout).map_err(|error| refused(error.to_string()))?;
        self.layout = Arc::new(layout);
        self.drive.set_geometry(self.now, Arc::new(geometry));
        Ok(())
    }
}

/// Where a drive whose layout shows no spares keeps a sector: at its end, where such layouts have
/// them (assumed: where the profile's sources tell of no spares, the drive has some all the same).
/// The place is that of a sector of the host's, of which the model does not run out. `taken` of
/// such places are in use.
fn place_at_end(geometry: &Geometry, taken: u64, sectors: u32) -> Option<Place> {
    let step = u64::from(sectors);
    (taken + 1..=taken + 16).find_map(|number| {
        let lbn = Lbn(geometry.capacity().0.checked_sub(number * step)?);
        let piece = geometry.piece(lbn, sectors);
        let whole = piece.sectors == sectors && piece.slots == sectors;
        whole.then(|| geometry.locate(lbn)).flatten()
    })
}

impl Fault {
    /// The sectors that it names.
    pub fn sectors(&self) -> Option<(Lbn, u32)> {
        match *self {
            Fault::LatentError { lbn, sectors, .. }
            | Fault::SlowSector { lbn, sectors, .. }
            | Fault::GrownDefect { lbn, sectors } => Some((lbn, sectors)),
            _ => None,
        }
    }
}
