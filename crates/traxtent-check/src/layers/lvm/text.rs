//! The text format of LVM2 metadata: sections in braces, `key = value`, lists in brackets.
//!
//! Source: lvm.conf(5), which has the same syntax.

use super::super::error::LayerError;
use super::wrong;

/// The maximum depth of sections; LVM writes four levels.
const DEPTH_MAX: usize = 16;

/// A value of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Section(Vec<(String, Value)>),
}

impl Value {
    /// Returns the keys and values of a section, in order; none if this is not a section.
    pub(super) fn entries(&self) -> &[(String, Value)] {
        match self {
            Value::Section(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        let mut entries = self.entries().iter();
        entries
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> &[Value] {
        match self.get(key) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }
}

/// Parses a text as one section.
pub(super) fn parse(text: &str) -> Result<Value, LayerError> {
    let mut reader = Reader { rest: text };
    let section = reader.section(0)?;
    match reader.peek() {
        None => Ok(section),
        Some(letter) => Err(wrong(format!("its text has an unexpected {letter:?}"))),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Skips whitespace and comments, and returns the next character without taking it.
    fn peek(&mut self) -> Option<char> {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with('#') {
                return self.rest.chars().next();
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn accept(&mut self, letter: char) -> bool {
        let found = self.peek() == Some(letter);
        if found {
            self.rest = &self.rest[letter.len_utf8()..];
        }
        found
    }

    fn expect(&mut self, letter: char) -> Result<(), LayerError> {
        if self.accept(letter) {
            return Ok(());
        }
        let found = self
            .peek()
            .map_or("the end".to_owned(), |found| format!("{found:?}"));
        Err(wrong(format!(
            "its text has {found} where {letter:?} should be"
        )))
    }

    /// Takes the longest prefix of characters for which `is_in` is true.
    fn while_in(&mut self, is_in: fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .find(|letter| !is_in(letter))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn section(&mut self, depth: usize) -> Result<Value, LayerError> {
        if depth > DEPTH_MAX {
            return Err(wrong(format!(
                "its text is nested more than {DEPTH_MAX} deep"
            )));
        }
        let mut entries = Vec::new();
        while !matches!(self.peek(), None | Some('}')) {
            let key =
                self.while_in(|letter| !letter.is_whitespace() && !"={}[]\"#,".contains(letter));
            if key.is_empty() {
                return Err(wrong(format!(
                    "its text has {:?} where a name should be",
                    self.peek()
                )));
            }
            let value = if self.accept('{') {
                let section = self.section(depth + 1)?;
                self.expect('}')?;
                section
            } else {
                self.expect('=')?;
                self.value()?
            };
            entries.push((key.to_owned(), value));
        }
        Ok(Value::Section(entries))
    }

    fn value(&mut self) -> Result<Value, LayerError> {
        if !self.accept('[') {
            return self.atom();
        }
        let mut values = Vec::new();
        while !self.accept(']') {
            values.push(self.atom()?);
            if !self.accept(',') {
                self.expect(']')?;
                break;
            }
        }
        Ok(Value::List(values))
    }

    fn atom(&mut self) -> Result<Value, LayerError> {
        if self.accept('"') {
            return self.quoted();
        }
        self.peek();
        let word = self.while_in(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        // No value that is used here is a fraction or negative.
        match word.parse() {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) if word.is_empty() => Err(wrong("its text lacks a value")),
            Err(_) => Ok(Value::Text(word.to_owned())),
        }
    }

    /// Reads a text up to its closing quote; a backslash makes the next character literal.
    fn quoted(&mut self) -> Result<Value, LayerError> {
        let mut text = String::new();
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Value::Text(text));
                }
                '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
                _ => text.push(letter),
            }
        }
        Err(wrong("its text has an unterminated quote"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is text in the form that LVM2 writes parsed: comments, lists over several lines, nested
    /// sections?
    #[test]
    fn sections_and_lists() {
        let value =
            parse("a { # of what\n b = 12 c = \"x \\\" y\"\n d = [\n\"pv0\", 0\n]\n}\ne = []")
                .unwrap();
        let a = value.get("a").unwrap();
        assert_eq!((a.number("b"), a.text("c")), (Some(12), Some("x \" y")));
        let pair = [Value::Text("pv0".to_owned()), Value::Number(0)];
        assert_eq!(a.list("d"), pair);
        assert_eq!(value.list("e"), []);
    }

    /// Are truncated, malformed and excessively nested texts rejected?
    #[test]
    fn malformed_texts() {
        for text in ["a {", "a = ", "a = [1", "a = \"x", "}", "= 1", "a = [1 2]"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"a { ".repeat(100_000)).is_err());
    }
}
