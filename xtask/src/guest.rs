//! The kernels of the machines that tests emulate: unpacked below the target directory, not
//! installed.
//!
//! There are two: the distribution's own, and the newer one of its backports, which has the ublk
//! driver. The source of the backports is derived from the machine's own sources. apt uses it
//! with separate lists, so that the machine's configuration does not change.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// The package that always depends on Debian's newest kernel for virtual machines.
const NEWEST: &str = "linux-image-cloud-amd64";

/// The file with the keys of Debian's archive, if they are installed.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Unpacks the kernels where the tests look for them, unless that is already done. If one is not
/// available, prints which tests are skipped.
pub(crate) fn prepare_kernels() {
    let target = shell::target_dir();
    if let Err(error) = unpack(&target.join("guest"), |_| Ok(Apt::default())) {
        eprintln!("{error:#}: tests of drives in an emulated machine will be skipped");
    }
    if let Err(error) = unpack(&target.join("guest-backports"), Apt::of_backports) {
        eprintln!("{error:#}: tests of drives over ublk will be skipped");
    }
}

/// Unpacks the newest kernel that `apt`'s sources have into `root`, unless `root` has one. `apt`
/// gets the path of a directory that it may create; this is removed once the kernel is unpacked.
fn unpack(root: &Path, apt: impl FnOnce(PathBuf) -> Result<Apt>) -> Result<()> {
    if root.join("lib/modules").is_dir() {
        return Ok(());
    }
    for program in ["apt-get", "apt-cache", "dpkg-deb"] {
        shell::program(program).with_context(|| format!("{program} is not installed"))?;
    }
    let download = root.join("download");
    fs::create_dir_all(&download)?;
    let apt = apt(root.join("apt"))?;
    let package = apt.newest().or_else(|_| {
        shell::run(apt.command("apt-get").args(["update", "--quiet=2"]))?;
        apt.newest()
    })?;
    let mut get = apt.command("apt-get");
    get.args(["download", "--quiet=2", &package]);
    shell::run(get.current_dir(&download))?;
    for file in fs::read_dir(&download)? {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("--extract").arg(file?.path()).arg(root);
        shell::run(&mut unpack)?;
    }
    fs::remove_dir_all(&download)?;
    apt.remove()
}

/// The package manager with the machine's sources, or with others and a directory for their lists.
#[derive(Default)]
struct Apt {
    options: Vec<OsString>,
    folder: Option<PathBuf>,
}

impl Apt {
    /// Uses the backports of the machine's release, and nothing else.
    fn of_backports(folder: PathBuf) -> Result<Apt> {
        let format = "$(CODENAME) $(COMPONENT) $(REPO_URI)";
        let targets = shell::output(
            "apt-get",
            ["indextargets", "--format", format, "Created-By: Packages"],
        )?;
        let line = backports_line(&targets, Path::new(KEYS).exists())
            .context("apt's sources have no Debian release with backports")?;
        fs::create_dir_all(folder.join("lists/partial"))?;
        fs::create_dir_all(folder.join("cache/archives/partial"))?;
        let sources = folder.join("sources.list");
        fs::write(&sources, line)?;
        let mut options = Vec::new();
        for (key, value) in [
            ("Dir::Etc::sourcelist", sources),
            ("Dir::Etc::sourceparts", "/dev/null".into()),
            ("Dir::State::lists", folder.join("lists")),
            ("Dir::Cache", folder.join("cache")),
        ] {
            let mut option = OsString::from(format!("--option={key}="));
            option.push(value);
            options.push(option);
        }
        Ok(Apt {
            options,
            folder: Some(folder),
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options);
        command
    }

    /// Returns the name of the package with the newest kernel.
    fn newest(&self) -> Result<String> {
        let mut cache = self.command("apt-cache");
        cache.args(["depends", "--important", NEWEST]);
        let depends = shell::stdout_of(&mut cache)?;
        let package = depends.lines().find_map(|line| {
            let name = line.trim().strip_prefix("Depends: ")?;
            name.starts_with("linux-image-").then(|| name.to_owned())
        });
        package.with_context(|| format!("apt-cache lists no kernel for {NEWEST}"))
    }

    fn remove(self) -> Result<()> {
        if let Some(folder) = self.folder {
            fs::remove_dir_all(folder)?;
        }
        Ok(())
    }
}

/// Returns the line of `sources.list` for the backports of the machine's release. `targets` has a
/// line of release, component and location for each source. The release's own line has the
/// component `main`, and a name without a suffix such as `-updates`. The backports are at the same
/// location.
fn backports_line(targets: &str, has_keys: bool) -> Option<String> {
    let signed_by = match has_keys {
        true => format!("[signed-by={KEYS}] "),
        false => String::new(),
    };
    targets.lines().find_map(|line| {
        let (release, rest) = line.split_once(' ')?;
        let location = rest.strip_prefix("main ")?;
        let is_release = release.chars().all(|c| c.is_ascii_lowercase());
        is_release.then(|| format!("deb {signed_by}{location} {release}-backports main\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are the backports expected at the location of the release itself, whatever lines come before
    /// it? Does the line name the keys if they are installed?
    #[test]
    fn backports_share_the_location_of_the_release() {
        let targets = "bookworm-security main http://one/debian-security/\n\
                       bookworm contrib http://two/debian/\n\
                       bookworm main http://two/debian/\n";
        let line = "deb http://two/debian/ bookworm-backports main\n";
        assert_eq!(backports_line(targets, false).as_deref(), Some(line));
        let signed = backports_line(targets, true).unwrap();
        assert!(signed.starts_with(&format!("deb [signed-by={KEYS}] http://two/")));
        assert_eq!(backports_line("", false), None);
    }
}
