//! The behaviour of a drive's controller: command overheads, queue, cache and bus.
//!
//! Durations are in milliseconds, the unit of data sheets and of the papers. Values that the drive
//! controller of DiskSim 4.0 also has (Bucy, Schindler, Schlosser, Ganger, "The DiskSim Simulation
//! Environment", CMU-PDL-08-101, section 3.5) have the same meaning here. A drive whose parameters
//! were extracted for DiskSim thus keeps its timing.

use super::Scheduler;
use serde::{Deserialize, Serialize};

/// Data transfer between the drive and its host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSpec {
    /// Time to transfer one logical sector to the host, in milliseconds. 0 is an infinitely fast
    /// bus.
    #[serde(default)]
    pub read_sector_ms: f64,
    /// Time to transfer one logical sector from the host, in milliseconds.
    #[serde(default)]
    pub write_sector_ms: f64,
    /// The order in which the sectors of a read may be transferred.
    #[serde(default)]
    pub delivery: Delivery,
    /// The times at which the drive keeps the bus while a request waits for the media.
    #[serde(default)]
    pub hold: BusHold,
}

/// The order in which the sectors of one read are transferred on the bus (paper T, section 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Ascending LBN. A sector is transferred once it and all earlier ones are in the buffer. Most
    /// drives do this.
    #[default]
    InOrder,
    /// Ascending LBN. If a zero-latency access reads sectors of a track out of order, all of them
    /// wait until the request's part on that track is complete. This is the behaviour of drives
    /// whose bus and media transfers hardly overlap on aligned requests, and overlap completely on
    /// others (paper T, section 5.2 and Figure 7).
    InOrderWhenComplete,
    /// In the order in which the media deliver them (SCSI's MODIFY DATA POINTER).
    OutOfOrder,
}

/// Whether a drive keeps the bus at times when it has nothing to transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BusHold {
    /// From the first to the last sector of a read.
    pub during_read: bool,
    /// From the first to the last sector of a write.
    pub during_write: bool,
    /// From the command to its completion: the drive never disconnects.
    pub always: bool,
}

/// The drive's queue, and the order in which it serves requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// The number of requests that a host may have outstanding at the drive.
    #[serde(default = "one_request")]
    pub depth: u32,
    /// The order of service.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// The time from which the arm may leave for the next request.
    #[serde(default)]
    pub preseek: Preseek,
    /// After a read from the media, the delay between the moment that `preseek` defines and the
    /// drive's choice of the next request, in milliseconds. A request that arrives during this
    /// delay takes part in the choice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub choice_ms: f64,
}

impl Default for QueueSpec {
    /// One request at a time, in order of arrival.
    fn default() -> QueueSpec {
        QueueSpec {
            depth: one_request(),
            scheduler: Scheduler::default(),
            preseek: Preseek::default(),
            choice_ms: 0.0,
        }
    }
}

/// The time from which the arm may leave a finished access for the next request's cylinder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preseek {
    /// Once completion has been sent.
    #[default]
    None,
    /// Once the media are done and the data has been transferred, while completion is being sent.
    DuringCompletion,
    /// Once the media are done, while data is still being transferred on the bus.
    BeforeCompletion,
}

/// The drive's buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSpec {
    /// Whether data stays in the buffer after its request. If not, writes are complete only once
    /// they are on the media.
    pub enabled: bool,
    /// Number of segments.
    pub segments: u32,
    /// The number of segments that may hold data not yet on the media.
    pub write_segments: u32,
    /// Logical sectors per segment.
    pub segment_sectors: u32,
    /// Whether writes use one segment of their own, and reads all others.
    pub dedicated_write_segment: bool,
    /// The time at which a write is reported as complete.
    pub write_back: WriteBack,
    /// Whether sequential writes join a segment that still holds data not yet on the media.
    pub combine_writes: bool,
    /// Whether reads can be served from written data in the buffer.
    pub read_hits_on_written: bool,
    /// Whether a write updates the sectors that other segments hold for reads. Otherwise it empties
    /// these segments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub writes_update: bool,
    /// Whether hits are served while the media are busy with another request.
    pub hits_while_busy: bool,
    /// Whether writes are accepted into free segments while the media are busy with another
    /// request.
    pub writes_while_busy: bool,
    /// With `read_ahead.stop_in_sector`: whether a read that begins with the sector being read
    /// ahead lets read-ahead continue instead of stopping it. Drives that complete the sector have
    /// it in the buffer, and do not need this.
    pub almost_hits: bool,
    /// Whether data is dropped from the buffer once delivered.
    pub drop_delivered: bool,
    /// Share of a read, or of a segment, that must be ready for transfer before the drive connects
    /// to the bus.
    pub read_watermark: f64,
    /// For a write that is larger than a segment: the drive requests more data once the data in its
    /// full segment has fallen to this share. 1 means as soon as there is room.
    pub write_watermark: f64,
    /// Whether `read_watermark` is a share of the request or of the segment, whichever is smaller.
    /// Otherwise it is always a share of the segment.
    pub watermark_of_request: bool,
    /// Read-ahead beyond the request.
    pub read_ahead: ReadAhead,
}

impl Default for CacheSpec {
    /// No buffer.
    fn default() -> CacheSpec {
        CacheSpec {
            enabled: false,
            segments: 1,
            write_segments: 1,
            segment_sectors: 1024,
            dedicated_write_segment: false,
            write_back: WriteBack::None,
            combine_writes: true,
            read_hits_on_written: true,
            writes_update: false,
            hits_while_busy: false,
            writes_while_busy: false,
            almost_hits: true,
            drop_delivered: false,
            read_watermark: 0.0,
            write_watermark: 1.0,
            watermark_of_request: true,
            read_ahead: ReadAhead::default(),
        }
    }
}

/// The time at which a write is reported as complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteBack {
    /// Once it is on the media.
    #[default]
    None,
    /// Once its data is in the buffer.
    Full,
}

/// Read-ahead beyond the end of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadAhead {
    /// The end of read-ahead.
    pub until: ReadAheadUntil,
    /// Sectors that are read ahead before another request may interrupt.
    pub min_sectors: u32,
    /// Upper bound on the sectors read ahead, except with [`ReadAheadUntil::AdaptiveTrackEnd`]. 0
    /// means the segment's size.
    pub max_sectors: u32,
    /// Whether the segment's size counts from the start of the request, rather than from its end,
    /// if it is the bound (`max_sectors` = 0).
    pub max_from_request_start: bool,
    /// Whether a hit makes an idle arm resume read-ahead.
    pub on_idle_hit: bool,
    /// Whether a new request stops read-ahead within a sector.
    pub stop_in_sector: bool,
    /// Whether a write to the sectors being read ahead ends read-ahead permanently.
    pub stop_on_write_hit: bool,
    /// Whether read-ahead of a track begins with the sector at which the head arrives. This
    /// includes the rest of the request's last track. A read that continues the read-ahead uses the
    /// sectors that have already passed. Otherwise, read-ahead waits for the first missing sector
    /// of each track.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_arrival: bool,
    /// Whether the drive, once it has the rest of a track, also reads the sectors before the
    /// request. It has the whole track a revolution after the head arrived there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole_track: bool,
    /// Whether only a read that begins where the previous command ended makes the drive read ahead,
    /// or keep the sectors that passed before the wanted ones. Otherwise every read does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sequential_only: bool,
    /// Whether the drive continues to read ahead, and to serve reads from its buffer, when its host
    /// switches both off (RCD = 1, DPTL = 0 of the caching mode page; paper Q, section 2.3).
    pub ignores_host: bool,
}

impl Default for ReadAhead {
    /// No read-ahead.
    fn default() -> ReadAhead {
        ReadAhead {
            until: ReadAheadUntil::None,
            min_sectors: 0,
            max_sectors: 0,
            max_from_request_start: false,
            on_idle_hit: false,
            stop_in_sector: false,
            stop_on_write_hit: true,
            on_arrival: false,
            whole_track: false,
            sequential_only: false,
            ignores_host: false,
        }
    }
}

/// The end of a drive's read-ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadUntil {
    /// No read-ahead.
    #[default]
    None,
    /// The end of the track.
    TrackEnd,
    /// The end of the cylinder.
    CylinderEnd,
    /// The bound that `max_sectors` sets, across tracks and cylinders.
    SegmentEnd,
    /// The end of the track, or of the next track if the data in the segment begins on an earlier
    /// track (Digital's scheme).
    AdaptiveTrackEnd,
}

/// Reading and writing in the order in which sectors pass (zero-latency access).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSpec {
    /// Reads begin with the first wanted sector that arrives under the head.
    pub zero_latency_read: bool,
    /// Writes begin with the first wanted sector that arrives under the head.
    pub zero_latency_write: bool,
    /// Sectors of the track that pass before the first wanted one also enter the buffer.
    pub read_on_arrival: bool,
    /// The share of reads that keep the sectors that passed before the wanted ones, if
    /// `read_on_arrival` keeps any. These reads are chosen by a random generator that has the same
    /// seed on every drive. Paper Q (section 2.3, Fig. 4) finds a share of one half on one drive,
    /// and no factor that determines the choice.
    pub read_on_arrival_share: f64,
    /// The number of replicas of each sector at equal angles around its track. A read uses the
    /// nearest. This is the track partition layout (paper P, section 2) with the simplifications of
    /// its section 3: addresses do not change, a write goes to the original alone, and after its
    /// first sector a read takes as long as at the original. 1 means that there is only the
    /// original.
    pub track_partitions: u32,
}

impl Default for AccessSpec {
    /// A drive without zero-latency access that keeps only the wanted sectors.
    fn default() -> AccessSpec {
        AccessSpec {
            zero_latency_read: false,
            zero_latency_write: false,
            read_on_arrival: false,
            read_on_arrival_share: 1.0,
            track_partitions: 1,
        }
    }
}

/// Command overheads in milliseconds, by kind of command and by the previous command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OverheadSpec {
    /// A read found in the buffer, after a read.
    pub read_hit_after_read_ms: f64,
    /// A read found in the buffer, after a write.
    pub read_hit_after_write_ms: f64,
    /// A read that needs the media, after a read.
    pub read_miss_after_read_ms: f64,
    /// A read that needs the media, after a write.
    pub read_miss_after_write_ms: f64,
    /// A write that completes in the buffer, after a read.
    pub write_hit_after_read_ms: f64,
    /// A write that completes in the buffer, after a write.
    pub write_hit_after_write_ms: f64,
    /// A write that completes on the media, after a read.
    pub write_miss_after_read_ms: f64,
    /// A write that completes on the media, after a write.
    pub write_miss_after_write_ms: f64,
    /// The completion of a read.
    pub read_completion_ms: f64,
    /// The completion of a write.
    pub write_completion_ms: f64,
    /// The preparation of each data transfer.
    pub data_preparation_ms: f64,
    /// Reselecting the bus for the first time.
    pub first_reselect_ms: f64,
    /// Reselecting the bus at any later time.
    pub other_reselect_ms: f64,
    /// Disconnecting from the bus during a read that follows a read.
    pub read_disconnect_after_read_ms: f64,
    /// Disconnecting from the bus during a read that follows a write.
    pub read_disconnect_after_write_ms: f64,
    /// Disconnecting from the bus during a write.
    pub write_disconnect_ms: f64,
    /// The least time that a write's seek takes, counted from when the arm may move. It does not
    /// apply if the write directly continues the previous one.
    pub minimum_write_seek_ms: f64,
    /// A fixed time before any other processing of a request.
    pub per_request_ms: f64,
    /// An additional disconnection before the data of a write that follows another write but does
    /// not continue it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_write_disconnect: Option<ExtraDisconnect>,
}

/// The additional disconnection that some early drives make between a write's command and its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// Command processing, in place of the write overhead.
    pub command_ms: f64,
    /// Disconnecting from the bus after the command.
    pub disconnect_ms: f64,
    /// Time off the bus.
    pub off_bus_ms: f64,
    /// Disconnecting from the bus after the data.
    pub second_disconnect_ms: f64,
    /// Time from the end of command processing until the seek may begin.
    pub seek_delay_ms: f64,
    /// The number of a write's sectors that must be in the buffer before the first goes to the
    /// media.
    pub start_after_sectors: u32,
    /// Same as `start_after_sectors`, for writes of at least `large_sectors`.
    pub large_start_after_sectors: u32,
    /// The size from which a write counts as large.
    pub large_sectors: u32,
}

fn one_request() -> u32 {
    1
}

fn is_zero(ms: &f64) -> bool {
    *ms == 0.0
}
