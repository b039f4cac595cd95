//! Wrong hints: values that the kernel reports for a device, but that are impossible or known to be
//! wrong.
//!
//! Sources: util-linux issues 1221 and 1224, blivet 228 (33,553,920 bytes); paper A (512 bytes from
//! drives of 4096); reports of USB bridges that translate sectors.

use std::path::Path;

use super::{Findings, bytes, sizes, starts};
use crate::finding::{Finding, Rule, Severity};
use crate::layers::{Disk, SizeSource};
use crate::quirks;
use crate::stack::{Kind, Layer, LayerId, Limits, Stack};

/// The optimal I/O size of 65,535 sectors, which bridges report if they have no information about
/// the drive.
const BOGUS_OPTIMAL_BYTES: u64 = 65_535 * 512;

/// The size of the physical sectors of most drives, in bytes.
const USUAL_PHYSICAL_BYTES: u64 = 4096;

pub(super) fn check(stack: &Stack, findings: &mut Findings) {
    for (id, layer) in stack.iter() {
        findings.extend(loop_device(stack, id));
        let mut say = |rule, what: String| findings.push(Finding::new(rule, id, what));
        if let Kind::Disk(disk) = &layer.kind {
            drive(layer, disk, &mut say);
        }
        // A partition repeats the limits of its drive.
        if let Some(limits) = &layer.limits
            && !matches!(layer.kind, Kind::Partition(_))
        {
            limit_sizes(layer, limits, &mut say);
        }
        if let Some(limits) = &layer.limits
            && limits.alignment_offset == Some(-1)
        {
            let what = format!(
                "the kernel finds no alignment of {} that fits all layers below it",
                layer.name
            );
            say(Rule::AlignmentOffset, what);
        }
    }
}

/// Returns a note on a loop device whose content would be misaligned on a drive with the usual
/// physical sectors. A loop device does not report those of the drive below its file.
fn loop_device(stack: &Stack, id: LayerId) -> Option<Finding> {
    let layer = stack.layer(id);
    let Kind::Disk(disk) = &layer.kind else {
        return None;
    };
    let node = Path::new(layer.node.as_ref()?).file_name()?;
    let is_loop = node.to_str()?.starts_with("loop");
    if !is_loop || disk.physical_by != SizeSource::Kernel || disk.physical_bytes != 512 {
        return None;
    }
    let problems = |stack: &Stack| {
        let mut findings = Findings::new();
        starts::check(stack, &mut findings);
        sizes::check(stack, &mut findings);
        let severe = findings.iter().filter(|one| one.severity > Severity::Info);
        severe.count()
    };
    let mut usual = stack.clone();
    usual.layers[id.0].kind = Kind::Disk(Disk {
        physical_bytes: USUAL_PHYSICAL_BYTES,
        ..disk.clone()
    });
    let name = &layer.name;
    (problems(&usual) > problems(stack)).then(|| {
        let what = format!(
            "{name} is a loop device, which reports physical sectors of 512 B whatever the drive below its file has; on a drive with 4 KiB, its content would be misaligned"
        );
        Finding::new(Rule::HintPhysical, id, what).with_severity(Severity::Info)
    })
}

fn drive(layer: &Layer, disk: &Disk, say: &mut impl FnMut(Rule, String)) {
    let name = &layer.name;
    let shift = disk.first_aligned_byte % disk.physical_bytes;
    if shift != 0 {
        let what = format!(
            "LBN 0 of {name} does not begin a physical sector: the first that does is {} (a jumper can cause this); \
             begin partitions {} after multiples of {}",
            disk.first_aligned_byte / disk.logical_bytes,
            bytes(shift),
            bytes(disk.physical_bytes)
        );
        say(Rule::AlignmentOffset, what);
    }
    let claimed = layer
        .limits
        .as_ref()
        .and_then(|limits| limits.physical_bytes);
    if disk.physical_by == SizeSource::Quirk
        && let Some(claimed) = claimed
    {
        let source = disk.model.as_deref().and_then(quirks::find);
        let what = format!(
            "{name} reports physical sectors of {}; drives of its model have {} ({})",
            bytes(claimed),
            bytes(disk.physical_bytes),
            source.map_or("", |quirk| &quirk.source)
        );
        say(Rule::HintPhysical, what);
    }
    if disk.physical_by == SizeSource::Measured
        && let Some(claimed) = claimed
        && claimed != disk.physical_bytes
    {
        let what = format!(
            "{name} reports physical sectors of {}; the measured size is {}",
            bytes(claimed),
            bytes(disk.physical_bytes)
        );
        say(Rule::HintPhysical, what);
    }
    if disk.usb && disk.logical_bytes > 512 {
        let what = format!(
            "{name} is behind a USB bridge that reports sectors of {}; if the bridge translates sectors, nothing on the drive \
             can be found without it",
            bytes(disk.logical_bytes)
        );
        say(Rule::HintBridge, what);
    } else if disk.usb && claimed == Some(512) && disk.physical_by == SizeSource::Kernel {
        let what = format!(
            "{name} is behind a USB bridge that does not report physical sectors; they may have 4096 bytes \
             (use --physical-sector 4096)"
        );
        say(Rule::HintBridge, what);
    }
}

fn limit_sizes(layer: &Layer, limits: &Limits, say: &mut impl FnMut(Rule, String)) {
    let name = &layer.name;
    let physical = limits
        .physical_bytes
        .filter(|&bytes| bytes > 0)
        .unwrap_or(512);
    let optimal = limits.io_opt_bytes.unwrap_or(0);
    let minimum = limits.io_min_bytes.unwrap_or(0);
    if optimal == BOGUS_OPTIMAL_BYTES {
        let what = format!(
            "{name} states an optimal I/O size of 33553920 bytes, 65,535 sectors: the value of bridges that have no \
             information; alignment to it is useless"
        );
        say(Rule::HintOptimal, what);
    } else if !optimal.is_multiple_of(physical) {
        let what = format!(
            "{name} states an optimal I/O size of {optimal} bytes, not a multiple of its physical sector of {}",
            bytes(physical)
        );
        say(Rule::HintOptimal, what);
    } else if optimal > 0 && optimal < minimum {
        let what = format!(
            "{name} states an optimal I/O size of {optimal} bytes and a minimum of {minimum}"
        );
        say(Rule::HintOptimal, what);
    }
    if minimum > 0 && !minimum.is_multiple_of(physical) {
        let what = format!(
            "{name} states a minimum I/O size of {minimum} bytes, not a multiple of its physical sector of {}",
            bytes(physical)
        );
        say(Rule::HintMinimum, what);
    }
    let discard = limits.discard_bytes.unwrap_or(0);
    if !discard.is_multiple_of(physical) {
        let what = format!(
            "{name} states a discard granularity of {discard} bytes, not a multiple of its physical sector of {}",
            bytes(physical)
        );
        say(Rule::HintDiscard, what);
    }
}
