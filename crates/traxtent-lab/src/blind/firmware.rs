//! Random mechanics and firmware.

use traxtent_model::geometry::GeometrySpec;
use traxtent_model::profile::{
    AccessSpec, BusHold, BusSpec, CacheSpec, Delivery, FORMAT, MechanicsSpec, OriginKind,
    OverheadSpec, Preseek, Profile, Provenance, QueueSpec, ReadAhead, ReadAheadUntil, Scheduler,
    ScsiSpec, SectorSpec, SeekSpec, WriteBack,
};

use super::dice::SeededRng;

/// Spindle speeds of drives that were sold or measured.
const RPM: [f64; 10] = [
    5_400.0, 5_405.4, 7_199.6, 7_200.0, 7_247.1, 10_000.0, 10_025.0, 10_042.0, 15_000.0, 15_047.0,
];

/// Draws a spindle and an arm for a given number of cylinders.
pub(super) fn mechanics(dice: &mut SeededRng, cylinders: u32) -> MechanicsSpec {
    MechanicsSpec {
        rpm: if dice.chance(0.7) {
            dice.of(&RPM)
        } else {
            dice.between(5_400.0, 15_047.0)
        },
        head_switch_ms: dice.between(0.3, 1.2),
        write_settle_ms: dice.between(0.0, 0.4),
        seek: seek(dice, cylinders),
    }
}

fn seek(dice: &mut SeededRng, cylinders: u32) -> SeekSpec {
    let single_ms = dice.between(0.35, 1.5);
    let rise_ms = dice.between(4.0, 18.0);
    let full_ms = single_ms + rise_ms;
    // With an average between these shares of the rise, Lee's curve rises everywhere.
    let average_ms = single_ms + rise_ms * dice.between(0.35, 0.52);
    let stroke = f64::from(cylinders.max(3) - 1);
    match dice.pick(0..5) {
        0 => SeekSpec::Constant {
            ms: dice.between(0.5, 4.0),
        },
        1 => SeekSpec::ThreePointLine {
            single_ms,
            average_ms,
            full_ms,
        },
        2 => SeekSpec::ThreePointCurve {
            single_ms,
            average_ms,
            full_ms,
        },
        3 => {
            // The root meets the line at a third of the stroke, at two thirds of the rise.
            let division = (stroke / 3.0).max(2.0).floor();
            let root_factor_ms = 0.66 * rise_ms / (division.sqrt() - 1.0);
            let line_factor_ms = 0.34 * rise_ms / (stroke - division).max(1.0);
            SeekSpec::Hpl {
                division: division as u32,
                root_constant_ms: single_ms - root_factor_ms,
                root_factor_ms,
                line_constant_ms: single_ms + 0.66 * rise_ms - line_factor_ms * division,
                line_factor_ms,
                first_ms: if dice.chance(0.5) {
                    vec![single_ms, single_ms + 0.05]
                } else {
                    vec![]
                },
            }
        }
        _ => {
            let mut read = vec![(1, single_ms)];
            while let Some(&(distance, ms)) = read.last()
                && distance < cylinders
                && read.len() < 20
            {
                let next = distance + dice.pick32(1..2 + cylinders / 8);
                read.push((next, ms + dice.between(0.0, 1.0)));
            }
            SeekSpec::Table { read, write: None }
        }
    }
}

/// Draws sector sizes: mostly 512 bytes, otherwise 512 logical and 4,096 physical, or 4,096.
pub(super) fn sector(dice: &mut SeededRng) -> SectorSpec {
    let (logical_bytes, physical_bytes) = dice.of(&[
        (512, 512),
        (512, 512),
        (512, 512),
        (512, 4096),
        (4096, 4096),
    ]);
    SectorSpec {
        logical_bytes,
        physical_bytes,
        lowest_aligned_lbn: 0,
    }
}

/// Assembles a profile. `most_slots` is the largest number of slots on a track.
pub(super) fn profile(
    dice: &mut SeededRng,
    name: String,
    sector: SectorSpec,
    mechanics: MechanicsSpec,
    geometry: GeometrySpec,
    most_slots: u32,
) -> Profile {
    // The bus is faster than the media.
    let media_ms = 60_000.0 / mechanics.rpm / f64::from(most_slots);
    let read_sector_ms = media_ms * dice.between(0.1, 0.9);
    Profile {
        format: FORMAT,
        name,
        model: "a random drive".to_owned(),
        year: None,
        notes: String::new(),
        sector,
        mechanics: Some(mechanics),
        overheads: overheads(dice),
        access: AccessSpec {
            zero_latency_read: dice.chance(0.5),
            zero_latency_write: dice.chance(0.5),
            read_on_arrival: dice.chance(0.5),
            read_on_arrival_share: 1.0,
            track_partitions: 1,
        },
        queue: QueueSpec {
            depth: dice.of(&[1, 4, 32, 64]),
            scheduler: dice.of(&[Scheduler::Fcfs, Scheduler::Look, Scheduler::Sptf]),
            preseek: dice.of(&[
                Preseek::None,
                Preseek::DuringCompletion,
                Preseek::BeforeCompletion,
            ]),
            ..QueueSpec::default()
        },
        scsi: ScsiSpec::default(),
        host: None,
        cache: cache(dice),
        bus: BusSpec {
            read_sector_ms,
            write_sector_ms: read_sector_ms,
            delivery: dice.of(&[Delivery::InOrder, Delivery::InOrderWhenComplete]),
            hold: BusHold::default(),
        },
        provenance: Provenance::uniform(OriginKind::Assumed, "a random drive"),
        geometry,
    }
}

fn overheads(dice: &mut SeededRng) -> OverheadSpec {
    let mut ms = || dice.between(0.05, 0.5);
    let (read, write) = (ms(), ms());
    OverheadSpec {
        read_hit_after_read_ms: ms(),
        read_hit_after_write_ms: ms(),
        read_miss_after_read_ms: read,
        read_miss_after_write_ms: read,
        write_hit_after_read_ms: write,
        write_hit_after_write_ms: write,
        write_miss_after_read_ms: write,
        write_miss_after_write_ms: write,
        ..OverheadSpec::default()
    }
}

fn cache(dice: &mut SeededRng) -> CacheSpec {
    let segments = dice.of(&[1, 2, 8, 16]);
    let until = dice.of(&[
        ReadAheadUntil::None,
        ReadAheadUntil::TrackEnd,
        ReadAheadUntil::CylinderEnd,
        ReadAheadUntil::SegmentEnd,
        ReadAheadUntil::AdaptiveTrackEnd,
    ]);
    CacheSpec {
        enabled: dice.chance(0.85),
        segments,
        write_segments: 1,
        segment_sectors: dice.of(&[64, 374, 1_024, 4_096]),
        dedicated_write_segment: false,
        write_back: dice.of(&[WriteBack::None, WriteBack::Full]),
        combine_writes: true,
        read_hits_on_written: dice.chance(0.5),
        writes_update: false,
        hits_while_busy: dice.chance(0.5),
        writes_while_busy: dice.chance(0.5),
        almost_hits: dice.chance(0.3),
        drop_delivered: dice.chance(0.2),
        read_watermark: dice.of(&[0.0, 0.0, 0.1]),
        write_watermark: 0.0,
        watermark_of_request: true,
        read_ahead: ReadAhead {
            until,
            min_sectors: 0,
            max_sectors: dice.of(&[0, 64, 1_000]),
            max_from_request_start: dice.chance(0.5),
            on_idle_hit: dice.chance(0.5),
            stop_in_sector: dice.chance(0.5),
            stop_on_write_hit: true,
            on_arrival: false,
            whole_track: false,
            sequential_only: false,
            ignores_host: false,
        },
    }
}
