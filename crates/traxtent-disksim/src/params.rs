//! The parameter language (DiskSim's libparam): blocks of `key = value`, lists, included files.
//!
//! ```text
//! source NAME.diskspecs
//! disksim_bus BUS0 { type = 1, Arbitration type = 1 }
//! instantiate [ bus0 .. bus2 ] as BUS0
//! topology disksim_iodriver driver0 [ disksim_bus bus0 [ ] ]
//! ```

mod lexer;
mod parser;

use std::cell::Cell;
use std::rc::Rc;

use lexer::{Lexer, join};
use parser::Parser;
use traxtent_model::profile::nearest_name;

/// Below this, floating point can represent every whole number.
const WHOLE_MAX: f64 = (1_u64 << 53) as f64;

/// Supplies the text of a file to which another file refers. A relative path begins with the
/// directory of the file that refers to it, so it can be opened in the same way as the first file.
pub type Sources<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// An error in a DiskSim file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ParamError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The problem.
    pub problem: String,
}

/// A parameter file, including all files that it includes.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its statements, in order.
    pub entries: Vec<Entry>,
    /// The blocks with the name of an earlier one. As in DiskSim, they are ignored.
    pub redefinitions: Vec<Rc<Block>>,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Entry {
    /// `KIND NAME { … }`
    Block(Rc<Block>),
    /// `instantiate [ names ] as OF`
    Instances {
        /// The names, with ranges expanded.
        names: Vec<String>,
        /// The name of the block of which they are instances.
        of: String,
        /// The file.
        file: Rc<str>,
        /// The line.
        line: u32,
    },
    /// `topology KIND NAME [ … ]`
    Topology(Node),
}

/// A value and its place in the text.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The file.
    pub file: Rc<str>,
    /// The line, counted from 1.
    pub line: u32,
}

/// A value after a `=` or in a list.
#[derive(Clone, Debug)]
pub enum Value {
    /// A whole number of 64 bits without a decimal point or exponent.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Any other word.
    Str(String),
    /// `[ a, b, … ]`
    List(Vec<Node>),
    /// `KIND { … }` or `KIND NAME { … }`
    Block(Rc<Block>),
    /// `KIND NAME [ … ]`, a part of a topology.
    Device {
        /// The kind of device.
        kind: String,
        /// Its name.
        name: String,
        /// The devices connected to it.
        children: Vec<Node>,
    },
}

/// A block of parameters.
#[derive(Clone, Debug)]
pub struct Block {
    /// The first word. For a block derived from another one, the kind of that block.
    pub kind: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The file.
    pub file: Rc<str>,
    /// The line, counted from 1.
    pub line: u32,
    params: Vec<Param>,
}

#[derive(Clone, Debug)]
struct Param {
    key: String,
    node: Rc<Node>,
    used: Cell<bool>,
}

/// A parameter that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The kind of the block that contains it.
    pub block: String,
    /// Its key.
    pub key: String,
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

impl Document {
    /// Parses the file called `file` and all files that it includes.
    ///
    /// # Errors
    /// Returns an error if the text does not follow the grammar, if it exceeds one of the
    /// parser's limits, or if an included file is not available.
    pub fn parse(file: &str, text: &[u8], sources: &Sources<'_>) -> Result<Document, ParamError> {
        let mut parser = Parser::new(Lexer::new(file, text, sources))?;
        let mut document = Document {
            entries: Vec::new(),
            redefinitions: Vec::new(),
        };
        while !parser.is_at_end() {
            match parser.entry(&document)? {
                Entry::Block(block) if document.names(&block) => document.redefinitions.push(block),
                entry => document.entries.push(entry),
            }
        }
        Ok(document)
    }

    /// Iterates over the named top-level blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &Rc<Block>> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Block(block) => Some(block),
            _ => None,
        })
    }

    /// Returns the name of the first instance of a block, unless the name is itself that of an
    /// instance.
    pub(super) fn first_instance(&self, block: &str) -> Option<&str> {
        let instances = || {
            self.entries.iter().filter_map(|entry| match entry {
                Entry::Instances { names, of, .. } => Some((names, of)),
                _ => None,
            })
        };
        if instances().any(|(names, _)| names.iter().any(|name| name == block)) {
            return None;
        }
        let (names, _) = instances().find(|(_, of)| *of == block)?;
        names.first().map(String::as_str)
    }

    /// Returns the name of the block of an instance.
    pub(super) fn block_of_instance(&self, instance: &str) -> Option<&str> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Instances { names, of, .. } if names.iter().any(|name| name == instance) => {
                Some(of.as_str())
            }
            _ => None,
        })
    }

    /// Returns whether there is a block with the name of this one.
    fn names(&self, block: &Block) -> bool {
        let name = block.name.as_deref();
        name.is_some_and(|name| self.block(name).is_some())
    }

    /// Returns the top-level block with the given name.
    pub fn block(&self, name: &str) -> Option<&Rc<Block>> {
        self.blocks()
            .find(|block| block.name.as_deref() == Some(name))
    }
}

impl Node {
    /// Creates an error about this value.
    pub fn error(&self, problem: impl Into<String>) -> ParamError {
        ParamError {
            file: self.file.to_string(),
            line: self.line,
            problem: problem.into(),
        }
    }

    /// Returns the value as a whole number, which may be a [`Value::Float`] such as 1.0 or 1e3.
    ///
    /// # Errors
    /// Returns an error if it is not a whole number, or is a [`Value::Float`] and not between -2^53
    /// and 2^53.
    pub fn int(&self) -> Result<i64, ParamError> {
        match self.value {
            Value::Int(value) => Ok(value),
            Value::Float(value) if value.fract() == 0.0 && value.abs() < WHOLE_MAX => {
                Ok(value as i64)
            }
            _ => Err(self.error(format!("{} is not a whole number", self.value.show()))),
        }
    }

    /// Returns the value as a number.
    ///
    /// # Errors
    /// Returns an error if it is not a number.
    pub fn f64(&self) -> Result<f64, ParamError> {
        match self.value {
            Value::Int(value) => Ok(value as f64),
            Value::Float(value) => Ok(value),
            _ => Err(self.error(format!("{} is not a number", self.value.show()))),
        }
    }

    /// Returns the value as a word.
    ///
    /// # Errors
    /// Returns an error if it is not a word.
    pub fn str(&self) -> Result<&str, ParamError> {
        match &self.value {
            Value::Str(value) => Ok(value),
            _ => Err(self.error(format!("{} is not a word", self.value.show()))),
        }
    }

    /// Returns the value as a list.
    ///
    /// # Errors
    /// Returns an error if it is not a list.
    pub fn list(&self) -> Result<&[Node], ParamError> {
        match &self.value {
            Value::List(value) => Ok(value),
            _ => Err(self.error(format!("{} is not a list", self.value.show()))),
        }
    }

    /// Returns the value as a block.
    ///
    /// # Errors
    /// Returns an error if it is not a block.
    pub fn block(&self) -> Result<&Rc<Block>, ParamError> {
        match &self.value {
            Value::Block(value) => Ok(value),
            _ => Err(self.error(format!("{} is not a block", self.value.show()))),
        }
    }
}

impl Value {
    /// Returns the value in the form used in messages.
    pub(super) fn show(&self) -> String {
        match self {
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Str(value) => format!("\"{value}\""),
            Value::List(_) => "a list".to_string(),
            Value::Block(block) => format!("the block {}", block.kind),
            Value::Device { name, .. } => format!("the device {name}"),
        }
    }
}

impl Block {
    /// Creates an error about this block.
    pub fn error(&self, problem: impl Into<String>) -> ParamError {
        ParamError {
            file: self.file.to_string(),
            line: self.line,
            problem: problem.into(),
        }
    }

    /// Returns the value of a key and marks it as used.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let param = self.params.iter().find(|param| param.key == key)?;
        param.used.set(true);
        Some(&param.node)
    }

    /// Returns the file and line of a key, for messages; those of the block if the key is missing.
    pub(super) fn place_of(&self, key: &str) -> String {
        let param = self.params.iter().find(|param| param.key == key);
        match param {
            Some(param) => format!("{}:{}", param.node.file, param.node.line),
            None => format!("{}:{}", self.file, self.line),
        }
    }

    /// Returns the value of a key if it is a number. The key does not count as used.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let param = self.params.iter().find(|param| param.key == key)?;
        param.node.f64().ok()
    }

    /// Returns the value of a required key.
    ///
    /// # Errors
    /// Returns an error if the key is missing.
    pub fn require(&self, key: &str) -> Result<&Node, ParamError> {
        self.get(key)
            .ok_or_else(|| self.error(format!("{} has no \"{key}\"", self.kind)))
    }

    /// Checks that required keys are present. The error names all missing ones, and the keys that
    /// may be misspellings of them.
    ///
    /// # Errors
    /// Returns an error if keys are missing.
    pub(super) fn require_keys(&self, keys: &[&str]) -> Result<(), ParamError> {
        let is_missing = |key: &&&str| self.params.iter().all(|param| param.key != **key);
        let missing: Vec<&str> = keys.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = missing.iter().map(|key| format!("\"{key}\"")).collect();
        let others = || {
            let own = self.params.iter().map(|param| param.key.as_str());
            own.filter(|own| !keys.contains(own))
        };
        let hints = missing.iter().filter_map(|key| {
            let near = nearest_name(key, others())?;
            let place = self.place_of(near);
            Some(format!(
                "; is \"{near}\" ({place}) a misspelling of \"{key}\"?"
            ))
        });
        Err(self.error(format!(
            "{} has no {}{}",
            self.kind,
            named.join(", no "),
            hints.collect::<String>()
        )))
    }

    /// Returns a whole number, if the key is present.
    ///
    /// # Errors
    /// Returns an error if the value is not a whole number.
    pub fn get_int(&self, key: &str) -> Result<Option<i64>, ParamError> {
        self.get(key)
            .map(|node| in_key(key, node.int()))
            .transpose()
    }

    /// Returns a number, if the key is present.
    ///
    /// # Errors
    /// Returns an error if the value is not a number.
    pub fn get_f64(&self, key: &str) -> Result<Option<f64>, ParamError> {
        self.get(key)
            .map(|node| in_key(key, node.f64()))
            .transpose()
    }

    /// Returns a word, if the key is present.
    ///
    /// # Errors
    /// Returns an error if the value is not a word.
    pub fn get_str(&self, key: &str) -> Result<Option<&str>, ParamError> {
        self.get(key)
            .map(|node| in_key(key, node.str()))
            .transpose()
    }

    /// Returns a list, if the key is present.
    ///
    /// # Errors
    /// Returns an error if the value is not a list.
    pub fn get_list(&self, key: &str) -> Result<Option<&[Node]>, ParamError> {
        self.get(key)
            .map(|node| in_key(key, node.list()))
            .transpose()
    }

    /// Returns a block, if the key is present.
    ///
    /// # Errors
    /// Returns an error if the value is not a block.
    pub fn get_block(&self, key: &str) -> Result<Option<&Rc<Block>>, ParamError> {
        self.get(key)
            .map(|node| in_key(key, node.block()))
            .transpose()
    }

    /// Checks the kind of a block that is the value of a key or in its list.
    ///
    /// # Errors
    /// Returns an error if the block is of another kind.
    pub(super) fn check_kind(&self, kind: &str) -> Result<(), ParamError> {
        if self.kind == kind {
            return Ok(());
        }
        Err(self.error(format!("expected a {kind} block, found {}", self.kind)))
    }

    /// Returns a required number.
    ///
    /// # Errors
    /// Returns an error if the key is missing or the value is not a number.
    pub fn require_f64(&self, key: &str) -> Result<f64, ParamError> {
        in_key(key, self.require(key)?.f64())
    }

    /// Returns a required whole number.
    ///
    /// # Errors
    /// Returns an error if the key is missing or the value is not a whole number.
    pub fn require_int(&self, key: &str) -> Result<i64, ParamError> {
        in_key(key, self.require(key)?.int())
    }

    /// Returns a required word.
    ///
    /// # Errors
    /// Returns an error if the key is missing or the value is not a word.
    pub fn require_str(&self, key: &str) -> Result<&str, ParamError> {
        in_key(key, self.require(key)?.str())
    }

    /// Returns a required list.
    ///
    /// # Errors
    /// Returns an error if the key is missing or the value is not a list.
    pub fn require_list(&self, key: &str) -> Result<&[Node], ParamError> {
        in_key(key, self.require(key)?.list())
    }

    /// Returns a required block.
    ///
    /// # Errors
    /// Returns an error if the key is missing or the value is not a block.
    pub fn require_block(&self, key: &str) -> Result<&Rc<Block>, ParamError> {
        in_key(key, self.require(key)?.block())
    }

    /// Returns a whole number from `min` to `max`, if the key is present.
    ///
    /// # Errors
    /// Returns an error if the value is not a whole number from `min` to `max`.
    pub fn get_bounded<T: TryFrom<i64>>(
        &self,
        key: &str,
        min: T,
        max: T,
    ) -> Result<Option<T>, ParamError>
    where
        i64: From<T>,
    {
        let (min, max) = (i64::from(min), i64::from(max));
        let Some(value) = self.get_int(key)? else {
            return Ok(None);
        };
        let fits = (min..=max).contains(&value);
        match T::try_from(value) {
            Ok(value) if fits => Ok(Some(value)),
            _ => Err(self
                .require(key)?
                .error(format!("{key}: {value} is not in {min}..={max}"))),
        }
    }

    /// Returns a flag, if the key is present: false for 0, true for 1.
    ///
    /// # Errors
    /// Returns an error if the value is neither 0 nor 1.
    pub fn get_flag(&self, key: &str) -> Result<Option<bool>, ParamError> {
        let value = self.get_bounded(key, 0u32, 1)?;
        Ok(value.map(|value| value == 1))
    }

    /// Returns a required whole number from `min` to `max`.
    ///
    /// # Errors
    /// Returns an error if the key is missing or the value is not a whole number from `min` to
    /// `max`.
    pub fn require_bounded<T: TryFrom<i64>>(
        &self,
        key: &str,
        min: T,
        max: T,
    ) -> Result<T, ParamError>
    where
        i64: From<T>,
    {
        self.require(key)?;
        Ok(self.get_bounded(key, min, max)?.expect("the key is there"))
    }

    /// Returns the path of a file to which this block refers, for [`Sources`]. A relative `name`
    /// is relative to the directory of the block's file.
    pub fn path(&self, name: &str) -> String {
        join(&self.file, name)
    }

    /// Iterates over the keys and values, without marking them as used.
    pub fn params(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.params
            .iter()
            .map(|param| (param.key.as_str(), &*param.node))
    }

    /// Returns the parameters that were not read, in this block and in the inner blocks that were
    /// read.
    pub fn unused(&self) -> Vec<Unused> {
        let mut out = Vec::new();
        self.collect_unused(&mut out);
        out
    }

    fn collect_unused(&self, out: &mut Vec<Unused>) {
        for param in &self.params {
            if !param.used.get() {
                out.push(Unused {
                    block: self.kind.clone(),
                    key: param.key.clone(),
                    file: param.node.file.to_string(),
                    line: param.node.line,
                });
                continue;
            }
            match &param.node.value {
                Value::Block(block) => block.collect_unused(out),
                Value::List(list) => {
                    for node in list {
                        if let Value::Block(block) = &node.value {
                            block.collect_unused(out);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Adds the key to the front of an error message.
pub(super) fn in_key<T>(key: &str, result: Result<T, ParamError>) -> Result<T, ParamError> {
    result.map_err(|e| ParamError {
        problem: format!("{key}: {}", e.problem),
        ..e
    })
}

/// Adds a warning for each parameter that is present and not zero. `keys` are the parameters, each
/// with a description of the model's behaviour.
pub(super) fn not_modelled(
    block: &Block,
    warnings: &mut Vec<String>,
    keys: &[(&str, &str)],
) -> Result<(), ParamError> {
    for (key, instead) in keys {
        if block.get_f64(key)?.is_some_and(|value| value != 0.0) {
            let place = block.place_of(key);
            warnings.push(format!("{place}: \"{key}\" is not modelled: {instead}"));
        }
    }
    Ok(())
}
