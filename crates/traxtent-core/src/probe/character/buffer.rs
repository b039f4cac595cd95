//! Bus and cache.

use crate::profile::{BusHold, CacheSpec, Delivery, ReadAhead, ReadAheadUntil, WriteBack};

/// What is known of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buffer {
    pub(super) hit_ms: f64,
    pub(super) connect_ms: f64,
    pub(super) sector_ms: f64,
    pub(super) delivery: Delivery,
    pub(super) hold: BusHold,
    pub(super) read_on_arrival: bool,
    pub(super) cache: CacheSpec,
}

impl Buffer {
    /// What stands where nothing was measured.
    pub(super) fn unknown() -> Buffer {
        Buffer {
            hit_ms: 0.1,
            connect_ms: 0.0,
            sector_ms: 0.0,
            delivery: Delivery::InOrder,
            hold: BusHold::default(),
            read_on_arrival: false,
            cache: CacheSpec {
                enabled: true,
                segments: 1,
                write_segments: 1,
                segment_sectors: 512,
                dedicated_write_segment: false,
                write_back: WriteBack::None,
                combine_writes: true,
                read_hits_on_written: true,
                hits_while_busy: false,
                writes_while_busy: false,
                almost_hits: false,
                drop_delivered: false,
                read_watermark: 0.0,
                write_watermark: 0.0,
                watermark_of_request: true,
                read_ahead: ReadAhead {
                    until: ReadAheadUntil::None,
                    min_sectors: 0,
                    max_sectors: 0,
                    max_from_request_start: false,
                    on_idle_hit: false,
                    stop_in_sector: false,
                    stop_on_write_hit: true,
                },
            },
        }
    }
}
