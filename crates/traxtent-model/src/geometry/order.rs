//! The order in which the tracks of a zone receive LBNs, as a tree.

use super::spec::{Order, Skew, Start};
use super::tree::{BranchOf, NodeId, Offset, Tree};
use traxtent_units::Angle;

/// The order of a zone's tracks and their skews, from checked values.
pub(super) struct ZoneOrder<'a> {
    pub(super) order: Order,
    pub(super) backward: bool,
    /// Cylinders per pass. The number of cylinders of the zone need not be a multiple of it.
    pub(super) width: u32,
    pub(super) first_cylinder: u32,
    pub(super) cylinders: u32,
    pub(super) first_surface: u16,
    /// The number of slots per track of each surface.
    pub(super) slots: &'a [u32],
    pub(super) skews: Skews,
}

/// The angle of the first track, and the skews between consecutive tracks.
#[derive(Clone, Copy)]
pub(super) struct Skews {
    pub(super) first: Skew,
    pub(super) track: Skew,
    pub(super) cylinder: Skew,
    pub(super) turn: Skew,
    pub(super) group: Skew,
}

/// The movement that reaches the next track.
#[derive(Clone, Copy)]
enum Step {
    First,
    Track,
    Cylinder,
    Turn,
    Group,
}

impl ZoneOrder<'_> {
    pub(super) fn tracks(&self) -> u64 {
        u64::from(self.cylinders) * self.slots.len() as u64
    }

    /// The number of tracks after which the pattern repeats.
    pub(super) fn period(&self) -> u64 {
        let group = u64::from(self.width) * self.slots.len() as u64;
        if self.order.alternates_surface() || self.order.alternates_seek() {
            2 * group
        } else {
            group
        }
    }

    /// Builds the tree. `used` returns the number of sectors in use per track of a surface.
    pub(super) fn build(&self, tree: &mut Tree, used: impl Fn(usize) -> u32) -> NodeId {
        let groups = self.cylinders / self.width;
        let rest = self.cylinders % self.width;
        // A period has two groups if the order alternates. Its step is the offset from its first
        // track to the first track after it.
        let per_period = if self.period() > u64::from(self.width) * self.slots.len() as u64 {
            2
        } else {
            1
        };
        let mut builder = OrderBuilder {
            angle: Angle::ZERO,
            branches: Vec::new(),
        };
        let mut out = Vec::new();
        let periods = groups / per_period;
        if periods > 0 {
            let first = self.angle(Step::First, self.surface_of_pass(0, 0));
            builder.angle = first;
            for group in 0..per_period {
                if group > 0 {
                    builder.angle = builder.next(self, group);
                }
                self.group(tree, group, self.width, &used, &mut builder);
            }
            let node = tree.add_node(std::mem::take(&mut builder.branches));
            let step = Offset::new(
                (per_period * self.width) as i32,
                0,
                builder.next(self, per_period) - first,
            );
            out.push(tree.branch(
                BranchOf::Node(node),
                Offset::default(),
                step,
                periods.into(),
            ));
            builder.angle = first + Angle((step.angle.0).wrapping_mul(periods.into()));
        } else {
            builder.angle = self.angle(Step::First, self.surface_of_pass(0, 0));
        }
        // The remainder: an odd group, then a narrower one.
        for group in periods * per_period..groups {
            self.group(tree, group, self.width, &used, &mut builder);
            builder.angle = builder.next(self, group + 1);
        }
        if rest > 0 {
            self.group(tree, groups, rest, &used, &mut builder);
        }
        out.append(&mut builder.branches);
        tree.add_node(out)
    }

    /// Adds one group of `width` cylinders, whose first track begins at the builder's angle.
    fn group(
        &self,
        tree: &mut Tree,
        group: u32,
        width: u32,
        used: &impl Fn(usize) -> u32,
        builder: &mut OrderBuilder,
    ) {
        let surfaces = self.slots.len();
        for pass in 0..surfaces {
            let surface = self.surface_of_pass(group, pass);
            if pass > 0 {
                let step = if self.order.is_head_first() {
                    Step::Track
                } else {
                    Step::Turn
                };
                builder.angle = builder.angle + self.angle(step, surface);
            }
            let outer = self.first_cylinder + group * self.width;
            let (start, way) = if self.pass_is_backward(group, pass) {
                (outer + width - 1, -1)
            } else {
                (outer, 1)
            };
            let shape = tree.add_shape(super::shape::Shape::plain(
                self.slots[surface],
                0,
                used(surface),
            ));
            let at = Offset::new(
                start as i32,
                i32::from(self.first_surface) + surface as i32,
                builder.angle,
            );
            let step = Offset::new(way, 0, self.angle(Step::Cylinder, surface));
            let branch = tree.branch(BranchOf::Track(shape), at, step, width.into());
            builder.angle = at.plus(step, u64::from(width) - 1).angle;
            match builder.branches.last_mut() {
                // Consecutive heads on one cylinder are one branch.
                Some(last)
                    if width == 1
                        && last.what == branch.what
                        && last.at.cylinder == at.cylinder
                        && self.extends(last, at) =>
                {
                    last.step = at.minus(last.at.plus(last.step, last.repeat - 1));
                    last.repeat += 1;
                }
                _ => builder.branches.push(branch),
            }
        }
    }

    /// Returns whether `at` continues the run of heads.
    fn extends(&self, last: &super::tree::Branch, at: Offset) -> bool {
        last.repeat == 1 || last.at.plus(last.step, last.repeat) == at
    }

    /// The surface of pass number `pass` of a group or, in head-first orders, of track number
    /// `pass` of a cylinder.
    fn surface_of_pass(&self, group: u32, pass: usize) -> usize {
        let head_first = self.order.is_head_first();
        let odd = self.order.alternates_surface() && group % 2 == 1;
        if odd != (head_first && self.backward) {
            self.slots.len() - 1 - pass
        } else {
            pass
        }
    }

    fn pass_is_backward(&self, group: u32, pass: usize) -> bool {
        let number = u64::from(group) * self.slots.len() as u64 + pass as u64;
        let odd = self.order.alternates_seek() && number % 2 == 1;
        !self.order.is_head_first() && odd != self.backward
    }

    fn angle(&self, step: Step, surface: usize) -> Angle {
        let skew = match step {
            Step::First => self.skews.first,
            Step::Track => self.skews.track,
            Step::Cylinder => self.skews.cylinder,
            Step::Turn => self.skews.turn,
            Step::Group => self.skews.group,
        };
        skew.angle(self.slots[surface])
    }
}

/// The state of the construction: the angle of the last track, and the branches added so far.
struct OrderBuilder {
    angle: Angle,
    branches: Vec<super::tree::Branch>,
}

impl OrderBuilder {
    /// Returns the angle at which group number `group` begins.
    fn next(&self, zone: &ZoneOrder<'_>, group: u32) -> Angle {
        let step = if zone.order.is_head_first() {
            Step::Cylinder
        } else {
            Step::Group
        };
        self.angle + zone.angle(step, zone.surface_of_pass(group, 0))
    }
}

/// Returns whether a zone's first pass runs backward.
pub(super) fn is_backward(start: Start, first_cylinder: u32) -> bool {
    match start {
        Start::Forward => false,
        Start::Backward => true,
        Start::CylinderParity => first_cylinder % 2 == 1,
    }
}
