//! Random irregular layouts, similar to those with which DiskSim's layouts g2 and g4 describe
//! measured drives.
//!
//! A map (g2) lists every run of LBNs. Most runs are whole tracks; others begin at slots other than
//! the first, end early, or are parts of a track that a defect splits. An index (g4) lists
//! sections, which are short passes over surfaces. Track sizes differ between surfaces, skews
//! differ by a fraction of a sector, some tracks are listed one by one, and there are long lists of
//! slipped sectors.

use traxtent_model::geometry::{BranchSpec, Child, GeometrySpec, SlipSpec, TrackSpec, TreeSpec};

use super::dice::SeededRng;
use super::layout::Size;
use super::skews::Skews;

/// Draws a drive whose layout resembles the map (g2) of a measured drive.
pub(super) fn mapped(dice: &mut SeededRng, size: Size, skews: &Skews) -> GeometrySpec {
    let mut list = Listing::new(size);
    let irregular_chance = dice.of(&[0.01, 0.03, 0.1, 0.3]);
    let alternates = dice.chance(0.5);
    let (head, step) = (skews.turns(0, true), skews.turns(1, true));
    let mut angle = 0.0;
    let mut backward = false;
    for zone in zones(dice, size) {
        // In each zone, skews are whole numbers of slots.
        let whole = |turns: f64| (turns * f64::from(zone.slots)).ceil() / f64::from(zone.slots);
        let (head, step) = (whole(head), whole(step));
        for cylinder in zone.cylinders {
            for k in 0..size.surfaces {
                let surface = if backward { size.surfaces - 1 - k } else { k };
                let spare = if k + 1 == size.surfaces {
                    zone.spare
                } else {
                    0
                };
                for (first_slot, sectors) in
                    extents(dice, size, zone.slots, spare, irregular_chance)
                {
                    let track = list.track_index(zone.slots, first_slot, sectors);
                    list.root.push(BranchSpec {
                        cylinder: cylinder as i32,
                        surface: surface.into(),
                        angle_turns: angle,
                        ..BranchSpec::once(Child::Track(track))
                    });
                }
                let turn = if k + 1 == size.surfaces { step } else { head };
                angle = (angle + turn).fract();
            }
            backward = alternates && !backward;
        }
    }
    list.finish()
}

/// Draws the parts of a track that hold LBNs, each as its first slot and number of sectors: mostly
/// the whole track.
fn extents(
    dice: &mut SeededRng,
    size: Size,
    slots: u32,
    spare: u32,
    irregular_chance: f64,
) -> Vec<(u32, u32)> {
    let ratio = size.ratio;
    let physical = (slots - spare) / ratio;
    if !dice.chance(irregular_chance) {
        return vec![(0, physical * ratio)];
    }
    let few = 1 + physical / 12;
    let parts = match dice.pick(0..6) {
        0 | 1 => {
            let first = dice.pick32(1..few + 1);
            vec![(first, physical - first)]
        }
        2 => vec![(0, physical - dice.pick32(1..few + 1))],
        3 => {
            let first = dice.pick32(1..few + 1);
            vec![(first, physical - first - dice.pick32(1..few + 1))]
        }
        // A defect splits the track.
        _ => {
            let gap = dice.of(&[1, 1, 2, 3]).min(few);
            let cut = dice.pick32(physical / 8..physical - physical / 8 - gap);
            vec![(0, cut), (cut + gap, physical - cut - gap)]
        }
    };
    let slots_of = |(first, sectors)| (first * ratio, sectors * ratio);
    parts.into_iter().map(slots_of).collect()
}

/// Draws a drive whose layout resembles an index of sections (g4).
pub(super) fn indexed(dice: &mut SeededRng, size: Size, skews: &Skews) -> GeometrySpec {
    let mut list = Listing::new(size);
    let wander = dice.of(&[0.0, 0.000_2, 0.000_5]);
    let one_by_one = dice.chance(0.3);
    let irregular_chance = dice.of(&[0.0, 0.002, 0.02]);
    let mut backward = false;
    let mut angle = 0.0;
    for zone in zones(dice, size) {
        // Track sizes differ between surfaces by up to 12 %, as on a real drive.
        let by_surface: Vec<u32> = (0..size.surfaces)
            .map(|_| zone.similar_slots(dice, size))
            .collect();
        let alike = dice.chance(0.3);
        let mut first = zone.cylinders.start;
        while first < zone.cylinders.end {
            let width = dice.pick32(1..33).min(zone.cylinders.end - first);
            let listed = one_by_one && dice.chance(0.2);
            for k in 0..size.surfaces {
                let surface = if backward { size.surfaces - 1 - k } else { k };
                let slots = if alike {
                    zone.slots
                } else {
                    by_surface[usize::from(surface)]
                };
                let (start, direction) = if (k % 2 == 1) != backward {
                    (first + width - 1, -1)
                } else {
                    (first, 1)
                };
                let turn = skews.turns(1, false) + wander * dice.between(-1.0, 1.0);
                let mut at = start as i32;
                let mut left = width;
                while left > 0 {
                    // Defects occasionally split a run.
                    let is_split = listed || dice.chance(irregular_chance * f64::from(left));
                    let count = match (listed, is_split) {
                        (true, _) => 1,
                        (_, true) if left > 1 => dice.pick32(1..left),
                        _ => left,
                    };
                    let track = if listed && dice.chance(4.0 * irregular_chance) {
                        let (first, sectors) = extents(dice, size, slots, 0, 1.0)[0];
                        list.track_index(slots, first, sectors)
                    } else {
                        list.track_index(slots, 0, slots)
                    };
                    list.root.push(BranchSpec {
                        cylinder: at,
                        surface: surface.into(),
                        angle_turns: angle,
                        repeat: count.into(),
                        cylinder_step: if count > 1 { direction } else { 0 },
                        angle_step_turns: if count > 1 { turn } else { 0.0 },
                        ..BranchSpec::once(Child::Track(track))
                    });
                    at += direction * count as i32;
                    angle = (angle + turn * f64::from(count)).fract();
                    left -= count;
                }
                angle = rounded_fraction(angle - turn + skews.turns(0, true));
            }
            angle = rounded_fraction(angle - skews.turns(0, true) + skews.turns(width, true));
            backward = dice.chance(0.5) != backward;
            first += width;
        }
    }
    let mut spec = list.finish();
    slips(dice, size, &mut spec);
    spec
}

/// Adds slips in runs of one to six physical sectors, about as frequent as on measured drives.
fn slips(dice: &mut SeededRng, size: Size, spec: &mut GeometrySpec) {
    let Some(tree) = &mut spec.tree else { return };
    let mut sectors = 0;
    for branch in &tree.nodes[0] {
        if let Child::Track(track) = branch.of {
            sectors += branch.repeat * u64::from(tree.tracks[track as usize].sectors);
        }
    }
    let every = dice.of(&[3, 10, 40]) * u64::from(tree.tracks[0].slots);
    let ratio = u64::from(size.ratio);
    let mut position = dice.pick(1..every);
    while position + 100 * ratio < sectors {
        let run = dice.pick32(1..7) * size.ratio;
        let first = position / ratio * ratio;
        tree.slips.push(SlipSpec {
            position: first,
            sectors: run,
        });
        position = first + u64::from(run) + ratio + dice.pick(1..2 * every);
    }
}

/// A zone of a mapped or indexed drive.
struct Zone {
    cylinders: std::ops::Range<u32>,
    slots: u32,
    /// Spare slots at the end of the last track of each cylinder, in a mapped drive.
    spare: u32,
}

impl Zone {
    fn similar_slots(&self, dice: &mut SeededRng, size: Size) -> u32 {
        size.whole((f64::from(self.slots) * dice.between(0.88, 1.0)) as u32)
    }
}

/// Draws zones of many cylinders, and tiny zones of one to four, down to the innermost cylinder.
fn zones(dice: &mut SeededRng, size: Size) -> Vec<Zone> {
    let mut zones = Vec::new();
    let tiny = dice.of(&[0.1, 0.3, 0.6]);
    let (mut first, mut slots) = (0, size.slots(dice));
    while first < size.cylinders {
        let left = size.cylinders - first;
        let count = if dice.chance(tiny) {
            dice.pick32(1..5)
        } else {
            dice.pick32(5..6 + size.cylinders / 4)
        };
        let end = first + count.min(left);
        let spare = if dice.chance(0.3) {
            size.ratio * dice.pick32(1..4)
        } else {
            0
        };
        zones.push(Zone {
            cylinders: first..end,
            slots,
            spare,
        });
        first = end;
        slots = size.whole((f64::from(slots) * dice.between(0.9, 1.02)) as u32);
    }
    zones
}

/// A layout under construction.
struct Listing {
    tree: TreeSpec,
    root: Vec<BranchSpec>,
    size: Size,
}

impl Listing {
    fn new(size: Size) -> Listing {
        Listing {
            tree: TreeSpec::default(),
            root: Vec::new(),
            size,
        }
    }

    fn track_index(&mut self, slots: u32, first_slot: u32, sectors: u32) -> u32 {
        self.tree.track_index(TrackSpec {
            slots,
            first_slot,
            sectors,
        })
    }

    fn finish(mut self) -> GeometrySpec {
        self.tree.nodes.push(self.root);
        GeometrySpec {
            surfaces: self.size.surfaces,
            cylinders: self.size.cylinders,
            tree: Some(self.tree),
            ..GeometrySpec::default()
        }
    }
}

/// Returns the fractional part of an angle in turns, rounded to a millionth.
fn rounded_fraction(turns: f64) -> f64 {
    ((turns - turns.floor()) * 1e6).round() / 1e6
}
