//! `cargo xtask book`: builds the book, and reads every page of it in a browser.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::tally::Tally;
use crate::{packages, shell};

/// The version that is installed if mdBook is missing.
const MDBOOK: &str = "0.5.4";

/// Cargo's options for the features of mdBook that the book uses.
const MDBOOK_FEATURES: [&str; 3] = ["--no-default-features", "--features", "search"];

/// The script that opens each page and reports what it finds.
const READER: &str = include_str!("book/reader.js");

/// Builds the book into `target/book`, and reads it.
pub(crate) fn run() -> Result<ExitCode> {
    packages::install(packages::FOR_BOOK);
    let mut tally = Tally::default();
    tally.add(check()?);
    println!("made {}", folder().join("index.html").display());
    Ok(tally.report())
}

/// Builds the book, and checks each page at the widths of a phone and of a desktop screen.
pub(crate) fn check() -> Result<Tally> {
    let mut tally = Tally::default();
    build()?;
    match shell::program("chromium") {
        Some(chromium) => read(&chromium, &mut tally)?,
        None => tally.skip("the book in a browser", "chromium is not installed"),
    }
    Ok(tally)
}

/// Returns the folder of the finished book.
pub(crate) fn folder() -> PathBuf {
    shell::target_dir().join("book")
}

fn build() -> Result<()> {
    let folder = folder();
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).context(folder.display().to_string());
        }
        _ => {}
    }
    let mut mdbook = Command::new(shell::tool("mdbook", MDBOOK, &MDBOOK_FEATURES)?);
    mdbook.args(["build", "docs", "--dest-dir"]).arg(&folder);
    shell::run(&mut mdbook)
}

/// A page as the browser shows it.
#[derive(Deserialize)]
struct Read {
    page: String,
    /// The width of the window, in pixels.
    width: f64,
    /// The width of the content. Above `width`, the reader has to scroll sideways.
    scroll: f64,
    /// The first elements that reach beyond the window.
    beyond: Vec<String>,
    /// The pictures that the browser could not show.
    pictures: Vec<String>,
    /// The targets that links can name.
    ids: HashSet<String>,
    /// The addresses of links.
    links: Vec<String>,
    /// The addresses of everything that the page loads.
    loads: Vec<String>,
}

fn read(chromium: &Path, tally: &mut Tally) -> Result<()> {
    let root = folder().canonicalize()?;
    let mut pages = Vec::new();
    find_pages(&root, &root, &mut pages)?;
    pages.sort();
    let reader = root.with_file_name("book-reader.html");
    let list = serde_json::to_string(&pages)?;
    let html =
        format!("<!DOCTYPE html>\n<body>\n<script>\nconst pages = {list};\n{READER}\n</script>\n");
    fs::write(&reader, html)?;
    let profile = root.with_file_name("book-reader");
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--allow-file-access-from-files", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=600000", "--window-size=1300,900"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", reader.display()))
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = errors
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    tally.check(
        "the book: console",
        if console.is_empty() {
            Ok(())
        } else {
            Err(anyhow::anyhow!("{}", console.join("\n")))
        },
    );
    let dom = String::from_utf8_lossy(&output.stdout);
    let found: Vec<Read> = dom
        .split("<pre>")
        .skip(1)
        .map(|rest| {
            let text = rest.split("</pre>").next().unwrap_or_default();
            let text = text.replace("&lt;", "<").replace("&gt;", ">");
            serde_json::from_str(&text.replace("&amp;", "&")).with_context(|| text.clone())
        })
        .collect::<Result<_>>()?;
    ensure!(
        found.len() == 2 * pages.len(),
        "the browser reported {} of {} views of pages: {errors}",
        found.len(),
        2 * pages.len()
    );
    let targets: HashMap<PathBuf, &HashSet<String>> = found
        .iter()
        .map(|read| (root.join(&read.page), &read.ids))
        .collect();
    for read in &found {
        let name = format!("the book: {} at {} px", read.page, read.width);
        tally.check(&name, sound(read, &root, &targets));
    }
    Ok(())
}

/// Checks that a page fits, that its pictures appear, that it loads nothing from the web, and that
/// its links to files lead into the book. Links to the web are not followed.
fn sound(read: &Read, root: &Path, targets: &HashMap<PathBuf, &HashSet<String>>) -> Result<()> {
    ensure!(
        read.scroll <= read.width,
        "{} px wide: {}",
        read.scroll,
        read.beyond.join(", ")
    );
    ensure!(
        read.pictures.is_empty(),
        "not shown: {}",
        read.pictures.join(", ")
    );
    let local = |address: &&String| address.starts_with("file:") || address.starts_with("data:");
    if let Some(address) = read.loads.iter().find(|address| !local(address)) {
        bail!("{address} is loaded from the web");
    }
    for link in read.links.iter().chain(&read.loads) {
        let Some(local) = link.strip_prefix("file://") else {
            continue;
        };
        let (path, id) = local.split_once('#').unwrap_or((local, ""));
        let path = Path::new(path);
        if !path.starts_with(root) || !path.exists() {
            bail!("{link} does not exist in the book");
        }
        if let (false, Some(ids)) = (id.is_empty(), targets.get(path)) {
            ensure!(ids.contains(id), "{link}: there is no such heading");
        }
    }
    Ok(())
}

/// Adds the paths of the pages below `folder`, relative to `root`, except those that mdBook adds:
/// the page for printing, the table of contents, and the page for errors.
fn find_pages(root: &Path, folder: &Path, pages: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        if path.is_dir() {
            find_pages(root, &path, pages)?;
        } else if name.ends_with(".html")
            && !["print.html", "toc.html", "404.html"].contains(&&*name)
        {
            pages.push(name);
        }
    }
    Ok(())
}
