//! The tokens of the parameter language, including those of included files.

use std::rc::Rc;

use super::{ParamError, Sources};

/// The maximum total length of the first file and all files that it includes, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// The maximum number of inclusions, including repeated ones, because a few bytes can name many
/// files.
const INCLUDES_MAX: usize = 256;
/// The maximum depth to which files may include each other.
const DEPTH_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word, or text in quotation marks.
    Word(String),
    /// One of the characters `;{}[],=?:`.
    Mark(u8),
    /// Two dots.
    Range,
    End,
}

/// A token and its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) file: Rc<str>,
    pub(super) line: u32,
}

impl Lexeme {
    pub(super) fn error(&self, problem: impl Into<String>) -> ParamError {
        ParamError {
            file: self.file.to_string(),
            line: self.line,
            problem: problem.into(),
        }
    }

    /// Returns the token in the form used in messages.
    pub(super) fn show(&self) -> String {
        match &self.token {
            Token::Word(word) => format!("\"{word}\""),
            Token::Mark(mark) => format!("\"{}\"", char::from(*mark)),
            Token::Range => "\"..\"".to_string(),
            Token::End => "the end of the file".to_string(),
        }
    }
}

struct Text {
    file: Rc<str>,
    bytes: Vec<u8>,
    at: usize,
    line: u32,
}

pub(super) struct Lexer<'a> {
    stack: Vec<Text>,
    sources: &'a Sources<'a>,
    /// The total length of the texts so far.
    read_bytes: usize,
    /// The number of inclusions so far.
    included: usize,
    /// The file and line at which the last text ended.
    last: (Rc<str>, u32),
    /// Whether a file could not be included.
    include_failed: bool,
}

/// Returns the path of a file that `from` refers to as `name`.
pub(super) fn join(from: &str, name: &str) -> String {
    match from.rsplit_once('/') {
        Some((folder, _)) if !name.starts_with('/') => format!("{folder}/{name}"),
        _ => name.to_string(),
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn new(file: &str, text: &[u8], sources: &'a Sources<'a>) -> Lexer<'a> {
        let file: Rc<str> = file.into();
        // Some editors begin a file with this mark.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = Text {
            file: file.clone(),
            bytes: text.to_vec(),
            at: 0,
            line: 1,
        };
        Lexer {
            read_bytes: text.bytes.len(),
            included: 0,
            stack: vec![text],
            sources,
            last: (file, 1),
            include_failed: false,
        }
    }

    /// Returns whether an error was that a file could not be included.
    pub(super) fn include_failed(&self) -> bool {
        self.include_failed
    }

    /// Returns whether a file that was begun has not ended.
    pub(super) fn is_within(&self, file: &Rc<str>) -> bool {
        self.stack.iter().any(|text| Rc::ptr_eq(&text.file, file))
    }

    pub(super) fn next(&mut self) -> Result<Lexeme, ParamError> {
        loop {
            let Some(text) = self.stack.last_mut() else {
                let (file, line) = self.last.clone();
                return Ok(Lexeme {
                    token: Token::End,
                    file,
                    line,
                });
            };
            let Some(token) = text.token() else {
                self.last = (text.file.clone(), text.line);
                self.stack.pop();
                continue;
            };
            let lexeme = Lexeme {
                token,
                file: text.file.clone(),
                line: text.line,
            };
            if lexeme.token != Token::Word("source".to_string()) {
                return Ok(lexeme);
            }
            let Some(Token::Word(name)) = text.token() else {
                return Err(lexeme.error("a file name must follow \"source\""));
            };
            self.include(&lexeme, &name)
                .inspect_err(|_| self.include_failed = true)?;
        }
    }

    fn include(&mut self, at: &Lexeme, name: &str) -> Result<(), ParamError> {
        let path = join(&at.file, name);
        // The first file is on the stack, but is not included.
        if self.stack.len() > DEPTH_MAX {
            return Err(at.error(format!(
                "included files are nested more than {DEPTH_MAX} deep"
            )));
        }
        if self.stack.iter().any(|text| *text.file == *path) {
            return Err(at.error(format!("{path} includes itself")));
        }
        self.included += 1;
        if self.included > INCLUDES_MAX {
            return Err(at.error(format!("more than {INCLUDES_MAX} files are included")));
        }
        let bytes =
            (self.sources)(&path).map_err(|why| at.error(format!("source {path}: {why}")))?;
        self.read_bytes = self.read_bytes.saturating_add(bytes.len());
        if self.read_bytes > TEXT_BYTES_MAX {
            return Err(at.error(format!(
                "the file and all included files exceed {TEXT_BYTES_MAX} bytes"
            )));
        }
        self.stack.push(Text {
            file: path.into(),
            bytes,
            at: 0,
            line: 1,
        });
        Ok(())
    }
}

impl Text {
    fn token(&mut self) -> Option<Token> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' | b'\x0c' => {}
                b'#' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                    continue;
                }
                b';' | b'{' | b'}' | b'[' | b']' | b',' | b'=' | b'?' | b':' => {
                    self.at += 1;
                    return Some(Token::Mark(byte));
                }
                b'"' => {
                    let rest = &self.bytes[self.at + 1..];
                    let len = rest
                        .iter()
                        .position(|b| b"\"\n".contains(b))
                        .unwrap_or(rest.len());
                    let word = String::from_utf8_lossy(&rest[..len]).into_owned();
                    self.at += 1 + len + usize::from(rest.get(len) == Some(&b'"'));
                    return Some(Token::Word(word));
                }
                _ => {
                    let rest = &self.bytes[self.at..];
                    let ends = |b: &u8| b.is_ascii_whitespace() || b";{},[]:?=".contains(b);
                    let len = rest.iter().position(ends).unwrap_or(rest.len());
                    let word = &rest[..len];
                    self.at += len;
                    return Some(if word == b".." {
                        Token::Range
                    } else {
                        Token::Word(String::from_utf8_lossy(word).into_owned())
                    });
                }
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    /// If a file that is included after a block is missing, is that the error, and not the block?
    #[test]
    fn missing_files_are_named() {
        let source = |file: &str| match file {
            "a" => Ok(b"disksim_disk A {\nB = 1 }\n".to_vec()),
            _ => Err("No such file".to_owned()),
        };
        let error = Document::parse("0", b"source a\nsource b", &source).unwrap_err();
        assert_eq!(error.to_string(), "0:2: source b: No such file");
    }

    /// Can included files be nested as deep as the error states, and not deeper?
    #[test]
    fn includes_nest_to_the_limit() {
        let parsed = |depth: usize| {
            let source = |file: &str| {
                let number: usize = file.parse().unwrap();
                let more = format!("source {}", number + 1);
                Ok(if number < depth { more } else { String::new() }.into_bytes())
            };
            Document::parse("0", b"source 1", &source)
        };
        assert!(parsed(DEPTH_MAX).is_ok());
        let error = parsed(DEPTH_MAX + 1).unwrap_err();
        let limit = format!("nested more than {DEPTH_MAX} deep");
        assert!(error.to_string().contains(&limit), "{error}");
    }
}
