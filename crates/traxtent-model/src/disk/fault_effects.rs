//! The effect of each fault on a disk.

use std::ops::Range;
use std::sync::Arc;

use super::cut::TearingUnit;
use super::volatile::WriteData;
use super::{
    CommandEffect, Disk, DiskError, FLUSH, FUA, Fault, Media, PowerCutResult, Scenario, Tearing,
};
use crate::geometry::{Geometry, MovedSpec, Place};
use traxtent_units::Rng;
use traxtent_units::{Lbn, SimTime, Span};

/// A fault of a scenario that has occurred.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultEvent {
    /// The time at which it occurred.
    pub at: SimTime,
    /// The fault.
    pub fault: Fault,
    /// The result. A power cut reports how many writes it kept, lost and tore.
    pub outcome: Result<Option<PowerCutResult>, DiskError>,
}

impl<M: Media> Disk<M> {
    /// Schedules the faults of a scenario at their times, and replaces any scheduled before. Faults
    /// whose time has passed occur at the disk's current time. [`Disk::next_event`] returns each
    /// fault that has occurred.
    ///
    /// # Errors
    /// Returns an error if a fault refers to sectors that the drive does not have. In that case
    /// nothing has changed.
    pub fn schedule_faults(&mut self, scenario: &Scenario) -> Result<(), DiskError> {
        for scheduled in &scenario.faults {
            self.check_fault(&scheduled.fault)?;
        }
        self.seeds = Rng::new(scenario.seed);
        self.upcoming = scenario.faults.iter().copied().collect();
        Ok(())
    }

    /// Returns the oldest scheduled fault that has occurred and has not been returned yet.
    pub fn next_event(&mut self) -> Option<FaultEvent> {
        self.events.pop_front()
    }

    /// Injects a fault at `now`, which must not be earlier than any time given before. Returns the
    /// result of a power cut.
    ///
    /// # Errors
    /// Returns an error if the fault refers to sectors that the drive does not have, if a sector
    /// cannot be moved to a spare, or if the media fail.
    pub fn inject(
        &mut self,
        now: SimTime,
        fault: Fault,
    ) -> Result<Option<PowerCutResult>, DiskError> {
        self.check_fault(&fault)?;
        self.advance(now);
        self.apply(fault)
    }

    /// Applies a fault of the scenario now and records it.
    pub(super) fn apply_scheduled(&mut self, fault: Fault) {
        let at = self.now;
        let outcome = self.apply(fault);
        self.events.push_back(FaultEvent { at, fault, outcome });
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

    fn apply(&mut self, fault: Fault) -> Result<Option<PowerCutResult>, DiskError> {
        let now = self.now;
        let until = |length: Span| SimTime(now.0.saturating_add(length.0));
        let forever = SimTime(u64::MAX);
        // A longer effect of the same kind continues.
        let extend = |end: &mut SimTime, to: SimTime| *end = (*end).max(to);
        match fault {
            Fault::PowerCut { seed, tearing, off } => {
                let seed = seed.unwrap_or_else(|| self.seeds.bits());
                extend(&mut self.unresponsive_until, until(off));
                return self.cut_power(seed, tearing).map(Some);
            }
            Fault::LatentError {
                lbn,
                sectors,
                revolutions,
            } => {
                let lbns = self.drive.physical_range(lbn, sectors);
                self.store
                    .make_unreadable(self.byte(lbns.start)..self.byte(lbns.end));
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
                self.move_to_spares(lbns.clone())?;
                // The place that needed retries is no longer accessed.
                self.drive.set_retries(now, lbns, 0);
            }
            Fault::Stall { length } => self.drive.stall(now, until(length)),
            Fault::Vanish { length } => {
                extend(&mut self.unresponsive_until, until(length));
                self.fail_outstanding(&DiskError::Unresponsive);
            }
            Fault::LyingFlush { length } => {
                extend(
                    &mut self.ignores_until[FLUSH],
                    length.map_or(forever, until),
                );
            }
            Fault::LyingFua { length } => {
                extend(&mut self.ignores_until[FUA], length.map_or(forever, until));
            }
        }
        Ok(None)
    }

    /// Cuts the power and restarts the drive. The seed determines how much of the data that is not
    /// durable remains.
    fn cut_power(&mut self, seed: u64, tearing: Tearing) -> Result<PowerCutResult, DiskError> {
        let sector = &self.drive.profile().sector;
        let unit = match tearing {
            Tearing::Physical => sector.physical_bytes,
            Tearing::Bytes512 => 512,
        };
        let first = sector.lowest_aligned_lbn * sector.logical_bytes;
        let tearing_unit = TearingUnit {
            unit: unit.into(),
            first: first.into(),
        };
        let bytes = self.sector_bytes();
        let writes = self.fail_outstanding(&DiskError::PowerCut);
        let writes = writes
            .into_iter()
            .map(|(lbn, data)| (lbn.0 * u64::from(bytes), data));
        let cut = self.store.cut(writes, seed, tearing_unit);
        self.clear_retries_of_rewritten();
        Ok(cut?)
    }

    /// Fails all outstanding commands and restarts the drive. Returns the writes among them, in
    /// order of submission.
    fn fail_outstanding(&mut self, error: &DiskError) -> Vec<(Lbn, WriteData)> {
        let mut writes = Vec::new();
        for (_, (job, effect)) in std::mem::take(&mut self.outstanding) {
            if let CommandEffect::Write { data, .. } = effect {
                writes.push((job.command.sectors().0, data));
            }
            self.end_unserved(job, Err(error.clone()));
        }
        self.drive.restart(self.now);
        writes
    }

    /// Removes the retries of unreadable physical sectors that have been rewritten completely.
    pub(super) fn clear_retries_of_rewritten(&mut self) {
        let size = u64::from(self.sector_bytes());
        for bytes in self.store.take_rewritten() {
            let (mut from, end) = (Lbn(bytes.start / size), Lbn(bytes.end.div_ceil(size)));
            while from < end {
                let sector = self.drive.physical_range(from, 1);
                from = sector.end;
                let bytes = self.byte(sector.start)..self.byte(sector.end);
                if self.store.is_readable(&bytes) {
                    self.drive.set_retries(self.now, sector, 0);
                }
            }
        }
    }

    /// Moves physical sectors to the nearest spares. Subsequent accesses go there.
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
        let no_spare = |problem: String| DiskError::NoSpare { lbn, problem };
        let geometry = Arc::clone(self.drive.geometry());
        let sectors = (sector.end.0 - lbn) as u32;
        let mut numbers = lbn..sector.end.0;
        if numbers.any(|lbn| geometry.is_moved(Lbn(lbn))) {
            return Err(no_spare("it is already on a spare".to_owned()));
        }
        let mut layout = (*self.layout).clone();
        // LBNs may share places once a search has found no spare, or if the profile permits it. No
        // spare is searched for in these cases.
        let shares_places = layout.shared_places;
        let spare = (!shares_places)
            .then(|| geometry.nearest_spare(sector.start, sectors))
            .flatten()
            .or_else(|| {
                layout.shared_places = true;
                place_at_end(&geometry, layout.moved.len() as u64, sectors)
            });
        let spare = spare.ok_or_else(|| no_spare("the layout has no spare left".to_owned()))?;
        layout.moved.push(MovedSpec {
            lbn,
            sectors,
            cylinder: spare.cylinder.0,
            surface: spare.surface.0,
            slot: spare.slot,
            slots: None,
        });
        let geometry = Geometry::build(&layout).map_err(|error| no_spare(error.to_string()))?;
        self.layout = Arc::new(layout);
        self.drive.set_geometry(self.now, Arc::new(geometry));
        Ok(())
    }
}

/// Returns the place assumed for a remapped sector if the layout describes no free spare: the end
/// of the drive. Every drive has spares, even if the profile's sources mention none. The place is
/// shared with an LBN, so the model does not run out of places. The last `taken` places are
/// skipped, because earlier moves may use them.
fn place_at_end(geometry: &Geometry, taken: u64, sectors: u32) -> Option<Place> {
    let step = u64::from(sectors);
    (taken + 1..=taken + 16).find_map(|number| {
        let lbn = Lbn(geometry.capacity().0.checked_sub(number * step)?);
        let piece = geometry.piece(lbn, sectors);
        let is_contiguous = piece.sectors == sectors && piece.slots == sectors;
        is_contiguous.then(|| geometry.locate(lbn)).flatten()
    })
}

impl Fault {
    /// The first sector and the number of sectors that the fault refers to, if it refers to any.
    pub fn sectors(&self) -> Option<(Lbn, u32)> {
        match *self {
            Fault::LatentError { lbn, sectors, .. }
            | Fault::SlowSector { lbn, sectors, .. }
            | Fault::GrownDefect { lbn, sectors } => Some((lbn, sectors)),
            _ => None,
        }
    }
}
