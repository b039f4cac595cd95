//! A check that the modules of a crate import each other without cycles, other than between a
//! module and those inside it.
//!
//! It reads all paths that begin with `crate::`, `super::` or `self::`, in `use` declarations and
//! elsewhere, and leaves out comments and modules of tests. An import of an item that another
//! module re-exports counts as an import of that other module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::shell;

/// A module's path within its crate; the crate's root is empty.
type Module = Vec<String>;
/// The modules that each module of a crate imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Checks every crate. Prints each cycle, and returns whether there is none.
pub(crate) fn check() -> Result<bool> {
    let mut acyclic = true;
    for folder in ["crates", "bindings", "."] {
        for entry in fs::read_dir(shell::root().join(folder))? {
            let crate_folder = entry?.path();
            let source = crate_folder.join("src");
            if source.is_dir() {
                for cycle in cycles(&imports(&source)?) {
                    let names: Vec<String> = cycle.iter().map(|name| name.join("::")).collect();
                    let crate_name = crate_folder.file_name().unwrap_or_default();
                    println!(
                        "{}: a cycle of imports: {}",
                        crate_name.to_string_lossy(),
                        names.join(" -> ")
                    );
                    acyclic = false;
                }
            }
        }
    }
    Ok(acyclic)
}

/// Reads the imports of a crate's modules.
fn imports(source: &Path) -> Result<Imports> {
    let mut texts = BTreeMap::new();
    read(source, &mut Vec::new(), &mut texts)?;
    let modules: BTreeSet<Module> = texts.keys().cloned().collect();
    let of = |module: &Module, text: &String| {
        let targets = paths(text)
            .into_iter()
            .filter_map(|path| resolve(module, &path, &modules))
            .filter(|target| !target.starts_with(module) && !module.starts_with(target));
        (module.clone(), targets.collect())
    };
    Ok(texts
        .iter()
        .map(|(module, text)| of(module, text))
        .collect())
}

/// Collects the text of each module below a directory.
fn read(folder: &Path, module: &mut Module, texts: &mut BTreeMap<Module, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_root = matches!(&*name, "lib" | "main" | "mod");
        if !is_root {
            module.push(name.into_owned());
        }
        if path.is_dir() {
            read(&path, module, texts)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            texts
                .entry(module.clone())
                .or_default()
                .push_str(&code(&text));
        }
        if !is_root {
            module.pop();
        }
    }
    Ok(())
}

/// Returns a file's text without comments and without its module of tests.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns all paths of a text that may name other modules of the crate, with lists in braces
/// expanded.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_none_or(|before| !before.is_alphanumeric() && !"_:".contains(before)) {
                expand(String::new(), &text[at..], &mut found);
            }
        }
    }
    found
}

/// Expands the path at the front of `text`, which follows `prefix`. Returns the rest of the text.
fn expand<'a>(prefix: String, text: &'a str, found: &mut Vec<String>) -> &'a str {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let text = text.trim_start();
    let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
    let path = prefix + &text[..end];
    let mut rest = &text[end..];
    if !path.ends_with("::") || !rest.starts_with('{') {
        found.push(path);
        return rest;
    }
    rest = &rest[1..];
    loop {
        rest = expand(path.clone(), rest, found);
        // Skips `as NAME`.
        let Some(next) = rest.find([',', '}']) else {
            return "";
        };
        let is_last = rest[next..].starts_with('}');
        rest = rest[next + 1..].trim_start();
        if is_last {
            return rest;
        }
        if let Some(after) = rest.strip_prefix('}') {
            return after;
        }
    }
}

/// Returns the module that a path in `module` names.
fn resolve(module: &Module, path: &str, modules: &BTreeSet<Module>) -> Option<Module> {
    let mut at: Module = module.clone();
    for part in path.split("::").filter(|part| !part.is_empty()) {
        match part {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop()?;
            }
            name => {
                at.push(name.to_owned());
                if !modules.contains(&at) {
                    at.pop();
                    break;
                }
            }
        }
    }
    modules.contains(&at).then_some(at)
}

/// Returns cycles that together contain every module that is in a cycle.
fn cycles(imports: &Imports) -> Vec<Vec<Module>> {
    let mut reported = BTreeSet::new();
    let mut cycles = Vec::new();
    for start in imports.keys() {
        if reported.contains(start) {
            continue;
        }
        if let Some(cycle) = shortest_cycle(start, imports) {
            reported.extend(cycle.iter().cloned());
            cycles.push(cycle);
        }
    }
    cycles
}

/// Returns the shortest cycle of imports through a module.
fn shortest_cycle(start: &Module, imports: &Imports) -> Option<Vec<Module>> {
    let mut reached_from: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut frontier = vec![start];
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for module in frontier {
            for target in &imports[module] {
                if target == start {
                    let mut cycle = vec![start.clone()];
                    let mut at = module;
                    while at != start {
                        cycle.insert(1, at.clone());
                        at = reached_from[at];
                    }
                    cycle.push(start.clone());
                    return Some(cycle);
                }
                if !reached_from.contains_key(target) {
                    reached_from.insert(target, module);
                    next.push(target);
                }
            }
        }
        frontier = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are cycles found through lists, nested paths and inner modules? Are imports between a parent
    /// and its child, and those of tests, not reported?
    #[test]
    fn cycles_are_found() {
        let folder = std::env::temp_dir().join(format!("cycles-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("lib.rs", "mod a;\nmod b;\nuse a::X;\n");
        write(
            "a.rs",
            "mod inner;\nuse crate::{b::{Y as Z, W}, c};\n// use crate::d;\n",
        );
        write("a/inner.rs", "use super::X;\n");
        write("b.rs", "fn f() { super::c::g() }\n");
        write("c/mod.rs", "use super::d::{self};\n");
        write(
            "d.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\n",
        );
        assert!(cycles(&imports(&folder).unwrap()).is_empty());
        write("d.rs", "use crate::a::inner::Y;\n");
        write("a/inner.rs", "use super::X;\nuse super::super::b;\n");
        let found = cycles(&imports(&folder).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].len(), 5, "{found:?}");
    }
}
