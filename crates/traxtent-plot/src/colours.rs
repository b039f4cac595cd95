//! The colours of all pictures and pages. One meaning has one colour:
//!
//! - aligned data is blue
//! - conventional (unaligned) data is orange
//! - a reference such as sequential access is grey
//! - any other name takes the next of the three remaining colours, then one of the above that is
//!   still free; after six names, all colours are free again
//!
//! Measured values are lines, dots or bars. Published values are diamonds. The colours differ for
//! readers with any of the three colour vision deficiencies (a test computes this), on light and on
//! dark paper. SVG files and pages carry the style sheet of [`dark_style`], which exchanges every
//! colour for its dark counterpart if the reader prefers dark pages.

use std::fmt::Write as _;

/// A colour on light paper, and its counterpart on dark paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// Red, green and blue on light paper.
    pub light: [u8; 3],
    /// The same on dark paper.
    pub dark: [u8; 3],
}

const fn colour(light: [u8; 3], dark: [u8; 3]) -> Colour {
    Colour { light, dark }
}

/// The colours of data. The first three have a meaning.
pub const DATA: [Colour; 6] = [
    colour([0, 114, 178], [74, 168, 232]),
    colour([213, 94, 0], [255, 138, 61]),
    colour([106, 106, 106], [156, 156, 156]),
    colour([0, 168, 120], [59, 214, 160]),
    colour([122, 31, 92], [192, 95, 160]),
    colour([42, 42, 42], [242, 232, 160]),
];

/// The index of the colour of aligned data.
pub const ALIGNED: usize = 0;

/// The index of the colour of conventional data.
pub const CONVENTIONAL: usize = 1;

/// The index of the colour of a reference.
const REFERENCE: usize = 2;

/// The index of the first colour without a meaning.
pub const OTHER: usize = 3;

/// The paper.
pub const PAPER: Colour = colour([255, 255, 255], [22, 24, 27]);

/// Text.
pub const INK: Colour = colour([34, 34, 34], [230, 230, 230]);

/// Grids.
pub const GRID: Colour = colour([225, 225, 225], [52, 55, 60]);

/// Axes.
pub const AXIS: Colour = colour([120, 120, 120], [154, 154, 154]);

/// Returns the index of a colour without a meaning.
pub const fn other(index: usize) -> usize {
    OTHER + index % (DATA.len() - OTHER)
}

/// Returns the index of the colour for a name's meaning, if it has one.
fn of_meaning(name: &str) -> Option<usize> {
    let has = |word| name.contains(word);
    if has("unaligned") || has("conventional") || has("unmodified") {
        Some(CONVENTIONAL)
    } else if has("aligned") || has("traxtents") {
        Some(ALIGNED)
    } else if has("sequential") {
        Some(REFERENCE)
    } else {
        None
    }
}

/// Returns the index of a colour for each name. Names that share a meaning take further colours.
/// Once every colour is taken, all colours are free again for the names that follow.
pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    // Many names need the colours with a meaning as well.
    const NEUTRAL: [usize; DATA.len()] = [
        OTHER,
        OTHER + 1,
        OTHER + 2,
        REFERENCE,
        CONVENTIONAL,
        ALIGNED,
    ];
    let mut colours = Vec::new();
    for name in names {
        let taken = &colours[colours.len() / DATA.len() * DATA.len()..];
        let free = |colour: &usize| !taken.contains(colour);
        let neutral = NEUTRAL.into_iter().find(free);
        let colour = of_meaning(name).filter(free).or(neutral);
        colours.push(colour.expect("fewer names than colours have taken one"));
    }
    colours
}

/// Returns the colour in the notation of style sheets and SVG.
pub fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Returns the style sheet for pictures on dark paper.
pub fn dark_style() -> String {
    let mut rules = String::from("@media (prefers-color-scheme: dark) {\n");
    for Colour { light, dark } in DATA.into_iter().chain([PAPER, INK, GRID, AXIS]) {
        let (light, dark) = (hex(light), hex(dark));
        let _ = writeln!(
            rules,
            "svg [fill=\"{light}\"] {{ fill: {dark}; }} svg [stroke=\"{light}\"] {{ stroke: {dark}; }}"
        );
    }
    rules + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Normal vision, and the simulation of vision without each kind of cones (Machado, Oliveira
    /// and Fernandes, 2009, severity 1).
    const VISION: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    /// The smallest distance in CIELAB at which two colours are told apart at a glance.
    const DISTANCE: f64 = 15.0;

    /// The minimum contrast of a line against the paper (WCAG 2.1, 1.4.11).
    const CONTRAST: f64 = 3.0;

    fn linear(colour: [u8; 3]) -> [f64; 3] {
        colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    fn times(matrix: &[[f64; 3]; 3], colour: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(colour).map(|(a, b)| a * b).sum())
    }

    fn cielab(linear: [f64; 3]) -> [f64; 3] {
        let to_xyz = [
            [0.4124, 0.3576, 0.1805],
            [0.2126, 0.7152, 0.0722],
            [0.0193, 0.1192, 0.9505],
        ];
        let [x, y, z] = times(&to_xyz, linear.map(|part| part.clamp(0.0, 1.0)));
        let [x, y, z] = [x / 0.9505, y, z / 1.089].map(|part| {
            if part > 0.008_856 {
                part.cbrt()
            } else {
                7.787 * part + 16.0 / 116.0
            }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn luminance(colour: [u8; 3]) -> f64 {
        let weights = [0.2126, 0.7152, 0.0722];
        linear(colour).iter().zip(weights).map(|(a, b)| a * b).sum()
    }

    /// Do any two colours of data differ for every reader, on light and on dark paper, and does
    /// each stand out from the paper?
    #[test]
    fn colours_differ_for_every_reader() {
        for (kind, of) in [
            ("light", (|c| c.light) as fn(Colour) -> [u8; 3]),
            ("dark", |c| c.dark),
        ] {
            for (k, one) in DATA.into_iter().enumerate() {
                let (a, b) = (luminance(of(one)), luminance(of(PAPER)));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= CONTRAST, "{kind} {k}: {contrast}");
                for other in &DATA[..k] {
                    for (vision, matrix) in VISION.iter().enumerate() {
                        let [p, q] = [one, *other].map(|c| cielab(times(matrix, linear(of(c)))));
                        let squares = p.iter().zip(q).map(|(p, q)| (p - q).powi(2));
                        let distance = squares.sum::<f64>().sqrt();
                        assert!(
                            distance >= DISTANCE,
                            "{kind} {k}, vision {vision}: {distance} from {other:?}"
                        );
                    }
                }
            }
        }
    }

    /// Does a name's meaning decide its colour unless that is taken, and are all colours free again
    /// after six names?
    #[test]
    fn a_meaning_decides_the_colour_unless_it_is_taken() {
        let colours = of_names(["sequential", "unaligned", "aligned to tracks"]);
        assert_eq!(colours, [REFERENCE, CONVENTIONAL, ALIGNED]);
        assert_eq!(
            of_names(["onereq aligned", "tworeq aligned"]),
            [ALIGNED, OTHER]
        );
        assert_eq!(of_names(["seek", "rotation"]), [OTHER, OTHER + 1]);
        let late = ["a", "b", "c", "d", "e", "f", "g", "aligned"];
        assert_eq!(of_names(late)[6..], [OTHER, ALIGNED]);
    }
}
