//! What a drive's controller does: command overheads, queue, cache and bus.
//!
//! Durations are in milliseconds, the unit of data sheets and of the papers. The meaning of the
//! figures follows the drive controller of DiskSim 4.0 (Bucy, Schindler, Schlosser, Ganger,
//! "The DiskSim Simulation Environment", CMU-PDL-08-101, section 3.5), so that a drive extracted
//! for it keeps its timings here.

use serde::{Deserialize, Serialize};

/// How data move between the drive and its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSpec {
    /// Time to move one logical sector to the host, in milliseconds; 0 is an infinitely fast bus.
    pub read_sector_ms: f64,
    /// Time to move one logical sector from the host, in milliseconds.
    pub write_sector_ms: f64,
    /// In which order the sectors of a read may cross the bus.
    #[serde(default)]
    pub delivery: Delivery,
    /// When the drive leaves the bus to others while a request waits for the media.
    #[serde(default)]
    pub hold: BusHold,
}

/// Order in which the sectors of one read cross the bus (paper T, section 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Ascending LBN only, as all known drives do.
    #[default]
    InOrder,
    /// Ascending LBN; what a zero-latency access reads of a track out of order is held back until
    /// the track's part is complete. So drives whose bus and media transfers hardly overlap on
    /// aligned requests and wholly on others (paper T, section 5.2 and Figure 7).
    InOrderWhenComplete,
    /// As the media deliver them (SCSI's MODIFY DATA POINTER).
    OutOfOrder,
}

/// When a drive keeps the bus although it has nothing to transfer.
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

/// Which requests the drive holds and in which order it serves them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// How many requests a host may have outstanding at the drive.
    pub depth: u32,
    /// The order of service.
    pub scheduler: Scheduler,
    /// When the arm may leave for the next request.
    #[serde(default)]
    pub preseek: Preseek,
}

/// Disk scheduling policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// First come, first served.
    #[default]
    Fcfs,
    /// Shortest seek time first: the nearest LBN to where the arm is.
    Sstf,
    /// Up and down over the LBNs, turning at the last request of each direction.
    Look,
    /// Upward over the LBNs, then back to the lowest request.
    CLook,
    /// Shortest positioning time first: seek and rotation.
    Sptf,
    /// Shortest positioning time first, less a bonus for age, so that none starves: each
    /// millisecond of waiting counts for `weight` milliseconds of positioning.
    AgedSptf {
        /// Milliseconds of positioning forgiven a millisecond of waiting.
        weight: f64,
    },
}

/// When the arm may leave a finished access for the next request's cylinder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preseek {
    /// When the host has acknowledged completion.
    #[default]
    None,
    /// When completion has been sent.
    DuringCompletion,
    /// When the media are done, while data still cross the bus.
    BeforeCompletion,
}

/// The drive's buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Whether data outlive their request in the buffer. Where they do not, writes are complete on the media alone.
    pub enabled: bool,
    /// Number of segments.
    pub segments: u32,
    /// How many segments may hold data not yet on the media.
    pub write_segments: u32,
    /// Logical sectors in a segment.
    pub segment_sectors: u32,
    /// Whether writes use one segment of their own, and reads all others.
    #[serde(default)]
    pub dedicated_write_segment: bool,
    /// When a write is complete for its host.
    pub write_back: WriteBack,
    /// Whether sequential writes join a segment that is still dirty.
    #[serde(default = "yes")]
    pub combine_writes: bool,
    /// Whether data written are kept for reads.
    #[serde(default = "yes")]
    pub read_hits_on_written: bool,
    /// Whether hits are served while the media work for another request.
    #[serde(default)]
    pub hits_while_busy: bool,
    /// Whether writes are taken into free segments while the media work for another request.
    #[serde(default)]
    pub writes_while_busy: bool,
    /// Whether a drive that stops read-ahead in the middle of a sector (`read_ahead.stop_in_sector`) goes on with it for a read that
    /// begins with that sector. All others do: they finish the sector, and have it.
    #[serde(default = "yes")]
    pub almost_hits: bool,
    /// Whether data are dropped from the buffer once delivered.
    #[serde(default)]
    pub drop_delivered: bool,
    /// Share of a read, or of a segment, that must be buffered before data cross the bus.
    #[serde(default)]
    pub read_watermark: f64,
    /// How much of a write may still be in a full segment when the drive asks for more, as a share of the segment; 1 where it asks as
    /// soon as there is room. It counts for writes that are larger than a segment.
    #[serde(default = "one")]
    pub write_watermark: f64,
    /// Whether the watermarks are shares of the request (else of the segment).
    #[serde(default = "yes")]
    pub watermark_of_request: bool,
    /// What is read beyond the request.
    pub read_ahead: ReadAhead,
}

/// When a write is complete for its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteBack {
    /// When it is on the media.
    #[default]
    None,
    /// When its data are in the buffer.
    Full,
}

/// Reading on beyond what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAhead {
    /// How far.
    pub until: ReadAheadUntil,
    /// Sectors read ahead before another request may interrupt.
    #[serde(default)]
    pub min_sectors: u32,
    /// Bound on the sectors read ahead with [`ReadAheadUntil::SegmentEnd`] and its kin; 0 for the segment's size.
    #[serde(default)]
    pub max_sectors: u32,
    /// Whether the bound counts from the start of the request (else from its end).
    #[serde(default)]
    pub max_from_request_start: bool,
    /// Whether a hit makes an idle arm go on reading ahead.
    #[serde(default)]
    pub on_idle_hit: bool,
    /// Whether a new request stops read-ahead in the middle of a sector.
    #[serde(default)]
    pub stop_in_sector: bool,
    /// Whether a write into the sectors being read ahead ends it for good.
    #[serde(default = "yes")]
    pub stop_on_write_hit: bool,
    /// Whether tracks that are read ahead come into the buffer in the order in which their sectors pass, from wherever the head
    /// comes to them, and so does the rest of a request's last track (else from the first sector on that is missing). A request
    /// for the next sector goes on with that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_arrival: bool,
    /// Whether the drive goes on reading ahead, and serves reads from its buffer, when its host
    /// orders both off (RCD = 1, DPTL = 0 of the caching mode page; paper Q, section 2.3).
    #[serde(default)]
    pub ignores_host: bool,
}

impl Default for ReadAhead {
    /// Nothing is read ahead.
    fn default() -> ReadAhead {
        ReadAhead {
            until: ReadAheadUntil::None,
            min_sectors: 0,
            max_sectors: 0,
            max_from_request_start: false,
            on_idle_hit: false,
            stop_in_sector: false,
            stop_on_write_hit: yes(),
            on_arrival: false,
            ignores_host: false,
        }
    }
}

/// How far a drive reads ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadUntil {
    /// Nothing is read ahead.
    #[default]
    None,
    /// The end of the track.
    TrackEnd,
    /// The end of the cylinder.
    CylinderEnd,
    /// The bound, over tracks and cylinders.
    SegmentEnd,
    /// The end of the track, and of the next track once a read has run on from the track before
    /// (Digital's scheme).
    AdaptiveTrackEnd,
}

/// Reading and writing in the order in which sectors pass (zero-latency access).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSpec {
    /// Reads begin at whichever wanted sector comes first.
    pub zero_latency_read: bool,
    /// Writes begin at whichever wanted sector comes first.
    pub zero_latency_write: bool,
    /// Sectors that pass before the first wanted one, on its track, are buffered too.
    pub read_on_arrival: bool,
    /// The share of reads whose sectors passed before are kept, where `read_on_arrival` keeps any.
    /// Which reads these are is drawn from a generator that every drive seeds alike: paper Q
    /// (section 2.3, Fig. 4) finds one half on a drive, and nothing that it depends on.
    pub read_on_arrival_share: f64,
    /// Copies of each sector that lie evenly around its track, of which a read takes the nearest: partitions of a track
    /// (paper P, section 2) with the simplifications of its section 3: addresses stay what they are, a write goes to the
    /// original alone, and what a read passes after its first sector is as it would be there. One is no copy.
    pub track_partitions: u32,
}

impl Default for AccessSpec {
    /// A drive that begins with the first wanted sector and keeps no others.
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

/// Time the controller takes, in milliseconds, by kind of command and by what came before.
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
    /// Completion of a read.
    pub read_completion_ms: f64,
    /// Completion of a write.
    pub write_completion_ms: f64,
    /// Preparation of each data transfer.
    pub data_preparation_ms: f64,
    /// First time the drive takes the bus again.
    pub first_reselect_ms: f64,
    /// Any later time.
    pub other_reselect_ms: f64,
    /// Leaving the bus during a read that follows a read.
    pub read_disconnect_after_read_ms: f64,
    /// Leaving the bus during a read that follows a write.
    pub read_disconnect_after_write_ms: f64,
    /// Leaving the bus during a write.
    pub write_disconnect_ms: f64,
    /// The least time from a write's command to the end of its seek, unless it continues a stream.
    pub minimum_write_seek_ms: f64,
    /// Fixed time before anything else is done with a request.
    pub per_request_ms: f64,
    /// An additional disconnection before the data of a write that follows another, not sequential write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_write_disconnect: Option<ExtraDisconnect>,
}

/// The additional disconnection that some early drives make between a write's command and its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// The command, in place of the write overhead.
    pub command_ms: f64,
    /// Leaving the bus after the command.
    pub disconnect_ms: f64,
    /// Time off the bus.
    pub off_bus_ms: f64,
    /// Leaving the bus after the data.
    pub second_disconnect_ms: f64,
    /// Time after the command at which the seek begins.
    pub seek_delay_ms: f64,
    /// Sectors of any write that must be in the buffer before the first goes to the media.
    pub start_after_sectors: u32,
    /// The same for writes of at least `large_sectors`.
    pub large_start_after_sectors: u32,
    /// What counts as large.
    pub large_sectors: u32,
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}
