//! The disk-level claims of the Linux validation of track-aligned extents (paper Q: Qian, Meyers and Wang, 2008),
//! section 2.3 and Figures 1 to 4: what a drive's structure looks like from outside.
//!
//! Every experiment sees drives as a probe does. Its host is ideal: the time that the paper's reads spent in Linux
//! and in a RAID controller is not published, and is none here.

mod boundary_reads;
mod growing_reads;
mod layout;
mod reverse_pairs;

use crate::Experiment;
use crate::claim::{Claim, Unit, Within};

pub use growing_reads::{Start, cliffs, growing_reads};

/// The drive of most experiments: the first of Table 2's numberings.
pub const MAIN_DRIVE: &str = "maxtor10k5";

/// Table 2: sectors on the outermost tracks of surfaces 0 and 1, and the drives numbered so.
pub const NUMBERINGS: [(&str, [u32; 2]); 4] = [
    ("maxtor10k5", [1144, 1092]),
    ("maxtor10k5-b", [1092, 1144]),
    ("maxtor10k5-c", [1025, 1196]),
    ("maxtor10k5-d", [1060, 1170]),
];

/// The drives on which the paper sees no zero-latency access.
pub const ORDINARY_DRIVES: [&str; 2] = ["cheetah15k4", "map3367nc"];

/// 5 % of 256, by which the first read moves: so far a cliff at the end of a track would move.
const SECTORS_13: Within = Within::Absolute(13.0);
const MS_0_4: Within = Within::Absolute(0.4);

const SECOND_CLIFF: &str = "a request larger than a buffer segment comes from the media, where the next cliff is the \
    end of the track";
const TRACK_END: &str =
    "where less than a buffer segment of a track is left, its end is the first cliff";
const ZONES: &str = "the model begins the pattern anew in each zone, and four zones have an odd number of turns; the \
    paper shows the first zone alone";
const JUMP: &str = "the paper's steps search sector by sector wherever the size of tracks changes, and where the \
    serpentine changes surfaces that is every 64 tracks; 7 minutes are two translations a track at 1.3 ms, and no searches";
const WITHIN: &str = "it lies on the bound, and seeds fall on either side; the paper's host and RAID controller, which \
    are not in the profile, took time as well";
const ACROSS: &str = "the paper's reads take 0.4 ms longer within tracks too (its host and RAID controller are not in \
    the profile), and crossing a boundary costs them 0.16 ms beyond the skew, which it cannot explain either";

/// Every experiment on what single drives are like, in the order of the claims.
pub const EXPERIMENTS: [Experiment; 6] = [
    Experiment {
        title: "Fig. 1: growing reads on a drive that ignores orders to its buffer",
        claims: &[
            Claim::new(
                "Q1a",
                "first cliff, reads from sector 0",
                512.0,
                Unit::Sectors,
                Within::Relative(0.05),
            )
            // The size of a buffer segment, which the profile assumes.
            .reported(),
            Claim::new(
                "Q1b",
                "it moves if reads begin at sector 256 by",
                0.0,
                Unit::Sectors,
                SECTORS_13,
            ),
            Claim::new(
                "Q1c",
                "it moves if they begin anywhere below 512 by",
                0.0,
                Unit::Sectors,
                SECTORS_13,
            ),
            Claim::new(
                "Q1d",
                "the second cliff moves at 256 by",
                0.0,
                Unit::Sectors,
                SECTORS_13,
            )
            .if_missed(SECOND_CLIFF),
            Claim::new(
                "Q1e",
                "first cliffs within 5 % of the end of a track",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
            Claim::new(
                "Q1f",
                "track boundaries among the first 20 that the scan finds",
                0.0,
                Unit::Count,
                Within::Exactly,
            )
            .if_missed(TRACK_END),
            Claim::new(
                "Q1g",
                "512-sector reads at cliffs over those at random sectors",
                0.0,
                Unit::Change,
                Within::Absolute(0.03),
            ),
        ],
        measure: growing_reads::measure,
        figure: Some(growing_reads::figure),
    },
    Experiment {
        title: "the map of a 73 GB drive, by the paper's steps and by ours",
        claims: &[
            Claim::new(
                "Q2a",
                "jump, the paper's steps: drive time",
                7.0,
                Unit::Minutes,
                Within::Relative(0.1),
            )
            .reported()
            .if_missed(JUMP),
            Claim::new(
                "Q2b",
                "jump: translations (7 minutes at 2 ms)",
                210_000.0,
                Unit::Count,
                Within::Relative(0.1),
            )
            .reported()
            .if_missed(JUMP),
            Claim::new(
                "Q2c",
                "tree: drive time",
                7.0,
                Unit::Minutes,
                Within::AtMost(7.0),
            ),
            Claim::new(
                "Q2d",
                "angle: drive time",
                7.0,
                Unit::Minutes,
                Within::AtMost(7.0),
            ),
            Claim::new(
                "Q2e",
                "the slower of these over jump",
                1.0,
                Unit::Ratio,
                Within::AtMost(1.0),
            ),
            Claim::new(
                "Q2f",
                "boundaries that any of them missed or invented",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
        ],
        measure: layout::seven_minutes,
        figure: None,
    },
    Experiment {
        title: "Fig. 2: the serpentine",
        claims: &[
            Claim::new(
                "Q3a",
                "tracks of the first zone not where the serpentine of 32 puts them",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
            Claim::new(
                "Q3b",
                "tracks of the whole drive, if zones do not matter to it",
                0.0,
                Unit::Count,
                Within::Exactly,
            )
            .reported()
            .if_missed(ZONES),
        ],
        measure: layout::serpentine,
        figure: Some(layout::figure),
    },
    Experiment {
        title: "Table 2: drives of one model differ",
        claims: &[
            Claim::new(
                "Q4a",
                "different numberings found",
                4.0,
                Unit::Count,
                Within::Exactly,
            ),
            Claim::new(
                "Q4b",
                "of them not in Table 2",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
            Claim::new(
                "Q4c",
                "boundaries missed or invented by tree",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
            Claim::new(
                "Q4d",
                "and by angle, every boundary verified",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
        ],
        measure: layout::numberings,
        figure: None,
    },
    Experiment {
        title: "Fig. 3: 64-sector reads about track boundaries",
        claims: &[
            Claim::new("Q5a", "mean within a track", 5.7, Unit::Ms, MS_0_4).if_missed(WITHIN),
            Claim::new("Q5b", "mean across a boundary", 7.3, Unit::Ms, MS_0_4).if_missed(ACROSS),
            Claim::new(
                "Q5c",
                "swing, first to last percentile",
                6.0,
                Unit::Ms,
                MS_0_4,
            ),
            Claim::new(
                "Q5d",
                "what crossing costs, less the skew",
                0.16,
                Unit::Ms,
                MS_0_4,
            )
            .reported(),
        ],
        measure: boundary_reads::measure,
        figure: Some(boundary_reads::figure),
    },
    Experiment {
        title: "Fig. 4: two sectors read in reverse order",
        claims: &[
            Claim::new(
                "Q6a",
                "Maxtor: second read served at once",
                0.5,
                Unit::Share,
                Within::Absolute(0.03),
            )
            // The profile is fitted to it.
            .reported(),
            Claim::new(
                "Q6b",
                "Maxtor: other second reads that wait 3 to 6 ms",
                1.0,
                Unit::Share,
                Within::Exactly,
            ),
            Claim::new(
                "Q6c",
                "the others: second reads that wait 3 to 6 ms",
                1.0,
                Unit::Share,
                Within::Exactly,
            ),
            Claim::new(
                "Q6d",
                "the others: shortest wait",
                3.0,
                Unit::Ms,
                Within::Relative(0.05),
            )
            .reported(),
            Claim::new(
                "Q6e",
                "the others: longest wait",
                6.0,
                Unit::Ms,
                Within::Relative(0.05),
            ),
        ],
        measure: reverse_pairs::measure,
        figure: Some(reverse_pairs::figure),
    },
];
