//! The organizations of a file (`disksim_logorg`): arrays, and lists of disks.

use super::super::ignored::RMW_POINT;
use super::super::params::{Block, Entry, Node, ParamError};
use super::{Loader, SystemArray, no_such};
use std::collections::BTreeMap;
use std::rc::Rc;
use traxtent_layout::raid::Level;
use traxtent_units::Sectors;

/// The words that DiskSim knows in the parameters of an organization.
const ORGANIZATION_WORDS: [(&str, &[&str]); 3] = [
    ("Addressing mode", &["Array", "Parts"]),
    (
        "Distribution scheme",
        &["Asis", "Striped", "Random", "Ideal"],
    ),
    (
        "Redundancy scheme",
        &["Noredun", "Shadowed", "Parity_disk", "Parity_rotated"],
    ),
];

impl Loader<'_> {
    /// Returns the organizations that are addressed as one disk. Either all organizations or none
    /// must be, and none may use a disk that another one uses.
    pub(super) fn arrays(
        &self,
        disks: &BTreeMap<String, u32>,
    ) -> Result<Vec<SystemArray>, ParamError> {
        let (mut arrays, mut plain) = (Vec::new(), None);
        let mut used = BTreeMap::new();
        let organizations = self.document.blocks();
        for block in organizations.filter(|block| block.kind == "disksim_logorg") {
            require_organization(block)?;
            let mode = block.require("Addressing mode")?;
            let members = block.require_list("devices")?;
            if block.get_str("Redundancy scheme")? == Some("Noredun") {
                // There is no parity to update. Reading the key avoids a warning.
                block.get(RMW_POINT);
            }
            if mode.str()? != "Array" || members.len() == 1 {
                plain.get_or_insert(block);
                continue;
            }
            let distribution = block.require("Distribution scheme")?;
            if distribution.str()? != "Striped" {
                let scheme = distribution.str()?;
                return Err(distribution.error(format!(
                    "distribution scheme {scheme} is not modelled in an array; only Striped is"
                )));
            }
            let chunk = block.require_bounded("Stripe unit", 1u32, u32::MAX)?;
            let redundancy = block.require("Redundancy scheme")?;
            let level = match redundancy.str()? {
                "Noredun" => Level::Raid0,
                "Parity_disk" => Level::Raid4,
                "Parity_rotated" => {
                    // Left-symmetric, with parity in chunks as large as those of data.
                    for (key, only, by) in [
                        ("Parity rotation type", 1, String::new()),
                        (
                            "Parity stripe unit",
                            i64::from(chunk),
                            format!(" with \"Stripe unit\" = {chunk}"),
                        ),
                    ] {
                        let value = block.require(key)?;
                        if value.int()? != only {
                            return Err(value.error(format!("{key}: only {only} is modelled{by}")));
                        }
                    }
                    Level::Raid5
                }
                scheme => {
                    return Err(redundancy.error(format!(
                        "{scheme} is not modelled; only Noredun, Parity_disk and Parity_rotated are"
                    )));
                }
            };
            if level != Level::Raid0 && block.get_flag("Synch writes for safety")? == Some(true) {
                return Err(redundancy.error("Synch writes for safety is not modelled"));
            }
            let array = block.name.clone().unwrap_or_default();
            let disks = members.iter().map(|node| {
                let name = node.str()?;
                let disk = disks.get(name).copied();
                let disk = disk.ok_or_else(|| no_such("disk", self.document, node))?;
                match used.insert(disk, array.clone()) {
                    None => Ok(disk),
                    Some(other) => Err(node.error(format!(
                        "{array}: {name} is a disk of {other} already; arrays cannot share disks"
                    ))),
                }
            });
            let disks = disks.collect::<Result<_, _>>()?;
            arrays.push(SystemArray {
                name: array,
                level,
                chunk: Sectors(chunk.into()),
                disks,
            });
        }
        if !arrays.is_empty()
            && let Some(plain) = plain
        {
            return Err(plain.error(format!(
                "{} is not an array, but other organizations are; all must be arrays, or none",
                plain.name.as_deref().unwrap_or("logorg")
            )));
        }
        Ok(arrays)
    }

    /// Returns the members of each organization that are among `disks`. All organizations must
    /// leave addresses unchanged. If only one disk is loaded (`is_partial`), organizations that
    /// change addresses are left out instead.
    pub(super) fn organizations(
        &self,
        disks: &BTreeMap<String, u32>,
        is_partial: bool,
    ) -> Result<BTreeMap<String, Rc<[u32]>>, ParamError> {
        let mut all: BTreeMap<String, Rc<[u32]>> = BTreeMap::new();
        for block in self
            .document
            .blocks()
            .filter(|block| block.kind == "disksim_logorg")
        {
            require_organization(block)?;
            match rearranging(block)? {
                Some(_) if is_partial => continue,
                Some(error) => return Err(error),
                None => {}
            }
            let members = block.require_list("devices")?.iter();
            let members = members.map(Node::str).collect::<Result<Vec<_>, _>>()?;
            let members = members
                .into_iter()
                .filter_map(|name| disks.get(name).copied())
                .collect();
            all.insert(block.name.clone().unwrap_or_default(), members);
        }
        let renamed: Vec<_> = self
            .document
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Instances { names, of, .. } => Some((names, Rc::clone(all.get(of)?))),
                _ => None,
            })
            .flat_map(|(names, members)| {
                names
                    .iter()
                    .map(move |name| (name.clone(), members.clone()))
            })
            .collect();
        all.extend(renamed);
        Ok(all)
    }
}

/// Checks that an organization has the parameters that it needs, and DiskSim's words in them.
fn require_organization(block: &Block) -> Result<(), ParamError> {
    let is = |key, value| block.get_str(key).is_ok_and(|found| found == Some(value));
    let mut keys = vec![
        "Addressing mode",
        "Distribution scheme",
        "Redundancy scheme",
        "devices",
    ];
    if is("Distribution scheme", "Striped") && !is("Addressing mode", "Parts") {
        keys.push("Stripe unit");
        if is("Redundancy scheme", "Parity_rotated") {
            keys.extend(["Parity rotation type", "Parity stripe unit"]);
        }
    }
    block.require_keys(&keys)?;
    for (key, words) in ORGANIZATION_WORDS {
        let word = block.require_str(key)?;
        if !words.contains(&word) {
            let problem = format!("{key}: {word} is not one of {}", words.join(", "));
            return Err(block.require(key)?.error(problem));
        }
    }
    Ok(())
}

/// Returns the error for an organization that changes addresses; `None` if it does not.
fn rearranging(organization: &Block) -> Result<Option<ParamError>, ParamError> {
    for (key, plain) in [
        ("Addressing mode", "Parts"),
        ("Distribution scheme", "Asis"),
        ("Redundancy scheme", "Noredun"),
    ] {
        let node = organization.require(key)?;
        let value = node.str()?;
        let one_disk = key == "Addressing mode" && organization.require_list("devices")?.len() == 1;
        if value != plain && !one_disk {
            let name = organization.name.as_deref().unwrap_or("logorg");
            let is_parts = organization.require_str("Addressing mode")? == "Parts";
            let why = if is_parts {
                "not modelled with Addressing mode = Parts; use Array, or Asis and Noredun"
            } else {
                "not modelled with a single disk; list several, or use Asis and Noredun"
            };
            return Ok(Some(
                node.error(format!("{name}: {key} = {value} is {why}")),
            ));
        }
    }
    Ok(None)
}
