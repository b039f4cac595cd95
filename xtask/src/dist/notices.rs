//! The licences of the libraries that the binary is built from, which must be shipped with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// Returns a list of the libraries with name, version and licence, followed by the licence texts. A
/// text that several libraries share appears once.
pub(super) fn text() -> Result<String> {
    let built_in = built_in()?;
    let mut list = String::from("traxtent is built from these libraries:\n\n");
    let mut users_of_text = BTreeMap::<String, Vec<String>>::new();
    for library in libraries()?
        .iter()
        .filter(|library| built_in.contains(&library.name))
    {
        writeln!(list, "{}: {}", library.name, library.license)?;
        for text in library.texts()? {
            users_of_text
                .entry(text)
                .or_default()
                .push(library.name.clone());
        }
    }
    let line = "-".repeat(72);
    for (text, users) in users_of_text {
        writeln!(
            list,
            "\n{line}\n{}:\n\n{}",
            users.join(", "),
            text.trim_end()
        )?;
    }
    Ok(list)
}

struct Library {
    /// The name and the version, as in `clap v4.5.0`.
    name: String,
    license: String,
    folder: PathBuf,
}

impl Library {
    /// Returns the texts of the files whose names begin like those of licences or notices.
    fn texts(&self) -> Result<BTreeSet<String>> {
        let mut texts = BTreeSet::new();
        for entry in
            fs::read_dir(&self.folder).with_context(|| self.folder.display().to_string())?
        {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_uppercase();
            let is_text = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
                .iter()
                .any(|kind| name.starts_with(kind));
            if is_text && entry.file_type()?.is_file() {
                texts.insert(
                    String::from_utf8_lossy(&fs::read(entry.path())?).replace("\r\n", "\n"),
                );
            }
        }
        Ok(texts)
    }
}

/// Returns the name and version of each crate in the binary. Crates that are used only to build it
/// are left out.
fn built_in() -> Result<BTreeSet<String>> {
    let mut cargo = shell::cargo();
    cargo.args([
        "tree",
        "--package",
        "traxtent",
        "--features",
        "parquet",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
    ]);
    let tree = shell::stdout_of(cargo.args(["--format", "{p}", "--locked"]))?;
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(tree
        .lines()
        .map(name_and_version)
        .filter(|name| !name.is_empty())
        .collect())
}

/// Returns the libraries that the workspace uses, sorted by name, without its own crates.
fn libraries() -> Result<Vec<Library>> {
    let mut cargo = shell::cargo();
    let metadata = shell::stdout_of(cargo.args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    let foreign = packages
        .iter()
        .filter(|package| !package["source"].is_null());
    let mut libraries = foreign.map(library).collect::<Result<Vec<_>>>()?;
    libraries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(libraries)
}

fn library(package: &Value) -> Result<Library> {
    let field = |key: &str| {
        package[key]
            .as_str()
            .with_context(|| format!("package {} has no {key}", package["name"]))
    };
    let manifest = Path::new(field("manifest_path")?);
    Ok(Library {
        name: format!("{} v{}", field("name")?, field("version")?),
        license: field("license").unwrap_or("see its text").to_owned(),
        folder: manifest
            .parent()
            .context("the path of a manifest has no parent folder")?
            .to_owned(),
    })
}
