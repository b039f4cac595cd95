//! The schema of the top level, of sectors, and of a drive's SCSI responses.

use super::Absent::{Is, Means, Refused};
use super::Kind::{Ascii, Boolean, Choice, OneOf, Origins, Text, Whole};
use super::{Section, duration, key_of, section, table};
use crate::profile::FORMAT;

pub(super) const SECTIONS: &[Section] = &[
    section(
        "",
        "Identification of the drive, and the tables that describe it.",
        &[
            key_of(
                "format",
                Whole(FORMAT as f64, FORMAT as f64),
                "",
                Is("1"),
                "Version of the format.",
            ),
            key_of(
                "name",
                Text,
                "",
                Means("the file's name without its suffix"),
                "The drive's name in results: letters, digits, '-' and '_'.",
            ),
            key_of("model", Text, "", Means("the name"), "Vendor and model."),
            key_of(
                "year",
                Whole(0.0, 65_535.0),
                "",
                Means("the year is not known"),
                "Year of introduction.",
            ),
            key_of("notes", Text, "", Is("\"\""), "Notes for the reader."),
            table("sector", Means("the table's defaults"), "Sizes of sectors."),
            table(
                "mechanics",
                Means("accesses to the media take no time"),
                "Spindle, arm and heads.",
            ),
            table(
                "overheads",
                Means("the table's defaults"),
                "Command overheads.",
            ),
            table(
                "access",
                Means("the table's defaults"),
                "The order in which sectors are read and written (zero-latency access).",
            ),
            table("queue", Means("the table's defaults"), "The drive's queue."),
            table(
                "host",
                Means(
                    "the host passes requests on in order of arrival, up to the depth of the drive's queue",
                ),
                "The queue of the host in front of the drive.",
            ),
            table(
                "cache",
                Means("the table's defaults"),
                "The drive's buffer.",
            ),
            table("bus", Means("the table's defaults"), "The host interface."),
            table(
                "scsi",
                Means("the table's defaults"),
                "Identification, and SCSI responses.",
            ),
            table("geometry", Refused, "The layout of the sectors."),
            key_of(
                "provenance",
                Origins,
                "",
                Means("every value is assumed"),
                "The origin of each value. Its key is the value's dotted path, or the beginning of the path, which covers all values below it. An origin is \"measured: \", \"published: \", \"fitted: \" or \"assumed: \" and the source. A value without an entry is assumed.",
            ),
        ],
    ),
    section(
        "sector",
        "Sizes of logical and physical sectors.",
        &[
            key_of(
                "logical_bytes",
                OneOf(&[512, 4096]),
                "bytes",
                Is("512"),
                "The unit that an LBN counts.",
            ),
            key_of(
                "physical_bytes",
                OneOf(&[512, 4096]),
                "bytes",
                Is("512"),
                "The unit on the media; not less than logical_bytes.",
            ),
            key_of(
                "lowest_aligned_lbn",
                Whole(0.0, 7.0),
                "LBN",
                Is("0"),
                "The lowest LBN at which a physical sector begins; below the number of logical sectors in a physical one.",
            ),
        ],
    ),
    section(
        "scsi",
        "Identification of the drive, and the information that it discloses.",
        &[
            duration(
                "translate_ms",
                Is("2.0"),
                "Time to translate one address, or to read a defect list.",
            ),
            key_of(
                "translates",
                Boolean,
                "",
                Is("true"),
                "Whether the drive translates addresses (diagnostic page 40h).",
            ),
            key_of(
                "defect_lists",
                Boolean,
                "",
                Is("true"),
                "Whether the drive returns its defect lists.",
            ),
            key_of(
                "unmap",
                Choice(&[
                    ("ignored", "the data stays"),
                    ("zeroes", "sectors are subsequently read as zeros"),
                ]),
                "",
                Is("\"ignored\""),
                "The effect on sectors that a host discards.",
            ),
            key_of(
                "vendor",
                Ascii(8),
                "",
                Is("\"TRAXTENT\""),
                "The manufacturer.",
            ),
            key_of(
                "product",
                Ascii(16),
                "",
                Is("\"\""),
                "The model; if empty, the profile's name.",
            ),
            key_of(
                "revision",
                Ascii(4),
                "",
                Is("\"\""),
                "The version of the firmware.",
            ),
            key_of(
                "serial",
                Ascii(32),
                "",
                Is("\"\""),
                "The serial number; if empty, the drive has none.",
            ),
        ],
    ),
];
