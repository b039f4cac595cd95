//! The README and the book: do their commands do what the page shows, and does every link resolve?
//!
//! The commands of a page run in order, in one shell and one empty folder, as a reader would type
//! them. See [`page`] for the form of a page.

mod links;
mod page;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use page::{Page, Run};

/// Do the commands of the README work as typed?
#[test]
fn the_readme() {
    assert_pages_work(&[testkit::workspace().join("README.md")]);
}

/// Do the commands in the start and concepts pages work as typed?
#[test]
fn the_start_and_the_concepts() {
    assert_pages_work(&[pages("start"), pages("concepts")].concat());
}

/// Do the guides work as typed?
#[test]
fn the_guides() {
    assert_pages_work(&pages("guides"));
}

/// Do the examples of the manual pages work as typed?
#[test]
fn the_commands() {
    assert_pages_work(&pages("reference/commands"));
}

/// Runs the commands of each page, and fails with all differences. `TRAXTENT_PAGE` selects the
/// pages whose paths contain its value.
fn assert_pages_work(paths: &[PathBuf]) {
    let soak = std::env::var_os("TRAXTENT_SOAK").is_some();
    let selected = std::env::var("TRAXTENT_PAGE").unwrap_or_default();
    let has_data = testkit::shared_data(shell::DATA).is_some();
    let mut failures = Vec::new();
    let mut skipped = Vec::new();
    for path in paths {
        let name = path.strip_prefix(testkit::workspace()).unwrap();
        let name = name.display().to_string();
        if !name.contains(&selected) {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        if text.contains("$DISKSIM") && !has_data {
            skipped.push(name);
            continue;
        }
        let found = match Page::parse(&text) {
            Ok(page) => {
                let [run, not_run] = page.counts(soak);
                println!("{name}: {run} commands, {not_run} not run");
                shell::run(&page, soak)
            }
            Err(error) => vec![error],
        };
        failures.extend(found.into_iter().map(|failure| format!("{name}:{failure}")));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    if !skipped.is_empty() {
        let (data, skipped) = (shell::DATA, skipped.join(", "));
        testkit::skip!("reference data {data} is not available; pages not run: {skipped}");
    }
}

/// Returns the pages of a folder of the book, in the order of their names.
fn pages(folder: &str) -> Vec<PathBuf> {
    let folder = testkit::workspace().join("docs").join(folder);
    let mut pages: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    assert!(!pages.is_empty(), "{}", folder.display());
    pages
}

/// Does the runner report differences in the output and in the status, but not run a block marked
/// `not run`? Is each mistake in a page's form reported with its line?
#[test]
fn the_runner_reports_differences() {
    let text = "\
# Page

```console
$ printf 'one two\\nthree\\n'
one …
three
$ echo other
expected
$ false
```

<!-- not run: it would fail -->
```console
$ false
```

<!-- status: 3 -->
```console
$ exit_with() { return 3; }; exit_with
```
";
    let page = Page::parse(text).unwrap();
    assert_eq!(page.counts(false), [4, 1]);
    assert!(page.blocks.iter().any(|block| block.run == Run::Never));
    let failures = shell::run(&page, false);
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[0].starts_with("7: `echo other`"), "{failures:?}");
    assert!(failures[1].starts_with("9: `false`"), "{failures:?}");
    for (text, error) in [
        (
            "```console\noutput\n```\n",
            "2: output precedes the first command",
        ),
        (
            "<!-- skip: it -->\n```console\n$ true\n```\n",
            "1: unknown instruction \"skip\"",
        ),
        (
            "<!-- not run: -->\n```console\n$ true\n```\n",
            "1: \"not run\" has no text after the colon",
        ),
    ] {
        assert_eq!(Page::parse(text).err().as_deref(), Some(error));
    }
}

/// Returns every page of the project that a reader may open.
fn all_pages() -> Vec<PathBuf> {
    let root = testkit::workspace();
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let mut folders = ["docs", "crates", "bindings", "experiments", "drives"]
        .map(|folder| root.join(folder))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("traxtent/src/manual") {
                // These files become part of the pages in docs/reference/commands.
            } else if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Does every link lead to an existing file, within the book if the page is in the book, and, if it
/// has a fragment, to a heading in that file? Is no page in a subfolder of the book named
/// `README.md`?
#[test]
fn links_resolve() {
    let pages = all_pages();
    let mut broken: Vec<String> = pages.iter().flat_map(|page| links::broken(page)).collect();
    // mdBook publishes a README as index.html, but does not change the links to it.
    let docs = testkit::workspace().join("docs");
    let nested = pages.iter().filter(|page| {
        page.ends_with("README.md") && page.starts_with(&docs) && page.parent() != Some(&docs)
    });
    broken.extend(nested.map(|page| format!("{}: name it index.md", page.display())));
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Does the table of contents list every page of the book, once?
#[test]
fn the_contents_are_complete() {
    let docs = testkit::workspace().join("docs");
    let contents = docs.join("SUMMARY.md");
    let mut listed = links::targets(&contents);
    listed.sort();
    let mut present: Vec<PathBuf> = all_pages()
        .into_iter()
        .filter(|page| page.starts_with(&docs) && *page != contents)
        .collect();
    present.sort();
    let present: Vec<&Path> = present.iter().map(PathBuf::as_path).collect();
    let listed: Vec<&Path> = listed.iter().map(PathBuf::as_path).collect();
    assert_eq!(listed, present, "docs/SUMMARY.md");
}
