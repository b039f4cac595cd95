//! The settings of a drive's firmware that a calibration chooses: those that determine what is in
//! the buffer, and those that determine when a request is complete.

use traxtent_model::profile::{CacheSpec, Delivery, Profile, ReadAhead, ReadAheadUntil, WriteBack};

/// A setting with one of the values that it can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The key in the profile.
    pub(crate) key: &'static str,
    value: Value,
}

type Place<T> = fn(&mut Profile) -> &mut T;

#[derive(Clone, Copy, Debug)]
enum Value {
    Switch(Place<bool>, bool),
    Number(Place<u32>, u32),
    Share(Place<f64>, f64),
    Until(ReadAheadUntil),
    WriteBack(WriteBack),
    Delivery(Delivery),
    NoExtraDisconnect,
}

impl Setting {
    /// Sets the value in the profile. Returns whether the profile had a different one.
    pub(crate) fn apply(&self, profile: &mut Profile) -> bool {
        match self.value {
            Value::Switch(place, value) => replace(place(profile), value),
            Value::Number(place, value) => replace(place(profile), value),
            Value::Share(place, value) => replace(place(profile), value),
            Value::Until(value) => replace(&mut profile.cache.read_ahead.until, value),
            Value::WriteBack(value) => replace(&mut profile.cache.write_back, value),
            Value::Delivery(value) => replace(&mut profile.bus.delivery, value),
            Value::NoExtraDisconnect => {
                replace(&mut profile.overheads.extra_write_disconnect, None)
            }
        }
    }
}

fn replace<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}

fn switches(all: &[(&'static str, Place<bool>)]) -> impl Iterator<Item = Setting> {
    all.iter().flat_map(|&(key, place)| {
        [false, true].map(|value| Setting {
            key,
            value: Value::Switch(place, value),
        })
    })
}

fn numbers(key: &'static str, place: Place<u32>, values: &[u32]) -> impl Iterator<Item = Setting> {
    values.iter().map(move |&value| Setting {
        key,
        value: Value::Number(place, value),
    })
}

/// The sizes of segments and the maximum lengths of read-ahead that are tried for every drive, in
/// sectors.
const SIZES_SECTORS: [u32; 14] = [
    32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096,
];

/// The values of the settings that determine what is in the buffer, for a drive whose largest
/// track has `track` sectors.
pub(crate) fn buffer_settings(track: u32) -> Vec<Setting> {
    let mut sizes = SIZES_SECTORS.to_vec();
    sizes.extend([track, 2 * track]);
    let bounds: Vec<u32> = std::iter::once(0).chain(sizes.iter().copied()).collect();
    let until = [
        ReadAheadUntil::None,
        ReadAheadUntil::TrackEnd,
        ReadAheadUntil::CylinderEnd,
        ReadAheadUntil::SegmentEnd,
        ReadAheadUntil::AdaptiveTrackEnd,
    ];
    let until = until.map(|value| Setting {
        key: "cache.read_ahead.until",
        value: Value::Until(value),
    });
    let write_back = [WriteBack::None, WriteBack::Full].map(|value| Setting {
        key: "cache.write_back",
        value: Value::WriteBack(value),
    });
    let key = "cache.segments";
    let counts = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32];
    let mut found: Vec<Setting> = numbers(key, |of| &mut of.cache.segments, &counts).collect();
    let key = "cache.write_segments";
    let counts = [1, 2, 3, 4, 8, 16];
    found.extend(numbers(key, |of| &mut of.cache.write_segments, &counts));
    let key = "cache.segment_sectors";
    found.extend(numbers(key, |of| &mut of.cache.segment_sectors, &sizes));
    let key = "cache.read_ahead.max_sectors";
    let place: Place<u32> = |of| &mut of.cache.read_ahead.max_sectors;
    found.extend(numbers(key, place, &bounds));
    let key = "cache.read_ahead.min_sectors";
    let place: Place<u32> = |of| &mut of.cache.read_ahead.min_sectors;
    found.extend(numbers(key, place, &[0, 8, 16, 32, 64, 128]));
    found.extend(until);
    found.extend(write_back);
    found.extend(switches(&[
        ("access.read_on_arrival", |of| {
            &mut of.access.read_on_arrival
        }),
        ("cache.enabled", |of| &mut of.cache.enabled),
        ("cache.combine_writes", |of| &mut of.cache.combine_writes),
        ("cache.dedicated_write_segment", |of| {
            &mut of.cache.dedicated_write_segment
        }),
        ("cache.drop_delivered", |of| &mut of.cache.drop_delivered),
        ("cache.read_hits_on_written", |of| {
            &mut of.cache.read_hits_on_written
        }),
        ("cache.writes_update", |of| &mut of.cache.writes_update),
        ("cache.read_ahead.max_from_request_start", |of| {
            &mut of.cache.read_ahead.max_from_request_start
        }),
        ("cache.read_ahead.on_arrival", |of| {
            &mut of.cache.read_ahead.on_arrival
        }),
        ("cache.read_ahead.on_idle_hit", |of| {
            &mut of.cache.read_ahead.on_idle_hit
        }),
        ("cache.read_ahead.sequential_only", |of| {
            &mut of.cache.read_ahead.sequential_only
        }),
        ("cache.read_ahead.stop_on_write_hit", |of| {
            &mut of.cache.read_ahead.stop_on_write_hit
        }),
        ("cache.read_ahead.whole_track", |of| {
            &mut of.cache.read_ahead.whole_track
        }),
    ]));
    found
}

/// The values of the settings that determine when a request is complete.
pub(crate) fn timing_settings() -> Vec<Setting> {
    let delivery = [Delivery::InOrder, Delivery::InOrderWhenComplete].map(|value| Setting {
        key: "bus.delivery",
        value: Value::Delivery(value),
    });
    let watermarks: [(&'static str, Place<f64>); 2] = [
        ("cache.read_watermark", |of| &mut of.cache.read_watermark),
        ("cache.write_watermark", |of| &mut of.cache.write_watermark),
    ];
    let watermarks = watermarks.into_iter().flat_map(|(key, place)| {
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|value| Setting {
            key,
            value: Value::Share(place, value),
        })
    });
    let switches = switches(&[
        ("access.zero_latency_read", |of| {
            &mut of.access.zero_latency_read
        }),
        ("access.zero_latency_write", |of| {
            &mut of.access.zero_latency_write
        }),
        ("bus.hold.during_read", |of| &mut of.bus.hold.during_read),
        ("bus.hold.during_write", |of| &mut of.bus.hold.during_write),
        ("bus.hold.always", |of| &mut of.bus.hold.always),
        ("cache.watermark_of_request", |of| {
            &mut of.cache.watermark_of_request
        }),
        ("cache.read_ahead.stop_in_sector", |of| {
            &mut of.cache.read_ahead.stop_in_sector
        }),
    ]);
    let disconnect = Setting {
        key: "overheads.extra_write_disconnect",
        value: Value::NoExtraDisconnect,
    };
    switches
        .chain(watermarks)
        .chain(delivery)
        .chain([disconnect])
        .collect()
}

/// Whether the model accepts this combination of buffer settings.
pub(crate) fn is_possible(cache: &CacheSpec) -> bool {
    cache.write_segments <= cache.segments
        && (!cache.dedicated_write_segment || cache.segments >= 2)
}

/// Returns buffers of usual kinds, from which a search begins in addition to the drive's own: a few
/// segments with read-ahead to their end, one track per segment, and segments that drop delivered
/// data. `track` is the number of sectors of the largest track.
pub(crate) fn usual_buffers(own: &CacheSpec, track: u32) -> [CacheSpec; 3] {
    let segments = |segments, segment_sectors, until| CacheSpec {
        enabled: true,
        segments,
        segment_sectors,
        write_segments: 1,
        dedicated_write_segment: false,
        read_ahead: ReadAhead {
            until,
            ..ReadAhead::default()
        },
        ..own.clone()
    };
    [
        segments(4, 256, ReadAheadUntil::SegmentEnd),
        segments(10, track, ReadAheadUntil::TrackEnd),
        CacheSpec {
            drop_delivered: true,
            ..segments(2, 512, ReadAheadUntil::SegmentEnd)
        },
    ]
}
