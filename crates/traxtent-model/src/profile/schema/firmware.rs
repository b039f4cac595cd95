//! The schema of a drive's controller.

use super::Absent::{Is, Means};
use super::Kind::{Boolean, Choice, Number, Scheduler, Whole};
use super::{HOST_SCHEDULERS, Key, Section, duration, key_of, section, switch, table};

/// The maximum number of replicas of a sector on its track.
const PARTITIONS_MAX: f64 = 1024.0;
/// The bounds of a number of segments.
const SEGMENTS: (f64, f64) = (1.0, (1 << 20) as f64);
/// The maximum number of sectors of a segment, or of read-ahead.
const SECTORS_MAX: f64 = (1 << 30) as f64;
const COUNT: super::Kind = Whole(0.0, u32::MAX as f64);
const SHARE: super::Kind = Number(0.0, 1.0);

const fn overhead(name: &'static str, meaning: &'static str) -> Key {
    duration(name, Is("0.0"), meaning)
}

pub(super) const SECTIONS: &[Section] = &[
    section(
        "overheads",
        "Command overheads, by kind of command and by the previous command.",
        &[
            overhead(
                "read_hit_after_read_ms",
                "A read found in the buffer, after a read.",
            ),
            overhead(
                "read_hit_after_write_ms",
                "A read found in the buffer, after a write.",
            ),
            overhead(
                "read_miss_after_read_ms",
                "A read that needs the media, after a read.",
            ),
            overhead(
                "read_miss_after_write_ms",
                "A read that needs the media, after a write.",
            ),
            overhead(
                "write_hit_after_read_ms",
                "A write that completes in the buffer, after a read.",
            ),
            overhead(
                "write_hit_after_write_ms",
                "A write that completes in the buffer, after a write.",
            ),
            overhead(
                "write_miss_after_read_ms",
                "A write that completes on the media, after a read.",
            ),
            overhead(
                "write_miss_after_write_ms",
                "A write that completes on the media, after a write.",
            ),
            overhead("read_completion_ms", "The completion of a read."),
            overhead("write_completion_ms", "The completion of a write."),
            overhead(
                "data_preparation_ms",
                "The preparation of each data transfer.",
            ),
            overhead(
                "first_reselect_ms",
                "Reselecting the bus for the first time.",
            ),
            overhead(
                "other_reselect_ms",
                "Reselecting the bus at any later time.",
            ),
            overhead(
                "read_disconnect_after_read_ms",
                "Disconnecting from the bus during a read that follows a read.",
            ),
            overhead(
                "read_disconnect_after_write_ms",
                "Disconnecting from the bus during a read that follows a write.",
            ),
            overhead(
                "write_disconnect_ms",
                "Disconnecting from the bus during a write.",
            ),
            overhead(
                "minimum_write_seek_ms",
                "The least time that a write's seek takes, counted from when the arm may move. It does not apply if the write directly continues the previous one.",
            ),
            overhead(
                "per_request_ms",
                "A fixed time before any other processing of a request.",
            ),
            table(
                "extra_write_disconnect",
                Means("no additional disconnection"),
                "An additional disconnection before the data of a write.",
            ),
        ],
    ),
    section(
        "overheads.extra_write_disconnect",
        "The additional disconnection that some early drives make between a write's command and its data.",
        &[
            duration(
                "command_ms",
                super::Absent::Refused,
                "Command processing, in place of the write overhead.",
            ),
            duration(
                "disconnect_ms",
                super::Absent::Refused,
                "Disconnecting from the bus after the command.",
            ),
            duration("off_bus_ms", super::Absent::Refused, "Time off the bus."),
            duration(
                "second_disconnect_ms",
                super::Absent::Refused,
                "Disconnecting from the bus after the data.",
            ),
            duration(
                "seek_delay_ms",
                super::Absent::Refused,
                "Time from the end of command processing until the seek may begin.",
            ),
            key_of(
                "start_after_sectors",
                COUNT,
                "sectors",
                super::Absent::Refused,
                "The number of a write's sectors that must be in the buffer before the first goes to the media.",
            ),
            key_of(
                "large_start_after_sectors",
                COUNT,
                "sectors",
                super::Absent::Refused,
                "The same for writes of at least large_sectors.",
            ),
            key_of(
                "large_sectors",
                COUNT,
                "sectors",
                super::Absent::Refused,
                "The size from which a write counts as large.",
            ),
        ],
    ),
    section(
        "access",
        "Reading and writing in the order in which sectors pass (zero-latency access).",
        &[
            switch(
                "zero_latency_read",
                "Whether reads begin with the first wanted sector that arrives under the head.",
            ),
            switch(
                "zero_latency_write",
                "Whether writes begin with the first wanted sector that arrives under the head.",
            ),
            switch(
                "read_on_arrival",
                "Whether sectors of the track that pass before the first wanted one also enter the buffer.",
            ),
            key_of(
                "read_on_arrival_share",
                SHARE,
                "",
                Is("1.0"),
                "With read_on_arrival: the share of reads that keep the sectors that passed before the wanted ones.",
            ),
            key_of(
                "track_partitions",
                Whole(1.0, PARTITIONS_MAX),
                "",
                Is("1"),
                "The number of replicas of each sector, including the original, at equal angles around its track. A read uses the nearest one. 1 means that there is only the original.",
            ),
        ],
    ),
    section(
        "queue",
        "The drive's queue, and the order in which it serves requests.",
        &[
            key_of(
                "depth",
                Whole(1.0, 65_536.0),
                "requests",
                Is("1"),
                "The number of requests that a host may have outstanding at the drive.",
            ),
            key_of(
                "scheduler",
                Scheduler,
                "",
                Is("\"fcfs\""),
                "The order of service.",
            ),
            key_of(
                "preseek",
                Choice(&[
                    ("none", "once completion has been sent"),
                    (
                        "during-completion",
                        "once the media are done and the data has been transferred, while completion is being sent",
                    ),
                    (
                        "before-completion",
                        "once the media are done, during the transfer on the bus",
                    ),
                ]),
                "",
                Is("\"none\""),
                "The time from which the arm may leave for the next request.",
            ),
            overhead(
                "choice_ms",
                "After a read from the media, the delay between the moment that preseek defines and the drive's choice of the next request. A request that arrives during this delay takes part in the choice.",
            ),
        ],
    ),
    section(
        "host",
        "The queue of the host in front of the drive. Only simulations use it.",
        &[
            key_of(
                "scheduler",
                Choice(HOST_SCHEDULERS),
                "",
                Is("\"fcfs\""),
                "The order in which the host passes requests on.",
            ),
            switch(
                "one_at_a_time",
                "Whether the host sends the drive one request at a time, regardless of the depth of the drive's queue.",
            ),
        ],
    ),
    section(
        "cache",
        "The drive's buffer.",
        &[
            switch(
                "enabled",
                "Whether data stays in the buffer after its request. If not, writes are complete only once they are on the media.",
            ),
            key_of(
                "segments",
                Whole(SEGMENTS.0, SEGMENTS.1),
                "",
                Is("1"),
                "Number of segments; at least 2 with dedicated_write_segment.",
            ),
            key_of(
                "write_segments",
                Whole(SEGMENTS.0, SEGMENTS.1),
                "",
                Is("1"),
                "The number of segments that may hold data not yet on the media; not more than segments.",
            ),
            key_of(
                "segment_sectors",
                Whole(1.0, SECTORS_MAX),
                "sectors",
                Is("1024"),
                "Logical sectors per segment.",
            ),
            switch(
                "dedicated_write_segment",
                "Whether writes use one segment of their own, and reads all others.",
            ),
            key_of(
                "write_back",
                Choice(&[
                    ("none", "once it is on the media"),
                    ("full", "once its data is in the buffer"),
                ]),
                "",
                Is("\"none\""),
                "The time at which a write is reported as complete.",
            ),
            key_of(
                "combine_writes",
                Boolean,
                "",
                Is("true"),
                "Whether sequential writes join a segment that still holds data not yet on the media.",
            ),
            key_of(
                "read_hits_on_written",
                Boolean,
                "",
                Is("true"),
                "Whether reads can be served from written data in the buffer.",
            ),
            switch(
                "writes_update",
                "Whether a write updates the sectors that other segments hold for reads (otherwise it empties these segments).",
            ),
            switch(
                "hits_while_busy",
                "Whether hits are served while the media are busy with another request.",
            ),
            switch(
                "writes_while_busy",
                "Whether writes are accepted into free segments while the media are busy with another request.",
            ),
            key_of(
                "almost_hits",
                Boolean,
                "",
                Is("true"),
                "With stop_in_sector: whether a read that begins with the sector being read ahead lets read-ahead continue instead of stopping it.",
            ),
            switch(
                "drop_delivered",
                "Whether data is dropped from the buffer once delivered.",
            ),
            key_of(
                "read_watermark",
                SHARE,
                "",
                Is("0.0"),
                "Share of a read, or of a segment, that must be ready for transfer before the drive connects to the bus.",
            ),
            key_of(
                "write_watermark",
                SHARE,
                "",
                Is("1.0"),
                "For a write that is larger than a segment: the drive requests more data once the data in its full segment has fallen to this share. 1 means as soon as there is room.",
            ),
            key_of(
                "watermark_of_request",
                Boolean,
                "",
                Is("true"),
                "Whether read_watermark is a share of the request or of the segment, whichever is smaller (otherwise always of the segment).",
            ),
            table(
                "read_ahead",
                Means("no read-ahead"),
                "Read-ahead beyond the request.",
            ),
        ],
    ),
    section(
        "cache.read_ahead",
        "Read-ahead beyond the end of a request.",
        &[
            key_of(
                "until",
                Choice(&[
                    ("none", "no read-ahead"),
                    ("track-end", "the end of the track"),
                    ("cylinder-end", "the end of the cylinder"),
                    (
                        "segment-end",
                        "the bound that max_sectors sets, across tracks and cylinders",
                    ),
                    (
                        "adaptive-track-end",
                        "the end of the track, or of the next track if the data in the segment begins on an earlier track",
                    ),
                ]),
                "",
                Is("\"none\""),
                "The end of read-ahead.",
            ),
            key_of(
                "min_sectors",
                Whole(0.0, SECTORS_MAX),
                "sectors",
                Is("0"),
                "Sectors that are read ahead before another request may interrupt.",
            ),
            key_of(
                "max_sectors",
                Whole(0.0, SECTORS_MAX),
                "sectors",
                Is("0"),
                "Upper bound on the sectors read ahead, except with adaptive-track-end; 0 for the segment's size.",
            ),
            switch(
                "max_from_request_start",
                "Whether the segment's size, if it is the bound (max_sectors = 0), counts from the start of the request (otherwise from its end).",
            ),
            switch(
                "on_idle_hit",
                "Whether a hit makes an idle arm resume read-ahead.",
            ),
            switch(
                "stop_in_sector",
                "Whether a new request stops read-ahead within a sector.",
            ),
            key_of(
                "stop_on_write_hit",
                Boolean,
                "",
                Is("true"),
                "Whether a write to the sectors being read ahead ends read-ahead permanently.",
            ),
            switch(
                "on_arrival",
                "Whether read-ahead of a track begins with the sector at which the head arrives (otherwise with the first missing one).",
            ),
            switch(
                "whole_track",
                "Whether the drive, once it has the rest of a track, also reads the sectors before the request.",
            ),
            switch(
                "sequential_only",
                "Whether only a read that begins where the previous command ended makes the drive read ahead, or keep the sectors that passed before the wanted ones.",
            ),
            switch(
                "ignores_host",
                "Whether the drive continues to read ahead, and to serve reads from its buffer, when its host switches both off.",
            ),
        ],
    ),
    section(
        "bus",
        "Data transfer between the drive and its host.",
        &[
            overhead(
                "read_sector_ms",
                "Time to transfer one logical sector to the host; 0 is an infinitely fast bus.",
            ),
            overhead(
                "write_sector_ms",
                "Time to transfer one logical sector from the host.",
            ),
            key_of(
                "delivery",
                Choice(&[
                    ("in-order", "ascending LBN"),
                    (
                        "in-order-when-complete",
                        "ascending LBN; if sectors of a track are read out of order, all of them wait until the request's part on that track is complete",
                    ),
                    ("out-of-order", "as the media deliver them"),
                ]),
                "",
                Is("\"in-order\""),
                "The order in which the sectors of a read are transferred.",
            ),
            table(
                "hold",
                Means("the table's defaults"),
                "Whether the drive keeps the bus although it has nothing to transfer.",
            ),
        ],
    ),
    section(
        "bus.hold",
        "Whether the drive keeps the bus at times when it has nothing to transfer.",
        &[
            switch(
                "during_read",
                "Whether it keeps the bus from the first to the last sector of a read.",
            ),
            switch(
                "during_write",
                "Whether it keeps the bus from the first to the last sector of a write.",
            ),
            switch(
                "always",
                "Whether it keeps the bus from the command to its completion, so that it never disconnects.",
            ),
        ],
    ),
];
