//! The influence of a profile's assumed figures on random reads and on streams.
//!
//! Each assumed figure with a plausible range is moved to the ends of the range, alone. Then all
//! are moved together, to the slow and to the fast side. Each range has a source or a reason.

use std::num::NonZeroU32;

use traxtent_model::geometry::{PerSurface, Skew};
use traxtent_model::profile::{OriginKind, Profile, SeekSpec};

use crate::bench::{Bench, LabError};
use crate::{jobs, modern};

/// The values to which a figure is moved.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// These values.
    Each(&'static [&'static str]),
    /// Both ends of a range, unless the figure is beyond them.
    Between(f64, f64),
    /// The figure times these factors.
    Times(f64, f64),
}

/// A plausible range.
#[derive(Clone, Copy, Debug)]
pub struct PlausibleRange {
    /// The figure: its key in a profile, or a description if all zones have it.
    pub key: &'static str,
    values: Values,
    /// The source of the range, or the reason for it.
    pub reason: &'static str,
}

const fn range(key: &'static str, values: Values, reason: &'static str) -> PlausibleRange {
    PlausibleRange {
        key,
        values,
        reason,
    }
}

const SWITCH: Values = Values::Each(&["true", "false"]);
const BOTH: &str = "both settings exist in drives";
/// The plausible ranges. Other assumed figures are not moved: they depend on a figure that is
/// moved, or no range is known.
pub const RANGES: &[PlausibleRange] = &[
    range(
        "mechanics.rpm",
        Values::Times(0.993, 1.007),
        "a drive sold as 7,200 RPM was measured at 7,247 (Wong, 2019)",
    ),
    range(
        "mechanics.head_switch_ms",
        Values::Between(0.6, 1.1),
        "published for seven drives of 1992 to 2000 (paper T, Table 1)",
    ),
    range(
        "mechanics.write_settle_ms",
        Values::Between(0.0, 0.8),
        "writes seek 0.1 to 0.8 ms longer than reads (WD Ultrastar DC HC310 manual)",
    ),
    range(
        "mechanics.seek.single_ms",
        Values::Between(0.23, 1.0),
        "0.23 ms on the WD Ultrastar DC HC310 (manual), 1.0 ms measured by Wong (2019); not longer than the skew allows",
    ),
    range(
        "mechanics.seek.average_ms",
        Values::Times(0.9, 1.25),
        "typical to maximum of the WD Ultrastar DC HC310 and HGST 7K4000: 7.4 to 10.2 ms (manuals)",
    ),
    range(
        "mechanics.seek.full_ms",
        Values::Between(14.6, 21.1),
        "measured on 7,200 RPM drives (Wong, 2019)",
    ),
    range(
        "overheads.read_hit_after_read_ms",
        Values::Between(0.03, 0.19),
        "0.08 to 0.19 ms measured on drives of 1998 to 2004 (DiskSim 4.0); less for a later controller",
    ),
    range(
        "overheads.read_miss_after_read_ms",
        Values::Between(0.03, 0.28),
        "0.25 to 0.28 ms measured on drives of 1998 to 2004 (DiskSim 4.0); less for a later controller",
    ),
    range("access.zero_latency_read", SWITCH, BOTH),
    range("access.read_on_arrival", SWITCH, BOTH),
    range(
        "queue.scheduler",
        Values::Each(&["sstf", "look", "c-look", "sptf"]),
        "no maker states its policy; drives with native queueing reorder",
    ),
    range(
        "queue.preseek",
        Values::Each(&["none", "before-completion"]),
        "the least and the most overlap",
    ),
    range(
        "queue.choice_ms",
        Values::Between(0.0, 0.2),
        "none, or twice a command's overhead",
    ),
    range(
        "cache.segments",
        Values::Each(&["2", "16", "64"]),
        "no maker states it; segments adapt on many drives",
    ),
    range(
        "cache.segment_sectors",
        Values::Each(&["1024", "8192"]),
        "no maker states it; segments adapt on many drives",
    ),
    range("cache.hits_while_busy", SWITCH, BOTH),
    range("cache.drop_delivered", SWITCH, BOTH),
    range(
        "cache.read_watermark",
        Values::Each(&["0.0", "0.5"]),
        "from the first sector to half a request",
    ),
    range(
        "cache.read_ahead.until",
        Values::Each(&["track-end", "segment-end"]),
        "the shortest and the longest read-ahead of measured drives",
    ),
    range("cache.read_ahead.on_idle_hit", SWITCH, BOTH),
    range("cache.read_ahead.on_arrival", SWITCH, BOTH),
    range(
        "bus.read_sector_ms",
        Values::Times(1.0, 1.25),
        "frames and protocol take up to a fifth of a serial link's rate",
    ),
    range(
        "geometry.width_tracks",
        Values::Between(32.0, 16_208.0),
        "the narrowest and the widest serpentine measured (Wong, 2019)",
    ),
    range(
        SKEWS,
        Values::Between(0.0625, 0.2),
        "22.5 to 72 degrees on drives of 7,200 RPM (Wong, 2019); a seek of a cylinder must fit in it",
    ),
    range(
        INNER,
        Values::Between(0.33, 0.53),
        "0.44 to 0.53 measured (Wong, 2019); 0.32 to 0.44 from the rates of four drives of 10 TB and more",
    ),
];

/// The skews of the zones. Not a key: the geometry has them zone by zone.
const SKEWS: &str = "geometry.zones: skew";
/// The innermost track size over the outermost one.
const INNER: &str = "geometry.zones: inner/outer";

/// The results that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Results {
    /// The mean time of a random read of 4 KiB, in milliseconds.
    pub read_ms: f64,
    /// The throughput of such reads with 32 outstanding, in requests per second.
    pub reads_32: f64,
    /// The rate of sequential reads of 128 KiB in the first zone, in MB/s.
    pub stream: f64,
    /// The rate of sequential reads of 1 MiB over the whole drive, in MB/s.
    pub scan: f64,
}

/// A figure at an end of its range.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The range.
    pub range: &'static PlausibleRange,
    /// The value in the profile.
    pub from: String,
    /// The value to which it is moved.
    pub to: String,
    /// The results with it.
    pub results: Results,
}

/// The influence of the assumed figures of a drive.
#[derive(Clone, Debug)]
pub struct Influence {
    /// The results of the profile as it is.
    pub own: Results,
    /// The figures, each moved alone, in the order of [`RANGES`].
    pub moved: Vec<Moved>,
    /// The keys of the assumed figures that are not in [`RANGES`].
    pub fixed: Vec<String>,
    /// The results with each figure at the value with the slowest random read, and at that with the
    /// fastest one.
    pub reads: [Results; 2],
    /// The same for the slowest and the fastest stream.
    pub streams: [Results; 2],
}

/// Measures the influence of every assumed figure that has a plausible range.
///
/// # Errors
/// Returns an error if a workload does not fit the drive.
pub fn influence(bench: &Bench) -> Result<Influence, LabError> {
    let own = results(bench)?;
    let mut moved = Vec::new();
    for range in RANGES
        .iter()
        .filter(|range| is_assumed(&bench.profile, range.key))
    {
        let from = current(&bench.profile, range.key);
        for to in ends(&bench.profile, range) {
            let Some(changed) = apply(bench, range.key, &to) else {
                continue;
            };
            if changed.profile == bench.profile {
                continue;
            }
            moved.push(Moved {
                range,
                from: from.clone(),
                to,
                results: results(&changed)?,
            });
        }
    }
    let together = |score: fn(&Results) -> f64| -> Result<[Results; 2], LabError> {
        let side = |sign: f64| -> Result<Results, LabError> {
            let mut all = bench.clone();
            for range in RANGES {
                let of_range = moved.iter().filter(|one| one.range.key == range.key);
                let extreme = of_range
                    .max_by(|a, b| {
                        (sign * score(&a.results)).total_cmp(&(sign * score(&b.results)))
                    })
                    .filter(|one| sign * score(&one.results) > sign * score(&own));
                if let Some(extreme) = extreme {
                    all = apply(&all, range.key, &extreme.to).unwrap_or(all);
                }
            }
            results(&all)
        };
        Ok([side(-1.0)?, side(1.0)?])
    };
    let reads = together(|results| -results.read_ms)?;
    let streams = together(|results| results.stream)?;
    let covered = |path: &str| RANGES.iter().any(|range| range.key == path);
    let fixed = bench.profile.value_paths().into_iter().filter(|path| {
        let origin = bench.profile.provenance.of(path);
        origin.is_some_and(|origin| origin.kind == OriginKind::Assumed) && !covered(path)
    });
    Ok(Influence {
        own,
        fixed: fixed.collect(),
        moved,
        reads,
        streams,
    })
}

fn results(bench: &Bench) -> Result<Results, LabError> {
    let reads = bench.run("random,size=4KiB,count=2000")?;
    let deep = bench.run("random,size=4KiB,count=2000,outstanding=32")?;
    Ok(Results {
        read_ms: reads.response_ms.mean(),
        reads_32: 1e3 / deep.head_time_ms,
        stream: jobs::rate(bench, "sequential,size=128KiB,zone=0", NonZeroU32::MIN)?.mb_per_s,
        scan: modern::whole_drive(bench, "sequential,size=1MiB")?,
    })
}

fn is_assumed(profile: &Profile, key: &str) -> bool {
    let key = key.split(':').next().unwrap_or(key);
    let origin = profile.provenance.of(key);
    profile.mechanics.is_some() && origin.is_some_and(|origin| origin.kind == OriginKind::Assumed)
}

/// Returns the value of a figure as text.
fn current(profile: &Profile, key: &str) -> String {
    match key {
        SKEWS => skew(profile).map_or_else(String::new, |skew| format!("{skew}")),
        INNER => inner(profile).map_or_else(String::new, |share| format!("{share:.2}")),
        "queue.scheduler" => profile.queue.scheduler.to_string(),
        "queue.choice_ms" => profile.queue.choice_ms.to_string(),
        // Switches that are off may be absent.
        _ => profile.value_text(key).map_or_else(
            || "false".to_owned(),
            |text| text.trim_matches('"').to_owned(),
        ),
    }
}

fn ends(profile: &Profile, range: &PlausibleRange) -> Vec<String> {
    let own = match range.key {
        SKEWS => skew(profile),
        INNER => inner(profile),
        "queue.choice_ms" => Some(profile.queue.choice_ms),
        key => profile.value_text(key).and_then(|text| text.parse().ok()),
    };
    let text = |value: f64| {
        let whole = range.key == "geometry.width_tracks";
        if whole {
            format!("{value:.0}")
        } else {
            format!("{}", (value * 1e6).round() / 1e6)
        }
    };
    match (range.values, own) {
        (Values::Each(values), _) => values.iter().map(|&value| value.to_owned()).collect(),
        (Values::Times(low, high), Some(own)) => vec![text(own * low), text(own * high)],
        (Values::Between(low, high), Some(own)) => {
            let high = match range.key {
                "mechanics.seek.single_ms" => high.min(longest_switch_ms(profile)),
                _ => high,
            };
            vec![text(own.min(low)), text(own.max(high))]
        }
        (_, None) => Vec::new(),
    }
}

/// Returns the drive with a figure changed, or `None` if it cannot have the value.
fn apply(bench: &Bench, key: &str, to: &str) -> Option<Bench> {
    let mut profile = Profile::clone(&bench.profile);
    match key {
        SKEWS => set_skews(&mut profile, to.parse().ok()?),
        INNER => set_inner(&mut profile, to.parse().ok()?)?,
        _ => return bench.with_parameter(key, to).ok(),
    }
    profile.check().ok()?;
    Bench::with_profile(profile, bench.seed).ok()
}

/// Returns the first zone's skew to the next cylinder in revolutions; `None` if it is 0 or given in
/// sectors.
fn skew(profile: &Profile) -> Option<f64> {
    match profile.geometry.zones.first()?.cylinder_skew {
        Skew::Revolutions(turns) if turns > 0.0 => Some(turns),
        _ => None,
    }
}

/// Returns the longest seek of one cylinder that fits in 85 % of the skew, in milliseconds.
fn longest_switch_ms(profile: &Profile) -> f64 {
    skew(profile).map_or(f64::INFINITY, |turns| {
        0.85 * turns * profile.revolution_ms()
    })
}

/// Sets the cylinder skew of each zone, and shortens a seek of one cylinder that would not fit in
/// it.
fn set_skews(profile: &mut Profile, turns: f64) {
    for zone in &mut profile.geometry.zones {
        zone.cylinder_skew = Skew::Revolutions(turns);
    }
    let longest = longest_switch_ms(profile);
    let mechanics = profile.mechanics.as_mut();
    if let Some(SeekSpec::ThreePointCurve { single_ms, .. }) = mechanics.map(|m| &mut m.seek) {
        *single_ms = single_ms.min(longest);
    }
}

/// Returns the innermost track size over the outermost one, if there are several zones and each has
/// one track size.
fn inner(profile: &Profile) -> Option<f64> {
    let zones = &profile.geometry.zones;
    let size = |zone: &traxtent_model::geometry::ZoneSpec| match zone.sectors_per_track {
        PerSurface::Same(slots) => Some(f64::from(slots)),
        PerSurface::Each(_) => None,
    };
    let sizes: Option<Vec<f64>> = zones.iter().map(size).collect();
    let sizes = sizes.filter(|sizes| sizes.len() > 1)?;
    Some(sizes.last()? / sizes.first()?)
}

/// Changes the track sizes so that the innermost is `share` of the outermost. The number of
/// cylinders changes so that the capacity stays about the same.
fn set_inner(profile: &mut Profile, share: f64) -> Option<()> {
    let old = inner(profile)?;
    let ratio = profile.sector.physical_bytes / profile.sector.logical_bytes;
    let zones = &mut profile.geometry.zones;
    let outer = match zones.first()?.sectors_per_track {
        PerSurface::Same(slots) => f64::from(slots),
        PerSurface::Each(_) => return None,
    };
    let total = |zones: &[traxtent_model::geometry::ZoneSpec]| -> f64 {
        let sectors = |zone: &traxtent_model::geometry::ZoneSpec| match zone.sectors_per_track {
            PerSurface::Same(slots) => {
                f64::from(slots) * f64::from(zone.last_cylinder - zone.first_cylinder + 1)
            }
            PerSurface::Each(_) => 0.0,
        };
        zones.iter().map(sectors).sum()
    };
    let before = total(zones);
    for zone in zones.iter_mut() {
        if let PerSurface::Same(slots) = &mut zone.sectors_per_track {
            let fallen = (outer - f64::from(*slots)) * (1.0 - share) / (1.0 - old);
            let unit = f64::from(ratio);
            *slots = (((outer - fallen) / unit).round() * unit) as u32;
        }
    }
    // Zones end at multiples of the width, so that no pass is cut.
    let width = profile.geometry.width_tracks.unwrap_or(1).max(1);
    let factor = 1.002 * before / total(zones);
    let scaled =
        |cylinder: u32| (f64::from(cylinder) * factor / f64::from(width)).round() as u32 * width;
    let mut first = 0;
    for zone in zones.iter_mut() {
        zone.first_cylinder = first;
        zone.last_cylinder = scaled(zone.last_cylinder + 1).max(first + 1) - 1;
        first = zone.last_cylinder + 1;
    }
    profile.geometry.cylinders = first;
    Some(())
}
