//! The programs that recipes call: the first version that supports the commands, and the package of
//! each.

/// A program that recipes call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name of the program in a recipe's steps.
    pub program: &'static str,
    /// The arguments that make it print its version.
    pub version_args: &'static [&'static str],
    /// The first version that is sufficient.
    pub min_version: Version,
    /// The feature for which a recipe needs this version.
    pub needed_feature: &'static str,
    /// The Debian package.
    pub package: &'static str,
}

/// The first two numbers of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

const fn tool(
    program: &'static str,
    version_args: &'static [&'static str],
    min_version: Version,
    needed_feature: &'static str,
    package: &'static str,
) -> Tool {
    Tool {
        program,
        version_args,
        min_version,
        needed_feature,
        package,
    }
}

/// The programs that recipes call and that may have to be installed.
pub const TOOLS: &[Tool] = &[
    tool(
        "sfdisk",
        &["--version"],
        Version(2, 26),
        "scripts for GPT",
        "fdisk",
    ),
    tool(
        "parted",
        &["--version"],
        Version(3, 1),
        "--align none",
        "parted",
    ),
    tool(
        "sgdisk",
        &["--version"],
        Version(1, 0),
        "--set-alignment",
        "gdisk",
    ),
    tool(
        "mdadm",
        &["--version"],
        Version(3, 3),
        "--data-offset",
        "mdadm",
    ),
    tool(
        "lvm",
        &["version"],
        Version(2, 2),
        "--dataalignment",
        "lvm2",
    ),
    tool(
        "cryptsetup",
        &["--version"],
        Version(2, 0),
        "LUKS2 and --sector-size",
        "cryptsetup-bin",
    ),
    tool(
        "mke2fs",
        &["-V"],
        Version(1, 43),
        "ext4 with metadata checksums",
        "e2fsprogs",
    ),
    tool(
        "e2fsck",
        &["-V"],
        Version(1, 43),
        "ext4 with metadata checksums",
        "e2fsprogs",
    ),
    tool("mkfs.xfs", &["-V"], Version(4, 0), "-s size=", "xfsprogs"),
    tool(
        "mkfs.btrfs",
        &["--version"],
        Version(3, 12),
        "--sectorsize",
        "btrfs-progs",
    ),
    tool(
        "mkswap",
        &["--version"],
        Version(2, 20),
        "swap space",
        "util-linux",
    ),
    tool(
        "blockdev",
        &["--version"],
        Version(2, 20),
        "--setra",
        "util-linux",
    ),
];

/// Returns the tool with a given name.
pub fn tool_named(program: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.program == program)
}

/// Returns the version in a program's output, parsed and as written: the first number followed by a
/// point and another number.
pub fn version_in(text: &str) -> Option<(Version, &str)> {
    text.split_whitespace().find_map(|word| {
        let word = word.trim_start_matches(|c: char| !c.is_ascii_digit());
        let (major, rest) = word.split_once('.')?;
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let version = Version(major.parse().ok()?, rest[..digits].parse().ok()?);
        Some((version, &word[..major.len() + 1 + digits]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the version found in the outputs of programs, and none in another text?
    #[test]
    fn versions() {
        for (says, version) in [
            ("sfdisk from util-linux 2.38.1", Some(Version(2, 38))),
            ("parted (GNU parted) 3.5\nCopyright", Some(Version(3, 5))),
            (
                "mdadm - v4.2 - 2021-12-30 - Debian 4.2-5",
                Some(Version(4, 2)),
            ),
            (
                "  LVM version:     2.03.16(2) (2022-05-18)",
                Some(Version(2, 3)),
            ),
            ("mkfs.btrfs, part of btrfs-progs v6.2", Some(Version(6, 2))),
            ("mke2fs 1.47.0 (5-Feb-2023)", Some(Version(1, 47))),
            ("no such thing", None),
        ] {
            assert_eq!(version_in(says).map(|found| found.0), version, "{says}");
        }
    }
}
