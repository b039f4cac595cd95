//! About two translations per track (paper T, section 4.1.2): the general approach of section 4.1.1
//! with translations in place of timed reads.
//!
//! In the common case, a track is as long as the previous one. The translations of its last LBN
//! and of the LBN after that verify this. If they do not, a binary search from the track's first
//! LBN finds its end.
//!
//! The algorithm uses no knowledge of zones, spares or surfaces. The defect list, if the drive has
//! one, serves only to decide which track a remapped LBN belongs to; see [`track_end`].

use super::extraction::{Extraction, ProbeError, TrackSink};
use super::target::Target;
use super::track_end::{LbnPlace, Search, are_on_one_track, first_track, track_end};
use super::translation::{TrackOutput, Translator};
use traxtent_map::{Confirm, Region};

/// Finds the tracks of a region. `search` is the way to find the end of a track whose size differs.
pub(super) fn walk(
    target: &mut dyn Target,
    region: Region,
    search: Search,
    sink: &mut TrackSink<'_>,
) -> Result<Extraction, ProbeError> {
    let mut translator = Translator::new(target)?;
    let first = first_track(&mut translator, region)?;
    let mut out = TrackOutput::new(sink, first, region, translator.end);
    let mut expected = None;
    while out.wants_more() {
        let start = out.at;
        let end = next_end(&mut translator, start, expected, search)?;
        out.track(end, Confirm::Tested)?;
        expected = Some(end - start);
        translator.forget_below(end);
    }
    Ok(translator.finish())
}

/// Returns the end of the track that begins at `start` and is expected to have the size of the
/// previous one.
pub(super) fn next_end(
    translator: &mut Translator<'_>,
    start: u64,
    expected: Option<u64>,
    search: Search,
) -> Result<u64, ProbeError> {
    match expected {
        Some(size) if has_size(translator, start, size)? => Ok(start + size),
        _ => track_end(translator, start, expected, search),
    }
}

/// Returns whether a track has the expected size, judging by its first and last LBNs and by up to
/// two LBNs after it.
pub(super) fn has_size(
    translator: &mut Translator<'_>,
    start: u64,
    size: u64,
) -> Result<bool, ProbeError> {
    let end = start.saturating_add(size);
    if end > translator.end {
        return Ok(false);
    }
    let (Some(first), Some(last)) = (translator.place(start)?, translator.place(end - 1)?) else {
        return Ok(false);
    };
    let (first, last) = (
        LbnPlace {
            lbn: start,
            place: first,
        },
        LbnPlace {
            lbn: end - 1,
            place: last,
        },
    );
    if !are_on_one_track(translator, first, last) {
        return Ok(false);
    }
    if end == translator.end {
        return Ok(true);
    }
    let Some(next) = translator.place(end)? else {
        return Ok(false);
    };
    if next.track() == last.place.track() {
        return Ok(false);
    }
    // The LBNs of bad slots directly after the last LBN may be remapped, even to where a track
    // might begin.
    if translator.has_list {
        return Ok(translator.bad().after(last.place).is_empty());
    }
    // Tracks begin at the same slot, whereas a remapped LBN may be anywhere.
    if next.slot == first.place.slot || end + 1 == translator.end {
        return Ok(true);
    }
    let after = translator.place(end + 1)?;
    Ok(after.is_some_and(|after| after.track() == next.track() && after.slot > next.slot))
}
