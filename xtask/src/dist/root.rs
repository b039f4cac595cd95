//! The trial of the tarball and the package in a minimal Debian root without Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Artifacts, BASH, COMPLETIONS, MAN, clear, entries, file_name};
use crate::shell;
use crate::tally::Tally;

/// Unpacks the tarball in a new root and runs its program; then installs, inspects, runs and
/// removes the package there.
pub(super) fn trial(tarball: &Path, package: &Path, artifacts: &Artifacts) -> Tally {
    let mut tally = Tally::default();
    if let Some(reason) = obstacle() {
        tally.skip("Debian root", reason);
        return tally;
    }
    let root = match Root::make(&artifacts.folder) {
        Ok(root) => root,
        Err(error) => {
            // The package is not at fault if the root cannot be made.
            tally.skip("Debian root", format!("{error:#}"));
            return tally;
        }
    };
    tally.check("Debian root: has no compiler", root.has_no_compiler());
    tally.check(
        "Debian root: tarball runs",
        root.runs_tarball(tarball, &artifacts.version),
    );
    let installed = root.install(package);
    let works = installed.is_ok();
    tally.check("Debian root: package installs", installed);
    if works {
        tally.check(
            "Debian root: --version",
            root.prints_version("traxtent", &artifacts.version),
        );
        tally.check("Debian root: man pages", root.man_pages(&artifacts.pages));
        tally.check("Debian root: completions", root.completions());
        tally.check("Debian root: a served drive", root.serves());
        match root.run("traxtent --help") {
            Ok(help) if help.contains("  demo") => {
                tally.check(
                    "Debian root: demo",
                    root.run("cd /tmp && traxtent demo").map(drop),
                );
            }
            Ok(_) => tally.skip("Debian root: demo", "traxtent has no demo command"),
            Err(error) => tally.check("Debian root: --help", Err(error)),
        }
        tally.check("Debian root: package is removed completely", root.remove());
    }
    tally
}

/// Returns the reason why this machine cannot make a root, if there is one.
fn obstacle() -> Option<&'static str> {
    if shell::program("debootstrap").is_none() {
        Some("debootstrap is not installed")
    } else if !shell::is_root() {
        Some("only root can make a Debian root")
    } else {
        None
    }
}

/// A root that is deleted when it goes out of scope.
struct Root {
    path: PathBuf,
}

impl Root {
    /// Makes a new root by copying the original, which is kept because it takes half a minute to
    /// make.
    fn make(folder: &Path) -> Result<Root> {
        let release = Release::of_this_machine()?;
        let original = folder.join(format!("debian-{}", release.codename));
        if !original.exists() {
            release.bootstrap(&original)?;
        }
        let root = Root {
            path: folder.join("root"),
        };
        clear(&root.path)?;
        shell::stdout_of(
            Command::new("cp")
                .args(["--archive", "--reflink=auto"])
                .arg(&original)
                .arg(&root.path),
        )?;
        Ok(root)
    }

    /// Runs a shell command inside the root, with a clean environment, and returns its output.
    fn run(&self, line: &str) -> Result<String> {
        let program = shell::program("chroot").context("chroot is not installed")?;
        let mut chroot = Command::new(program);
        chroot.arg(&self.path).args(["/bin/sh", "-c", line]);
        chroot.env_clear().envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
        ]);
        shell::stdout_of(&mut chroot)
    }

    fn has_no_compiler(&self) -> Result<()> {
        let found = self.run("for tool in cargo rustc cc; do command -v $tool; done; true")?;
        ensure!(found.is_empty(), "found {found}");
        Ok(())
    }

    fn install(&self, package: &Path) -> Result<()> {
        fs::copy(package, self.path.join("tmp/traxtent.deb"))?;
        self.run("dpkg --install /tmp/traxtent.deb && rm /tmp/traxtent.deb")
            .map(drop)
    }

    /// Unpacks the tarball, and checks that its program runs.
    fn runs_tarball(&self, tarball: &Path, version: &str) -> Result<()> {
        fs::copy(tarball, self.path.join("tmp/traxtent.tar.gz"))?;
        self.run("cd /tmp && tar --extract --gzip --file traxtent.tar.gz")?;
        self.prints_version("/tmp/traxtent-*/bin/traxtent", version)
    }

    fn prints_version(&self, command: &str, version: &str) -> Result<()> {
        let printed = self.run(&format!("{command} --version"))?;
        ensure!(
            printed == format!("traxtent {version}"),
            "{command} --version prints {printed:?}, not \"traxtent {version}\""
        );
        Ok(())
    }

    /// Checks that each page exists, can be decompressed, and is a man page.
    fn man_pages(&self, pages: &Path) -> Result<()> {
        for page in entries(&pages.join("man"))? {
            let name = file_name(&page).to_string_lossy();
            let text = self.run(&format!("gunzip --stdout /{}/{name}.gz", MAN.package))?;
            ensure!(text.contains(".TH "), "{name} has no title");
        }
        Ok(())
    }

    /// Checks that no completion is missing or empty, and that bash can load its own.
    fn completions(&self) -> Result<()> {
        for (_, name, place) in COMPLETIONS {
            self.run(&format!("test -s /{}/{name}", place.package))
                .with_context(|| (*name).to_owned())?;
        }
        let registered = format!(
            "bash -c '. /{}/traxtent && complete -p traxtent'",
            BASH.package
        );
        self.run(&registered).map(drop)
    }

    /// Checks that a drive is served without further packages. The client is bash.
    fn serves(&self) -> Result<()> {
        let client = "exec 3<>/dev/tcp/127.0.0.1/$port; head --bytes=8 <&3";
        let greeting = self.run(&format!(
            "traxtent serve instant --port 0 -- bash -c '{client}'"
        ))?;
        ensure!(
            greeting == "NBDMAGIC",
            "the server greets the client with {greeting:?}"
        );
        Ok(())
    }

    /// Removes the package, and checks that none of its files is left.
    fn remove(&self) -> Result<()> {
        self.run("dpkg --purge traxtent")?;
        let left = self.run("find / -xdev -path /tmp -prune -o -name '*traxtent*' -print")?;
        ensure!(left.is_empty(), "left behind: {left}");
        Ok(())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Err(error) = clear(&self.path) {
            eprintln!("{error:#}");
        }
    }
}

/// A release of Debian (or a derivative), and the mirror from which this machine gets its packages.
struct Release {
    codename: String,
    mirror: String,
}

impl Release {
    /// Returns the machine's own release, with the mirror that apt is configured to use.
    fn of_this_machine() -> Result<Release> {
        let system = fs::read_to_string("/etc/os-release")?;
        let codename = system
            .lines()
            .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let codename = codename
            .context("/etc/os-release names no release")?
            .trim_matches('"')
            .to_owned();
        let format = "$(REPO_URI) $(CODENAME) $(COMPONENT)";
        let sources = shell::output(
            "apt-get",
            ["indextargets", "--format", format, "Created-By: Packages"],
        )?;
        let mirror =
            sources
                .lines()
                .find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
                    [mirror, release, "main"] if release == codename => Some(mirror.to_owned()),
                    _ => None,
                });
        Ok(Release {
            mirror: mirror.with_context(|| format!("apt has no source for {codename}"))?,
            codename,
        })
    }

    /// Creates a root in `folder`, which exists only once it is complete.
    fn bootstrap(&self, folder: &Path) -> Result<()> {
        let partial = folder.with_extension("partial");
        clear(&partial)?;
        let log = folder.with_extension("log");
        eprintln!(
            "making a Debian root of {} in {}",
            self.codename,
            super::shown(folder)
        );
        let program = shell::program("debootstrap").context("debootstrap is not installed")?;
        let output = fs::File::create(&log)?;
        let mut debootstrap = Command::new(program);
        debootstrap
            .args(["--variant=minbase", &self.codename])
            .arg(&partial)
            .arg(&self.mirror);
        debootstrap.stdout(output.try_clone()?).stderr(output);
        shell::run(&mut debootstrap).with_context(|| format!("see {}", super::shown(&log)))?;
        fs::rename(&partial, folder)?;
        Ok(())
    }
}
