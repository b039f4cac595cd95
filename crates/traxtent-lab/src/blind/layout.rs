//! Random layouts: zones in one of Wong's orders, or an irregular tree. Defects are added later.

use traxtent_model::geometry::{
    BranchSpec, Child, GeometrySpec, Order, PerSurface, Sparing, Start, TrackSpec, TreeSpec,
    ZoneSpec,
};

use super::dice::SeededRng;
use super::skews::Skews;

/// The size of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) surfaces: u16,
    pub(super) cylinders: u32,
    /// The number of logical sectors in a physical one. Tracks and spares are multiples of it.
    pub(super) ratio: u32,
}

impl Size {
    /// Draws a size of 300 to 4,000 tracks on 1 to 10 surfaces.
    pub(super) fn draw(dice: &mut SeededRng, ratio: u32) -> Size {
        let tracks = dice.of_ranges(&[300..700, 500..1_200, 1_000..2_000, 1_800..3_900]) as u32;
        let surfaces = dice.of(&[1, 2, 2, 3, 4, 4, 5, 6, 8, 10]);
        Size {
            surfaces,
            cylinders: tracks.div_ceil(surfaces.into()) + 4,
            ratio,
        }
    }

    /// Draws the number of slots on the outermost tracks.
    pub(super) fn slots(&self, dice: &mut SeededRng) -> u32 {
        let slots = dice.of_ranges(&[48..120, 100..350, 250..700, 600..1_200]) as u32;
        self.whole(slots)
    }

    /// Limits a number of slots to between 40 and 1,200, and rounds it down to whole physical
    /// sectors.
    pub(super) fn whole(&self, slots: u32) -> u32 {
        slots.clamp(40, 1_200) / self.ratio * self.ratio
    }
}

/// The sparing schemes with spares in each cylinder or range of cylinders.
const BY_CYLINDER: [Sparing; 5] = [
    Sparing::SectorsPerCylinder,
    Sparing::SectorsPerCylinderSlipToEnd,
    Sparing::SectorsAtCylinderFront,
    Sparing::SectorsAtCylinderFrontSlipToEnd,
    Sparing::SectorsPerCylinderRange,
];

/// Draws a zoned drive.
pub(super) fn zoned(dice: &mut SeededRng, size: Size, skews: &Skews) -> GeometrySpec {
    let sparing = dice.of(&Sparing::ALL);
    // Spares in each cylinder need an order that fills one cylinder after another.
    let seek_first = !BY_CYLINDER.contains(&sparing) && dice.chance(0.8);
    let order = dice.of(if seek_first {
        &Order::ALL[2..]
    } else {
        &Order::ALL[..2]
    });
    let ranges = cylinder_ranges(dice, size.cylinders);
    let narrowest_zone = ranges
        .iter()
        .map(|(first, last)| last - first + 1)
        .min()
        .unwrap_or(1);
    let width = match dice.pick(0..4) {
        0 => dice.pick32(1..5),
        1 => dice.pick32(5..41),
        2 => dice.pick32(1..narrowest_zone + 1),
        _ => size.cylinders,
    };
    let mut spec = GeometrySpec {
        surfaces: size.surfaces,
        cylinders: size.cylinders,
        order,
        width_tracks: seek_first.then_some(width),
        start: dice.of(&[Start::Forward, Start::Backward, Start::CylinderParity]),
        sparing,
        sparing_range_cylinders: (sparing == Sparing::SectorsPerCylinderRange)
            .then(|| dice.pick32(2..9)),
        ..GeometrySpec::default()
    };
    let by_surface = dice.chance(0.35);
    let apart = size.surfaces > 1 && dice.chance(0.1);
    let mut slots = size.slots(dice);
    for (first_cylinder, last_cylinder) in ranges {
        let surfaces = if apart {
            (0..size.surfaces).map(Some).collect()
        } else {
            vec![None]
        };
        for surface in surfaces {
            let mut zone = ZoneSpec {
                first_cylinder,
                last_cylinder,
                surface,
                ..ZoneSpec::default()
            };
            zone.sectors_per_track = match surface {
                Some(_) if by_surface => PerSurface::Same(varied_sectors(dice, size, slots)),
                None if by_surface => PerSurface::Each(
                    (0..size.surfaces)
                        .map(|_| varied_sectors(dice, size, slots))
                        .collect(),
                ),
                _ => PerSurface::Same(slots),
            };
            let cylinders = last_cylinder - first_cylinder + 1;
            skews.set_zone_skews(dice, &mut zone, order, slots, width.min(cylinders));
            zone.spares = spares(dice, size, sparing, slots, cylinders);
            spec.zones.push(zone);
        }
        // Inner zones mostly have fewer sectors.
        slots = size.whole(if dice.chance(0.1) {
            slots * 21 / 20
        } else {
            (f64::from(slots) * dice.between(0.75, 1.0)) as u32
        });
    }
    drift(dice, &mut spec);
    reserve(dice, size, &mut spec);
    spec
}

/// Divides the cylinders among one to six zones, sometimes with unused cylinders before the first
/// or between them.
fn cylinder_ranges(dice: &mut SeededRng, cylinders: u32) -> Vec<(u32, u32)> {
    let most = (cylinders / 8).clamp(1, 6);
    let zones = dice.pick32(1..most + 1);
    let gap = if dice.chance(0.2) {
        dice.pick32(1..4)
    } else {
        0
    };
    let mut first = if dice.chance(0.2) { 2 } else { 0 };
    let mut ranges = Vec::new();
    for left in (1..=zones).rev() {
        let even = (cylinders - first) / left;
        let take = if left == 1 {
            cylinders - first
        } else {
            dice.pick32(4.max(even / 2)..even + 1).max(4)
        };
        let last = first + take - 1;
        let inner = if left > 1 && take > gap + 3 {
            last - gap
        } else {
            last
        };
        ranges.push((first, inner));
        first = last + 1;
    }
    ranges
}

/// Varies the number of sectors by up to 12 %, as between the surfaces of a real drive.
fn varied_sectors(dice: &mut SeededRng, size: Size, slots: u32) -> u32 {
    size.whole((f64::from(slots) * dice.between(0.88, 1.12)) as u32)
}

/// Draws the number of spares in each region of the sparing scheme, in sectors, or in tracks for
/// [`Sparing::TracksPerZone`]. It is sometimes more than a track.
fn spares(dice: &mut SeededRng, size: Size, sparing: Sparing, slots: u32, cylinders: u32) -> u32 {
    let ratio = size.ratio;
    let physical = slots / ratio;
    let generous = dice.chance(0.25);
    match sparing {
        Sparing::None | Sparing::SectorsAtDriveEnd => 0,
        Sparing::TracksPerZone => dice.pick32(1..7).min(cylinders / 4),
        Sparing::SectorsPerTrack => ratio * dice.pick32(1..2 + physical / 30),
        Sparing::SectorsPerZone | Sparing::SectorsPerZoneSlipToEnd => {
            ratio * dice.pick32(1..if generous { 3 * physical } else { physical })
        }
        _ if generous && size.surfaces >= 3 => ratio * dice.pick32(physical..physical * 3 / 2),
        _ => ratio * dice.pick32(1..2 + physical / 8),
    }
}

/// Makes the skew of some zones drift by one or two sectors at intervals.
fn drift(dice: &mut SeededRng, spec: &mut GeometrySpec) {
    let surfaces = u64::from(spec.surfaces);
    for zone in &mut spec.zones {
        let alike = matches!(zone.sectors_per_track, PerSurface::Same(_));
        let drifts = dice.chance(0.25);
        let (every, by) = (dice.pick(3..60), dice.of(&[1, 1, 1, -1, 2]));
        if !alike || !drifts {
            continue;
        }
        let tracks = u64::from(zone.last_cylinder - zone.first_cylinder + 1)
            * if zone.surface.is_some() { 1 } else { surfaces };
        zone.turns = (1..)
            .map(|k| k * every)
            .take_while(|&track| track < tracks)
            .map(|track| (track, by))
            .collect();
    }
}

/// Reserves sectors at the beginning of some zones. If physical sectors hold several LBNs, the
/// first zone's reserve can also end within a physical sector.
fn reserve(dice: &mut SeededRng, size: Size, spec: &mut GeometrySpec) {
    for (number, zone) in spec.zones.iter_mut().enumerate() {
        let whole = if dice.chance(0.15) {
            dice.pick32(1..400)
        } else {
            0
        };
        let shift = dice.of(&[0, 0, 1, 3]);
        zone.reserved_sectors = u64::from(whole * size.ratio);
        if number == 0 && size.ratio > 1 {
            zone.reserved_sectors += shift;
        }
    }
}

/// Draws an irregular drive: passes in either direction, surfaces in any order, groups of any
/// width, and tracks that continue on another cylinder after a few sectors.
pub(super) fn irregular(dice: &mut SeededRng, size: Size, skews: &Skews) -> GeometrySpec {
    let mut builder = TreeBuilder {
        tree: TreeSpec::default(),
        size,
        skews,
    };
    let mut root = Vec::new();
    let (mut cylinder, mut slots, mut angle) = (0, size.slots(dice), 0.0);
    let zones = dice.pick32(2..6);
    for zone in 0..zones {
        let left = size.cylinders - cylinder;
        let take = if zone + 1 == zones {
            left
        } else {
            (left / (zones - zone)).max(8).min(left)
        };
        let width = dice.pick32(1..2 + take.min(60) / 2);
        let repeat = take / width;
        let odd = dice.chance(0.4).then(|| dice.pick32(0..repeat));
        // In some zones, one group may have a split track on each surface.
        let mut parts = vec![(repeat, false)];
        if let Some(odd) = odd {
            parts = vec![(odd, false), (1, true), (repeat - odd - 1, false)];
        }
        for (count, split) in parts {
            if count == 0 {
                continue;
            }
            let (node, step) = builder.group(dice, slots, width, split);
            root.push(BranchSpec {
                cylinder: cylinder as i32,
                angle_turns: angle,
                repeat: count.into(),
                cylinder_step: width as i32,
                angle_step_turns: step,
                ..BranchSpec::once(Child::Node(node))
            });
            cylinder += width * count;
            angle = (angle + step * f64::from(count)).fract();
        }
        slots = size.whole((f64::from(slots) * dice.between(0.75, 1.05)) as u32);
    }
    builder.tree.nodes.push(root);
    GeometrySpec {
        surfaces: size.surfaces,
        cylinders: size.cylinders,
        tree: Some(builder.tree),
        ..GeometrySpec::default()
    }
}

/// A tree that is being drawn.
struct TreeBuilder<'a> {
    tree: TreeSpec,
    size: Size,
    skews: &'a Skews,
}

impl TreeBuilder<'_> {
    /// Adds a group of passes, one per surface, in ascending or random order. Returns the group's
    /// node and the angle from the group to the next.
    fn group(&mut self, dice: &mut SeededRng, slots: u32, width: u32, split: bool) -> (u32, f64) {
        let ratio = self.size.ratio;
        let mut surfaces: Vec<i32> = (0..self.size.surfaces.into()).collect();
        if dice.chance(0.5) {
            dice.shuffle(&mut surfaces);
        }
        let by_surface = dice.chance(0.3);
        let (mut node, mut angle) = (Vec::new(), 0.0);
        let step = self.skews.turns(1, false);
        for surface in surfaces {
            let slots = if by_surface {
                varied_sectors(dice, self.size, slots)
            } else {
                slots
            };
            let spare = if dice.chance(0.3) {
                ratio * dice.pick32(1..3)
            } else {
                0
            };
            let first_slot = if dice.chance(0.2) { spare } else { 0 };
            let whole = self.track(slots, first_slot, slots - spare);
            let mut runs = vec![(whole, width)];
            if split && width >= 4 && slots > 6 * ratio {
                let before = dice.pick32(1..width - 2);
                let first = self.track(slots, 0, 6 * ratio);
                let rest = self.track(slots, 6 * ratio, slots - 6 * ratio);
                runs = vec![
                    (whole, before),
                    (first, 1),
                    (rest, 1),
                    (whole, width - before - 2),
                ];
            }
            let (mut at, way) = if dice.chance(0.5) {
                (0, 1)
            } else {
                (width as i32 - 1, -1)
            };
            for (track, count) in runs {
                node.push(BranchSpec {
                    cylinder: at,
                    surface,
                    angle_turns: angle,
                    repeat: count.into(),
                    cylinder_step: way,
                    angle_step_turns: step,
                    ..BranchSpec::once(Child::Track(track))
                });
                at += way * count as i32;
                angle += step * f64::from(count);
            }
            angle = round(angle - step + self.skews.turns(width, true));
        }
        self.tree.nodes.push(node);
        (self.tree.nodes.len() as u32 - 1, angle)
    }

    fn track(&mut self, slots: u32, first_slot: u32, sectors: u32) -> u32 {
        let sectors = sectors.min(slots - first_slot);
        self.tree.track_index(TrackSpec {
            slots,
            first_slot,
            sectors,
        })
    }
}

/// Returns the fractional part of an angle in turns, rounded to a millionth.
fn round(turns: f64) -> f64 {
    (turns.fract() * 1e6).round() / 1e6
}
