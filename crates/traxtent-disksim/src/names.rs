//! Names in a parameter file that refer to nothing, and blocks that are ignored because there is an
//! earlier one. A warning says that what they belong to is missing in the system.

use std::collections::BTreeSet;

use traxtent_model::profile::nearest_name;

use super::params::{Block, Document, Entry, Node, ParamError, Value};

/// The kinds of blocks that a file may contain (`src/modules/*.modspec`,
/// `diskmodel/modules/*.modspec` and the models of other devices in DiskSim 4.0).
const KINDS: &[&str] = &[
    "disksim_bus",
    "disksim_bus_stats",
    "disksim_cachedev",
    "disksim_cachemem",
    "disksim_ctlr",
    "disksim_ctlr_stats",
    "disksim_device",
    "disksim_device_stats",
    "disksim_disk",
    "disksim_global",
    "disksim_iodriver",
    "disksim_iodriver_stats",
    "disksim_iomap",
    "disksim_ioqueue",
    "disksim_iosim",
    "disksim_logorg",
    "disksim_pf",
    "disksim_pf_stats",
    "disksim_simpledisk",
    "disksim_stats",
    "disksim_syncset",
    "disksim_synthgen",
    "disksim_synthio",
    "dm_disk",
    "dm_layout_g1",
    "dm_layout_g1_zone",
    "dm_layout_g2",
    "dm_layout_g2_zone",
    "dm_layout_g4",
    "dm_mech_g1",
    "memsmodel_mems",
    "ssdmodel_ssd",
];

/// The kinds of which only the first block is used.
const SINGLE_KINDS: &[&str] = &["disksim_global", "disksim_pf", "disksim_synthio"];

/// Adds warnings about blocks of unknown kinds, blocks that are ignored because of an earlier one,
/// instances of blocks that do not exist, and devices of a topology that are not instantiated or
/// have an unknown kind.
pub(super) fn warn_of_unknown_names(document: &Document, warnings: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    for block in document.blocks() {
        known.extend(block.name.as_deref());
        warnings.extend(unknown_kind(block).map(|error| error.to_string()));
    }
    for block in &document.redefinitions {
        let name = block.name.as_deref().unwrap_or_default();
        if let Some(first) = document.block(name) {
            warnings.push(format!(
                "{}:{}: there is a block {name:?} at {}:{} already; this one is ignored",
                block.file, block.line, first.file, first.line
            ));
        }
    }
    for kind in SINGLE_KINDS {
        let mut blocks = document.blocks().filter(|block| block.kind == *kind);
        let first = blocks.next();
        for (block, first) in blocks.zip(first.into_iter().cycle()) {
            warnings.push(format!(
                "{}:{}: there is a {kind} at {}:{} already; this one is ignored",
                block.file, block.line, first.file, first.line
            ));
        }
    }
    for entry in &document.entries {
        let Entry::Instances {
            names,
            of,
            file,
            line,
        } = entry
        else {
            continue;
        };
        if document.block(of).is_none() {
            warnings.push(format!(
                "{file}:{line}: there is no block {of:?}; its instances are ignored{}",
                block_hint(document, of)
            ));
        }
        known.extend(names.iter().map(String::as_str));
    }
    for entry in &document.entries {
        if let Entry::Topology(root) = entry {
            warn_of_devices(root, &known, warnings);
        }
    }
}

/// Returns the error for a block of a kind that DiskSim does not have.
pub(super) fn unknown_kind(block: &Block) -> Option<ParamError> {
    let is_known = KINDS.contains(&block.kind.as_str());
    (!is_known).then(|| {
        block.error(format!(
            "{:?} is not a kind of block in DiskSim; the block is ignored{}",
            block.kind,
            hint(&block.kind, KINDS.iter().copied())
        ))
    })
}

/// Returns the error for a disk that the file refers to, if it is an instance of a block that does
/// not exist.
pub(super) fn missing_block(document: &Document, disk: &str) -> Option<ParamError> {
    document.entries.iter().find_map(|entry| match entry {
        Entry::Instances {
            names,
            of,
            file,
            line,
        } if document.block(of).is_none() && names.iter().any(|name| name == disk) => {
            let problem = format!(
                "there is no block {of:?}, of which {disk:?} is to be an instance{}",
                block_hint(document, of)
            );
            Some(ParamError {
                file: file.to_string(),
                line: *line,
                problem,
            })
        }
        _ => None,
    })
}

fn warn_of_devices(node: &Node, known: &BTreeSet<&str>, warnings: &mut Vec<String>) {
    let Value::Device {
        kind,
        name,
        children,
    } = &node.value
    else {
        return;
    };
    if !KINDS.contains(&kind.as_str()) {
        warnings.push(format!(
            "{}:{}: {kind:?} is not a kind of device in DiskSim; the topology's {name:?} is ignored{}",
            node.file,
            node.line,
            hint(kind, KINDS.iter().copied())
        ));
    }
    if !known.contains(name.as_str()) {
        warnings.push(format!(
            "{}:{}: the topology names {name:?}, which is not instantiated; it is ignored{}",
            node.file,
            node.line,
            hint(name, known.iter().copied())
        ));
    }
    for child in children {
        warn_of_devices(child, known, warnings);
    }
}

/// Returns the end of a message about a block that does not exist: the block with the nearest name.
fn block_hint(document: &Document, name: &str) -> String {
    let blocks = document.blocks().filter_map(|block| block.name.as_deref());
    hint(name, blocks)
}

fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = nearest_name(name, known);
    near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is each name that refers to nothing reported with its line and the nearest name, and nothing
    /// else?
    #[test]
    fn unknown_names_are_reported() {
        let text = "disksim_iodriver DRIVER0 {}\ndisksim_bus BUS0 {}\ndisksim_disk DISK0 {}
            instantiate [ driver0 ] as DRIVER0\ninstantiate [ bus0 ] as BUS0
            instantiate [ disk0 .. disk2 ] as DISK0
            topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_disk disk2 [ ] ] ]";
        let warnings = |text: &str| {
            let document = Document::parse("f", text.as_bytes(), &|_| Err(String::new())).unwrap();
            let mut warnings = Vec::new();
            warn_of_unknown_names(&document, &mut warnings);
            warnings
        };
        assert_eq!(warnings(text), [""; 0]);
        for (from, to, says) in [
            (
                "disksim_iodriver DRIVER0 {",
                "disksim_iodrver DRIVER0 {",
                "f:1: \"disksim_iodrver\" is not a kind of block in DiskSim; the block is ignored; did you mean \"disksim_iodriver\"?",
            ),
            (
                "as BUS0",
                "as BUS1",
                "f:5: there is no block \"BUS1\"; its instances are ignored; did you mean \"BUS0\"?",
            ),
            (
                "disk2 [",
                "disk7 [",
                "f:7: the topology names \"disk7\", which is not instantiated; it is ignored",
            ),
            (
                "[ disksim_disk",
                "[ disksim_dsk",
                "f:7: \"disksim_dsk\" is not a kind of device in DiskSim; the topology's \"disk2\" is ignored; did you mean \"disksim_disk\"?",
            ),
            (
                "disksim_disk DISK0 {}",
                "disksim_disk DISK0 {} disksim_disk DISK0 { Max queue length = 8 }",
                "f:3: there is a block \"DISK0\" at f:3 already; this one is ignored",
            ),
            (
                "disksim_disk DISK0 {}",
                "disksim_disk DISK0 {} disksim_synthio A {}\ndisksim_synthio B {}",
                "f:4: there is a disksim_synthio at f:3 already; this one is ignored",
            ),
        ] {
            let found = warnings(&text.replacen(from, to, 1));
            assert!(
                matches!(&found[..], [one] if one.starts_with(says)),
                "{found:?}"
            );
        }
    }
}
