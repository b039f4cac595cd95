//! The synthetic workload (`disksim_synthio`) of a DiskSim parameter file.

use super::params::{Block, Document, Node, ParamError};
use super::synthio_places::SynthioPlaces;
use std::rc::Rc;
use traxtent_units::{Count, SimTime, Span};
use traxtent_workload::{Distribution, SynthioGenerator, SynthioSpec};

/// A function that returns the numbers of the devices to which a name refers.
pub(super) type Devices<'a> = dyn Fn(&Node) -> Result<Rc<[u32]>, ParamError> + 'a;

/// Returns the synthetic workload of a file and the places of its parameters, if it has one.
pub(super) fn load(
    document: &Document,
    devices: &Devices<'_>,
) -> Result<Option<(SynthioSpec, SynthioPlaces)>, ParamError> {
    let Some(block) = document
        .blocks()
        .find(|block| block.kind == "disksim_synthio")
    else {
        return Ok(None);
    };
    let process_flow = document.blocks().find(|block| block.kind == "disksim_pf");
    let processors = match process_flow {
        Some(flow) => flow
            .get_bounded("Number of processors", 1u32, 1 << 16)?
            .unwrap_or(1),
        None => 1,
    };
    let mut generators = Vec::new();
    for node in block.require_list("Generators")? {
        generators.push(generator(node.block()?, devices)?);
    }
    let system_calls = match block.get_int("System call/return with each request")? {
        Some(0) | None => None,
        Some(_) => Some((
            Span::from_ms(
                block
                    .get_f64("Think time from call to request")?
                    .unwrap_or(0.0),
            ),
            Span::from_ms(
                block
                    .get_f64("Think time from request to return")?
                    .unwrap_or(0.0),
            ),
        )),
    };
    let seconds = block.require_f64("Maximum time of trace generated")?;
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
    let mut numbers = Vec::new();
    for node in block.require_list("devices")? {
        numbers.extend_from_slice(&devices(node)?);
    }
    let probability = |key: &str| block.require_f64(key);
    Ok(SynthioGenerator {
        devices: numbers,
        device_sectors: block.require_int("Storage capacity per device")?.max(0) as u64,
        block_sectors: block.require_bounded("Blocking factor", 1u32, 1 << 24)?,
        sequential: probability("Probability of sequential access")?,
        local: probability("Probability of local access")?,
        read: probability("Probability of read access")?,
        critical: probability("Probability of time-critical request")?,
        limited: probability("Probability of time-limited request")?,
        limits: distribution(block.require("Time-limited think times")?)?,
        general: distribution(block.require("General inter-arrival times")?)?,
        sequential_gaps: distribution(block.require("Sequential inter-arrival times")?)?,
        local_gaps: distribution(block.require("Local inter-arrival times")?)?,
        distances: distribution(block.require("Local distances")?)?,
        sizes: distribution(block.require("Sizes")?)?,
    })
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
        ("twovalue", &[first, second, probability]) => Ok(Distribution::two_value(first, second, probability)),
        (name, values) => Err(node.error(format!(
            "{name} with {} is not a distribution; expected uniform, normal, exponential or poisson with 2 numbers, or twovalue with 3",
            Count(values.len(), "number")
        ))),
    }
}
