//! The places of a synthetic workload's parameters in the file.
//!
//! The generators are checked when the workload begins, because a file can be loaded for its disks
//! alone. An error then refers to the parameter in the user's file.

use super::parameter_source::shown;
use super::params::{Block, Node, ParamError};
use traxtent_workload::SynthioError;

/// The places of the parameters of a `disksim_synthio` block.
#[derive(Clone, Debug)]
pub(super) struct SynthioPlaces {
    block: Place,
    /// The parameters of the whole workload.
    set: Vec<Parameter>,
    generators: Vec<Generator>,
}

#[derive(Clone, Debug)]
struct Generator {
    block: Place,
    parameters: Vec<Parameter>,
}

/// A parameter and its value as text.
#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    value: String,
    place: Place,
}

#[derive(Clone, Debug)]
struct Place {
    file: String,
    line: u32,
}

/// The parameters that [`SynthioError`] and DiskSim's files name differently: the error's name, and
/// the file's.
const OTHER_NAMES: [(&str, &str); 1] =
    [("number of requests", "Number of I/O requests to generate")];

impl SynthioPlaces {
    /// Returns the places of the parameters in a `disksim_synthio` block and in the file's
    /// `disksim_pf` block.
    pub(super) fn new(
        block: &Block,
        process_flow: Option<&Block>,
    ) -> Result<SynthioPlaces, ParamError> {
        let generators = block.require_list("Generators")?.iter();
        let generators = generators.map(|node| {
            let block = node.block()?;
            Ok(Generator {
                block: Place::of_block(block),
                parameters: parameters(block).collect(),
            })
        });
        Ok(SynthioPlaces {
            block: Place::of_block(block),
            set: parameters(block)
                .chain(process_flow.into_iter().flat_map(parameters))
                .collect(),
            generators: generators.collect::<Result<_, _>>()?,
        })
    }

    /// Returns an error about the workload as a whole.
    pub(super) fn at_block(&self, problem: String) -> ParamError {
        self.block.error(problem)
    }

    /// Converts an error to one that refers to the parameter in the file.
    pub(super) fn error(&self, error: &SynthioError) -> ParamError {
        match error {
            SynthioError::Set {
                name,
                value,
                expected,
            } => at_parameter(&self.set, &self.block, "", (name, value, expected)),
            SynthioError::Generator {
                generator,
                name,
                value,
                expected,
            } => {
                let number = format!("generator {generator}: ");
                match self.generators.get(*generator) {
                    Some(Generator { block, parameters }) => {
                        at_parameter(parameters, block, &number, (name, value, expected))
                    }
                    None => self.at_block(error.to_string()),
                }
            }
            _ => self.at_block(error.to_string()),
        }
    }
}

/// Returns the error at the parameter, or at the block if the parameter is absent. `found` holds
/// the parameter's name, its value, and a description of the values expected.
fn at_parameter(
    parameters: &[Parameter],
    block: &Place,
    prefix: &str,
    found: (&str, &str, &str),
) -> ParamError {
    let (name, value, expected) = found;
    let other = OTHER_NAMES.iter().find(|(known, _)| *known == name);
    let name = other.map_or(name, |(_, key)| key);
    match parameters
        .iter()
        .find(|one| one.name.eq_ignore_ascii_case(name))
    {
        Some(one) => {
            let (name, value) = (&one.name, &one.value);
            one.place
                .error(format!("{prefix}{name} = {value}: {expected}"))
        }
        None => block.error(format!("{prefix}{name}: {value}: {expected}")),
    }
}

fn parameters(block: &Block) -> impl Iterator<Item = Parameter> {
    block.params().map(|(name, node)| Parameter {
        name: name.to_owned(),
        value: shown(block, name, &node.value),
        place: Place::of_node(node),
    })
}

impl Place {
    fn of_block(block: &Block) -> Place {
        Place {
            file: block.file.to_string(),
            line: block.line,
        }
    }

    fn of_node(node: &Node) -> Place {
        Place {
            file: node.file.to_string(),
            line: node.line,
        }
    }

    fn error(&self, problem: String) -> ParamError {
        ParamError {
            file: self.file.clone(),
            line: self.line,
            problem,
        }
    }
}
