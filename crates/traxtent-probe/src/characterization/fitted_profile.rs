//! Converting a characterization to a fitted profile of the drive.

use std::collections::BTreeMap;

use super::{Characterization, LayoutConfidence};
use traxtent_model::geometry::{BranchSpec, Child, GeometrySpec, TrackSpec, TreeSpec};
use traxtent_model::profile::{
    AccessSpec, BusSpec, FORMAT, MechanicsSpec, OverheadSpec, Preseek, Profile, Provenance,
    QueueSpec, Scheduler, ScsiSpec, SectorSpec, SeekSpec,
};
use traxtent_units::turns::fraction;

impl Characterization {
    /// Returns a profile of the drive, for a [`traxtent_model::drive::Drive`]. The provenance
    /// of most measured values outside the layout gives the method of measurement and the
    /// confidence interval.
    pub fn to_profile(&self) -> Profile {
        let name: String = self
            .identity
            .product
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "-_".contains(c) {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        let read: Vec<(u32, f64)> = self
            .seek
            .iter()
            .map(|(distance, time)| (*distance, time.value))
            .collect();
        let write = (!self.writes.seek_extra.is_empty()).then(|| {
            read.iter()
                .map(|&(d, ms)| (d, (ms + self.writes.extra(d)).max(0.0)))
                .collect()
        });
        let read = if read.is_empty() {
            vec![(1, self.head_switch)]
        } else {
            read
        };
        let b = &self.buffer;
        // The completion time was measured together with the rest of the overhead.
        let o = (self.overhead - b.completion_ms).max(0.0);
        let hit = (b.hit_ms - b.completion_ms).max(0.0);
        Profile {
            scsi: ScsiSpec::default(),
            host: None,
            format: FORMAT,
            name: if name.is_empty() {
                "probed".to_owned()
            } else {
                name
            },
            model: format!("{} {}", self.identity.vendor, self.identity.product)
                .trim()
                .to_owned(),
            year: None,
            notes: self.notes.join("\n"),
            sector: SectorSpec {
                logical_bytes: self.identity.logical_bytes,
                physical_bytes: self.physical_bytes(),
                lowest_aligned_lbn: self.lowest_aligned_lbn(),
            },
            mechanics: Some(MechanicsSpec {
                rpm: self.rpm(),
                head_switch_ms: self.head_switch,
                write_settle_ms: self.writes.settle_ms,
                seek: SeekSpec::Table { read, write },
            }),
            overheads: OverheadSpec {
                read_hit_after_read_ms: hit,
                read_hit_after_write_ms: hit,
                read_miss_after_read_ms: o,
                read_miss_after_write_ms: self.writes.read_after_write_ms.unwrap_or(o),
                write_hit_after_read_ms: self.writes.hit_after_read_ms.unwrap_or(b.hit_ms),
                write_hit_after_write_ms: self.writes.hit_after_write_ms.unwrap_or(b.hit_ms),
                write_miss_after_read_ms: self.writes.miss_after_read_ms.unwrap_or(o),
                write_miss_after_write_ms: self.writes.miss_after_write_ms.unwrap_or(o),
                first_reselect_ms: b.connect_ms,
                read_completion_ms: b.completion_ms,
                ..OverheadSpec::default()
            },
            access: AccessSpec {
                read_on_arrival_share: 1.0,
                track_partitions: 1,
                zero_latency_read: self.zero_latency,
                zero_latency_write: self.writes.zero_latency.unwrap_or(self.zero_latency),
                read_on_arrival: b.read_on_arrival,
            },
            queue: QueueSpec {
                depth: 32,
                scheduler: Scheduler::Sptf,
                preseek: Preseek::BeforeCompletion,
                ..QueueSpec::default()
            },
            cache: b.cache.clone(),
            bus: BusSpec {
                read_sector_ms: b.sector_ms,
                write_sector_ms: self.writes.sector_ms.unwrap_or(b.sector_ms),
                delivery: b.delivery,
                hold: b.hold,
            },
            provenance: self.provenance(),
            geometry: self.geometry(),
        }
    }

    fn provenance(&self) -> Provenance {
        let mut entries = BTreeMap::new();
        for (key, text) in [
            ("sector", "published: reported by the drive"),
            ("overheads", "assumed: the same as the measured overheads"),
            ("access", "assumed: the same as for reads"),
            (
                "queue",
                "assumed: a probe sends one request at a time and cannot measure a queue",
            ),
            ("cache", "assumed: no test of this figure"),
            ("bus", "assumed: the same as for reads"),
            ("mechanics", "assumed: no test of this figure"),
        ] {
            entries.insert(key.to_owned(), text.to_owned());
        }
        let patches = self.angles.patches.iter();
        let width = patches.map(|patch| patch.half_width).fold(0.0, f64::max);
        let places = match self.order.confidence {
            LayoutConfidence::Translated => "places by translation",
            LayoutConfidence::Timed => {
                "places by skews and seek times, which do not distinguish all orders"
            }
        };
        entries.insert(
            "geometry".to_owned(),
            format!(
                "measured: boundaries by the track map; angles by the completions of single sectors, \
                 each to {width:.5} revolutions or better; {places}"
            ),
        );
        for figure in &self.figures {
            let text = format!("measured: {figure}");
            entries.insert(figure.name.clone(), text);
        }
        let mut provenance = Provenance(entries);
        // Figures that are not in `PROFILE_PATHS`, such as those that the profile holds in the tree
        // of the geometry, are omitted here.
        provenance.0.retain(|key, _| {
            (*key != "mechanics.seek.write" || !self.writes.seek_extra.is_empty())
                && super::PROFILE_PATHS.iter().any(|path| key == path)
        });
        provenance
    }

    /// Returns the layout as a tree, with every boundary from the map, and positions and angles as
    /// measured.
    fn geometry(&self) -> GeometrySpec {
        let mut builder = TreeBuilder::default();
        let mut root: Vec<BranchSpec> = Vec::new();
        for patch in &self.angles.patches {
            let section = &self.layout.sections[patch.section];
            let period = section.period();
            let skipped = (patch.first - section.first) / period;
            let sectors = &self.sectors[patch.first..][..patch.tracks];
            let mut before: Option<&[u32]> = None;
            for (number, repetition) in sectors.chunks(period).enumerate() {
                if before == Some(repetition) {
                    root.last_mut().expect("there is one before").repeat += 1;
                    continue;
                }
                before = Some(repetition);
                let node = builder.repetition(repetition, section, patch);
                root.push(BranchSpec {
                    cylinder: (skipped + number) as i32 * section.advance,
                    angle_turns: fraction(patch.origin + number as f64 * patch.advance),
                    cylinder_step: section.advance,
                    angle_step_turns: patch.advance,
                    ..BranchSpec::once(Child::Node(node))
                });
            }
        }
        for branch in &mut root {
            if branch.repeat == 1 {
                (branch.cylinder_step, branch.angle_step_turns) = (0, 0.0);
            }
        }
        builder.tree.nodes.push(root);
        GeometrySpec {
            surfaces: self.layout.surfaces,
            cylinders: self.layout.cylinders,
            order: self.order.order.unwrap_or_default(),
            width_tracks: self.order.width,
            tree: Some(builder.tree),
            ..GeometrySpec::default()
        }
    }
}

/// The patterns and nodes of the tree so far.
#[derive(Default)]
struct TreeBuilder {
    tree: TreeSpec,
}

impl TreeBuilder {
    fn pattern(&mut self, slots: u32, sectors: u32) -> u32 {
        self.tree.track_index(TrackSpec {
            slots: slots.max(sectors),
            first_slot: 0,
            sectors,
        })
    }

    /// Returns the index of the node of one repetition whose tracks have the given numbers of
    /// sectors.
    fn repetition(
        &mut self,
        sectors: &[u32],
        section: &super::layout::RepeatingSection,
        patch: &super::angles::FormatPatch,
    ) -> u32 {
        let mut branches: Vec<BranchSpec> = Vec::new();
        let mut begin = 0;
        for (run, angles) in section.runs.iter().zip(&patch.runs) {
            let tracks =
                &sectors[begin.min(sectors.len())..(begin + run.tracks).min(sectors.len())];
            let mut k = 0;
            for alike in tracks.chunk_by(|a, b| a == b) {
                let repeat = alike.len() as u64;
                branches.push(BranchSpec {
                    cylinder: run.at.cylinder + k * run.step.cylinder,
                    surface: run.at.surface + k * run.step.surface,
                    angle_turns: fraction(angles.offset + f64::from(k) * angles.step),
                    repeat,
                    cylinder_step: if repeat > 1 { run.step.cylinder } else { 0 },
                    surface_step: if repeat > 1 { run.step.surface } else { 0 },
                    angle_step_turns: if repeat > 1 { angles.step } else { 0.0 },
                    ..BranchSpec::once(Child::Track(self.pattern(angles.slots, alike[0])))
                });
                k += alike.len() as i32;
            }
            begin += run.tracks;
        }
        let nodes = &mut self.tree.nodes;
        let known = nodes.iter().position(|node| *node == branches);
        known.unwrap_or_else(|| {
            nodes.push(branches);
            nodes.len() - 1
        }) as u32
    }
}
