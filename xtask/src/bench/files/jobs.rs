//! The jobs, and the files that they read.

/// A set of files on a drive's first partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// Files that were written one after the other on an empty file system.
    Contiguous,
    /// Two files that grew alternately by 128 KiB.
    InPieces,
    /// A file system that was filled; then, three times, a third of its files were deleted and it
    /// was refilled.
    Aged,
}

impl Image {
    pub(super) fn image_name(self) -> &'static str {
        match self {
            Image::Contiguous => "contiguous.img",
            Image::InPieces => "pieces.img",
            Image::Aged => "aged.img",
        }
    }

    /// The shell commands that create the files in the current directory.
    pub(super) fn creation_script(self) -> &'static str {
        match self {
            Image::Contiguous => {
                "random=$(mktemp)\n\
                 head --bytes=256M /dev/urandom >\"$random\"\n\
                 for f in a b; do cp \"$random\" $f; done\n\
                 for i in $(seq 16); do head --bytes=64M \"$random\" >s$i; done\n\
                 for i in $(seq 64); do head --bytes=4M \"$random\" >t$i; done\n\
                 mkdir small\n\
                 for i in $(seq 1000); do head --bytes=200000 \"$random\" >small/$i; done\n\
                 yes \"$seed\" | head --bytes=100K >\"$random\"\n\
                 shuf --input-range=1-1000 --random-source=\"$random\" >order\n\
                 rm \"$random\""
            }
            Image::InPieces => {
                "for i in $(seq 512); do\n\
                   head --bytes=128K /dev/urandom >\"$folder/piece\"\n\
                   for f in a b; do cat \"$folder/piece\" >>$f; sync $f; done\n\
                 done"
            }
            Image::Aged => {
                "\"$age\" . \"$seed\" >\"$folder/large\"\n\
                 head --lines=\"$count\" \"$folder/large\" >large"
            }
        }
    }
}

/// The kernel's read-ahead, `read_ahead_kb`.
#[derive(Clone, Copy)]
pub(super) enum ReadAhead {
    Kib(u64),
    /// The size of the outermost track.
    Track,
}

/// A job: a line of bash, run in the root of the file system.
pub(super) struct Job<'a> {
    pub(super) label: &'a str,
    pub(super) read_ahead: ReadAhead,
    pub(super) line: &'a str,
    /// Whether the job runs after the files have been moved onto whole tracks.
    pub(super) after_realign: bool,
}

/// Jobs that are compared with the first one.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) image: Image,
    pub(super) jobs: &'static [Job<'static>],
    /// The files to move onto whole tracks before the jobs with `after_realign`; empty if the group
    /// has no such jobs.
    pub(super) realigned: &'static str,
}

const USUAL: ReadAhead = ReadAhead::Kib(128);

const fn job(label: &'static str, read_ahead: ReadAhead, line: &'static str) -> Job<'static> {
    Job {
        label,
        read_ahead,
        line,
        after_realign: false,
    }
}

const fn after(label: &'static str, read_ahead: ReadAhead, line: &'static str) -> Job<'static> {
    Job {
        after_realign: true,
        ..job(label, read_ahead, line)
    }
}

const CMP: &str = "cmp a b";
const CMP_BY_TRACKS: &str =
    "cmp <(\"$traxtent\" file read a --map \"$map\") <(\"$traxtent\" file read b --map \"$map\")";
const CMP_FOUR_AHEAD: &str = "cmp <(\"$traxtent\" file read a --ahead 4 --map \"$map\") \
                              <(\"$traxtent\" file read b --ahead 4 --map \"$map\")";
const SCAN: &str = "cat a >/dev/null";
const SCAN_BY_TRACKS: &str = "\"$traxtent\" file read a --map \"$map\" >/dev/null";
const STREAMS_4: &str = "for i in $(seq 4); do cat s$i >/dev/null & done; wait";
const STREAMS_4_BY_TRACKS: &str =
    "for i in $(seq 4); do \"$traxtent\" file read s$i --map \"$map\" >/dev/null & done; wait";
const STREAMS_16: &str = "for i in $(seq 16); do head --bytes=16M s$i >/dev/null & done; wait";
const STREAMS_16_BY_TRACKS: &str = "for i in $(seq 16); do \
    \"$traxtent\" file read s$i --map \"$map\" 2>/dev/null | head --bytes=16M >/dev/null & done; wait";
const STREAMS_64: &str = "for i in $(seq 64); do cat t$i >/dev/null & done; wait";
const STREAMS_64_BY_TRACKS: &str =
    "for i in $(seq 64); do \"$traxtent\" file read t$i --map \"$map\" >/dev/null & done; wait";
const HEADS: &str = "for i in $(cat order); do head --bytes=1 small/$i >/dev/null; done";
const HEADS_BY_TRACKS: &str = "for i in $(cat order); do \
    \"$traxtent\" file read small/$i --ahead 1 --map \"$map\" 2>/dev/null | head --bytes=1 >/dev/null; done";
const AGED: &str = "for f in $(cat large); do cat $f >/dev/null; done";
const AGED_BY_TRACKS: &str =
    "for f in $(cat large); do \"$traxtent\" file read $f --map \"$map\" >/dev/null; done";
const AGED_STREAMS: &str = "split --number=l/4 large \"$folder/part-\"; for part in \"$folder\"/part-*; do (for f in $(cat $part); do \
     cat $f >/dev/null; done) & done; wait";
const AGED_STREAMS_BY_TRACKS: &str = "split --number=l/4 large \"$folder/part-\"; for part in \"$folder\"/part-*; do (for f in $(cat $part); do \
     \"$traxtent\" file read $f --map \"$map\" >/dev/null; done) & done; wait";

/// All jobs, by table.
pub(super) const GROUPS: [Group; 8] = [
    Group {
        name: "cmp of two files of 256 MiB",
        image: Image::Contiguous,
        jobs: &[
            job("`cmp`, `read_ahead_kb` 128", USUAL, CMP),
            job("`cmp`, a track", ReadAhead::Track, CMP),
            job("`cmp`, 256", ReadAhead::Kib(256), CMP),
            job("`cmp`, 2560", ReadAhead::Kib(2560), CMP),
            job("`file read`", USUAL, CMP_BY_TRACKS),
            job("`file read --ahead 4`", USUAL, CMP_FOUR_AHEAD),
        ],
        realigned: "",
    },
    Group {
        name: "scan of a file of 256 MiB",
        image: Image::Contiguous,
        jobs: &[
            job("`cat`, `read_ahead_kb` 128", USUAL, SCAN),
            job("`cat`, 256", ReadAhead::Kib(256), SCAN),
            job("`cat`, 2560", ReadAhead::Kib(2560), SCAN),
            job("`file read`", USUAL, SCAN_BY_TRACKS),
        ],
        realigned: "",
    },
    Group {
        name: "4 streams of 64 MiB",
        image: Image::Contiguous,
        jobs: &[
            job("4 `cat`, `read_ahead_kb` 128", USUAL, STREAMS_4),
            job("4 `cat`, 2560", ReadAhead::Kib(2560), STREAMS_4),
            job("4 `file read`", USUAL, STREAMS_4_BY_TRACKS),
        ],
        realigned: "",
    },
    Group {
        name: "16 streams of 16 MiB",
        image: Image::Contiguous,
        jobs: &[
            job("16 `head`, `read_ahead_kb` 128", USUAL, STREAMS_16),
            job("16 `head`, 2560", ReadAhead::Kib(2560), STREAMS_16),
            job("16 `file read`", USUAL, STREAMS_16_BY_TRACKS),
        ],
        realigned: "",
    },
    Group {
        name: "64 streams of 4 MiB",
        image: Image::Contiguous,
        jobs: &[
            job("64 `cat`, `read_ahead_kb` 128", USUAL, STREAMS_64),
            job("64 `cat`, 2560", ReadAhead::Kib(2560), STREAMS_64),
            job("64 `file read`", USUAL, STREAMS_64_BY_TRACKS),
        ],
        realigned: "",
    },
    Group {
        name: "first byte of 1,000 files of 200 KB, in random order",
        image: Image::Contiguous,
        jobs: &[
            job("`head`, `read_ahead_kb` 128", USUAL, HEADS),
            job("`head`, 2560", ReadAhead::Kib(2560), HEADS),
            job("`file read --ahead 1`", USUAL, HEADS_BY_TRACKS),
        ],
        realigned: "",
    },
    Group {
        name: "cmp of two files of 64 MiB in alternating pieces",
        image: Image::InPieces,
        jobs: &[
            job("before: `cmp`, `read_ahead_kb` 128", USUAL, CMP),
            job("before: `cmp`, 2560", ReadAhead::Kib(2560), CMP),
            job("before: `file read`", USUAL, CMP_BY_TRACKS),
            after("after: `cmp`, 128", USUAL, CMP),
            after("after: `cmp`, 2560", ReadAhead::Kib(2560), CMP),
            after("after: `file read`", USUAL, CMP_BY_TRACKS),
        ],
        realigned: "a b",
    },
    Group {
        name: "large files of an aged file system of 8 GiB",
        image: Image::Aged,
        jobs: &[
            job("before: `cat`, `read_ahead_kb` 128", USUAL, AGED),
            job("before: `cat`, 2560", ReadAhead::Kib(2560), AGED),
            job("before: `file read`", USUAL, AGED_BY_TRACKS),
            job("before: 4 `cat`, 128", USUAL, AGED_STREAMS),
            job("before: 4 `file read`", USUAL, AGED_STREAMS_BY_TRACKS),
            after("after: `cat`, 128", USUAL, AGED),
            after("after: `cat`, 2560", ReadAhead::Kib(2560), AGED),
            after("after: `file read`", USUAL, AGED_BY_TRACKS),
            after("after: 4 `cat`, 128", USUAL, AGED_STREAMS),
            after("after: 4 `file read`", USUAL, AGED_STREAMS_BY_TRACKS),
        ],
        realigned: "$(cat large)",
    },
];
