//! Switching a drive's caching off for the duration of a probe, and on again.
//!
//! The caching page is changed by MODE SELECT with SP = 0. A loss of power therefore also undoes
//! the change. [`ScsiTarget::suspend_caching`] changes only bits that the drive reports as
//! changeable, if it reports them. The previous page is saved, and restored byte for byte, at the
//! latest when the target is dropped.

use super::{Failure, ScsiTarget, run};
use crate::TargetError;
use traxtent_scsi::mode::{CACHING_PAGE, CachingPage, ModeData, pages};
use traxtent_scsi::{Command, ModeSense, ModeWidth, PageValues};
use traxtent_scsi::{DataTransfer, Transport};

/// A drive's caching page before it was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedCachingPage {
    width: ModeWidth,
    page: Vec<u8>,
}

/// The parts of a drive's caching that are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingOff {
    /// Whether reads bypass the buffer (RCD = 1).
    pub reads: bool,
    /// Whether read-ahead is disabled (DRA = 1).
    pub read_ahead: bool,
    /// Whether read-ahead is disabled by DISABLE PREFETCH TRANSFER LENGTH = 0. Some drives obey
    /// only this setting, and some obey none.
    pub prefetch: bool,
}

/// The allocation length for mode parameters, in bytes. It is sufficient for all pages used here.
const ROOM_BYTES: u16 = 252;

/// The name of the requested operation in errors.
const OPERATION: &str = "switching caching by mode page 8";

impl<T: Transport> ScsiTarget<T> {
    /// Returns the bytes of a mode page.
    ///
    /// # Errors
    /// Returns an error if the drive does not return the page.
    pub fn mode_page(&mut self, code: u8, values: PageValues) -> Result<Vec<u8>, TargetError> {
        let (_, page) = self
            .sense(code, values)
            .map_err(|failure| failure.into_target_error("a mode page"))?;
        Ok(page)
    }

    /// Switches read caching and read-ahead off as far as the drive allows, and returns the parts
    /// that are off. [`ScsiTarget::restore_caching`], or dropping the target, undoes it.
    ///
    /// # Errors
    /// Returns an error if the drive has no caching page, refuses to change it, or does not
    /// respond.
    pub fn suspend_caching(&mut self) -> Result<CachingOff, TargetError> {
        let (width, page) = self
            .sense(CACHING_PAGE, PageValues::Current)
            .map_err(|failure| failure.into_target_error(OPERATION))?;
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
        // A drive that does not report its changeable bits may accept part of the change after it
        // has refused all of it.
        let mut refusal = None;
        for wish in [all, reads_only, ahead_only] {
            let wanted = within(&page, &mask, wish);
            if wanted == page {
                continue;
            }
            if self.suspended.is_none() {
                self.suspended = Some(SavedCachingPage {
                    width,
                    page: page.clone(),
                });
            }
            match self.select(width, &wanted) {
                Ok(()) => {
                    refusal = None;
                    break;
                }
                Err(gone @ Failure::Target(TargetError::Gone(_))) => {
                    return Err(gone.into_target_error(OPERATION));
                }
                Err(failure) => refusal = Some(failure),
            }
        }
        if let Some(failure) = refusal {
            let _ = self.restore_caching();
            return Err(failure.into_target_error(OPERATION));
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
    /// Returns an error if the drive has no such page, refuses this one, or does not respond.
    pub fn change_caching(&mut self, page: &[u8]) -> Result<(), TargetError> {
        let (width, before) = self
            .sense(CACHING_PAGE, PageValues::Current)
            .map_err(|failure| failure.into_target_error(OPERATION))?;
        self.suspended.get_or_insert(SavedCachingPage {
            width,
            page: before,
        });
        self.select(width, page)
            .map_err(|failure| failure.into_target_error(OPERATION))
    }

    /// Restores the caching page byte for byte. Does nothing if it has not been changed.
    ///
    /// # Errors
    /// Returns an error if the drive does not accept the page, or then reports a different one.
    /// Dropping the target tries once more.
    pub fn restore_caching(&mut self) -> Result<(), TargetError> {
        let Some(SavedCachingPage { width, page }) = self.suspended.clone() else {
            return Ok(());
        };
        self.select(width, &page)
            .map_err(|failure| failure.into_target_error(OPERATION))?;
        let now = self.mode_page(CACHING_PAGE, PageValues::Current)?;
        if now != page {
            let why =
                format!("the caching page is {now:02x?} after it was restored to {page:02x?}");
            return Err(TargetError::Refused(why));
        }
        self.suspended = None;
        Ok(())
    }

    /// Returns a mode page, using the command width that the drive supports.
    fn sense(&mut self, code: u8, values: PageValues) -> Result<(ModeWidth, Vec<u8>), Failure> {
        let mut failure = None;
        for width in [ModeWidth::Ten, ModeWidth::Six] {
            let mut room = [0; ROOM_BYTES as usize];
            let command = Command::ModeSense(ModeSense {
                width,
                page: code,
                subpage: 0,
                values,
                no_block_descriptor: true,
                allocation: ROOM_BYTES,
            });
            match run(self.transport_mut(), &command, DataTransfer::In(&mut room)) {
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
        run(self.transport_mut(), &command, DataTransfer::Out(&data)).map(|_| ())
    }
}

impl<T: Transport> Drop for ScsiTarget<T> {
    fn drop(&mut self) {
        // There is no caller to whom an error could be returned.
        let _ = self.restore_caching();
    }
}

/// Returns the page with the desired values in the bits that the mask marks as changeable.
fn within(page: &[u8], mask: &[u8], wish: CachingPage) -> Vec<u8> {
    let mut wanted = page.to_vec();
    wish.apply(&mut wanted);
    for ((to, from), mask) in wanted.iter_mut().zip(page).zip(mask) {
        *to = (*to & mask) | (from & !mask);
    }
    wanted
}
