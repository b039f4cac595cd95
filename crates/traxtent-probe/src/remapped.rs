//! The remapped LBNs of a drive, according to its list of grown defects.
//!
//! The search for tracks finds only those remapped LBNs that it happens to read or translate. The
//! list of grown defects covers all of them: a bad slot whose LBN has been remapped is a grown
//! defect. The LBN follows from the slot's neighbours on the track. If the slots before and after a
//! row of bad slots hold LBNs, and no more LBNs lie between these two than the row has grown
//! defects, those LBNs are remapped. At either end of a track, a row is taken to have as many
//! remapped LBNs as grown defects. They are reported only if translations show that the sequence of
//! LBNs on the track breaks both before the first and after the last of them.

use std::ops::RangeInclusive;

use super::defect_lists::DefectLists;
use super::extraction::ProbeError;
use super::target::{Defects, Target, TargetError};
use traxtent_map::Region;
use traxtent_model::geometry::Place;
use traxtent_units::Lbn;

/// Lists the remapped LBNs of a region in ascending order. Returns `None` if the drive has no
/// defect lists, if it has grown defects but does not translate, or if it refuses a request. Costs
/// a few translations per grown defect.
///
/// # Errors
/// Returns an error if the drive fails.
pub fn remapped_lbns(
    target: &mut dyn Target,
    region: Region,
) -> Result<Option<Vec<Lbn>>, ProbeError> {
    match list(target, region) {
        Ok(found) => Ok(Some(found)),
        Err(TargetError::Unsupported(_) | TargetError::Refused(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn list(target: &mut dyn Target, region: Region) -> Result<Vec<Lbn>, TargetError> {
    let defects: Defects = target.defects()?;
    let grown = defects.grown.clone();
    if !grown.is_empty() {
        // If the drive does not translate, the places in the list are useless.
        target.translate(region.first)?;
    }
    let bad = DefectLists::new(defects);
    let mut found = Vec::new();
    let mut rows: Vec<(Place, Place)> = grown.into_iter().map(|place| row(&bad, place)).collect();
    rows.sort_unstable();
    rows.dedup();
    for (first, last) in rows {
        let row = bad.within(first.track(), first.slot..last.slot.saturating_add(1));
        let count = bad.remapped_among(row);
        found.extend(moved_from(target, &bad, first..=last, count)?);
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|lbn| (region.first.0..region.end.0).contains(lbn));
    Ok(found.into_iter().map(Lbn).collect())
}

/// Returns the first and the last of the adjacent bad slots around `place`.
fn row(bad: &DefectLists, place: Place) -> (Place, Place) {
    let first = bad.before(place).first().copied().unwrap_or(place);
    let last = bad.after(place).last().copied().unwrap_or(place);
    (first, last)
}

/// Returns the remapped LBNs of a row of bad slots. `count` is the number of grown defects in the
/// row: the maximum number of remapped LBNs.
fn moved_from(
    target: &mut dyn Target,
    bad: &DefectLists,
    row: RangeInclusive<Place>,
    count: u64,
) -> Result<Vec<u64>, TargetError> {
    let (first, last) = row.into_inner();
    let neighbour = |target: &mut dyn Target, slot: Option<u32>, from: Place| match slot {
        Some(slot) => target.translate_back(Place { slot, ..from }),
        None => Ok(None),
    };
    let before = neighbour(target, first.slot.checked_sub(1), first)?;
    let following = neighbour(target, last.slot.checked_add(1), last)?;
    if let (Some(before), Some(following)) = (before, following)
        && let Some(between) = following.0.checked_sub(before.0 + 1)
        && between <= count
    {
        return Ok((before.0 + 1..following.0).collect());
    }
    // The row is at an end of the track, or next to a slot that holds no LBN or an LBN from
    // elsewhere.
    if let Some(Lbn(before)) = before {
        let moved = before + 1..before + 1 + count;
        if is_apart(target, bad, before, moved.start)?
            && is_apart(target, bad, moved.end - 1, moved.end)?
        {
            return Ok(moved.collect());
        }
    }
    if let Some(Lbn(following)) = following
        && let Some(start) = following.checked_sub(count)
        && is_apart(target, bad, following - 1, following)?
        && (start == 0 || is_apart(target, bad, start - 1, start)?)
    {
        return Ok((start..following).collect());
    }
    Ok(Vec::new())
}

/// Returns false only if `next` follows `one` on a track and all slots between them are bad.
fn is_apart(
    target: &mut dyn Target,
    bad: &DefectLists,
    one: u64,
    next: u64,
) -> Result<bool, TargetError> {
    if next >= target.identity().capacity.0 {
        return Ok(true);
    }
    let (one, next) = (target.translate(Lbn(one))?, target.translate(Lbn(next))?);
    if one.track() != next.track() || one.slot >= next.slot {
        return Ok(true);
    }
    let between = one.slot + 1..next.slot;
    Ok(bad.within(one.track(), between.clone()).len() < between.len())
}
