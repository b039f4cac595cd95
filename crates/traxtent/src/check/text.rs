//! The text that `traxtent check` prints: measurements, and a picture of the stack with its
//! findings.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use traxtent_check::layers::{Disk, MediaKind, PartitionRole, SizeSource, Unknown};
use traxtent_check::measure::MeasuredGrid;
use traxtent_check::report::{Measurement, ReportRow, SeverityCounts};
use traxtent_check::rules::bytes;
use traxtent_check::{Finding, Kind, Layer, LayerId, Rule, Severity, Stack};

/// Formats measurements, one per line. The result is empty if there are none.
pub(super) fn measurements(found: &[Measurement]) -> String {
    let mut text = String::new();
    for Measurement {
        node,
        measured,
        claimed_bytes,
    } in found
    {
        let name = match measured.grid {
            MeasuredGrid::PhysicalSector => "physical sector",
            MeasuredGrid::Chunk => "chunk",
            MeasuredGrid::EraseBlock => "erase block",
        };
        let size = match measured.bytes {
            Some(size) if measured.first.0 > 0 => {
                format!("{}, first at LBN {}", bytes(size), measured.first)
            }
            Some(size) => bytes(size),
            None => "not found".to_owned(),
        };
        let claim = claimed_bytes.map_or("nothing".to_owned(), bytes);
        let _ = writeln!(
            text,
            "{node}: {name} by {} requests: {size} ({}, {:.1} standard errors); the kernel reports {claim}",
            measured.requests, measured.why, measured.sigmas
        );
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Formats the stack as a tree with marks for the findings, followed by the findings in words.
pub(super) fn report(stack: &Stack, rows: &[ReportRow]) -> String {
    let findings: Vec<&Finding> = rows.iter().map(|row| &row.finding).collect();
    let mut text = tree(stack, &findings);
    if !rows.is_empty() {
        text.push('\n');
    }
    let mut costs = HashSet::new();
    let mut notes = HashMap::new();
    for row in rows {
        write_finding(&mut text, row, &mut costs);
        write_fix(&mut text, stack, row, &mut notes);
    }
    let _ = writeln!(text, "\n{}", counts(SeverityCounts::of(rows)));
    text
}

/// Formats the stack as a tree with marks for the findings.
pub(super) fn tree(stack: &Stack, findings: &[&Finding]) -> String {
    let mut picture = Picture {
        stack,
        findings,
        drawn: vec![false; stack.layers.len()],
        text: String::new(),
    };
    for (id, layer) in stack.iter().filter(|(_, layer)| layer.on.is_empty()) {
        picture.line("", &format!("{}  {}", layer.name, describe(layer)), id);
        picture.branches(id, "");
    }
    picture.text
}

fn counts(tally: SeverityCounts) -> String {
    let SeverityCounts {
        faults,
        warnings,
        infos,
    } = tally;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "{faults} fault{}, {warnings} warning{}, {infos} note{}",
        plural(faults),
        plural(warnings),
        plural(infos)
    )
}

/// Writes a finding in words. The figures of a cost that are among the `costs` already written are
/// not repeated.
fn write_finding(text: &mut String, row: &ReportRow, costs: &mut HashSet<String>) {
    let ReportRow { finding, cost, .. } = row;
    let _ = writeln!(
        text,
        "{:<7}  {}: {}",
        word(finding.severity),
        finding.rule.id(),
        finding.what
    );
    match cost {
        Ok(cost) => {
            let typical = if cost.typical {
                ", a typical drive"
            } else {
                ""
            };
            let mut figures = String::new();
            for item in &cost.items {
                let _ = writeln!(
                    figures,
                    "           {}: {:.2} ms instead of {:.2} ms ({:+.0} %)",
                    item.load.name(),
                    item.actual_ms,
                    item.aligned_ms,
                    // Rounding could leave a negative zero.
                    item.percent().round() + 0.0
                );
            }
            let _ = write!(text, "         cost on {}{typical}:", cost.profile);
            if costs.contains(&figures) {
                text.push_str(" the same figures as above\n");
            } else {
                let _ = write!(text, "\n{figures}");
                costs.insert(figures);
            }
        }
        Err(why) if finding.severity > Severity::Info => {
            let _ = writeln!(text, "         no cost given: {why}");
        }
        Err(_) => {}
    }
}

/// Writes the fix of a finding. A note without commands that an earlier finding of the same rule
/// had is replaced with a reference to the layer of that finding.
fn write_fix<'a>(
    text: &mut String,
    stack: &Stack,
    row: &'a ReportRow,
    notes: &mut HashMap<(Rule, &'a str), LayerId>,
) {
    let Some(fix) = &row.fix else { return };
    let finding = &row.finding;
    if fix.commands.is_empty()
        && let Some(&first) = notes.get(&(finding.rule, fix.note.as_str()))
    {
        let reference = format!("the same as for {} above", with_drive(stack, first));
        let shorter = [reference.as_str(), &fix.note]
            .into_iter()
            .min_by_key(|text| text.len());
        let _ = writeln!(text, "         fix: {}", shorter.unwrap_or_default());
        return;
    }
    notes.insert((finding.rule, &fix.note), finding.layer);
    let _ = writeln!(text, "         fix: {}", fix.note);
    // A pasted block stops at the first command that fails.
    if !fix.commands.is_empty() {
        let _ = writeln!(text, "           {}", fix.commands.join(" &&\n           "));
    }
}

/// Returns the title of a layer with the drive that it lies on, if it lies in one piece and the
/// title does not name the drive.
fn with_drive(stack: &Stack, id: LayerId) -> String {
    let title = stack.title(id);
    match stack.in_one_piece(id) {
        Some((drive, _)) if !title.ends_with(&stack.layer(drive).name) => {
            format!("{title} of {}", stack.layer(drive).name)
        }
        _ => title,
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "note",
        Severity::Warning => "warning",
        Severity::Fault => "FAULT",
    }
}

struct Picture<'a> {
    stack: &'a Stack,
    findings: &'a [&'a Finding],
    drawn: Vec<bool>,
    text: String,
}

impl Picture<'_> {
    fn line(&mut self, indent: &str, words: &str, id: LayerId) {
        self.drawn[id.0] = true;
        let mut line = format!("{indent}{words}");
        let mut marks: Vec<&Finding> = self
            .findings
            .iter()
            .copied()
            .filter(|finding| finding.layer == id)
            .collect();
        marks.dedup_by_key(|finding| finding.rule);
        for finding in marks {
            let sign = match finding.severity {
                Severity::Info => '·',
                Severity::Warning => '!',
                Severity::Fault => '✗',
            };
            let _ = write!(line, "  {sign} {}", finding.rule.id());
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn branches(&mut self, id: LayerId, indent: &str) {
        let layers: Vec<(LayerId, &Layer)> = self.stack.above(id).collect();
        for (index, &(above, layer)) in layers.iter().enumerate() {
            let is_last = index + 1 == layers.len();
            let (branch, further) = if is_last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            if self.drawn[above.0] {
                // A layer on several others is drawn once, as a branch of the first of them.
                let _ = writeln!(self.text, "{indent}{branch}→ {}", layer.name);
                continue;
            }
            self.line(&format!("{indent}{branch}"), &self.words(id, layer), above);
            self.branches(above, &format!("{indent}{further}"));
        }
    }

    fn words(&self, below: LayerId, layer: &Layer) -> String {
        let place = layer.on.iter().find(|place| place.layer == below);
        let start = place.map_or(0, |place| place.start);
        let at = if start > 0 {
            format!("  at {}", bytes(start))
        } else {
            String::new()
        };
        let name = match &layer.kind {
            Kind::Unknown(_) => "",
            _ => layer.name.as_str(),
        };
        format!("{name}{at}  {}", describe(layer))
            .trim_start()
            .to_owned()
    }
}

/// Describes a layer in a few words.
fn describe(layer: &Layer) -> String {
    let size = bytes(layer.bytes);
    match &layer.kind {
        Kind::Disk(disk) => self::disk(disk, &size),
        Kind::Table(table) => format!("sectors of {}", bytes(table.sector_bytes)),
        Kind::Partition(partition) => {
            let role = match partition.role {
                PartitionRole::Primary => "",
                PartitionRole::Extended => ", extended",
                PartitionRole::Logical => ", logical",
            };
            format!("{size}{role}, from sector {}", partition.first_sector)
        }
        Kind::MdMember(member) => format!(
            "{}, data from {}{}",
            member.version,
            bytes(member.data_start),
            if member.is_reshaping {
                ", being reshaped"
            } else {
                ""
            }
        ),
        Kind::Array(array) if array.chunk_bytes > 0 => format!(
            "{size}, {} of {}, chunks of {}, full stripe {}",
            array.level.name(),
            array.members,
            bytes(array.chunk_bytes),
            bytes(array.stripe_bytes)
        ),
        Kind::Array(array) => format!("{size}, {} of {}", array.level.name(), array.members),
        Kind::PhysicalVolume(volume) => match &volume.group {
            Some(group) => format!(
                "of {group}, data from {}, extents of {}",
                bytes(volume.data_start),
                bytes(volume.extent_bytes)
            ),
            None => format!("of no group, data from {}", bytes(volume.data_start)),
        },
        Kind::LogicalVolume(volume) if volume.chunk_bytes > 0 => {
            format!(
                "{size}, {}, chunks of {}",
                volume.segment,
                bytes(volume.chunk_bytes)
            )
        }
        Kind::LogicalVolume(volume) => format!("{size}, {}", volume.segment),
        Kind::ThinPool(pool) => format!("{size}, thin pool, chunks of {}", bytes(pool.chunk_bytes)),
        Kind::Luks(luks) => {
            format!(
                "data from {}, sectors of {}",
                bytes(luks.data_start),
                bytes(luks.sector_bytes)
            )
        }
        Kind::Opened(opened) => format!("{size}, {} ({})", opened.title, opened.by.name()),
        Kind::Ext(ext) => {
            let mut words = format!("blocks of {}", bytes(ext.block_bytes));
            if ext.stride_blocks > 0 {
                let _ = write!(
                    words,
                    ", stride {}, stripe width {}",
                    ext.stride_blocks, ext.stripe_blocks
                );
            }
            words
        }
        Kind::Xfs(xfs) => {
            let mut words = format!(
                "blocks of {}, sectors of {}",
                bytes(xfs.block_bytes),
                bytes(xfs.sector_bytes)
            );
            if xfs.unit_bytes > 0 {
                let _ = write!(
                    words,
                    ", stripe unit {}, width {}",
                    bytes(xfs.unit_bytes),
                    bytes(xfs.width_bytes)
                );
            }
            words
        }
        Kind::Btrfs(btrfs) => {
            format!(
                "sectors of {}, nodes of {}",
                bytes(btrfs.sector_bytes),
                bytes(btrfs.node_bytes)
            )
        }
        Kind::Zfs(zfs) => match zfs.ashift {
            Some(ashift) => format!("{}, ashift {ashift}", zfs.vdev),
            None => format!("{}, ashift not stated", zfs.vdev),
        },
        Kind::Swap(swap) => format!("pages of {}", bytes(swap.page_bytes)),
        Kind::Unknown(unknown) => match unknown {
            Unknown::Named(name) => name.clone(),
            Unknown::Container(format) => format!("{format} image, not examined"),
            Unknown::Blank => "blank".to_owned(),
            Unknown::Nameless => "unknown".to_owned(),
            Unknown::Headless { .. } => "data without a header".to_owned(),
            Unknown::Elsewhere(_) => "not examined".to_owned(),
            Unknown::Unreadable(_) => "cannot be read".to_owned(),
            Unknown::Damaged(_) => "damaged".to_owned(),
            Unknown::Remnant(remnant) => format!("left over: {}", remnant.what),
            _ => "unknown".to_owned(),
        },
        _ => size,
    }
}

fn disk(disk: &Disk, size: &str) -> String {
    let mut words = size.to_owned();
    if let Some(model) = &disk.model {
        let _ = write!(words, ", {model}");
    }
    let by = match disk.physical_by {
        SizeSource::Stated => "as stated",
        SizeSource::Measured => "as measured",
        SizeSource::Quirk => "known for its model",
        SizeSource::Kernel => "from the kernel",
        SizeSource::Assumed => "assumed",
        _ => "unknown source",
    };
    let _ = write!(
        words,
        ", sectors {}/{} ({by})",
        disk.logical_bytes, disk.physical_bytes
    );
    let medium = match disk.medium {
        MediaKind::Unknown | MediaKind::Rotating => "",
        MediaKind::ShingledHidden => ", shingled",
        MediaKind::ShingledHostAware => ", shingled, host-aware",
        MediaKind::ShingledHostManaged => ", shingled, host-managed",
        MediaKind::SolidState => ", solid-state",
        MediaKind::SolidStateZoned => ", solid-state, zoned",
        _ => "",
    };
    words + medium
}
