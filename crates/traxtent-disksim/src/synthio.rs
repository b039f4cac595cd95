//! The synthetic workload (`disksim_synthio`) of a DiskSim parameter file.

use super::drive::ms;
use super::ignored::GENERATOR_KEYS;
use super::params::{Block, Document, Node, ParamError, in_key};
use super::required::{PROCESSES_REQUIRED, SYNTHIO_REQUIRED, warn_of_missing};
use super::synthio_places::SynthioPlaces;
use std::rc::Rc;
use traxtent_units::{Count, SimTime, Span};
use traxtent_workload::{Distribution, SynthioGenerator, SynthioSpec};

/// The required parameters of a `disksim_synthio` block without which there is no workload.
const KEYS: &[&str] = &["Number of I/O requests to generate", TIME, "Generators"];

/// The key of the time limit, in seconds.
const TIME: &str = "Maximum time of trace generated";

/// The greatest sum of probabilities of which one draw decides, with room for rounding.
const SUM_MAX: f64 = 1.0 + 1e-9;
/// A message shows a sum in steps of 1 divided by this.
const SUM_SHOWN: f64 = 1e6;

/// A function that returns the numbers of the devices to which a name refers.
pub(super) type Devices<'a> = dyn Fn(&Node) -> Result<Rc<[u32]>, ParamError> + 'a;

/// Returns the synthetic workload of a file and the places of its parameters, if it has one. Adds
/// warnings about missing parameters and about probabilities whose sum exceeds 1.
pub(super) fn load(
    document: &Document,
    devices: &Devices<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<(SynthioSpec, SynthioPlaces)>, ParamError> {
    let Some(block) = document
        .blocks()
        .find(|block| block.kind == "disksim_synthio")
    else {
        return Ok(None);
    };
    block.require_keys(KEYS)?;
    let process_flow = document.blocks().find(|block| block.kind == "disksim_pf");
    let processors = match process_flow {
        Some(flow) => {
            warn_of_missing(flow, PROCESSES_REQUIRED, warnings);
            let stated = flow.get_bounded("Number of processors", 1u32, 1 << 16)?;
            stated.unwrap_or(1)
        }
        None => {
            warnings.push(format!(
                "{}:{}: there is no disksim_pf block, which DiskSim requires for a synthetic \
                 workload; 1 processor is used",
                block.file, block.line
            ));
            1
        }
    };
    let mut generators = Vec::new();
    for node in block.require_list("Generators")? {
        let block = in_key("Generators", node.block())?;
        generators.push(generator(block, devices)?);
        warn_of_sums(block, warnings);
    }
    warn_of_missing(block, SYNTHIO_REQUIRED, warnings);
    let think = |key: &str| ms(block, key).map(Span::from_ms);
    let (call, back) = (
        think("Think time from call to request")?,
        think("Think time from request to return")?,
    );
    let calls = block.get_flag("System call/return with each request")?;
    let system_calls = (calls == Some(true)).then_some((call, back));
    let seconds = block.require_f64(TIME)?;
    if seconds <= 0.0 {
        let problem = format!("{TIME} = {seconds}: must be more than 0 s");
        return Err(block.require(TIME)?.error(problem));
    }
    let spec = SynthioSpec {
        count: block
            .require_int("Number of I/O requests to generate")?
            .max(0) as u64,
        time: SimTime::from_ms(seconds * 1e3),
        processors,
        system_calls,
        generators,
    };
    let places = SynthioPlaces::new(block, process_flow.map(|flow| &**flow))?;
    Ok(Some((spec, places)))
}

fn generator(block: &Block, devices: &Devices<'_>) -> Result<SynthioGenerator, ParamError> {
    block.check_kind("disksim_synthgen")?;
    block.require_keys(GENERATOR_KEYS)?;
    let mut numbers = Vec::new();
    for node in block.require_list("devices")? {
        numbers.extend_from_slice(&devices(node)?);
    }
    let probability = |key: &str| block.require_f64(key);
    let distribution = |key: &str| in_key(key, distribution(block.require(key)?));
    Ok(SynthioGenerator {
        devices: numbers,
        device_sectors: block.require_int("Storage capacity per device")?.max(0) as u64,
        block_sectors: block.require_bounded("Blocking factor", 1u32, 1 << 24)?,
        sequential: probability("Probability of sequential access")?,
        local: probability("Probability of local access")?,
        read: probability("Probability of read access")?,
        critical: probability("Probability of time-critical request")?,
        limited: probability("Probability of time-limited request")?,
        limits: distribution("Time-limited think times")?,
        general: distribution("General inter-arrival times")?,
        sequential_gaps: distribution("Sequential inter-arrival times")?,
        local_gaps: distribution("Local inter-arrival times")?,
        distances: distribution("Local distances")?,
        sizes: distribution("Sizes")?,
    })
}

/// Adds a warning for each pair of probabilities of which one draw decides, if their sum exceeds 1.
/// DiskSim accepts them: the second is then the rest that the first leaves.
fn warn_of_sums(block: &Block, warnings: &mut Vec<String>) {
    for [first, second] in [
        ["sequential access", "local access"],
        ["time-critical request", "time-limited request"],
    ] {
        let [first, second] = [first, second].map(|of| format!("Probability of {of}"));
        let (Some(one), Some(other)) = (block.number(&first), block.number(&second)) else {
            continue;
        };
        let sum = one + other;
        if sum > SUM_MAX {
            let shown = (sum * SUM_SHOWN).round() / SUM_SHOWN;
            warnings.push(format!(
                "{}: \"{first}\" = {one} and \"{second}\" = {other} sum to {shown}; as in \
                 DiskSim, the second is only what the first leaves of 1",
                block.place_of(&second)
            ));
        }
    }
}

fn distribution(node: &Node) -> Result<Distribution, ParamError> {
    let [kind, values @ ..] = node.list()? else {
        return Err(node.error("a distribution must begin with its name"));
    };
    let values = values
        .iter()
        .map(Node::f64)
        .collect::<Result<Vec<_>, _>>()?;
    match (kind.str()?, &values[..]) {
        ("uniform", &[low, high]) => Ok(Distribution::Uniform { low, high }),
        ("normal", &[mean, deviation]) => Ok(Distribution::Normal { mean, deviation }),
        ("exponential", &[base, mean]) => Ok(Distribution::Exponential { base, mean }),
        ("poisson", &[base, mean]) => Ok(Distribution::Poisson { base, mean }),
        ("twovalue", &[_, _, probability]) if !(0.0..=1.0).contains(&probability) => {
            Err(node.error(format!(
                "the probability of twovalue, its third number, is {probability}; must be from 0 to 1"
            )))
        }
        ("twovalue", &[first, second, probability]) => Ok(Distribution::two_value(first, second, probability)),
        (name, values) => Err(node.error(format!(
            "{name} with {} is not a distribution; expected uniform, normal, exponential or poisson with 2 numbers, or twovalue with 3",
            Count(values.len(), "number")
        ))),
    }
}
