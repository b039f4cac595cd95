//! Switching a drive's caching off for the time of a probe, and back.
//!
//! The caching page is changed by MODE SELECT with SP = 0, so that a loss of power undoes it too.
//! Only bits that the drive lets a host change are changed. What was there before is kept as
//! bytes, and restored as those bytes, also when the target is dropped.

use super::command::{Command, ModeSense, ModeWidth, PageValues};
use super::mode::{CACHING_PAGE, CachingPage, ModeData, pages};
use super::target::{Failure, ScsiTarget, run};
use super::transport::{Data, Transport};
use crate::probe::TargetError;

/// What a drive's caching page was before it was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suspended {
    width: ModeWidth,
    page: Vec<u8>,
}

/// What of a drive's caching is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingOff {
    /// Reads do not come from the buffer (RCD = 1).
    pub reads: bool,
    /// Nothing is read ahead (DRA = 1).
    pub read_ahead: bool,
    /// Nothing is read ahead (DISABLE PREFETCH TRANSFER LENGTH = 0). There are drives that obey
    /// only this one, and drives that obey none.
    pub prefetch: bool,
}

/// Mode parameters as a drive sends them: no page of interest is longer.
const ROOM: u16 = 252;

const WHAT: &str = "switching caching by mode page 8";

impl<T: Transport> ScsiTarget<T> {
    /// The bytes of a mode page.
    ///
    /// # Errors
    /// Where the drive does not have it, or does not answer.
    pub fn mode_page(&mut self, code: u8, values: PageValues) -> Result<Vec<u8>, TargetError> {
        let (_, page) = self
            .sense(code, values)
            .map_err(|failure| failure.of("a mode page"))?;
        Ok(page)
    }

    /// Switches read caching and read-ahead off, as far as the drive lets it, and says what is
    /// off. [`ScsiTarget::restore_caching`], or dropping the target, undoes it.
    ///
    /// # Errors
    /// Where the drive has no caching page, refuses to change it, or does not answer.
    pub fn suspend_caching(&mut self) -> Result<CachingOff, TargetError> {
        let (width, page) = self
            .sense(CACHING_PAGE, PageValues::Current)
            .map_err(|failure| failure.of(WHAT))?;
        let mask = match self.sense(CACHING_PAGE, PageValues::Changeable) {
            Ok((_, mask)) if mask.len() == page.len() => mask,
            _ => vec![u8::MAX; page.len()],
        };
        let before = CachingPage::decode(&page);
        let reads_only = CachingPage {
            read_cache_disabled: true,
            ..before
        };
        let ahead_only = CachingPage {
            read_ahead_disabled: true,
            ..before
        };
        let all = CachingPage {
            prefetch_up_to: 0,
            read_ahead_disabled: true,
            ..reads_only
        };
        // A drive that says nothing of what it lets change may take a part where it refuses all.
        let mut refusal = None;
        for wish in [all, reads_only, ahead_only] {
            let wanted = within(&page, &mask, wish);
            if wanted == page {
                continue;
            }
            if self.suspended.is_none() {
                self.suspended = Some(Suspended {
                    width,
                    page: page.clone(),
                });
            }
            match self.select(width, &wanted) {
                Ok(()) => {
                    refusal = None;
                    break;
                }
                Err(gone @ Failure::Target(TargetError::Gone(_))) => return Err(gone.of(WHAT)),
                Err(failure) => refusal = Some(failure),
            }
        }
        if let Some(failure) = refusal {
            let _ = self.restore_caching();
            return Err(failure.of(WHAT));
        }
        let now = CachingPage::decode(&self.mode_page(CACHING_PAGE, PageValues::Current)?);
        Ok(CachingOff {
            reads: now.read_cache_disabled,
            read_ahead: now.read_ahead_disabled,
            prefetch: now.prefetch_up_to == 0,
        })
    }

    /// Sends another caching page. [`ScsiTarget::restore_caching`], or dropping the target, undoes
    /// it.
    ///
    /// # Errors
    /// Where the drive has no such page, refuses this one, or does not answer.
    pub fn change_caching(&mut self, page: &[u8]) -> Result<(), TargetError> {
        let (width, before) = self
            .sense(CACHING_PAGE, PageValues::Current)
            .map_err(|failure| failure.of(WHAT))?;
        self.suspended.get_or_insert(Suspended {
            width,
            page: before,
        });
        self.select(width, page).map_err(|failure| failure.of(WHAT))
    }

    /// Restores the caching page as it was, byte for byte; does nothing if it is as it was.
    ///
    /// # Errors
    /// Where the drive does not take it; dropping the target tries once more.
    pub fn restore_caching(&mut self) -> Result<(), TargetError> {
        let Some(Suspended { width, page }) = self.suspended.clone() else {
            return Ok(());
        };
        self.select(width, &page)
            .map_err(|failure| failure.of(WHAT))?;
        let now = self.mode_page(CACHING_PAGE, PageValues::Current)?;
        if now != page {
            let why =
                format!("the caching page is {now:02x?} after it was restored to {page:02x?}");
            return Err(TargetError::Refused(why));
        }
        self.suspended = None;
        Ok(())
    }

    /// A mode page, by the command that the drive knows.
    fn sense(&mut self, code: u8, values: PageValues) -> Result<(ModeWidth, Vec<u8>), Failure> {
        let mut failure = None;
        for width in [ModeWidth::Ten, ModeWidth::Six] {
            let mut room = [0; ROOM as usize];
            let command = Command::ModeSense(ModeSense {
                width,
                page: code,
                subpage: 0,
                values,
                no_block_descriptor: true,
                allocation: ROOM,
            });
            match run(self.transport_mut(), &command, Data::In(&mut room)) {
                Ok(reply) => {
                    let data = ModeData::decode(width, &room[..reply.received])?;
                    let mut pages = pages(data.pages);
                    if let Some(page) = pages.find(|page| page.code == code && page.subpage == 0) {
                        return Ok((width, page.bytes.to_vec()));
                    }
                }
                Err(gone @ Failure::Target(_)) => return Err(gone),
                Err(refusal) => failure = Some(refusal),
            }
        }
        Err(failure.unwrap_or(Failure::Target(TargetError::Unsupported("this mode page"))))
    }

    fn select(&mut self, width: ModeWidth, page: &[u8]) -> Result<(), Failure> {
        let data = ModeData {
            pages: page,
            ..ModeData::default()
        }
        .encode_select(width);
        let command = Command::ModeSelect {
            width,
            page_format: true,
            save: false,
            length: data.len() as u16,
        };
        run(self.transport_mut(), &command, Data::Out(&data)).map(|_| ())
    }
}

impl<T: Transport> Drop for ScsiTarget<T> {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.restore_caching();
    }
}

/// The page with the wished values where the mask lets them change.
fn within(page: &[u8], mask: &[u8], wish: CachingPage) -> Vec<u8> {
    let mut wanted = page.to_vec();
    wish.apply(&mut wanted);
    for ((to, from), mask) in wanted.iter_mut().zip(page).zip(mask) {
        *to = (*to & mask) | (from & !mask);
    }
    wanted
}
