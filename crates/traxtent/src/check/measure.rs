//! `--measure`: measurement of a device's properties by timing, and the range that may be
//! overwritten for it.

use std::fs;
use std::io::{BufRead, IsTerminal, Write, stderr, stdin};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use traxtent_check::layers::{MediaKind, Unknown, first_data};
use traxtent_check::measure::{GridMeasurement, MeasuredGrid, apply_measured, read_time};
use traxtent_check::report::Measurement;
use traxtent_check::source::FileSource;
use traxtent_check::stack::{ByteRange, Spread};
use traxtent_check::{Kind, LayerId, Stack};
use traxtent_io::device::BlockTarget;
use traxtent_io::device::guard::volume_on;
use traxtent_probe::{
    Identity, ObservedTarget, Target, TargetError, TargetObserver, TargetOperation,
};
use traxtent_server::remaining_time::estimated;
use traxtent_units::{Count, Lbn, SimTime, Span};

use crate::failure::{Failure, Result, note, warn};
use crate::parse;
use crate::progress::Progress;
use traxtent_check::content::all_content;

/// The properties to measure, and the range that the measurements may overwrite.
#[derive(clap::Args, Debug)]
pub(super) struct Measure {
    /// Measure the drive's properties by timing and use the results: everything that can be
    /// measured, or the named properties
    #[arg(
        long,
        value_name = "WHAT",
        value_parser = grids(),
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        conflicts_with_all = ["collect", "quiet"]
    )]
    measure: Option<Vec<MeasuredGrid>>,
    /// LBNs that --measure may overwrite; the physical sector and the erase block are found by
    /// writing
    #[arg(long, value_name = "FIRST..END", value_parser = parse::lbns, requires = "measure")]
    scratch: Option<Range<Lbn>>,
    /// Overwrite --scratch without asking
    #[arg(long, requires = "scratch")]
    yes: bool,
    /// The seed of --measure
    #[arg(long, value_name = "N", default_value_t = 1, requires = "measure")]
    seed: u64,
}

fn grids() -> impl TypedValueParser<Value = MeasuredGrid> {
    PossibleValuesParser::new(MeasuredGrid::all().map(MeasuredGrid::name)).map(|name| {
        let mut all = MeasuredGrid::all().into_iter();
        all.find(|grid| grid.name() == name)
            .expect("only names pass")
    })
}

impl Measure {
    pub(super) fn is_requested(&self) -> bool {
        self.measure.is_some()
    }

    /// Measures the requested properties of the only target, and updates its stack with the
    /// results.
    pub(super) fn measure(
        &self,
        targets: &[PathBuf],
        stack: &mut Stack,
    ) -> Result<Vec<Measurement>> {
        let Some(requested) = &self.measure else {
            return Ok(Vec::new());
        };
        let [path] = targets else {
            return Err(Failure::input("--measure needs exactly one block device"));
        };
        let path = fs::canonicalize(path).map_err(|error| Failure::file(path, &error))?;
        let metadata = fs::metadata(&path).map_err(|error| Failure::file(&path, &error))?;
        let node = path.to_string_lossy().into_owned();
        let layers = || {
            stack
                .layers
                .iter()
                .filter(|layer| layer.node.as_ref() == Some(&node))
        };
        if !metadata.file_type().is_block_device() || layers().next().is_none() {
            return Err(Failure::input(format!(
                "--measure: {node} is not a block device; a file has no timing of its own"
            )));
        }
        if layers().any(|layer| matches!(layer.kind, Kind::Partition(_))) {
            return Err(Failure::input(format!(
                "--measure: {node} is a partition; name its drive"
            )));
        }
        let limits = layers().find_map(|layer| layer.limits.clone());
        let limits = limits.unwrap_or_default();
        let mut medium = layers().filter_map(|layer| match &layer.kind {
            Kind::Disk(disk) => Some(disk.medium),
            _ => None,
        });
        let grids = self.grids(requested, medium.next().unwrap_or(MediaKind::Unknown))?;
        let mut target =
            BlockTarget::open(&path).map_err(|error| Failure::Io(error.to_string()))?;
        target.notes().iter().for_each(note);
        if let Some(scratch) = &self.scratch
            && grids.iter().any(|grid| grid.writes())
        {
            self.confirm(scratch, &node, &target, stack)?;
            target
                .allow_writes(scratch.clone(), self.seed)
                .map_err(|error| Failure::Io(error.to_string()))?;
        }
        let failed = |error: TargetError| Failure::Io(format!("{node}: {error}"));
        let read_time = read_time(&mut target, self.seed).map_err(failed)?;
        let announced = announcement(&grids, target.identity(), read_time);
        note(format!("measuring {node}, seed {}: {announced}", self.seed));
        let shown = ShownRequests(Progress::new("requests", None));
        let mut target = ObservedTarget::new(target, shown);
        let mut found: Vec<GridMeasurement> = Vec::new();
        for grid in grids {
            let measured = grid.measure(&mut target, self.scratch.clone(), self.seed);
            found.push(measured.map_err(failed)?);
        }
        drop(target);
        apply_measured(stack, &node, &found);
        let to_measurement = |measured: GridMeasurement| Measurement {
            node: node.clone(),
            claimed_bytes: measured.grid.claimed(&limits),
            measured,
        };
        Ok(found.into_iter().map(to_measurement).collect())
    }

    /// Returns the requested measurements, or all that suit the drive if none is named.
    fn grids(&self, requested: &[MeasuredGrid], medium: MediaKind) -> Result<Vec<MeasuredGrid>> {
        let writes = self.scratch.is_some();
        if let Some(grid) = requested.iter().find(|grid| grid.writes() && !writes) {
            return Err(Failure::input(format!(
                "--measure={} writes to the drive; name LBNs that may be overwritten with --scratch FIRST..END",
                grid.name()
            )));
        }
        if !requested.is_empty() {
            return Ok(requested.to_vec());
        }
        let suits = |grid: &MeasuredGrid| match grid {
            MeasuredGrid::Chunk => true,
            MeasuredGrid::PhysicalSector => writes,
            MeasuredGrid::EraseBlock => writes && medium != MediaKind::Rotating,
        };
        Ok(MeasuredGrid::all().into_iter().filter(suits).collect())
    }

    /// Refuses a range that belongs to one of this project's volumes. Otherwise prints the range
    /// that will be overwritten and the known layers in it, and asks for confirmation unless
    /// `--yes` is given.
    fn confirm(
        &self,
        scratch: &Range<Lbn>,
        node: &str,
        target: &BlockTarget,
        stack: &Stack,
    ) -> Result<()> {
        let identity = target.identity();
        if scratch.end.0 > identity.capacity.0 {
            return Err(Failure::input(format!(
                "--scratch: {node} has LBNs 0..{}",
                identity.capacity.0
            )));
        }
        let logical = u64::from(identity.logical_bytes);
        let (start, end) = (scratch.start.0 * logical, scratch.end.0 * logical);
        let ids = layers_in(stack, node, &(start..end));
        refuse_volumes(stack, node, &ids)?;
        let mut there: Vec<String> = ids.iter().map(|id| stack.title(*id)).collect();
        let is_table = |id: &LayerId| matches!(stack.layer(*id).kind, Kind::Table(_));
        if ids.iter().all(is_table)
            && let Some(byte) = data_in(node, start..end)?
        {
            there.push(format!("data of an unknown format (at byte {byte})"));
        }
        let there = match there.as_slice() {
            [] => "no known layer is there".to_owned(),
            layers => format!("layers there: {}", layers.join(", ")),
        };
        warn(format!(
            "LBNs {}..{} of {node}, bytes {start}..{end}, will be overwritten; {there}",
            scratch.start, scratch.end
        ));
        if self.yes {
            return Ok(());
        }
        if !stdin().is_terminal() {
            return Err(Failure::input(
                "--scratch: standard input is not a terminal; use --yes to overwrite without asking",
            ));
        }
        write!(stderr(), "Overwrite them? yes or no: ")?;
        stderr().flush()?;
        let mut answer = String::new();
        stdin().lock().read_line(&mut answer)?;
        match answer.trim() {
            "yes" => Ok(()),
            _ => Err(Failure::input("--scratch: nothing has been overwritten")),
        }
    }
}

/// Returns what the measurements do, and the time that they take if each request takes as long as a
/// read.
fn announcement(grids: &[MeasuredGrid], identity: &Identity, read_time: Span) -> String {
    let requests = grids.iter().map(|grid| grid.requests(identity));
    let (usual, most) = requests.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let what = if grids.iter().any(|grid| grid.writes()) {
        "it reads, and writes to --scratch"
    } else {
        "it only reads"
    };
    format!("{what}; {}", times_of(usual, most, read_time))
}

/// Returns the times that the `usual` and the largest number of requests take.
fn times_of(usual: u64, most: u64, read_time: Span) -> String {
    let time = |requests: u64| Duration::from_millis((read_time.as_ms() * requests as f64) as u64);
    let about = match time(usual) {
        short if short < Duration::from_secs(1) => "",
        _ => "about ",
    };
    let (usual_time, most_time) = (estimated(time(usual)), estimated(time(most)));
    let usually = format!("{about}{usual_time} for {}", Count(usual, "request"));
    if most == usual {
        usually
    } else if most_time == usual_time {
        format!("{usually}, or for up to {most} if times vary")
    } else {
        format!("{usually}, or up to {most_time} for {most} if times vary")
    }
}

/// Refuses to overwrite this project's volumes. The kernel does not recognize them, so it considers
/// the members of a stopped volume unused.
fn refuse_volumes(stack: &Stack, node: &str, overwritten: &[LayerId]) -> Result<()> {
    let refusal = |holder: &str, what: &str| {
        Err(Failure::input(format!(
            "--scratch: {holder} holds {what}; `traxtent volume destroy` removes its superblocks"
        )))
    };
    let node_content = |node: &str| {
        let path = Path::new(node);
        volume_on(path).and_then(|_| all_content(path))
    };
    if let Some(what) = node_content(node) {
        return refusal(node, &what);
    }
    for layer in overwritten.iter().map(|id| stack.layer(*id)) {
        if let Some(node) = &layer.node
            && let Some(what) = node_content(node)
        {
            return refusal(node, &what);
        }
        if let (Kind::Unknown(unknown), [place]) = (&layer.kind, layer.on.as_slice())
            && unknown.is_traxtent_volume()
        {
            let what = unknown.noun_phrase().unwrap_or_default();
            return refusal(&stack.layer(place.layer).name, &what);
        }
    }
    Ok(())
}

/// Returns the offset of the first byte of data that samples of a range find; `None` if all of them
/// are zero.
fn data_in(node: &str, range: Range<u64>) -> Result<Option<u64>> {
    let source = FileSource::open(Path::new(node))
        .map_err(|error| Failure::file(Path::new(node), &error))?;
    first_data(&source, range).map_err(|error| Failure::Io(format!("{node}: {error}")))
}

/// Returns the layers above a device that have, or may have, bytes in a range of the device. Blank
/// contents are omitted.
fn layers_in(stack: &Stack, node: &str, range: &Range<u64>) -> Vec<LayerId> {
    // The start of each layer on the device; `None` if the layer is not on the device. The inner
    // value is `None` if the layer's pieces are scattered. Layers come after those below them.
    let mut starts: Vec<Option<Option<u64>>> = Vec::new();
    let mut there = Vec::new();
    for (id, layer) in stack.iter() {
        let is_device = layer.node.as_deref() == Some(node);
        let below = |place: &ByteRange| starts.get(place.layer.0).copied().flatten();
        let start = match layer.on.as_slice() {
            _ if is_device => Some(Some(0)),
            [place] if layer.spread == Spread::Joined => {
                below(place).map(|start| start.and_then(|start| start.checked_add(place.start)))
            }
            places => places.iter().find_map(below).map(|_| None),
        };
        starts.push(start);
        let is_known = !matches!(layer.kind, Kind::Disk(_) | Kind::Unknown(Unknown::Blank));
        let is_there = match start {
            None => false,
            Some(None) => true,
            Some(Some(start)) => {
                start < range.end && range.start < start.saturating_add(layer.bytes)
            }
        };
        if is_there && is_known && !is_device {
            there.push(id);
        }
    }
    there
}

/// An observer that shows the number of requests as progress.
struct ShownRequests(Progress);

impl TargetObserver for ShownRequests {
    fn after(&mut self, operation: TargetOperation, _: SimTime, _: Option<&TargetError>) {
        if operation == TargetOperation::Request {
            self.0.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use traxtent_units::Sectors;

    use super::*;

    /// Is each time announced once, and is a short one not called approximate?
    #[test]
    fn announced_times() {
        for (usual, most, says) in [
            (
                3,
                9,
                "less than a second for 3 requests, or for up to 9 if times vary",
            ),
            (3, 3, "less than a second for 3 requests"),
            (
                9,
                900,
                "less than a second for 9 requests, or up to 9 s for 900 if times vary",
            ),
            (
                500,
                900,
                "about 5 s for 500 requests, or up to 9 s for 900 if times vary",
            ),
        ] {
            assert_eq!(times_of(usual, most, Span::from_ms(10.0)), says);
        }
    }

    /// Does the announcement say what is done and how long it takes, for reads alone and with
    /// writes?
    #[test]
    fn measurements_are_announced() {
        let identity = Identity {
            capacity: Sectors(1 << 31),
            logical_bytes: 512,
            ..Identity::default()
        };
        let announced = |grids: &[MeasuredGrid]| announcement(grids, &identity, Span::from_ms(8.0));
        assert_eq!(
            announced(&[MeasuredGrid::Chunk]),
            "it only reads; about 47 s for 5850 requests, or up to 4 min for 23400 if times vary"
        );
        assert_eq!(
            announced(&[MeasuredGrid::PhysicalSector]),
            "it reads, and writes to --scratch; about 23 s for 2800 requests"
        );
    }
}
