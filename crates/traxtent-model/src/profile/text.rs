//! A profile as TOML for editing: every key with its meaning, unit, bounds and origin. Zones and
//! other parts of the layout are inline tables without comments.

use std::fmt::Write;

use super::schema::{self, Kind, Section};
use super::{Profile, Provenance};

/// The width at which comments and lists are wrapped.
const LINE: usize = 100;

impl Profile {
    /// Returns the profile as TOML that [`Profile::from_toml`] can read, with a comment for every
    /// key except those within zones and other parts of the layout. The text begins with `heading`
    /// as a comment.
    pub fn to_commented_toml(&self, heading: &str) -> String {
        let root = super::figures::table(self);
        let mut out = String::new();
        comment(&mut out, heading);
        for section in schema::sections() {
            if section.path.contains('[') || section.path.starts_with("geometry.") {
                continue;
            }
            let Some(table) = table_at(&root, section.path) else {
                continue;
            };
            let curve = table.get("curve").and_then(toml::Value::as_str);
            if section.curve.is_none() || section.curve == curve {
                write_section(&mut out, section, table, &self.provenance);
            }
        }
        out.push_str(
            "\n# The origin of each value, by its path. If several paths match, the longest applies.\n[provenance]\n",
        );
        for (path, origin) in &self.provenance.0 {
            let (path, origin) = (string(path), string(origin));
            let _ = writeln!(out, "{path} = {origin}");
        }
        out
    }
}

/// Returns the table at a dotted path. The path of the root is empty.
fn table_at<'a>(root: &'a toml::Table, path: &str) -> Option<&'a toml::Table> {
    let names = path.split('.').filter(|name| !name.is_empty());
    names
        .into_iter()
        .try_fold(root, |table, name| table.get(name)?.as_table())
}

fn write_section(out: &mut String, section: &Section, table: &toml::Table, origins: &Provenance) {
    if !section.path.is_empty() {
        out.push('\n');
        comment(out, section.meaning);
        let _ = writeln!(out, "[{}]", section.path);
    }
    for key in section.keys {
        let Some(value) = table.get(key.name) else {
            continue;
        };
        let is_geometry = section.path == "geometry";
        if key.kind == Kind::Origins || (key.kind == Kind::Table && !is_geometry) {
            continue;
        }
        let (bounds, unit) = (key.bounds(), key.unit);
        let mut meaning = key.meaning.to_owned();
        match (unit, bounds.as_str()) {
            ("", "") => {}
            ("", bounds) => _ = write!(meaning, " Allowed: {bounds}."),
            (unit, "") => _ = write!(meaning, " In {unit}."),
            (unit, bounds) => _ = write!(meaning, " In {unit}: {bounds}."),
        }
        comment(out, &meaning);
        let path = match section.path {
            "" => key.name.to_owned(),
            table => format!("{table}.{}", key.name),
        };
        if let Some(origin) = origins.of(&path)
            && !super::figures::NO_FIGURES.contains(&path.as_str())
        {
            comment(out, &format!("{}: {}", origin.kind, origin.note));
        }
        let _ = writeln!(out, "{} = {}", key.name, wrapped(value));
    }
}

/// Formats a value. A list longer than a line is wrapped between its items.
fn wrapped(value: &toml::Value) -> String {
    let toml::Value::Array(items) = value else {
        return plain(value);
    };
    let short = plain(value);
    if short.len() <= LINE {
        return short;
    }
    let mut text = String::from("[\n ");
    let mut width = 1;
    for item in items {
        let item = plain(item);
        if width > 1 && width + item.len() + 2 > LINE {
            text.push_str("\n ");
            width = 1;
        }
        width += item.len() + 2;
        let _ = write!(text, " {item},");
    }
    text.push_str("\n]");
    text
}

/// Formats a value on one line.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => string(text),
        toml::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        toml::Value::Table(table) => {
            let item = |(key, value): (&String, &toml::Value)| format!("{key} = {}", plain(value));
            let items: Vec<String> = table.iter().map(item).collect();
            format!("{{ {} }}", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// Formats a string on one line.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes comment lines, wrapped between words.
fn comment(out: &mut String, text: &str) {
    let printable = text.replace(|c: char| c.is_control() && c != '\n', " ");
    for paragraph in printable.lines() {
        let mut line = String::from("#");
        for word in paragraph.split_whitespace() {
            if line.len() > 1 && line.len() + 1 + word.len() > LINE {
                let _ = writeln!(out, "{line}");
                line.truncate(1);
            }
            let _ = write!(line, " {word}");
        }
        let _ = writeln!(out, "{line}");
    }
}
