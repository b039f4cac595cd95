//! A profile's firmware parameters, converted once to the units of the model.

use crate::profile::{BusSpec, Delivery, OverheadSpec, Profile};
use traxtent_units::Span;

/// A pair of overheads: after a read, and after a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverheadPair {
    read: Span,
    write: Span,
}

impl OverheadPair {
    fn new(read_ms: f64, write_ms: f64) -> OverheadPair {
        OverheadPair {
            read: Span::from_ms(read_ms),
            write: Span::from_ms(write_ms),
        }
    }

    pub(super) fn get(self, after_read: bool) -> Span {
        if after_read { self.read } else { self.write }
    }
}

/// The additional disconnection of [`crate::profile::ExtraDisconnect`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    pub(super) command: Span,
    pub(super) disconnect: Span,
    pub(super) off_bus: Span,
    pub(super) second_disconnect: Span,
    pub(super) seek_delay: Span,
    start_after: u32,
    large_start_after: u32,
    large_sectors: u32,
}

impl Extra {
    /// Returns the number of a write's sectors that must be in the buffer before the first goes to
    /// the media.
    pub(super) fn start_after(&self, sectors: u32) -> u32 {
        sectors.min(if sectors < self.large_sectors {
            self.start_after
        } else {
            self.large_start_after
        })
    }
}

/// The times and behaviour of the controller and its bus.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    pub(super) per_request: Span,
    pub(super) choice: Span,
    pub(super) read_hit: OverheadPair,
    pub(super) read_miss: OverheadPair,
    pub(super) write_hit: OverheadPair,
    pub(super) write_miss: OverheadPair,
    pub(super) read_completion: Span,
    pub(super) write_completion: Span,
    pub(super) data_preparation: Span,
    pub(super) first_reselect: Span,
    pub(super) other_reselect: Span,
    pub(super) read_disconnect: OverheadPair,
    pub(super) write_disconnect: Span,
    pub(super) minimum_write_seek: Span,
    pub(super) extra: Option<Extra>,
    pub(super) read_sector: Span,
    pub(super) write_sector: Span,
    pub(super) in_order: bool,
    pub(super) when_complete: bool,
    /// The watermark of reads, in sectors, for profiles in which it is a share of a segment.
    pub(super) read_watermark: u32,
    pub(super) hold_read: bool,
    pub(super) hold_write: bool,
    pub(super) never_disconnect: bool,
}

impl Controller {
    pub(super) fn new(profile: &Profile) -> Controller {
        let OverheadSpec {
            extra_write_disconnect,
            ..
        } = profile.overheads;
        let o = &profile.overheads;
        let BusSpec {
            read_sector_ms,
            write_sector_ms,
            delivery,
            hold,
        } = profile.bus;
        let cache = &profile.cache;
        let watermark = f64::from(cache.segment_sectors) * cache.read_watermark;
        Controller {
            per_request: Span::from_ms(o.per_request_ms),
            choice: Span::from_ms(profile.queue.choice_ms),
            read_hit: OverheadPair::new(o.read_hit_after_read_ms, o.read_hit_after_write_ms),
            read_miss: OverheadPair::new(o.read_miss_after_read_ms, o.read_miss_after_write_ms),
            write_hit: OverheadPair::new(o.write_hit_after_read_ms, o.write_hit_after_write_ms),
            write_miss: OverheadPair::new(o.write_miss_after_read_ms, o.write_miss_after_write_ms),
            read_completion: Span::from_ms(o.read_completion_ms),
            write_completion: Span::from_ms(o.write_completion_ms),
            data_preparation: Span::from_ms(o.data_preparation_ms),
            first_reselect: Span::from_ms(o.first_reselect_ms),
            other_reselect: Span::from_ms(o.other_reselect_ms),
            read_disconnect: OverheadPair::new(
                o.read_disconnect_after_read_ms,
                o.read_disconnect_after_write_ms,
            ),
            write_disconnect: Span::from_ms(o.write_disconnect_ms),
            minimum_write_seek: Span::from_ms(o.minimum_write_seek_ms),
            extra: extra_write_disconnect.map(|x| Extra {
                command: Span::from_ms(x.command_ms),
                disconnect: Span::from_ms(x.disconnect_ms),
                off_bus: Span::from_ms(x.off_bus_ms),
                second_disconnect: Span::from_ms(x.second_disconnect_ms),
                seek_delay: Span::from_ms(x.seek_delay_ms),
                start_after: x.start_after_sectors,
                large_start_after: x.large_start_after_sectors,
                large_sectors: x.large_sectors,
            }),
            read_sector: Span::from_ms(read_sector_ms),
            write_sector: Span::from_ms(write_sector_ms),
            in_order: delivery != Delivery::OutOfOrder,
            when_complete: delivery == Delivery::InOrderWhenComplete,
            read_watermark: watermark.ceil() as u32,
            hold_read: hold.during_read || hold.always,
            hold_write: hold.during_write || hold.always,
            never_disconnect: hold.always,
        }
    }
}
