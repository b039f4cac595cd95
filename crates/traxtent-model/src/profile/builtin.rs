//! The built-in drives, as text and by name.

use super::Profile;

macro_rules! drives {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../drives/", $name, ".toml")))),+]
    };
}

/// All built-in drives with the text of their profiles, in the order of listings: grouped by the
/// source that describes them.
const DRIVES: &[(&str, &str)] = &drives![
    // Schindler et al., Track-Aligned Extents, Table 1
    "hp-c2247",
    "quantum-viking",
    "ibm18es",
    "ibm18lzx",
    "atlas10k",
    "cheetahx15",
    "atlas10k2",
    // Qian et al., the Linux validation
    "maxtor10k5",
    "maxtor10k5-b",
    "maxtor10k5-c",
    "maxtor10k5-d",
    "cheetah15k4",
    "map3367nc",
    // Li and Tan, TPL, Table 1
    "atlas10k-disksim",
    "ibm18es-disksim",
    "hp-c3323a",
    "cheetah10k7",
    // R. W. Smith, Linux on 4 KB sector disks
    "wd10ears",
    "wd10ears-jumper",
    "st2000l003",
    "dt01aca300",
    // H. Wong's measurements
    "hd103sj",
    "hitachi-7k1000c",
    "toshiba-p300",
    "toshiba-x300",
    "cheetah15k7",
    // drives made after 2010, from a user's measurements or from published rates
    "st2000dm006",
    "toshiba-mg06",
    "exos-x18",
    "exos-x20",
    "toshiba-mg09",
    // not a particular drive
    "generic-20tb",
    "instant",
];

/// The names of the built-in drives, in the order of listings.
pub fn names() -> impl Iterator<Item = &'static str> {
    DRIVES.iter().map(|&(name, _)| name)
}

/// Returns the text of a built-in drive's profile.
pub fn text(name: &str) -> Option<&'static str> {
    DRIVES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, text)| text)
}

/// Returns a built-in drive by name.
///
/// # Panics
/// Panics if the built-in profile is invalid, which the tests rule out.
pub fn builtin(name: &str) -> Option<Profile> {
    text(name).map(|text| match Profile::from_toml(text) {
        Ok(profile) => profile,
        Err(error) => panic!("the built-in drive {name}: {error}"),
    })
}
