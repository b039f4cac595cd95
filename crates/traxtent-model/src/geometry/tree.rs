//! A run-length tree of tracks, which is the index for every lookup.
//!
//! A node lists branches in LBN order. A branch repeats a track or another node with constant steps
//! of cylinder, surface and angle. A zone is a few branches, and a track with a slip is a branch of
//! its own. Size and loading time therefore grow with the number of zones and defects, not with the
//! number of tracks.

mod jump;
mod place_index;

use std::ops::Range;

use super::shape::{Gap, Shape};
use jump::Jump;
use place_index::PlaceIndex;
pub(super) use place_index::interleaved;
use traxtent_units::Angle;

/// A position of the heads and the platter, or the difference of two positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) cylinder: i32,
    pub(super) surface: i32,
    pub(super) angle: Angle,
}

impl Offset {
    pub(super) fn new(cylinder: i32, surface: i32, angle: Angle) -> Offset {
        Offset {
            cylinder,
            surface,
            angle,
        }
    }

    /// Returns this position plus `count` times `step`.
    #[inline]
    pub(super) fn plus(self, step: Offset, count: u64) -> Offset {
        Offset {
            cylinder: self
                .cylinder
                .wrapping_add(step.cylinder.wrapping_mul(count as i32)),
            surface: self
                .surface
                .wrapping_add(step.surface.wrapping_mul(count as i32)),
            angle: Angle(self.angle.0.wrapping_add(step.angle.0.wrapping_mul(count))),
        }
    }

    pub(super) fn minus(self, other: Offset) -> Offset {
        Offset {
            cylinder: self.cylinder - other.cylinder,
            surface: self.surface - other.surface,
            angle: self.angle - other.angle,
        }
    }
}

pub(super) type NodeId = u32;
pub(super) type ShapeId = u32;

/// The part that a branch repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BranchOf {
    Track(ShapeId),
    Node(NodeId),
}

/// A repeated track or node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    /// The number of LBNs in the node before this branch.
    pub(super) sector: u64,
    /// The number of tracks in the node before this branch.
    pub(super) track: u64,
    /// The number of LBNs of one instance.
    pub(super) sectors: u64,
    /// The number of tracks of one instance.
    pub(super) tracks: u64,
    /// The number of instances.
    pub(super) repeat: u64,
    /// The position of the first instance, relative to the node.
    pub(super) at: Offset,
    /// The step from one instance to the next.
    pub(super) step: Offset,
    pub(super) what: BranchOf,
}

/// The smallest range of cylinders and of surfaces that contains all parts, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) cylinders: (i32, i32),
    pub(super) surfaces: (i32, i32),
}

impl Extent {
    pub(super) const POINT: Extent = Extent {
        cylinders: (0, 0),
        surfaces: (0, 0),
    };

    fn join(self, other: Extent) -> Extent {
        let join = |a: (i32, i32), b: (i32, i32)| (a.0.min(b.0), a.1.max(b.1));
        Extent {
            cylinders: join(self.cylinders, other.cylinders),
            surfaces: join(self.surfaces, other.surfaces),
        }
    }

    fn shift(self, by: Offset) -> Extent {
        let shift = |a: (i32, i32), by: i32| (a.0.saturating_add(by), a.1.saturating_add(by));
        Extent {
            cylinders: shift(self.cylinders, by.cylinder),
            surfaces: shift(self.surfaces, by.surface),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) branches: Range<u32>,
    pub(super) sectors: u64,
    pub(super) tracks: u64,
    pub(super) extent: Extent,
}

/// The result of a lookup: a track and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundTrack {
    /// The number of tracks before this one.
    pub(super) index: u64,
    /// The number of LBNs before this track.
    pub(super) first: u64,
    pub(super) spot: Offset,
    pub(super) shape: Shape,
}

/// The tracks that follow a track in its branch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Followers {
    count: u64,
    step: Offset,
}

/// A track that was found, from which the next one is found without a search if it is in the same
/// branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundInBranch {
    pub(super) track: FoundTrack,
    followers: Followers,
}

impl FoundInBranch {
    /// Returns the next track if it begins with `sector` and is in the same branch.
    #[inline]
    pub(super) fn next(&self, sector: u64) -> Option<FoundInBranch> {
        let FoundInBranch { track, followers } = *self;
        let is_next = sector == track.first + u64::from(track.shape.sectors);
        (is_next && followers.count > 0).then(|| FoundInBranch {
            track: FoundTrack {
                index: track.index + 1,
                first: sector,
                spot: track.spot.plus(followers.step, 1),
                shape: track.shape,
            },
            followers: Followers {
                count: followers.count - 1,
                ..followers
            },
        })
    }
}

/// The arena that holds all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<Branch>,
    /// A packed copy of `Branch::sector` for the search.
    starts: Vec<u64>,
    pub(super) shapes: Vec<Shape>,
    pub(super) gaps: Vec<Gap>,
    places: PlaceIndex,
    jump: Option<Jump>,
}

impl Tree {
    pub(super) fn add_shape(&mut self, shape: Shape) -> ShapeId {
        // Only the last few are compared, because equal shapes are added consecutively.
        let recent = self.shapes.len().saturating_sub(8);
        if let Some(i) = self.shapes[recent..].iter().position(|s| *s == shape) {
            return (recent + i) as ShapeId;
        }
        self.shapes.push(shape);
        self.shapes.len() as ShapeId - 1
    }

    /// Returns a branch of `what`. [`Tree::add_node`] sets its position in the node.
    pub(super) fn branch(&self, what: BranchOf, at: Offset, step: Offset, repeat: u64) -> Branch {
        let (sectors, tracks) = match what {
            BranchOf::Track(shape) => (self.shapes[shape as usize].sectors.into(), 1),
            BranchOf::Node(node) => (self.node(node).sectors, self.node(node).tracks),
        };
        Branch {
            sector: 0,
            track: 0,
            sectors,
            tracks,
            repeat,
            at,
            step,
            what,
        }
    }

    pub(super) fn add_node(&mut self, branches: Vec<Branch>) -> NodeId {
        let first = self.branches.len() as u32;
        let (mut sectors, mut tracks) = (0, 0);
        let mut extent: Option<Extent> = None;
        for mut branch in branches {
            if branch.repeat == 0 || branch.tracks == 0 {
                continue;
            }
            (branch.sector, branch.track) = (sectors, tracks);
            sectors += branch.sectors * branch.repeat;
            tracks += branch.tracks * branch.repeat;
            let own = self.extent(&branch);
            extent = Some(extent.map_or(own, |e| e.join(own)));
            self.starts.push(branch.sector);
            self.branches.push(branch);
        }
        let branches = first..self.branches.len() as u32;
        let extent = extent.unwrap_or(Extent::POINT);
        self.nodes.push(Node {
            branches,
            sectors,
            tracks,
            extent,
        });
        self.nodes.len() as NodeId - 1
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The branches of a node.
    pub(super) fn branches_of(&self, id: NodeId) -> &[Branch] {
        let range = &self.node(id).branches;
        &self.branches[range.start as usize..range.end as usize]
    }

    /// The extent of one instance of a branch's child, relative to the instance.
    pub(super) fn child_extent(&self, branch: &Branch) -> Extent {
        match branch.what {
            BranchOf::Track(_) => Extent::POINT,
            BranchOf::Node(node) => self.node(node).extent,
        }
    }

    /// The extent of all instances, relative to the node.
    pub(super) fn extent(&self, branch: &Branch) -> Extent {
        let first = self.child_extent(branch).shift(branch.at);
        let last = branch.repeat - 1;
        let reach = |step: i32| {
            i64::from(step)
                .saturating_mul(last as i64)
                .clamp(-(1 << 30), 1 << 30) as i32
        };
        let way = Offset::new(
            reach(branch.step.cylinder),
            reach(branch.step.surface),
            Angle::ZERO,
        );
        first.join(first.shift(way))
    }

    /// Returns the track that holds sector `sector` of `node`. `sector` must be less than the
    /// number of sectors in the node.
    #[inline]
    pub(super) fn find_sector(&self, node: NodeId, sector: u64) -> FoundTrack {
        self.find_in_branch(node, sector).track
    }

    /// Same as [`Tree::find_sector`], with the tracks that follow in the same branch.
    #[inline]
    pub(super) fn find_in_branch(&self, node: NodeId, sector: u64) -> FoundInBranch {
        self.descend(
            node,
            sector,
            |b| (b.sector, b.sectors),
            |id, rest| {
                let range = &self.nodes[id as usize].branches;
                let (mut begin, mut end) = (range.start as usize, range.end as usize);
                if let Some(jump) = &self.jump
                    && jump.node == id
                {
                    let near = jump.branches(rest);
                    (begin, end) = (begin + near.start, begin + near.end);
                }
                begin + self.starts[begin..end].partition_point(|&start| start <= rest) - 1
            },
        )
    }

    /// Returns track number `track` of `node`. `track` must be less than the number of tracks in
    /// the node.
    pub(super) fn find_track(&self, node: NodeId, track: u64) -> FoundTrack {
        self.descend(
            node,
            track,
            |b| (b.track, b.tracks),
            |id, rest| {
                let range = &self.nodes[id as usize].branches;
                let range = range.start as usize..range.end as usize;
                range.start + self.branches[range].partition_point(|b| b.track <= rest) - 1
            },
        )
        .track
    }

    #[inline(always)]
    fn descend(
        &self,
        mut node: NodeId,
        mut rest: u64,
        key: impl Fn(&Branch) -> (u64, u64),
        pick: impl Fn(NodeId, u64) -> usize,
    ) -> FoundInBranch {
        let (mut index, mut first, mut spot) = (0, 0, Offset::default());
        loop {
            let branch = &self.branches[pick(node, rest)];
            let (start, each) = key(branch);
            rest -= start;
            index += branch.track;
            first += branch.sector;
            let mut instance = branch.at;
            let mut count = branch.repeat - 1;
            // Processors could not predict a condition that depends on `rest`.
            if count > 0 {
                let k = divide(rest, each);
                count -= k;
                rest -= k * each;
                index += k * branch.tracks;
                first += k * branch.sectors;
                instance = instance.plus(branch.step, k);
            }
            spot = spot.plus(instance, 1);
            match branch.what {
                BranchOf::Node(child) => node = child,
                BranchOf::Track(shape) => {
                    let shape = self.shapes[shape as usize];
                    let track = FoundTrack {
                        index,
                        first,
                        spot,
                        shape,
                    };
                    let step = branch.step;
                    let followers = Followers { count, step };
                    return FoundInBranch { track, followers };
                }
            }
        }
    }

    /// The position of track number `track` of `node`.
    pub(super) fn spot(&self, node: NodeId, track: u64) -> Offset {
        self.find_track(node, track).spot
    }

    /// The number of sectors before track number `track` of `node`. `track` may be equal to the
    /// number of tracks.
    pub(super) fn sectors_before(&self, node: NodeId, track: u64) -> u64 {
        if track == self.node(node).tracks {
            self.node(node).sectors
        } else {
            self.find_track(node, track).first
        }
    }

    /// Adds branches for a range of tracks of `node`, shifted by `by`, to `out`.
    pub(super) fn slice(
        &self,
        node: NodeId,
        tracks: Range<u64>,
        by: Offset,
        out: &mut Vec<Branch>,
    ) {
        let branches = self.branches_of(node);
        let begin = branches.partition_point(|b| b.track + b.tracks * b.repeat <= tracks.start);
        for branch in &branches[begin..] {
            if branch.track >= tracks.end {
                break;
            }
            let from = tracks.start.max(branch.track) - branch.track;
            let to = tracks.end.min(branch.track + branch.tracks * branch.repeat) - branch.track;
            let instance = |k: u64| by.plus(branch.at, 1).plus(branch.step, k);
            let (first, last) = (from.div_ceil(branch.tracks), to / branch.tracks);
            if let BranchOf::Node(child) = branch.what {
                let whole = from / branch.tracks;
                if whole < first {
                    let end = (to - whole * branch.tracks).min(branch.tracks);
                    self.slice(
                        child,
                        from - whole * branch.tracks..end,
                        instance(whole),
                        out,
                    );
                }
            }
            if first < last {
                out.push(Branch {
                    at: instance(first),
                    repeat: last - first,
                    ..*branch
                });
            }
            if let BranchOf::Node(child) = branch.what
                && last >= first
                && to > last * branch.tracks
            {
                self.slice(child, 0..to - last * branch.tracks, instance(last), out);
            }
        }
    }

    /// Iterates over all tracks of `node` in order.
    pub(super) fn walk(&self, node: NodeId) -> Walk<'_> {
        let range = self.node(node).branches.clone();
        Walk {
            tree: self,
            stack: vec![Frame {
                range,
                instance: 0,
                base: Offset::default(),
            }],
            index: 0,
            first: 0,
        }
    }

    /// Iterates over the tracks of `node` that have bad slots.
    pub(super) fn bad_tracks(&self, node: NodeId) -> impl Iterator<Item = FoundTrack> {
        // A track with bad slots differs from its neighbours, so it is a branch of the root.
        self.branches_of(node)
            .iter()
            .filter_map(move |branch| match branch.what {
                BranchOf::Track(shape) => {
                    let shape = self.shapes[shape as usize];
                    let (index, first, spot) = (branch.track, branch.sector, branch.at);
                    (shape.gaps.0 < shape.gaps.1).then_some(FoundTrack {
                        index,
                        first,
                        spot,
                        shape,
                    })
                }
                BranchOf::Node(_) => None,
            })
    }

    /// Returns the ranges of cylinders, both ends inclusive, that hold all tracks of `node` whose
    /// shape is `wanted`. If instances of a node are repeated, their range is not divided further.
    pub(super) fn cylinders_with(
        &self,
        node: NodeId,
        wanted: &impl Fn(Shape) -> bool,
    ) -> Vec<(i32, i32)> {
        let has = |branch: &Branch, nodes: &[bool]| match branch.what {
            BranchOf::Track(shape) => wanted(self.shapes[shape as usize]),
            BranchOf::Node(child) => nodes[child as usize],
        };
        let mut nodes = Vec::with_capacity(self.nodes.len());
        // Children precede their parents.
        for node in 0..self.nodes.len() as NodeId {
            let branches = self.branches_of(node);
            nodes.push(branches.iter().any(|branch| has(branch, &nodes)));
        }
        let (mut out, mut left) = (Vec::new(), vec![(node, Offset::default())]);
        while let Some((node, at)) = left.pop() {
            let branches = self.branches_of(node).iter();
            for branch in branches.filter(|branch| has(branch, &nodes)) {
                match branch.what {
                    BranchOf::Node(child) if branch.repeat == 1 => {
                        left.push((child, at.plus(branch.at, 1)));
                    }
                    _ => out.push(self.extent(branch).shift(at).cylinders),
                }
            }
        }
        out
    }

    /// Returns a copy that has only the nodes that can be reached from `roots`, and indexes for
    /// lookups. Also returns the roots of the copy.
    pub(super) fn compact(&self, roots: &[NodeId]) -> (Tree, Vec<NodeId>) {
        let mut out = Tree {
            shapes: self.shapes.clone(),
            gaps: self.gaps.clone(),
            ..Tree::default()
        };
        let mut moved = vec![None; self.nodes.len()];
        let roots: Vec<_> = roots
            .iter()
            .map(|&root| self.copy(root, &mut out, &mut moved))
            .collect();
        out.places = PlaceIndex::build(&out);
        out.jump = roots.first().map(|&root| Jump::build(&out, root));
        (out, roots)
    }

    fn copy(&self, node: NodeId, out: &mut Tree, moved: &mut [Option<NodeId>]) -> NodeId {
        if let Some(copy) = moved[node as usize] {
            return copy;
        }
        let mut branches = self.branches_of(node).to_vec();
        for branch in &mut branches {
            if let BranchOf::Node(child) = &mut branch.what {
                *child = self.copy(*child, out, moved);
            }
        }
        let copy = out.add_node(branches);
        moved[node as usize] = Some(copy);
        copy
    }

    /// Calls `visit` with every track of `node` on the given surface of the given cylinder, until
    /// it returns `Some`.
    pub(super) fn at_place<T>(
        &self,
        node: NodeId,
        cylinder: i32,
        surface: i32,
        visit: &mut impl FnMut(FoundTrack) -> Option<T>,
    ) -> Option<T> {
        let from = FoundTrack {
            index: 0,
            first: 0,
            spot: Offset::default(),
            shape: Shape::plain(1, 0, 0),
        };
        self.places
            .visit(self, node, from, (cylinder, surface), visit)
    }
}

/// The quotient. Most operands fit in 32 bits, which processors divide faster.
#[inline]
fn divide(a: u64, b: u64) -> u64 {
    if (a | b) >> 32 == 0 {
        (a as u32 / b as u32).into()
    } else {
        a / b
    }
}

struct Frame {
    range: Range<u32>,
    instance: u64,
    base: Offset,
}

/// An iterator over the tracks of a tree in order.
pub(super) struct Walk<'a> {
    tree: &'a Tree,
    stack: Vec<Frame>,
    index: u64,
    first: u64,
}

impl Iterator for Walk<'_> {
    type Item = FoundTrack;

    fn next(&mut self) -> Option<FoundTrack> {
        loop {
            let top = self.stack.last_mut()?;
            if top.range.is_empty() {
                self.stack.pop();
                continue;
            }
            let branch = &self.tree.branches[top.range.start as usize];
            if top.instance == branch.repeat {
                top.range.start += 1;
                top.instance = 0;
                continue;
            }
            let spot = top.base.plus(branch.at, 1).plus(branch.step, top.instance);
            top.instance += 1;
            match branch.what {
                BranchOf::Node(child) => {
                    let range = self.tree.node(child).branches.clone();
                    self.stack.push(Frame {
                        range,
                        instance: 0,
                        base: spot,
                    });
                }
                BranchOf::Track(shape) => {
                    let shape = self.tree.shapes[shape as usize];
                    let found = FoundTrack {
                        index: self.index,
                        first: self.first,
                        spot,
                        shape,
                    };
                    self.index += 1;
                    self.first += u64::from(shape.sectors);
                    return Some(found);
                }
            }
        }
    }
}
