//! The list of all measurements, by name.

use crate::alignment::FileSystem;
use crate::bench::{Bench, LabError};
use crate::figure::Figure;
use crate::fs::{self, table2};
use crate::{
    alignment, excluded, extraction, linux, log, modern, profiles, rotation, tpl, traxtents, video,
};

/// Measures numbers on a drive, always the same number of them in the same order.
pub type Measure = fn(&Bench) -> Result<Vec<f64>, LabError>;

/// Measures the data of a figure.
pub type Draw = fn(&Bench) -> Result<Figure, LabError>;

/// A measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// The name in the list.
    pub name: &'static str,
    /// The function that measures the numbers.
    pub measure: Measure,
    /// The function that draws the figure, if there is one.
    pub draw: Option<Draw>,
    /// For a measurement that needs more than the model: returns the reason why it cannot be made
    /// on this machine, if there is one.
    pub missing: Option<fn() -> Option<String>>,
}

const fn numbers(name: &'static str, measure: Measure) -> Measurement {
    Measurement {
        name,
        measure,
        draw: None,
        missing: None,
    }
}

impl Measurement {
    const fn drawn(self, draw: Draw) -> Measurement {
        Measurement {
            draw: Some(draw),
            ..self
        }
    }

    const fn needing(self, missing: fn() -> Option<String>) -> Measurement {
        Measurement {
            missing: Some(missing),
            ..self
        }
    }
}

/// All measurements. To add one, add a line here and name it in an experiment.
pub const MEASUREMENTS: &[Measurement] = &[
    numbers("drive-profile", profiles::parameters),
    // Reads and writes of a track (traxtents).
    numbers("efficiency-of-a-track", traxtents::efficiency).drawn(traxtents::efficiency_curves),
    numbers("share-of-streaming", traxtents::share_of_streaming),
    numbers("equally-efficient-size", traxtents::equally_efficient_size),
    numbers("efficiency-peaks", traxtents::peaks),
    numbers("rotational-latency", rotation::latencies).drawn(rotation::latency_curves),
    numbers("switch-probability", rotation::switch_probabilities),
    numbers("gains", traxtents::gains).drawn(traxtents::head_time_curves),
    numbers("aligned-head-time", traxtents::aligned_head_time).drawn(traxtents::head_time_parts),
    numbers("onereq-without-bus", traxtents::onereq_without_bus),
    numbers("write-head-times", traxtents::write_head_times),
    numbers("overlap", traxtents::overlap).drawn(traxtents::response_parts),
    numbers("deviations", traxtents::deviations).drawn(traxtents::deviation_curves),
    // Track boundaries.
    numbers("boundaries-by-timing", extraction::by_timing),
    numbers("boundaries-by-translation", extraction::by_translation),
    numbers("boundaries-by-expertise", extraction::by_expertise),
    // The effect of boundaries on a file system.
    numbers("excluded-blocks", excluded::excluded_blocks),
    // File systems and their hosts.
    numbers("ffs-scan", table2::scans),
    numbers("ffs-diff", table2::diffs),
    numbers("ffs-copy", table2::copy_times),
    numbers("ffs-postmark", table2::postmark),
    numbers("ffs-build", table2::builds),
    numbers("ffs-head", table2::head_times),
    numbers("ffs-remedies", table2::proposed_improvements),
    numbers("ext2-stream", fs::linux::stream).drawn(fs::linux::stream_bars),
    numbers("ext2-diff", fs::linux::comparison).drawn(fs::linux::comparison_bars),
    numbers("ext2-streams", fs::linux::streams).drawn(fs::linux::startup_curves),
    numbers("ext4-cmp", fs::ext4::comparison),
    numbers("ext4-scan", fs::ext4::scan),
    // RAID-5 of five disks (fs::raid).
    numbers("raid5-bonnie", fs::raid::bonnie),
    numbers("raid5-diff", fs::raid::comparison),
    numbers("raid5-streams", fs::raid::streams).drawn(fs::raid::startup_curves),
    numbers("raid5-waste", fs::raid::waste),
    numbers("raid5-dummy-reads", fs::raid::dummy_reads),
    numbers("raid5-misaligned", fs::raid::misaligned),
    // Track partition layout.
    numbers("tpl-parameters", tpl::parameters),
    numbers("tpl-rotation-2", |bench| tpl::rotation(bench, 2)).drawn(tpl::rotation_curves),
    numbers("tpl-rotation-32", |bench| tpl::rotation(bench, 32)),
    numbers("tpl-response", tpl::response).drawn(tpl::response_curve),
    numbers("tpl-random", tpl::random).drawn(tpl::random_curve),
    numbers("tpl-distance", tpl::distance),
    numbers("tpl-built", tpl::extensions).drawn(tpl::writes::surfaces),
    // Video servers.
    numbers("video-soft", video::soft_streams),
    numbers("video-startup", video::soft_startup).drawn(video::startup_figure),
    numbers("video-hard", video::hard_streams),
    numbers("video-equal", video::hard_equal),
    // Logs.
    numbers("overall-write-cost", log::overall_write_cost).drawn(log::overall_write_cost_curves),
    numbers("transfer-model", log::transfer_model),
    numbers("working-log", log::working_log),
    // The structure of a drive seen from outside (Linux validation).
    numbers("growing-reads", linux::growing_reads::measure).drawn(linux::growing_reads::figure),
    numbers("mapping-time", linux::layout::mapping_time),
    numbers("serpentine", linux::layout::serpentine).drawn(linux::layout::figure),
    numbers("numberings", linux::layout::numberings),
    numbers("boundary-reads", linux::boundary_reads::measure).drawn(linux::boundary_reads::figure),
    numbers("reverse-pairs", linux::reverse_pairs::measure).drawn(linux::reverse_pairs::figure),
    // Drives made after 2010.
    numbers("modern-read-quantiles", modern::read_quantiles),
    numbers("modern-reads-by-depth", modern::reads_by_depth),
    numbers("modern-sequential", modern::sequential),
    numbers("modern-writes-and-flushes", modern::writes_and_flushes),
    numbers("modern-data-sheet-rates", modern::data_sheet_rates),
    // Alignment, with file systems of the running kernel or of a guest's.
    numbers("alignment-penalties", alignment::penalties)
        .drawn(alignment::figure)
        .needing(alignment::unavailable_reason),
    numbers("alignment-jfs", |bench| {
        alignment::penalties_in_guest(bench, FileSystem::Jfs)
    })
    .needing(alignment::missing_guest),
    numbers("alignment-reiserfs", |bench| {
        alignment::penalties_in_guest(bench, FileSystem::ReiserFs)
    })
    .drawn(alignment::figure_of_guest)
    .needing(alignment::missing_guest),
];

/// Returns the measurement with this name.
pub fn measurement(name: &str) -> Option<&'static Measurement> {
    MEASUREMENTS.iter().find(|known| known.name == name)
}
