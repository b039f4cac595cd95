//! A disk on a clock of its own: one command after another, each with the time that it took.

use super::{Command, Cut, Disk, DiskError, Fault, Media, Tag, Tearing};
use crate::drive::Breakdown;
use crate::units::{Lbn, SimTime, Span};

impl<M: Media> Disk<M> {
    /// Reads from `lbn` on, as many sectors as `into` holds. Returns where the time went.
    ///
    /// # Errors
    /// If the sectors are not there, cannot be read, or the drive does not answer.
    pub fn read(&mut self, lbn: u64, into: &mut [u8]) -> Result<Breakdown, DiskError> {
        let (lbn, sectors) = (Lbn(lbn), self.whole_sectors(into.len())?);
        let took = self.serve(Command::Read { lbn, sectors }, Vec::new())?;
        self.fetch(lbn, into)?;
        Ok(took)
    }

    /// Writes from `lbn` on. Returns where the time went.
    ///
    /// # Errors
    /// If the sectors are not there, the medium fails, or the drive does not answer.
    pub fn write(&mut self, lbn: u64, data: &[u8]) -> Result<Breakdown, DiskError> {
        self.write_command(lbn, data, false)
    }

    /// Writes from `lbn` on with force unit access: these sectors, and only they, are durable then.
    ///
    /// # Errors
    /// As of [`Disk::write`].
    pub fn write_fua(&mut self, lbn: u64, data: &[u8]) -> Result<Breakdown, DiskError> {
        self.write_command(lbn, data, true)
    }

    /// Makes all that was written before durable. Returns where the time went.
    ///
    /// # Errors
    /// If the medium fails, or the drive does not answer.
    pub fn flush(&mut self) -> Result<Breakdown, DiskError> {
        self.serve(Command::Flush, Vec::new())
    }

    /// Gives sectors up. Returns where the time went.
    ///
    /// # Errors
    /// As of [`Disk::write`].
    pub fn trim(&mut self, lbn: u64, sectors: u32) -> Result<Breakdown, DiskError> {
        let lbn = Lbn(lbn);
        self.serve(Command::Trim { lbn, sectors }, Vec::new())
    }

    /// Makes sectors zero. Returns where the time went.
    ///
    /// # Errors
    /// As of [`Disk::write`].
    pub fn write_zeroes(&mut self, lbn: u64, sectors: u32) -> Result<Breakdown, DiskError> {
        let command = Command::WriteZeroes {
            lbn: Lbn(lbn),
            sectors,
            fua: false,
        };
        self.serve(command, Vec::new())
    }

    /// Takes the power away and gives it back at once. `seed` decides what is left of the writes
    /// that were not durable; no physical sector is torn. [`Fault::PowerCut`] can do more.
    ///
    /// # Errors
    /// If the medium fails; what is left is then as after a cut at that point.
    pub fn power_cut(&mut self, seed: u64) -> Result<Cut, DiskError> {
        let fault = Fault::PowerCut {
            seed: Some(seed),
            tearing: Tearing::Physical,
            off: Span::ZERO,
        };
        let cut = self.inject(self.now, fault)?;
        Ok(cut.unwrap_or_default())
    }

    /// Lets the disk's clock run on: faults and what is under way happen meanwhile.
    pub fn sleep(&mut self, length: Span) {
        self.advance(self.now + length);
    }

    fn write_command(&mut self, lbn: u64, data: &[u8], fua: bool) -> Result<Breakdown, DiskError> {
        let command = Command::Write {
            lbn: Lbn(lbn),
            sectors: self.whole_sectors(data.len())?,
            fua,
        };
        self.serve(command, data.to_vec())
    }

    /// Submits a command and lets time pass until it has ended. What else ends meanwhile is
    /// reported later.
    fn serve(&mut self, command: Command, data: Vec<u8>) -> Result<Breakdown, DiskError> {
        let tag = self.submit(self.now, command, data)?;
        loop {
            if let Some(found) = self.done.iter().position(|done| done.tag == tag) {
                let done = self.done.remove(found).unwrap_or_else(|| unreachable!());
                return done.outcome.map(|()| done.breakdown);
            }
            let wake = self.next_change().unwrap_or_else(|| unlost(tag));
            self.advance(wake);
        }
    }

    /// When something happens next, whatever has been reported.
    fn next_change(&self) -> Option<SimTime> {
        let fault = self.upcoming.front().map(|fault| fault.at);
        self.drive.next_wakeup().into_iter().chain(fault).min()
    }
}

fn unlost(tag: Tag) -> ! {
    unreachable!("{tag:?} is neither under way nor done")
}
