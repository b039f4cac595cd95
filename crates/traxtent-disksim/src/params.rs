//! The parameter language (DiskSim's libparam): blocks of `key = value`, lists, included files.
//!
//! ```text
//! source NAME.diskspecs
//! disksim_bus BUS0 { type = 1, Arbitration type = 1 }
//! instantiate [ bus0 .. bus2 ] as BUS0
//! topology disksim_iodriver driver0 [ disksim_bus bus0 [ ] ]
//! ```

mod lexer;

use std::cell::Cell;
use std::rc::Rc;

use lexer::{Lexeme, Lexer, Token, join};
use traxtent_model::profile::nearest_name;

/// The maximum depth to which blocks and lists may nest.
const DEPTH_MAX: usize = 64;
/// The maximum total number of names in the ranges of a file, such as `disk0 .. disk17`.
const RANGE_NAMES_MAX: u64 = 10_000;

/// Units that a user may write after a number, in lower case. DiskSim's values have none.
const UNITS: [&str; 20] = [
    "s",
    "sec",
    "secs",
    "seconds",
    "ms",
    "msec",
    "milliseconds",
    "us",
    "usec",
    "microseconds",
    "b",
    "bytes",
    "kb",
    "mb",
    "gb",
    "blocks",
    "blks",
    "sectors",
    "rpm",
    "%",
];

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
        let mut lexer = Lexer::new(file, text, sources);
        let next = lexer.next()?;
        let mut parser = Parser {
            lexer,
            next,
            depth: 0,
            ranged: 0,
        };
        let mut document = Document {
            entries: Vec::new(),
            redefinitions: Vec::new(),
        };
        while parser.next.token != Token::End {
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

struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Lexeme,
    depth: usize,
    /// The number of names in ranges so far.
    ranged: u64,
}

impl Parser<'_> {
    fn take(&mut self) -> Result<Lexeme, ParamError> {
        Ok(std::mem::replace(&mut self.next, self.lexer.next()?))
    }

    fn is(&self, mark: u8) -> bool {
        self.next.token == Token::Mark(mark)
    }

    fn expect(&mut self, mark: u8) -> Result<Lexeme, ParamError> {
        if self.is(mark) {
            return self.take();
        }
        let wanted = char::from(mark);
        Err(self
            .next
            .error(format!("expected \"{wanted}\", found {}", self.next.show())))
    }

    /// Takes the comma after an item of `this`, which began at `at`, unless its end follows.
    fn separator(&mut self, end: u8, this: &str, at: &Lexeme) -> Result<(), ParamError> {
        if self.is(b',') {
            self.take()?;
        } else if !self.is(end) {
            let (end, found) = (char::from(end), self.next.show());
            if let Token::Word(word) = &self.next.token
                && UNITS.contains(&word.to_ascii_lowercase().as_str())
            {
                let problem = format!("{found} follows a value; remove it: values have no units");
                return Err(self.next.error(problem));
            }
            let error = self
                .next
                .error(format!("expected \",\" or \"{end}\", found {found}"));
            return Err(self.still_open(error, this, at));
        }
        Ok(())
    }

    /// Adds to an error in the text that the block or list around it has not ended, because its end
    /// may be missing.
    fn still_open(&self, error: ParamError, this: &str, at: &Lexeme) -> ParamError {
        if self.lexer.include_failed() {
            return error;
        }
        let (problem, file, line) = (&error.problem, &at.file, at.line);
        let problem = format!("{problem}; {this} at {file}:{line} is still open");
        ParamError { problem, ..error }
    }

    fn word(&mut self, what: &str) -> Result<(String, Lexeme), ParamError> {
        let at = self.take()?;
        match &at.token {
            Token::Word(word) => Ok((word.clone(), at)),
            _ => Err(at.error(format!("expected {what}, found {}", at.show()))),
        }
    }

    fn entry(&mut self, document: &Document) -> Result<Entry, ParamError> {
        const STATEMENTS: [&str; 3] = ["instantiate", "topology", "source"];
        let (first, at) = self.word("a block, \"instantiate\", \"topology\" or \"source\"")?;
        if first == "instantiate" {
            let opening = self.expect(b'[')?;
            let list = self.list(&opening)?;
            let names = list
                .iter()
                .map(|node| node.str().map(str::to_string))
                .collect::<Result<_, _>>()?;
            let (keyword, as_at) = self.word("\"as\"")?;
            if keyword != "as" {
                return Err(as_at.error(format!("expected \"as\", found \"{keyword}\"")));
            }
            let (of, _) = self.word("the name of a block")?;
            return Ok(Entry::Instances {
                names,
                of,
                file: at.file,
                line: at.line,
            });
        }
        if first == "topology" {
            let (kind, at) = self.word("the kind of a device")?;
            return Ok(Entry::Topology(self.value_from(kind, at)?));
        }
        let hint = |error: ParamError| match nearest_name(&first, STATEMENTS.into_iter()) {
            Some(near) => ParamError {
                problem: format!("{}; did you mean \"{near}\" by \"{first}\"?", error.problem),
                ..error
            },
            None => error,
        };
        let (name, _) = self.word("the name of a block").map_err(hint)?;
        self.expect(b'{').map_err(hint)?;
        let mut block = self.block(first, Some(name), &at)?;
        if let Some(parent) = document.block(&block.kind) {
            block.kind = parent.kind.clone();
            for param in &parent.params {
                if !block.params.iter().any(|own| own.key == param.key) {
                    block.params.push(Param {
                        used: Cell::new(false),
                        ..param.clone()
                    });
                }
            }
        }
        Ok(Entry::Block(Rc::new(block)))
    }

    /// Parses a block's parameters, after the opening brace. If that fails after the end of the
    /// included file in which the block begins, the error says that the block is not closed.
    fn block(
        &mut self,
        kind: String,
        name: Option<String>,
        at: &Lexeme,
    ) -> Result<Block, ParamError> {
        let shown = name.clone().unwrap_or_else(|| kind.clone());
        self.parameters(kind, name, at).map_err(|error| {
            let is_here = *error.file == *at.file || self.lexer.is_within(&at.file);
            if is_here || self.lexer.include_failed() {
                return error;
            }
            at.error(format!(
                "the block {shown} is not closed by a \"}}\" in this file"
            ))
        })
    }

    fn parameters(
        &mut self,
        kind: String,
        name: Option<String>,
        at: &Lexeme,
    ) -> Result<Block, ParamError> {
        let this = format!("the block {}", name.as_deref().unwrap_or(&kind));
        let mut block = Block {
            kind,
            name,
            file: at.file.clone(),
            line: at.line,
            params: Vec::new(),
        };
        let mut keys_seen = std::collections::BTreeSet::new();
        let mut before: Option<Rc<Node>> = None;
        self.enter(at)?;
        while !self.is(b'}') {
            let key_at = self.next.clone();
            let keys = self.keys();
            let keys = keys.map_err(|error| self.still_open(error, &this, at))?;
            if !self.is(b'=')
                && let Some(problem) = decimal_comma(before.as_deref(), &keys, &key_at)
            {
                return Err(key_at.error(problem));
            }
            let equals = self.expect(b'=');
            equals.map_err(|error| self.still_open(error, &this, at))?;
            let node = Rc::new(self.value()?);
            before = Some(node.clone());
            for key in keys {
                if !keys_seen.insert(key.clone()) {
                    return Err(key_at.error(format!("\"{key}\" is given twice")));
                }
                block.params.push(Param {
                    key,
                    node: node.clone(),
                    used: Cell::new(false),
                });
            }
            self.separator(b'}', &this, at)?;
        }
        self.take()?;
        self.depth -= 1;
        Ok(block)
    }

    /// Parses the key of a parameter, which may have several words, or a list of keys with the same
    /// value.
    fn keys(&mut self) -> Result<Vec<String>, ParamError> {
        if self.is(b'[') {
            let at = self.take()?;
            let list = self.list(&at)?;
            return list
                .iter()
                .map(|node| node.str().map(str::to_string))
                .collect();
        }
        let (mut key, _) = self.word("a key or \"}\"")?;
        while let Token::Word(word) = &self.next.token {
            key.push(' ');
            key.push_str(word);
            self.take()?;
        }
        Ok(vec![key])
    }

    fn value(&mut self) -> Result<Node, ParamError> {
        if self.is(b'[') {
            let at = self.take()?;
            self.enter(&at)?;
            let list = self.list(&at)?;
            self.depth -= 1;
            return Ok(Node {
                value: Value::List(list),
                file: at.file,
                line: at.line,
            });
        }
        let (word, at) = self.word("a value")?;
        self.value_from(word, at)
    }

    /// Parses a value that begins with `word`.
    fn value_from(&mut self, word: String, at: Lexeme) -> Result<Node, ParamError> {
        let value = if self.is(b'{') {
            self.take()?;
            Value::Block(Rc::new(self.block(word, None, &at)?))
        } else if let (Token::Word(name), Value::Str(_)) = (&self.next.token, scalar(word.clone()))
        {
            let name = name.clone();
            self.take()?;
            if self.is(b'{') {
                self.take()?;
                Value::Block(Rc::new(self.block(word, Some(name), &at)?))
            } else {
                let opening = self.expect(b'[')?;
                self.enter(&at)?;
                let children = self.list(&opening)?;
                self.depth -= 1;
                Value::Device {
                    kind: word,
                    name,
                    children,
                }
            }
        } else {
            scalar(word)
        };
        Ok(Node {
            value,
            file: at.file,
            line: at.line,
        })
    }

    /// Parses the items of a list, after the opening bracket.
    fn list(&mut self, opening: &Lexeme) -> Result<Vec<Node>, ParamError> {
        const THIS: &str = "the list";
        let mut out = Vec::new();
        while !self.is(b']') {
            if self.next.token == Token::End {
                return self.separator(b']', THIS, opening).map(|()| out);
            }
            let node = self.value()?;
            if self.next.token == Token::Range {
                self.take()?;
                let (last, at) = self.word("the last name of a range")?;
                let first = node.str()?;
                let names = names(first, &last).map_err(|problem| at.error(problem))?;
                for name in names {
                    self.ranged += 1;
                    if self.ranged > RANGE_NAMES_MAX {
                        let problem = format!("ranges contain more than {RANGE_NAMES_MAX} names");
                        return Err(at.error(problem));
                    }
                    out.push(Node {
                        value: Value::Str(name),
                        ..node.clone()
                    });
                }
            } else {
                out.push(node);
            }
            self.separator(b']', THIS, opening)?;
        }
        self.take()?;
        Ok(out)
    }

    fn enter(&mut self, at: &Lexeme) -> Result<(), ParamError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(at.error(format!(
                "blocks and lists are nested more than {DEPTH_MAX} deep"
            )));
        }
        Ok(())
    }
}

/// Returns the problem if a key is the rest of a number with a decimal comma, such as the `5` of
/// `0,5`. `before` is the value before the comma.
fn decimal_comma(before: Option<&Node>, keys: &[String], at: &Lexeme) -> Option<String> {
    let before = before.filter(|node| node.line == at.line)?;
    before.f64().ok()?;
    traxtent_units::decimal_comma(&format!("= {},{}", before.value.show(), keys.first()?))
}

/// Returns a word as a number if it is one, otherwise as a string.
fn scalar(word: String) -> Value {
    let digits = word.strip_prefix('-').unwrap_or(&word);
    if let Some(hex) = digits.strip_prefix("0x")
        && let Ok(value) = i64::from_str_radix(hex, 16)
    {
        return Value::Int(if digits.len() < word.len() {
            -value
        } else {
            value
        });
    }
    if digits.starts_with(|c: char| c.is_ascii_digit()) {
        if let Ok(value) = word.parse() {
            return Value::Int(value);
        }
        if let Ok(value) = word.parse() {
            return Value::Float(value);
        }
    }
    Value::Str(word)
}

/// Returns the names from `first` to `last`, which differ in a number at their end.
fn names(first: &str, last: &str) -> Result<impl Iterator<Item = String>, String> {
    let split = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        Some((stem.to_string(), name[stem.len()..].parse::<u64>().ok()?))
    };
    let bad = || format!("\"{first} .. {last}\" is not a range of numbered names");
    let (Some((stem, from)), Some((other, to))) = (split(first), split(last)) else {
        return Err(bad());
    };
    if stem != other || to < from {
        return Err(bad());
    }
    Ok((from..=to).map(move |i| format!("{stem}{i}")))
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
