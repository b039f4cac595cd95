//! Layout g4: a run-length tree of track patterns, with slips and remaps.

use super::{DiskSize, ImportedLayout};
use crate::params::{Block, Node, ParamError};
use traxtent_model::geometry::{
    BranchSpec, Child, GeometrySpec, MovedSpec, SlipSpec, TrackSpec, TreeSpec,
};
use traxtent_units::Count;

/// The maximum depth of the tree in DiskSim.
const DEPTH_MAX: usize = 16;

pub(super) fn layout(layout: &Block, disk: &DiskSize) -> Result<ImportedLayout, ParamError> {
    let mut reader = Reader {
        patterns: patterns(layout)?,
        index: layout.require_list("IDX")?,
        states: Vec::new(),
        tree: TreeSpec::default(),
        sizes: Vec::new(),
    };
    reader.tree.tracks = reader.patterns.clone();
    reader.states = vec![State::New; reader.index.len()];
    let Some(root) = reader.index.len().checked_sub(1) else {
        return Err(layout.require("IDX")?.error("IDX is empty"));
    };
    let root = reader.node(root, 0)?;
    let (size, innermost) = reader.sizes[root as usize];
    let mut tree = reader.tree;
    tree.slips = slips(layout, size)?;
    let held = size.saturating_sub(tree.slips.iter().map(|s| u64::from(s.sectors)).sum());
    let mut notes = Vec::new();
    if disk.blocks > held {
        notes.push(format!(
            "the tree holds {}, fewer than Block count, which is {}",
            Count(held, "block"),
            disk.blocks
        ));
    }
    if innermost >= disk.cylinders.into() {
        notes.push(format!(
            "the tree needs {}; Number of cylinders is {}",
            Count(innermost + 1, "cylinder"),
            disk.cylinders
        ));
    }
    let moved = remaps(layout)?;
    Ok(ImportedLayout {
        spec: GeometrySpec {
            surfaces: disk.surfaces,
            cylinders: disk.cylinders.max((innermost + 1).clamp(0, 1 << 24) as u32),
            capacity_sectors: Some(disk.blocks.min(held)),
            shared_places: !moved.is_empty(),
            moved,
            tree: Some(tree),
            ..GeometrySpec::default()
        },
        notes,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done(u32),
}

/// Reads the nodes that can be reached from the root, children first.
struct Reader<'a> {
    patterns: Vec<TrackSpec>,
    index: &'a [Node],
    states: Vec<State>,
    tree: TreeSpec,
    /// For each node of the tree: its sectors, and its innermost cylinder relative to the node.
    sizes: Vec<(u64, i64)>,
}

/// An entry of an index node.
struct Entry<'a> {
    at: &'a Node,
    /// The first LBN, relative to the node.
    lbn: u64,
    cylinder: i32,
    angle_turns: f64,
    /// LBNs per instance of the child.
    len: u64,
    /// Cylinders from one instance to the next.
    cylinder_len: i32,
    angle_len_turns: f64,
    /// LBNs of all instances.
    run_len: u64,
    outward: bool,
    child: usize,
    /// `None` if the child is an index node.
    head: Option<u8>,
}

impl Reader<'_> {
    fn node(&mut self, number: usize, depth: usize) -> Result<u32, ParamError> {
        let node = &self.index[number];
        match self.states[number] {
            State::Done(id) => return Ok(id),
            State::Open => return Err(node.error(format!("IDX {number} contains itself"))),
            State::New if depth >= DEPTH_MAX => {
                return Err(node.error(format!("the index is nested more than {DEPTH_MAX} deep")));
            }
            State::New => self.states[number] = State::Open,
        }
        let mut branches = Vec::new();
        let mut next = 0;
        for entry in entries(node)? {
            let end = entry.lbn + entry.run_len;
            // DiskSim uses the first entry that contains an LBN, so an entry whose LBNs are all in
            // earlier entries has no effect.
            if end <= next {
                continue;
            }
            if entry.lbn != next {
                let problem = format!(
                    "IDX {number}: the entry begins at LBN {}; expected {next}",
                    entry.lbn
                );
                return Err(entry.at.error(problem));
            }
            next = end;
            branches.push(self.branch(&entry, depth)?);
        }
        let id = self.add(branches, next);
        self.states[number] = State::Done(id);
        Ok(id)
    }

    fn add(&mut self, branches: Vec<BranchSpec>, sectors: u64) -> u32 {
        let innermost = branches.iter().map(|branch| {
            let way = i64::from(branch.cylinder_step).saturating_mul(branch.repeat as i64 - 1);
            let own = match branch.of {
                Child::Node(node) => self.sizes[node as usize].1,
                Child::Track(_) => 0,
            };
            own.saturating_add(branch.cylinder.into())
                .saturating_add(way.max(0))
        });
        self.sizes.push((sectors, innermost.max().unwrap_or(0)));
        self.tree.nodes.push(branches);
        self.sizes.len() as u32 - 1
    }

    fn branch(&mut self, entry: &Entry<'_>, depth: usize) -> Result<BranchSpec, ParamError> {
        let (mut of, size) = match entry.head {
            Some(_) => match self.patterns.get(entry.child) {
                Some(pattern) => (Child::Track(entry.child as u32), pattern.sectors.into()),
                None => {
                    return Err(entry
                        .at
                        .error(format!("there is no track pattern {}", entry.child)));
                }
            },
            None if entry.child >= self.index.len() => {
                return Err(entry
                    .at
                    .error(format!("there is no index node {}", entry.child)));
            }
            None => {
                let node = self.node(entry.child, depth + 1)?;
                (Child::Node(node), self.sizes[node as usize].0)
            }
        };
        if entry.len > size {
            let problem = format!(
                "the entry has {} LBNs per instance, but its child has only {size}",
                entry.len
            );
            return Err(entry.at.error(problem));
        }
        let repeat = entry.run_len.div_ceil(entry.len);
        if entry.len < size && repeat > 1 {
            // Only the front of the child is repeated.
            let front = BranchSpec {
                total_sectors: Some(entry.len),
                ..BranchSpec::once(of)
            };
            of = Child::Node(self.add(vec![front], entry.len));
        }
        let whole = repeat * if repeat > 1 { entry.len } else { size };
        let step = if entry.outward {
            -entry.cylinder_len
        } else {
            entry.cylinder_len
        };
        // DiskSim's angle is that of the first slot in use, the profile's that of slot 0.
        let first = match entry.head {
            Some(_) => {
                let pattern = self.patterns[entry.child];
                f64::from(pattern.first_slot) / f64::from(pattern.slots)
            }
            None => 0.0,
        };
        Ok(BranchSpec {
            cylinder: entry.cylinder,
            surface: entry.head.unwrap_or(0).into(),
            angle_turns: entry.angle_turns - first,
            repeat,
            cylinder_step: if repeat > 1 { step } else { 0 },
            angle_step_turns: if repeat > 1 {
                entry.angle_len_turns
            } else {
                0.0
            },
            total_sectors: (entry.run_len < whole).then_some(entry.run_len),
            ..BranchSpec::once(of)
        })
    }
}

/// Returns the entries of an index node. Each has ten fields, or eleven if it refers to a track.
fn entries(node: &Node) -> Result<Vec<Entry<'_>>, ParamError> {
    let mut fields = node.list()?.iter();
    let mut out = Vec::new();
    while let Some(at) = fields.next() {
        let mut next = |what: &str| {
            fields
                .next()
                .ok_or_else(|| at.error(format!("the entry has no {what}")))
        };
        let lbn = bounded(at, 0, 1 << 53)? as u64;
        let cylinder = bounded(next("cylinder")?, -(1 << 24), 1 << 24)? as i32;
        let angle_turns = turns(next("offset")?)?;
        let len = bounded(next("length")?, 1, 1 << 53)? as u64;
        let cylinder_len = bounded(next("cylinder length")?, 0, 1 << 24)? as i32;
        let angle_len_turns = turns(next("angle length")?)?;
        let run_len = bounded(next("run length")?, 1, 1 << 53)? as u64;
        let outward = bounded(next("cylinder run length")?, -(1 << 24), 1 << 24)? < 0;
        let kind = next("child type")?;
        let is_track = match kind.str()? {
            "TRACK" => true,
            "IDX" => false,
            other => {
                return Err(kind.error(format!("the child type must be IDX or TRACK, not {other}")));
            }
        };
        let child = bounded(next("child")?, 0, i64::MAX)? as usize;
        let head = if is_track {
            Some(bounded(next("head")?, 0, 63)? as u8)
        } else {
            None
        };
        out.push(Entry {
            at,
            lbn,
            cylinder,
            angle_turns,
            len,
            cylinder_len,
            angle_len_turns,
            run_len,
            outward,
            child,
            head,
        });
    }
    Ok(out)
}

fn bounded(node: &Node, min: i64, max: i64) -> Result<i64, ParamError> {
    let value = node.int()?;
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(node.error(format!("{value} is not in {min}..={max}")))
}

fn turns(node: &Node) -> Result<f64, ParamError> {
    let value = node.f64()?;
    if value.abs() <= 1e6 {
        return Ok(value);
    }
    Err(node.error(format!(
        "an angle of {value} turns is not in -1000000..=1000000"
    )))
}

/// Returns the items of the list `key` in groups of `size`.
fn groups<'a>(
    layout: &'a Block,
    key: &str,
    size: usize,
) -> Result<std::slice::ChunksExact<'a, Node>, ParamError> {
    let list = layout.get_list(key)?.unwrap_or_default();
    if !list.len().is_multiple_of(size) {
        let problem = format!(
            "{key} has {} numbers, which is not a multiple of {size}",
            list.len()
        );
        return Err(layout.require(key)?.error(problem));
    }
    Ok(list.chunks_exact(size))
}

fn patterns(layout: &Block) -> Result<Vec<TrackSpec>, ParamError> {
    layout.require("TP")?;
    groups(layout, "TP", 3)?
        .map(|fields| {
            let slots = bounded(&fields[2], 1, 1_000_000)?;
            let low = bounded(&fields[0], 0, slots - 1)?;
            let high = bounded(&fields[1], low, slots - 1)?;
            Ok(TrackSpec {
                slots: slots as u32,
                first_slot: low as u32,
                sectors: (high - low + 1) as u32,
            })
        })
        .collect()
}

fn slips(layout: &Block, size: u64) -> Result<Vec<SlipSpec>, ParamError> {
    let mut out = Vec::new();
    let (mut least, mut last) = (0, 0);
    for fields in groups(layout, "Slips", 2)? {
        let offset = bounded(&fields[0], last, 1 << 53)?;
        let sectors = bounded(&fields[1], 1, 1 << 30)? as u32;
        last = offset;
        let position = (offset as u64).max(least);
        least = position + u64::from(sectors);
        // Slips after the end of the tree have no effect.
        if position < size {
            let sectors = (size - position).min(sectors.into()) as u32;
            out.push(SlipSpec { position, sectors });
        }
    }
    Ok(out)
}

fn remaps(layout: &Block) -> Result<Vec<MovedSpec>, ParamError> {
    groups(layout, "Remaps", 6)?
        .map(|fields| {
            Ok(MovedSpec {
                lbn: bounded(&fields[0], 0, 1 << 53)? as u64,
                sectors: bounded(&fields[1], 1, 1_000_000)? as u32,
                cylinder: bounded(&fields[2], 0, (1 << 24) - 1)? as u32,
                surface: bounded(&fields[3], 0, 63)? as u16,
                slot: bounded(&fields[4], 0, 999_999)? as u32,
                slots: Some(bounded(&fields[5], 1, 1_000_000)? as u32),
            })
        })
        .collect()
}
