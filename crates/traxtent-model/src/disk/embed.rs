//! A disk on its own clock: methods that run one command to completion and return the breakdown of
//! its response time, cut the power, or let time pass.

use super::{Command, Disk, DiskError, Fault, Media, PowerCutResult, Tag, Tearing};
use crate::drive::Breakdown;
use traxtent_units::{Lbn, SimTime, Span};

impl<M: Media> Disk<M> {
    /// Reads sectors, starting at `lbn`, until `into` is full. Returns the breakdown of the
    /// response time.
    ///
    /// # Errors
    /// Returns an error if the length is 0 or not a whole number of sectors, if the drive does not
    /// have the sectors, if they cannot be read, if the media fail, if the drive does not respond,
    /// if a scheduled fault cuts the power, or if the clock reaches [`super::END_OF_TIME`] first.
    pub fn read(&mut self, lbn: u64, into: &mut [u8]) -> Result<Breakdown, DiskError> {
        let (lbn, sectors) = (Lbn(lbn), self.whole_sectors(into.len())?);
        let took = self.serve(Command::Read { lbn, sectors }, Vec::new())?;
        self.fetch(lbn, into)?;
        Ok(took)
    }

    /// Writes sectors, starting at `lbn`. Returns the breakdown of the response time.
    ///
    /// # Errors
    /// Returns an error if the length is 0 or not a whole number of sectors, if the drive does not
    /// have the sectors, if the media fail, if the drive does not respond, if a scheduled fault
    /// cuts the power, or if the clock reaches [`super::END_OF_TIME`] first.
    pub fn write(&mut self, lbn: u64, data: &[u8]) -> Result<Breakdown, DiskError> {
        self.write_command(lbn, data, false)
    }

    /// Writes sectors, starting at `lbn`, with force unit access. These sectors are durable when it
    /// returns. It does not make earlier writes durable.
    ///
    /// # Errors
    /// Same as [`Disk::write`].
    pub fn write_fua(&mut self, lbn: u64, data: &[u8]) -> Result<Breakdown, DiskError> {
        self.write_command(lbn, data, true)
    }

    /// Makes all earlier writes durable. Returns the breakdown of the response time.
    ///
    /// # Errors
    /// Returns an error if the media fail, if the drive does not respond, if a scheduled fault cuts
    /// the power, or if the clock reaches [`super::END_OF_TIME`] first.
    pub fn flush(&mut self) -> Result<Breakdown, DiskError> {
        self.serve(Command::Flush, Vec::new())
    }

    /// Discards sectors. Returns the breakdown of the response time.
    ///
    /// # Errors
    /// Returns an error if `sectors` is 0, if the drive does not have the sectors, if the media
    /// fail, or if the drive does not respond.
    pub fn trim(&mut self, lbn: u64, sectors: u32) -> Result<Breakdown, DiskError> {
        let lbn = Lbn(lbn);
        self.serve(Command::Trim { lbn, sectors }, Vec::new())
    }

    /// Fills sectors with zeros. Returns the breakdown of the response time.
    ///
    /// # Errors
    /// Returns an error if `sectors` is 0, if the drive does not have the sectors, if the media
    /// fail, if the drive does not respond, if a scheduled fault cuts the power, or if the clock
    /// reaches [`super::END_OF_TIME`] first.
    pub fn write_zeroes(&mut self, lbn: u64, sectors: u32) -> Result<Breakdown, DiskError> {
        let command = Command::WriteZeroes {
            lbn: Lbn(lbn),
            sectors,
            fua: false,
        };
        self.serve(command, Vec::new())
    }

    /// Turns the power off and immediately on again. `seed` determines what remains of the writes
    /// that were not durable. No physical sector is torn. [`Fault::PowerCut`] has more options.
    ///
    /// # Errors
    /// Returns an error if the media fail. Durable data is kept even then, but `seed` does not
    /// determine what remains of the other writes.
    pub fn power_cut(&mut self, seed: u64) -> Result<PowerCutResult, DiskError> {
        let fault = Fault::PowerCut {
            seed: Some(seed),
            tearing: Tearing::Physical,
            off: Span::ZERO,
        };
        let cut = self.inject(self.now, fault)?;
        Ok(cut.unwrap_or_default())
    }

    /// Advances the disk's clock by `length`, but not beyond [`super::END_OF_TIME`]. Faults and
    /// outstanding commands that become due are processed.
    pub fn sleep(&mut self, length: Span) {
        self.advance(SimTime(self.now.0.saturating_add(length.0)));
    }

    fn write_command(&mut self, lbn: u64, data: &[u8], fua: bool) -> Result<Breakdown, DiskError> {
        let command = Command::Write {
            lbn: Lbn(lbn),
            sectors: self.whole_sectors(data.len())?,
            fua,
        };
        self.serve(command, data.to_vec())
    }

    /// Submits a command and advances the clock until it has completed. Other commands that
    /// complete before it are reported later.
    fn serve(&mut self, command: Command, data: Vec<u8>) -> Result<Breakdown, DiskError> {
        let tag = self.submit(self.now, command, data)?;
        loop {
            if let Some(found) = self.done.iter().position(|done| done.tag == tag) {
                let done = self.done.remove(found).unwrap_or_else(|| unreachable!());
                return done.outcome.map(|()| done.breakdown);
            }
            let wake = self.next_change().unwrap_or_else(|| lost_command(tag));
            self.advance(wake);
        }
    }
}

fn lost_command(tag: Tag) -> ! {
    unreachable!("{tag:?} is neither outstanding nor complete")
}
