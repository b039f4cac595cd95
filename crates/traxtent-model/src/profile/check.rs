//! Checks of every value of a profile against its bounds.

use super::schema::{self, LONGEST_MS, WEIGHT};
use super::{HostSpec, Profile, ProfileError, Scheduler, ScsiSpec, SeekSpec};
use crate::geometry::Geometry;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The greatest distance of a point in a table of seek times, in cylinders.
const DISTANCE_MAX: u32 = 1 << 24;

/// Checks all values, but not their origins.
pub(super) fn figures(p: &Profile) -> Result<(), ProfileError> {
    bounded("format", p.format)?;
    if p.name.is_empty()
        || !p
            .name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    {
        return out_of_bounds("name", &p.name, "letters, digits, '-' and '_'");
    }
    sectors(p)?;
    if let Some(m) = &p.mechanics {
        bounded("mechanics.rpm", m.rpm)?;
        duration("mechanics.head_switch_ms", m.head_switch_ms)?;
        bounded("mechanics.write_settle_ms", m.write_settle_ms)?;
        seek(&m.seek)?;
        stroke(&m.seek, p.geometry.cylinders)?;
    }
    overheads(p)?;
    bounded(
        "access.read_on_arrival_share",
        p.access.read_on_arrival_share,
    )?;
    bounded("access.track_partitions", p.access.track_partitions)?;
    bounded("queue.depth", p.queue.depth)?;
    duration("queue.choice_ms", p.queue.choice_ms)?;
    if let Scheduler::AgedSptf { weight } = p.queue.scheduler {
        within("queue.scheduler.weight", weight, WEIGHT.0..=WEIGHT.1)?;
    }
    p.host.iter().try_for_each(host)?;
    cache(p)?;
    duration("bus.read_sector_ms", p.bus.read_sector_ms)?;
    duration("bus.write_sector_ms", p.bus.write_sector_ms)?;
    scsi(&p.scsi)?;
    // The geometry is checked here, before the callers list the values as TOML. TOML cannot
    // represent some numbers that the geometry refuses.
    Geometry::build(&p.geometry).map_err(|e| ProfileError::Geometry(e.to_string()))?;
    Ok(())
}

fn host(host: &HostSpec) -> Result<(), ProfileError> {
    if !host.scheduler.is_positional() {
        return Ok(());
    }
    out_of_bounds("host.scheduler", host.scheduler, &host_schedulers())
}

/// Returns the text that lists the schedulers of a host's queue.
pub(super) fn host_schedulers() -> String {
    let bound = schema::key("host.scheduler").map_or(String::new(), schema::Key::bounds);
    format!("{bound}; a host does not know where the heads are")
}

fn sectors(p: &Profile) -> Result<(), ProfileError> {
    for (key, bytes) in [
        ("sector.logical_bytes", p.sector.logical_bytes),
        ("sector.physical_bytes", p.sector.physical_bytes),
    ] {
        if !matches!(bytes, 512 | 4096) {
            return out_of_bounds(key, bytes, "512 or 4096");
        }
    }
    if p.sector.physical_bytes < p.sector.logical_bytes {
        return out_of_bounds(
            "sector.physical_bytes",
            p.sector.physical_bytes,
            "at least the logical size",
        );
    }
    within(
        "sector.lowest_aligned_lbn",
        p.sector.lowest_aligned_lbn,
        0..=p.sector.ratio() - 1,
    )
}

fn seek(seek: &SeekSpec) -> Result<(), ProfileError> {
    match seek {
        SeekSpec::Constant { ms } => duration("mechanics.seek.ms", *ms),
        SeekSpec::ThreePointLine {
            single_ms,
            average_ms,
            full_ms,
        }
        | SeekSpec::ThreePointCurve {
            single_ms,
            average_ms,
            full_ms,
        } => {
            duration("mechanics.seek.single_ms", *single_ms)?;
            within(
                "mechanics.seek.average_ms",
                *average_ms,
                *single_ms..=LONGEST_MS,
            )?;
            within("mechanics.seek.full_ms", *full_ms, *average_ms..=LONGEST_MS)
        }
        SeekSpec::Hpl {
            division,
            root_constant_ms,
            root_factor_ms,
            line_constant_ms,
            line_factor_ms,
            first_ms,
        } => {
            bounded("mechanics.seek.division", *division)?;
            bounded("mechanics.seek.root_constant_ms", *root_constant_ms)?;
            duration("mechanics.seek.root_factor_ms", *root_factor_ms)?;
            bounded("mechanics.seek.line_constant_ms", *line_constant_ms)?;
            duration("mechanics.seek.line_factor_ms", *line_factor_ms)?;
            first_ms
                .iter()
                .try_for_each(|&ms| duration("mechanics.seek.first_ms", ms))
        }
        SeekSpec::Table { read, write } => {
            table("mechanics.seek.read", read)?;
            write
                .iter()
                .try_for_each(|points| table("mechanics.seek.write", points))
        }
    }
}

/// Refuses a formula or a table by which a seek over all cylinders takes longer than
/// [`LONGEST_MS`].
fn stroke(seek: &SeekSpec, cylinders: u32) -> Result<(), ProfileError> {
    let far = f64::from(cylinders);
    let beyond = |points: &[(u32, f64)]| match points {
        [.., (near, near_ms), (last, last_ms)] => {
            let slope = (last_ms - near_ms) / f64::from(last - near);
            last_ms + slope * (far - f64::from(*last)).max(0.0)
        }
        _ => 0.0,
    };
    let ms = match seek {
        SeekSpec::Hpl {
            division,
            root_constant_ms,
            root_factor_ms,
            line_constant_ms,
            line_factor_ms,
            ..
        } => {
            let root = root_constant_ms + root_factor_ms * far.min((*division).into()).sqrt();
            root.max(line_constant_ms + line_factor_ms * far)
        }
        SeekSpec::Table { read, write } => beyond(read).max(write.as_deref().map_or(0.0, beyond)),
        _ => return Ok(()),
    };
    if ms > LONGEST_MS {
        let bound = format!("such that no seek takes longer than {LONGEST_MS} ms");
        return out_of_bounds(
            "mechanics.seek",
            format!("{ms} ms over {cylinders} cylinders"),
            &bound,
        );
    }
    Ok(())
}

fn table(key: &str, points: &[(u32, f64)]) -> Result<(), ProfileError> {
    within(&format!("{key} points"), points.len(), 1..=1 << 20)?;
    for (i, &(distance, ms)) in points.iter().enumerate() {
        let lowest = if i == 0 { 1 } else { points[i - 1].0 + 1 };
        within(
            &format!("{key}[{i}] distance"),
            distance,
            lowest..=DISTANCE_MAX,
        )?;
        duration(&format!("{key}[{i}] time"), ms)?;
    }
    Ok(())
}

fn overheads(p: &Profile) -> Result<(), ProfileError> {
    let o = &p.overheads;
    for (key, ms) in [
        ("read_hit_after_read_ms", o.read_hit_after_read_ms),
        ("read_hit_after_write_ms", o.read_hit_after_write_ms),
        ("read_miss_after_read_ms", o.read_miss_after_read_ms),
        ("read_miss_after_write_ms", o.read_miss_after_write_ms),
        ("write_hit_after_read_ms", o.write_hit_after_read_ms),
        ("write_hit_after_write_ms", o.write_hit_after_write_ms),
        ("write_miss_after_read_ms", o.write_miss_after_read_ms),
        ("write_miss_after_write_ms", o.write_miss_after_write_ms),
        ("read_completion_ms", o.read_completion_ms),
        ("write_completion_ms", o.write_completion_ms),
        ("data_preparation_ms", o.data_preparation_ms),
        ("first_reselect_ms", o.first_reselect_ms),
        ("other_reselect_ms", o.other_reselect_ms),
        (
            "read_disconnect_after_read_ms",
            o.read_disconnect_after_read_ms,
        ),
        (
            "read_disconnect_after_write_ms",
            o.read_disconnect_after_write_ms,
        ),
        ("write_disconnect_ms", o.write_disconnect_ms),
        ("minimum_write_seek_ms", o.minimum_write_seek_ms),
        ("per_request_ms", o.per_request_ms),
    ] {
        duration(&format!("overheads.{key}"), ms)?;
    }
    if let Some(x) = &o.extra_write_disconnect {
        for (key, ms) in [
            ("command_ms", x.command_ms),
            ("disconnect_ms", x.disconnect_ms),
            ("off_bus_ms", x.off_bus_ms),
            ("second_disconnect_ms", x.second_disconnect_ms),
            ("seek_delay_ms", x.seek_delay_ms),
        ] {
            duration(&format!("overheads.extra_write_disconnect.{key}"), ms)?;
        }
    }
    Ok(())
}

fn cache(p: &Profile) -> Result<(), ProfileError> {
    let c = &p.cache;
    bounded("cache.segments", c.segments)?;
    within("cache.write_segments", c.write_segments, 1..=c.segments)?;
    bounded("cache.segment_sectors", c.segment_sectors)?;
    if c.dedicated_write_segment {
        let most = schema::bounds("cache.segments").1;
        within("cache.segments", f64::from(c.segments), 2.0..=most)?;
    }
    bounded("cache.read_watermark", c.read_watermark)?;
    bounded("cache.write_watermark", c.write_watermark)?;
    bounded("cache.read_ahead.min_sectors", c.read_ahead.min_sectors)?;
    bounded("cache.read_ahead.max_sectors", c.read_ahead.max_sectors)
}

fn scsi(s: &ScsiSpec) -> Result<(), ProfileError> {
    duration("scsi.translate_ms", s.translate_ms)?;
    for (key, text) in [
        ("scsi.vendor", &s.vendor),
        ("scsi.product", &s.product),
        ("scsi.revision", &s.revision),
        ("scsi.serial", &s.serial),
    ] {
        let Some(schema::Kind::Ascii(longest)) = schema::key(key).map(|key| key.kind) else {
            unreachable!("the schema bounds the text of {key}");
        };
        let fits = text.len() <= longest && text.trim() == text;
        if !fits || !text.bytes().all(|b| matches!(b, b' '..=b'~')) {
            let bound =
                format!("up to {longest} ASCII characters, without leading or trailing blanks");
            return out_of_bounds(key, text, &bound);
        }
    }
    Ok(())
}

/// Checks a number against the bounds of the schema.
fn bounded<T: Copy + Into<f64> + Display>(key: &str, value: T) -> Result<(), ProfileError> {
    let (min, max) = schema::bounds(key);
    within(key, value.into(), min..=max)
}

fn duration(key: &str, ms: f64) -> Result<(), ProfileError> {
    within(key, ms, 0.0..=LONGEST_MS)
}

fn within<T: PartialOrd + Display>(
    key: &str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<(), ProfileError> {
    if bounds.contains(&value) {
        Ok(())
    } else {
        let (start, end) = (bounds.start(), bounds.end());
        let only = start == end;
        let bound = if only {
            start.to_string()
        } else {
            format!("from {start} to {end}")
        };
        out_of_bounds(key, value, &bound)
    }
}

fn out_of_bounds<T>(key: &str, value: impl Display, bound: &str) -> Result<T, ProfileError> {
    Err(ProfileError::OutOfBounds {
        key: key.to_owned(),
        value: value.to_string(),
        bound: bound.to_owned(),
    })
}
