//! The Debian package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Artifacts, DOC, MAN, clear, entries};
use crate::shell;
use crate::tally::Tally;

/// The libraries that the shipped files may need, and the packages that contain them. Users of the
/// tarball would have to install any others.
const LIBRARIES: &[(&str, &str)] = &[
    ("libc.so.6", "libc6"),
    ("libm.so.6", "libc6"),
    ("ld-linux-x86-64.so.2", "libc6"),
    ("ld-linux-aarch64.so.1", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
];

/// Tags of lintian that do not apply to a package made outside Debian's archive.
const LINT_SUPPRESSED: &[&str] = &[
    // The package is never uploaded.
    "initial-upload-closes-no-bugs",
    // The package contains the same documents as the tarball.
    "extra-license-file",
    // The C library comes with the command. Its interface can still change, so its name has no
    // version. It is for native programs only.
    "package-name-doesnt-match-sonames",
    "pkg-config-unavailable-for-cross-compilation",
    "shared-library-lacks-version",
];

const MAINTAINER: &str = "The traxtent developers <traxtent@users.noreply.invalid>";

/// Returns the packages that the files depend on. Fails if they need a library that is not in
/// [`LIBRARIES`].
pub(super) fn libraries(files: &[&Path]) -> Result<String> {
    let (mut packages, mut glibc) = (Vec::new(), None);
    for file in files {
        let name = file.to_string_lossy();
        let dynamic = shell::output("readelf", ["--dynamic", "--wide", &*name])?;
        let needed = dynamic
            .lines()
            .filter(|line| line.contains("(NEEDED)"))
            .filter_map(in_brackets);
        for library in needed {
            let known = LIBRARIES.iter().find(|(name, _)| *name == library);
            let (_, package) = known.with_context(|| {
                format!("{name} needs {library}, which is not in the list of allowed libraries")
            })?;
            packages.push(*package);
        }
        let versions = shell::output("readelf", ["--version-info", "--wide", &*name])?;
        glibc = glibc.max(newest_glibc(&versions));
    }
    packages.sort_unstable();
    packages.dedup();
    let with_version = |package: &str| match glibc {
        Some((major, minor)) if package == "libc6" => format!("libc6 (>= {major}.{minor})"),
        _ => package.to_owned(),
    };
    Ok(packages
        .into_iter()
        .map(with_version)
        .collect::<Vec<_>>()
        .join(", "))
}

/// Lays out the tree and packs it.
pub(super) fn pack(artifacts: &Artifacts) -> Result<PathBuf> {
    let tree = artifacts.folder.join("deb");
    artifacts.lay_out(&tree, |place| place.package)?;
    let documents = tree.join(DOC.package);
    fs::write(documents.join("changelog"), changelog(artifacts)?)?;
    fs::write(documents.join("copyright"), copyright()?)?;
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name"])
        .args(entries(&tree.join(MAN.package))?);
    shell::stdout_of(gzip.arg(documents.join("changelog")))?;
    let architecture = shell::output("dpkg", ["--print-architecture"])?;
    fs::create_dir_all(tree.join("DEBIAN"))?;
    let depends = libraries(&artifacts.linked())?;
    fs::write(
        tree.join("DEBIAN/control"),
        control(artifacts, &architecture, &depends, &tree)?,
    )?;
    fs::write(tree.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
    fs::write(tree.join("DEBIAN/md5sums"), checksums(&tree)?)?;
    shell::stdout_of(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&tree))?;
    let package = artifacts
        .folder
        .join(format!("traxtent_{}_{architecture}.deb", artifacts.version));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&tree)
        .arg(&package);
    shell::run(build.env("SOURCE_DATE_EPOCH", &artifacts.epoch))?;
    clear(&tree)?;
    Ok(package)
}

/// Runs Debian's own check.
pub(super) fn lint(package: &Path) -> Tally {
    let mut tally = Tally::default();
    if shell::program("lintian").is_none() {
        tally.skip("lintian", "lintian is not installed");
        return tally;
    }
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    lintian.args(["--suppress-tags", &LINT_SUPPRESSED.join(",")]);
    tally.check("lintian", shell::run(lintian.arg(package)));
    tally
}

fn control(
    artifacts: &Artifacts,
    architecture: &str,
    depends: &str,
    tree: &Path,
) -> Result<String> {
    let size = shell::output(
        "du",
        [
            "--summarize",
            "--apparent-size",
            "--block-size=1024",
            &tree.to_string_lossy(),
        ],
    )?;
    let kilobytes = size.split_whitespace().next().unwrap_or("0");
    Ok(format!(
        "Package: traxtent\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Section: utils\n\
         Priority: optional\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {kilobytes}\n\
         Depends: {depends}\n\
         Suggests: fuse3, nbd-client\n\
         Description: physical structure of disks: find it, model it, use it\n \
         traxtent finds where the tracks of a disk are, models the disk exactly, and\n \
         lays data out along the tracks. It runs on disks that you have and on models\n \
         of disks that you do not, and shows what alignment is worth. A C library\n \
         provides the modelled disk to other programs.\n",
        version = artifacts.version,
    ))
}

/// Returns the changelog in Debian's format, which only refers to the project's own.
fn changelog(artifacts: &Artifacts) -> Result<String> {
    let date = shell::output(
        "date",
        [
            "--utc",
            "--rfc-email",
            &format!("--date=@{}", artifacts.epoch),
        ],
    )?;
    Ok(format!(
        "traxtent ({}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {date}\n",
        artifacts.version,
    ))
}

/// Returns the copyright file in Debian's machine-readable format.
fn copyright() -> Result<String> {
    let mit = fs::read_to_string(shell::root().join("LICENSE-MIT"))?;
    let holder = mit
        .lines()
        .find_map(|line| line.strip_prefix("Copyright (c) "))
        .unwrap_or("the traxtent developers");
    let text = mit
        .lines()
        .skip_while(|line| !line.starts_with("Permission is"))
        .map(|line| match line {
            "" => " .\n".to_owned(),
            line => format!(" {line}\n"),
        });
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: traxtent\n\
         \n\
         Files: *\n\
         Copyright: {holder}\n\
         License: Expat or Apache-2.0\n\
         \n\
         License: Expat\n{}\n\
         License: Apache-2.0\n \
         The full text is in /usr/share/common-licenses/Apache-2.0.\n",
        text.collect::<String>(),
    ))
}

fn checksums(tree: &Path) -> Result<String> {
    let list = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
    Ok(shell::stdout_of(Command::new("sh").args(["-c", list]).current_dir(tree))? + "\n")
}

/// Returns the newest version of glibc that symbols require, as in `GLIBC_2.34`.
fn newest_glibc(versions: &str) -> Option<(u32, u32)> {
    let version = |word: &str| {
        let (major, minor) = word.strip_prefix("GLIBC_")?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    versions.split_whitespace().filter_map(version).max()
}

fn in_brackets(line: &str) -> Option<&str> {
    Some(line.split_once('[')?.1.split_once(']')?.0)
}
