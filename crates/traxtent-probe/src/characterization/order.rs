//! Classifying a layout's order.

use super::layout::{RepeatingSection, TrackLayout};
use traxtent_model::geometry::Order;

/// The order in which LBNs are assigned to a drive's tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutOrder {
    /// One of Wong's six orders, or `None` if the layout is irregular.
    pub order: Option<Order>,
    /// The number of surfaces.
    pub surfaces: u16,
    /// The number of tracks of a pass over one surface, for the seek-first orders.
    pub width: Option<u32>,
    /// The way in which the order was determined.
    pub confidence: LayoutConfidence,
}

/// The way in which a layout's order was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayoutConfidence {
    /// From skews and seek times. Properties that do not affect them are unknown.
    Timed,
    /// From the drive's translations.
    Translated,
}

/// Returns the order that most tracks follow, or an irregular one if no order holds for more than
/// half of them.
pub(super) fn classify(layout: &TrackLayout, confidence: LayoutConfidence) -> LayoutOrder {
    let irregular = LayoutOrder {
        order: None,
        surfaces: layout.surfaces,
        width: None,
        confidence,
    };
    let total: usize = layout.sections.iter().map(|section| section.tracks).sum();
    let mut votes = [(0_usize, None); 6];
    for section in &layout.sections {
        if let Some((order, width)) = section_order(section, layout.surfaces) {
            let vote = &mut votes[Order::ALL
                .iter()
                .position(|o| *o == order)
                .expect("`ALL` lists every order")];
            vote.0 += section.tracks;
            vote.1 = vote.1.or(width);
        }
    }
    let (best, (tracks, width)) = votes
        .into_iter()
        .enumerate()
        .max_by_key(|(_, vote)| vote.0)
        .expect("there are six orders");
    if tracks * 2 <= total {
        return irregular;
    }
    LayoutOrder {
        order: Some(Order::ALL[best]),
        width,
        ..irregular
    }
}

/// Returns the order of one repeating section and, for the seek-first orders, its width. Returns
/// `None` if the section is irregular.
fn section_order(section: &RepeatingSection, surfaces: u16) -> Option<(Order, Option<u32>)> {
    let steps = |f: &dyn Fn(&super::layout::ConstantSteps) -> bool| section.runs.iter().any(f);
    let head_switch_runs = section
        .runs
        .iter()
        .filter(|run| run.step.surface != 0)
        .count();
    if surfaces == 1 {
        return (section.runs.len() == 1).then_some((Order::HeadFirstForward, None));
    }
    if section.advance == 0 {
        return None;
    }
    if head_switch_runs == section.runs.len() {
        let both = steps(&|run| run.step.surface > 0) && steps(&|run| run.step.surface < 0);
        let order = if both {
            Order::HeadFirstAlternating
        } else {
            Order::HeadFirstForward
        };
        return Some((order, None));
    }
    if head_switch_runs > 0 {
        return None;
    }
    let seek_alternates =
        steps(&|run| run.step.cylinder > 0) && steps(&|run| run.step.cylinder < 0);
    let visits: Vec<i32> = section.runs.iter().map(|run| run.at.surface).collect();
    let next = visits.iter().cycle().skip(1);
    let mut surface_changes = visits.iter().zip(next).map(|(a, b)| (b - a).abs());
    // At the end of a group of cylinders, surface-forward orders return from the last surface to
    // the first; surface-alternating orders stay on the surface that they have reached.
    let merged = !seek_alternates && merged(section);
    let surface_alternates = if surfaces == 2 {
        merged || surface_changes.any(|apart| apart == 0)
    } else {
        surface_changes.all(|apart| apart <= 1)
    };
    let width = section.runs.iter().map(|run| run.tracks).min()? as u32;
    let order = match (seek_alternates, surface_alternates) {
        (false, false) => Order::SeekForwardSurfaceForward,
        (false, true) => Order::SeekForwardSurfaceAlternating,
        (true, false) => Order::SeekAlternatingSurfaceForward,
        (true, true) => Order::SeekAlternatingSurfaceAlternating,
    };
    let width = if merged && surfaces == 2 {
        width / 2
    } else {
        width
    };
    Some((order, Some(width)))
}

/// Returns whether the section has two runs that begin at different cylinders. If all seeks are
/// forward, each run then consists of two passes over one surface: the last pass of a group of
/// cylinders and the first pass of the next group.
fn merged(section: &RepeatingSection) -> bool {
    let starts: Vec<i32> = section.runs.iter().map(|run| run.at.cylinder).collect();
    section.runs.len() == 2 && starts[0] != starts[1]
}
