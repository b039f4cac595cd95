//! `cargo xtask dist`: the tarball, the Python wheel and the Debian package, and trials of them.
//!
//! The Debian package is laid out as a tree and packed by `dpkg-deb`. It is then installed in a
//! Debian root that contains only Debian's required packages, and the command is run there. Files
//! have the time of the commit, so that the same commit and compiler produce the same bytes.

mod deb;
mod documents;
mod notices;
mod root;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::tally::Tally;
use crate::{packages, python, shell};

/// The options.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Do not try the tarball and the Debian package in a Debian root
    #[arg(long)]
    no_trial: bool,
}

/// The files to ship, and their places.
struct Artifacts {
    version: String,
    /// The release binary.
    binary: PathBuf,
    /// The shared C library.
    shared: PathBuf,
    /// The static C library.
    archive: PathBuf,
    /// The directory with `man` and `completions`.
    pages: PathBuf,
    /// The modification time of packed files, as for `SOURCE_DATE_EPOCH`.
    epoch: String,
    /// The directory in which everything is made.
    folder: PathBuf,
}

/// The name of the file with the licences of the libraries that the binary is built from.
const NOTICES: &str = "LICENSES-THIRD-PARTY";
/// The header of the C library.
const HEADER_FILE: &str = "bindings/c/include/traxtent.h";
/// The C library's file for pkg-config, which names directories relative to itself.
const PKG_CONFIG_FILE: &str = "bindings/c/traxtent.pc";

/// The directories of a file in the tarball and in the package.
struct Place {
    tarball: &'static str,
    package: &'static str,
}

const BINARY: Place = Place {
    tarball: "bin",
    package: "usr/bin",
};
const INCLUDE: Place = Place {
    tarball: "include",
    package: "usr/include",
};
const LIBRARY: Place = Place {
    tarball: "lib",
    package: "usr/lib",
};
const PKG_CONFIG: Place = Place {
    tarball: "lib/pkgconfig",
    package: "usr/lib/pkgconfig",
};
const MAN: Place = Place {
    tarball: "share/man/man1",
    package: "usr/share/man/man1",
};
const DOC: Place = Place {
    tarball: "",
    package: "usr/share/doc/traxtent",
};
const BASH: Place = Place {
    tarball: "share/bash-completion/completions",
    package: "usr/share/bash-completion/completions",
};
const ZSH: Place = Place {
    tarball: "share/zsh/site-functions",
    package: "usr/share/zsh/vendor-completions",
};
const FISH: Place = Place {
    tarball: "share/fish/vendor_completions.d",
    package: "usr/share/fish/vendor_completions.d",
};

/// clap's name for the completion of a shell, the shell's own name for it, and its directory.
const COMPLETIONS: &[(&str, &str, &Place)] = &[
    ("traxtent.bash", "traxtent", &BASH),
    ("_traxtent", "_traxtent", &ZSH),
    ("traxtent.fish", "traxtent.fish", &FISH),
];

/// Builds and packs everything, and runs the trials.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    packages::install(packages::FOR_DIST);
    let artifacts = Artifacts::build()?;
    let mut tally = Tally::default();
    tally.check("libraries", deb::libraries(&artifacts.linked()).map(drop));
    let tarball = artifacts.tarball()?;
    println!("made {}", shown(&tarball));
    artifacts.link_in_c(&mut tally);
    match python::release(&artifacts.folder) {
        Ok(wheel) => {
            println!("made {}", shown(&wheel));
            tally.check("Python wheel", Ok(()));
        }
        Err(error) => tally.check("Python wheel", Err(error)),
    }
    if shell::program("dpkg-deb").is_none() {
        tally.skip("Debian package", "dpkg-deb is not installed");
        return Ok(tally.report());
    }
    let package = deb::pack(&artifacts)?;
    println!("made {}", shown(&package));
    tally.add(deb::lint(&package));
    if options.no_trial {
        tally.skip("Debian root", "not requested (--no-trial)");
    } else {
        tally.add(root::trial(&tarball, &package, &artifacts));
    }
    Ok(tally.report())
}

impl Artifacts {
    fn build() -> Result<Artifacts> {
        let target = shell::target_dir();
        let folder = target.join("package");
        let pages = folder.join("pages");
        fs::create_dir_all(&folder)?;
        clear(&pages)?;
        let mut build = shell::cargo();
        build.args([
            "build",
            "--profile",
            "dist",
            "--package",
            "traxtent",
            "--package",
            "traxtent-c",
            "--features",
            "traxtent/parquet",
            "--locked",
        ]);
        shell::run(&mut build)?;
        let mut write_pages = shell::cargo();
        write_pages.args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--features",
            "pages",
            "--",
            "pages",
        ]);
        shell::run(write_pages.arg(&pages))?;
        let built = target.join("dist");
        let binary = built.join("traxtent");
        // The version is read from the binary, so that the name of the package cannot differ from
        // its content.
        let version = shell::output(&binary.to_string_lossy(), ["--version"])?;
        let version = version
            .strip_prefix("traxtent ")
            .context("traxtent --version reports no version")?;
        Ok(Artifacts {
            version: version.to_owned(),
            epoch: epoch(),
            binary,
            shared: built.join("libtraxtent_c.so"),
            archive: built.join("libtraxtent_c.a"),
            pages,
            folder,
        })
    }

    /// Returns the files that are linked with libraries of the system.
    fn linked(&self) -> [&Path; 2] {
        [&self.binary, &self.shared]
    }

    /// Returns the name of the tarball's directory.
    fn name(&self) -> String {
        format!("traxtent-{}-{}", self.version, platform())
    }

    /// Checks that a program in C links with the library in the tarball's directory, and runs.
    fn link_in_c(&self, tally: &mut Tally) {
        let name = "C library: a program links with it";
        if shell::program("cc").is_none() || shell::program("pkg-config").is_none() {
            return tally.skip(name, "cc or pkg-config is not installed");
        }
        let script = "cc bindings/c/examples/powercut.c $(pkg-config --cflags --libs traxtent) \
                      -o ../powercut && ../powercut; rm -f ../powercut";
        let mut sh = Command::new("sh");
        sh.args(["-e", "-c", script]);
        sh.current_dir(self.folder.join(self.name()));
        let library = self.folder.join(self.name()).join(LIBRARY.tarball);
        sh.env("PKG_CONFIG_PATH", library.join("pkgconfig"));
        sh.env("LD_LIBRARY_PATH", library);
        let printed = shell::stdout_of(&mut sh).and_then(|printed| {
            ensure!(printed.starts_with("all there"), "it prints {printed:?}");
            Ok(())
        });
        tally.check(name, printed);
    }

    fn tarball(&self) -> Result<PathBuf> {
        let name = self.name();
        let tree = self.folder.join(&name);
        self.lay_out(&tree, |place| place.tarball)?;
        let archive = self.folder.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args([
            "--create",
            "--gzip",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ]);
        tar.arg("--mode=u=rwX,go=rX");
        tar.arg(format!("--mtime=@{}", self.epoch));
        tar.arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(&self.folder)
            .arg(&name);
        shell::run(&mut tar)?;
        Ok(archive)
    }

    /// Copies everything to its place below `tree`.
    fn lay_out(&self, tree: &Path, place: impl Fn(&Place) -> &'static str) -> Result<()> {
        clear(tree)?;
        put(
            &self.binary,
            &tree.join(place(&BINARY)).join("traxtent"),
            0o755,
        )?;
        for page in entries(&self.pages.join("man"))? {
            put(&page, &tree.join(place(&MAN)).join(file_name(&page)), 0o644)?;
        }
        for (made, installed, folder) in COMPLETIONS {
            let from = self.pages.join("completions").join(made);
            put(&from, &tree.join(place(folder)).join(installed), 0o644)?;
        }
        self.lay_out_library(tree, &place)?;
        documents::lay_out(&tree.join(place(&DOC)))?;
        fs::write(tree.join(place(&DOC)).join(NOTICES), notices::text()?)?;
        Ok(())
    }

    /// Copies the C library, its header and its file for pkg-config to their places.
    fn lay_out_library(&self, tree: &Path, place: impl Fn(&Place) -> &'static str) -> Result<()> {
        let libraries = tree.join(place(&LIBRARY));
        let archive = libraries.join(file_name(&self.archive));
        put(
            &self.shared,
            &libraries.join(file_name(&self.shared)),
            0o644,
        )?;
        put(&self.archive, &archive, 0o644)?;
        // Cargo does not strip archives, which contain the debug information of Rust's own library.
        shell::stdout_of(Command::new("strip").arg("--strip-debug").arg(&archive))?;
        for (file, to) in [(HEADER_FILE, &INCLUDE), (PKG_CONFIG_FILE, &PKG_CONFIG)] {
            let from = shell::root().join(file);
            put(&from, &tree.join(place(to)).join(file_name(&from)), 0o644)?;
        }
        Ok(())
    }
}

/// Copies a file, creates its directory, and sets the file's mode.
fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Copies the files of a directory and of its subdirectories.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            put(&from, &to, 0o644)?;
        }
    }
    Ok(())
}

/// Returns the files of a directory, sorted; fails if there are none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.sort();
    ensure!(!paths.is_empty(), "{} is empty", folder.display());
    Ok(paths)
}

fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    Ok(())
}

fn file_name(path: &Path) -> &std::ffi::OsStr {
    path.file_name().unwrap_or_default()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(shell::root())
        .unwrap_or(path)
        .display()
        .to_string()
}

fn platform() -> String {
    format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

fn epoch() -> String {
    std::env::var("SOURCE_DATE_EPOCH")
        .or_else(|_| shell::output("git", ["log", "-1", "--format=%ct"]))
        .unwrap_or_else(|_| "0".to_owned())
}
