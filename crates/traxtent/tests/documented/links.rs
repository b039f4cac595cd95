//! The links of a page.

use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Returns a line for each link of a page that leads to no file or to no heading, and for each that
/// leads from the book to a file outside it, which a reader of the book cannot open.
pub(crate) fn broken(page: &Path) -> Vec<String> {
    let root = testkit::workspace();
    let docs = root.join("docs");
    let name = page.strip_prefix(root).unwrap().display();
    let text = fs::read_to_string(page).unwrap();
    let mut broken = Vec::new();
    for link in links(&text) {
        let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
        let target = match path {
            "" => page.to_owned(),
            path => resolve(page, path),
        };
        if page.starts_with(&docs) && !target.starts_with(&docs) {
            broken.push(format!("{name}: {link} leads out of the book"));
        } else if !target.exists() {
            broken.push(format!("{name}: {link} does not exist"));
        } else if !heading.is_empty()
            && target
                .extension()
                .is_some_and(|extension| extension == "md")
            && !headings(&fs::read_to_string(&target).unwrap()).contains(&heading.to_owned())
        {
            broken.push(format!("{name}: {link}: there is no such heading"));
        }
    }
    broken
}

/// Returns the files that a page links to.
pub(crate) fn targets(page: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(page).unwrap();
    links(&text)
        .iter()
        .map(|link| resolve(page, link))
        .collect()
}

/// Returns the local links and pictures of a page.
fn links(text: &str) -> Vec<String> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.to_string())
            }
            _ => None,
        })
        .filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        .collect()
}

/// Returns the path that a link of a page denotes, without `.` and `..`.
fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap().to_owned();
    for component in Path::new(link).components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            component => path.push(component),
        }
    }
    path
}

/// Returns the identifiers of a page's headings, as mdBook and code hosts make them.
fn headings(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let id = identifier(&heading.take().unwrap_or_default());
                let before = found.iter().filter(|other| **other == id).count();
                found.push(match before {
                    0 => id,
                    number => format!("{id}-{number}"),
                });
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    *heading += &text;
                }
            }
            _ => {}
        }
    }
    found
}

fn identifier(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
