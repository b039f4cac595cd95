//! The reference page and the JSON schema of profiles, generated from the parser's schema.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use traxtent_model::profile::schema::{
    AGED_SPTF, Absent, Key, Kind, SCHEDULERS, Section, WEIGHT, sections,
};

/// Returns the reference of all keys, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(HEADING);
    for section in sections() {
        let title = match (section.path, section.curve) {
            ("", _) => "Top level".to_owned(),
            (path, None) => format!("`[{path}]`"),
            (path, Some(curve)) => format!("`[{path}]` with `curve = \"{curve}\"`"),
        };
        let _ = write!(page, "\n## {title}\n\n{}\n\n", section.meaning);
        page.push_str("| key | value | unit | default | meaning |\n|---|---|---|---|---|\n");
        for key in section.keys {
            row(&mut page, section, key);
        }
    }
    page
}

const HEADING: &str = "\
# Profile reference

This page lists all keys of a drive profile. `traxtent drives reference` prints it, and
`traxtent drives schema` prints the same as a JSON schema for editors. Keys with the default
`required` must be present. [The built-in drives](drives.md) describes how to write a profile.
";

fn row(page: &mut String, section: &Section, key: &Key) {
    let default = match key.default {
        Absent::Refused => "required".to_owned(),
        Absent::Is(value) => format!("`{value}`"),
        Absent::Means(effect) => format!("none: {effect}"),
    };
    let mut meaning = key.meaning.to_owned();
    if let Kind::Choice(words) = key.kind {
        for (word, explanation) in words {
            let _ = write!(meaning, " `{word}`: {explanation}.");
        }
    }
    if key.kind == Kind::Scheduler {
        for (word, explanation) in SCHEDULERS {
            let _ = write!(meaning, " `{word}`: {explanation}.");
        }
        let _ = write!(meaning, " `aged-sptf`: {AGED_SPTF}.");
    }
    let _ = writeln!(
        page,
        "| `{}` | {} | {} | {default} | {meaning} |",
        key.name,
        values(section, key),
        key.unit
    );
}

/// Returns the type and bounds of a key in words.
fn values(section: &Section, key: &Key) -> String {
    let kind = match key.kind {
        Kind::Text => "text",
        Kind::Ascii(_) => "text,",
        Kind::Boolean => "`true` or `false`",
        Kind::Whole(..) => "whole number",
        Kind::Number(..) => "number",
        Kind::PerSurface(..) => "whole number or list of them,",
        Kind::Numbers(..) => "list of numbers,",
        Kind::Wholes(..) => "list of whole numbers,",
        Kind::Points(..) => "list of `[distance, time]`,",
        Kind::Pairs(..) => "list of pairs of whole numbers,",
        Kind::Table => match section_of(&path_of(section, key)).1 {
            0 => "table",
            1 => "list of tables",
            _ => "list of lists of tables",
        },
        Kind::Origins => "table of texts",
        Kind::OneOf(_) | Kind::Choice(_) | Kind::Scheduler | Kind::Skew(_) | Kind::Part => "",
    };
    format!("{kind} {}", key.bounds()).trim().to_owned()
}

/// Returns the JSON schema (draft 2020-12).
pub fn json_schema() -> Value {
    let mut root = table("");
    let described = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A drive profile of traxtent",
    });
    if let (Value::Object(root), Value::Object(mut whole)) = (&mut root, described) {
        whole.append(root);
        return Value::Object(whole);
    }
    root
}

/// Returns the schema of the table at a path.
fn table(path: &str) -> Value {
    let mut variants: Vec<Value> = sections()
        .filter(|section| section.path == path)
        .map(variant)
        .collect();
    match variants.len() {
        1 => variants.remove(0),
        _ => json!({ "oneOf": variants }),
    }
}

fn variant(section: &Section) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in section.keys {
        let path = path_of(section, key);
        let mut schema = match (key.name, section.curve) {
            ("curve", Some(curve)) => json!({ "const": curve }),
            _ => of_kind(key.kind, &path),
        };
        describe(&mut schema, key);
        properties.insert(key.name.to_owned(), schema);
        if key.default == Absent::Refused {
            required.push(key.name);
        }
    }
    let mut schema = json!({
        "type": "object",
        "description": section.meaning,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn describe(schema: &mut Value, key: &Key) {
    let unit = match key.unit {
        "" => String::new(),
        unit => format!(" In {unit}."),
    };
    schema["description"] = json!(format!("{}{unit}", key.meaning));
    if let Absent::Is(default) = key.default
        && let Ok(mut table) = toml::from_str::<toml::Table>(&format!("v = {default}"))
    {
        schema["default"] = json!(table.remove("v"));
    }
}

fn of_kind(kind: Kind, path: &str) -> Value {
    let whole = |min: f64, max: f64| json!({ "type": "integer", "minimum": min as i64, "maximum": max as i64 });
    let number = |min: f64, max: f64| json!({ "type": "number", "minimum": min, "maximum": max });
    let words = |words: &[(&str, &str)]| json!({ "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() });
    let described = |mut schema: Value, text: &str| {
        schema["description"] = json!(text);
        schema
    };
    let list = |item: Value| json!({ "type": "array", "items": item });
    let pair = |items: [Value; 2]| json!({ "type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2 });
    let one_key = |key: &str, value: &Value| {
        json!({
            "type": "object",
            "properties": { key: value },
            "required": [key],
            "additionalProperties": false,
        })
    };
    match kind {
        Kind::Text if path == "name" => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]*$" }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Ascii(longest) => {
            json!({ "type": "string", "maxLength": longest, "pattern": "^([!-~]([ -~]*[!-~])?)?$" })
        }
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Whole(min, max) => whole(min, max),
        Kind::OneOf(values) => json!({ "enum": values }),
        Kind::Number(min, max) => number(min, max),
        Kind::Choice(choices) => words(choices),
        Kind::Scheduler => json!({ "anyOf": [
            words(SCHEDULERS),
            described(one_key("aged-sptf", &one_key("weight", &number(WEIGHT.0, WEIGHT.1))), AGED_SPTF),
        ] }),
        Kind::Skew(most) => json!({ "oneOf": [
            one_key("sectors", &number(-most, most)),
            one_key("revolutions", &number(-most, most)),
        ] }),
        Kind::PerSurface(min, max) => {
            json!({ "anyOf": [whole(min, max), list(whole(min, max))] })
        }
        Kind::Numbers(min, max) => list(number(min, max)),
        Kind::Wholes(min, max) => list(whole(min, max)),
        Kind::Points(distances, times) => {
            let point = pair([whole(distances.0, distances.1), number(times.0, times.1)]);
            json!({ "type": "array", "items": point, "minItems": 1 })
        }
        Kind::Pairs(min, max) => list(pair([
            json!({ "type": "integer", "minimum": 0 }),
            whole(min, max),
        ])),
        Kind::Part => {
            let index = json!({ "type": "integer", "minimum": 0 });
            json!({ "oneOf": [one_key("track", &index), one_key("node", &index)] })
        }
        Kind::Origins => json!({
            "type": "object",
            "additionalProperties": {
                "type": "string",
                "pattern": "^(measured|published|fitted|assumed): ",
            },
        }),
        Kind::Table => nested(path),
    }
}

/// Returns the schema of a table, of a list of tables, or of a list of such lists.
fn nested(path: &str) -> Value {
    let (name, depth) = section_of(path);
    (0..depth).fold(
        table(&name),
        |item, _| json!({ "type": "array", "items": item }),
    )
}

/// Returns the dotted path of a key.
fn path_of(section: &Section, key: &Key) -> String {
    match section.path {
        "" => key.name.to_owned(),
        path => format!("{path}.{}", key.name),
    }
}

/// Returns the path of the section that describes a table, and the number of lists in which the
/// table is: 0, 1 or 2.
fn section_of(path: &str) -> (String, usize) {
    [("", 0), ("[]", 1), ("[][]", 2)]
        .map(|(marks, depth)| (format!("{path}{marks}"), depth))
        .into_iter()
        .find(|(name, _)| sections().any(|section| section.path == *name))
        .unwrap_or_else(|| unreachable!("the table {path} has a section"))
}
