//! The grammar of the parameter language.

use std::cell::Cell;
use std::rc::Rc;

use traxtent_model::profile::nearest_name;

use super::lexer::{Lexeme, Lexer, Token};
use super::{Block, Document, Entry, Node, Param, ParamError, Value};

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

/// A parser and the token that comes next.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Lexeme,
    depth: usize,
    /// The number of names in ranges so far.
    ranged: u64,
}

impl<'a> Parser<'a> {
    pub(super) fn new(mut lexer: Lexer<'a>) -> Result<Parser<'a>, ParamError> {
        Ok(Parser {
            next: lexer.next()?,
            lexer,
            depth: 0,
            ranged: 0,
        })
    }

    /// Returns whether the text has ended.
    pub(super) fn is_at_end(&self) -> bool {
        self.next.token == Token::End
    }

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

    /// Adds to an error at the next token that the block or list around it has not ended, if the
    /// token may follow its end, which may be missing.
    fn still_open(&self, error: ParamError, this: &str, at: &Lexeme) -> ParamError {
        let is_within = matches!(self.next.token, Token::Mark(mark) if b",;=?:".contains(&mark));
        if is_within || self.lexer.include_failed() {
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

    /// Parses a statement. A block may be derived from one of `document`.
    pub(super) fn entry(&mut self, document: &Document) -> Result<Entry, ParamError> {
        const STATEMENTS: [&str; 3] = ["instantiate", "topology", "source"];
        if self.is(b'}') || self.is(b']') {
            let problem = format!(
                "{} ends nothing: no block or list is open",
                self.next.show()
            );
            return Err(self.next.error(problem));
        }
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
                if !self.is(b'[') {
                    let found = self.next.show();
                    let problem = format!(
                        "expected \"{{\" or \"[\" after \"{word} {name}\", found {found}; is a comma missing?"
                    );
                    return Err(self.next.error(problem));
                }
                let opening = self.take()?;
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
                if let Value::Str(word) = &node.value
                    && word.contains("..")
                {
                    let problem = format!("{} lacks blanks around \"..\"", node.value.show());
                    return Err(node.error(problem));
                }
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
