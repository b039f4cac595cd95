//! The fixes of a whole report: commands that would interfere with each other, and repeated notes.

use super::tables::is_about_table;
use super::{is_place, note_only};
use crate::finding::{Rule, Severity};
use crate::report::ReportRow;
use crate::stack::{Kind, LayerId, Stack};

/// Keeps only the commands of the first of several findings that share a drive. The notes of the
/// others say to check again, because their commands would use offsets and lengths from before the
/// first fix.
///
/// If a layer has to be recreated because of its place, no commands are kept for findings on it or
/// on layers in it, except for LUKS devices that cannot be opened otherwise.
///
/// No commands are kept on a drive with one of the `damages`, which are findings of rules that
/// [mean damage](crate::finding::Rule::is_damage). The notes of other findings there say to repair
/// the damage first, except for notes without commands about a partition table. They say so too if
/// the table is not found with the drive's sector size.
pub fn keep_first_commands(
    rows: &mut [ReportRow],
    damages: &[(LayerId, &'static str)],
    stack: &Stack,
) {
    let damaged: Vec<(LayerId, &'static str)> = damages
        .iter()
        .flat_map(|&(layer, rule)| {
            drives_below(stack, layer)
                .into_iter()
                .map(move |id| (id, rule))
        })
        .collect();
    let recreated: Vec<(LayerId, &'static str)> = rows
        .iter()
        .filter(|row| is_recreation(row))
        .map(|row| (row.finding.layer, row.finding.rule.id()))
        .collect();
    let mut changed: Vec<(LayerId, &'static str)> = Vec::new();
    for row in rows {
        if !row.finding.rule.is_damage()
            && let Some(fix) = row.fix.as_mut()
        {
            let drives = drives_below(stack, row.finding.layer);
            let is_table_note = fix.commands.is_empty() && is_about_table(row.finding.rule);
            let comes_first = |(drive, rule): &&(LayerId, &str)| {
                drives.contains(drive) && (!is_table_note || *rule == Rule::TableSectorSize.id())
            };
            if let Some((_, rule)) = damaged.iter().find(comes_first) {
                *fix = note_only(&format!(
                    "repair the damage ({rule}) first, then check again: commands for this finding could destroy more data"
                ));
            }
        }
        let Some(fix) = row.fix.as_mut().filter(|fix| !fix.commands.is_empty()) else {
            continue;
        };
        if row.finding.rule != Rule::LuksEnd {
            let below = layers_below(stack, row.finding.layer);
            // Encryption in small sectors concerns only what lies in the LUKS device.
            let comes_first = |(layer, rule): &&(LayerId, &str)| {
                let is_same = *layer == row.finding.layer;
                below.contains(layer) && !(is_same && *rule == Rule::LuksSector.id())
            };
            if let Some((layer, rule)) = recreated.iter().find(comes_first) {
                *fix = note_only(&format!(
                    "the advice for {rule} moves or recreates {}: follow it first, then check again",
                    stack.title(*layer)
                ));
                continue;
            }
        }
        let drives = drives_below(stack, row.finding.layer);
        let earlier = changed.iter().find(|(drive, _)| drives.contains(drive));
        if let Some((_, rule)) = earlier {
            *fix = note_only(&format!(
                "run the commands for {rule} above first, then check again: they may change what is needed here"
            ));
        } else {
            let rule = row.finding.rule.id();
            changed.extend(drives.into_iter().map(|drive| (drive, rule)));
        }
    }
}

/// Replaces the note for a member of an array with a reference if the same note was given for
/// another member.
pub fn keep_first_of_array(rows: &mut [ReportRow], stack: &Stack) {
    let mut given: Vec<(&str, String)> = Vec::new();
    for row in rows {
        let Kind::MdMember(member) = &stack.layer(row.finding.layer).kind else {
            continue;
        };
        let Some(fix) = row.fix.as_mut() else {
            continue;
        };
        let note = (member.array.as_str(), fix.note.clone());
        if given.contains(&note) {
            fix.note = "the same as for the first of these members above".to_owned();
        } else {
            given.push(note);
        }
    }
}

/// Returns whether the fix of a finding is to recreate the layer, without commands.
fn is_recreation(row: &ReportRow) -> bool {
    let rule = row.finding.rule;
    let is_recreated = is_place(rule) || matches!(rule, Rule::ChunkSize | Rule::LuksSector);
    // At the lowest severity, what lies in the layer is aligned nevertheless.
    let is_wrong = row.finding.severity > Severity::Info;
    let has_advice = row.fix.as_ref().is_some_and(|fix| fix.commands.is_empty());
    is_recreated && is_wrong && has_advice
}

/// Returns the drives at or below a layer.
fn drives_below(stack: &Stack, id: LayerId) -> Vec<LayerId> {
    let mut drives = layers_below(stack, id);
    drives.retain(|&id| stack.layer(id).on.is_empty());
    drives
}

/// Returns a layer and all layers below it, from the top.
fn layers_below(stack: &Stack, id: LayerId) -> Vec<LayerId> {
    let mut seen = vec![false; stack.layers.len()];
    seen[id.0] = true;
    let mut below = Vec::new();
    // A layer comes after the layers that it lies on.
    for (id, layer) in stack.iter().rev().filter(|(at, _)| *at <= id) {
        if seen[id.0] {
            layer.on.iter().for_each(|place| seen[place.layer.0] = true);
            below.push(id);
        }
    }
    below
}
