//! The commands of a page, and the output that it shows for each.
//!
//! A fenced block in the language `console` holds commands and their output. A line that begins
//! with `$ ` is a command; lines that begin with `> ` continue it. All other lines are the output
//! of the command before. `…` stands for any text in a line, or, alone on a line, for any lines.
//! The output of a command without such lines is not compared.
//!
//! A comment directly before the block holds one instruction:
//!
//! - `<!-- not run: REASON -->`: the test cannot run the block.
//! - `<!-- soak: REASON -->`: only the soak runs the block.
//! - `<!-- status: NUMBER -->`: the last command ends with this status instead of 0.
//! - `<!-- setup: COMMANDS -->`: commands that run first, for files that a reader has.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// The blocks of a page, in order.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) blocks: Vec<Block>,
}

/// A block of commands.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) run: Run,
    /// The commands that run before, unseen by the reader.
    pub(crate) setup: String,
    pub(crate) commands: Vec<Typed>,
}

/// When a block is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Always,
    Soak,
    Never,
}

/// A command, as typed.
#[derive(Debug)]
pub(crate) struct Typed {
    /// The line of the page, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// The expected exit status.
    pub(crate) status: i32,
    /// The lines of output that the page shows.
    pub(crate) output: Vec<String>,
}

impl Page {
    /// Returns the blocks of a page.
    ///
    /// # Errors
    /// Returns the line and the mistake if a block or an instruction is malformed.
    pub(crate) fn parse(text: &str) -> Result<Page, String> {
        let line_of = |offset: usize| text[..offset].matches('\n').count() + 1;
        let mut blocks = Vec::new();
        let mut instructions = Instructions::default();
        let mut inside = false;
        for (event, range) in Parser::new(text).into_offset_iter() {
            match event {
                Event::Html(html) => {
                    for comment in html.split("<!--").skip(1) {
                        let comment = comment.split("-->").next().unwrap_or_default();
                        instructions.read(comment.trim(), line_of(range.start))?;
                    }
                }
                Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    inside = &*language == "console";
                }
                Event::Text(code) if inside => {
                    let instructions = std::mem::take(&mut instructions);
                    blocks.push(instructions.apply(&code, line_of(range.start))?);
                    inside = false;
                }
                _ => {
                    inside = false;
                    instructions = Instructions::default();
                }
            }
        }
        Ok(Page { blocks })
    }

    /// Returns the number of commands that are run, and of those that are not.
    pub(crate) fn counts(&self, soak: bool) -> [usize; 2] {
        let mut counts = [0, 0];
        for block in &self.blocks {
            counts[usize::from(!block.run.applies(soak))] += block.commands.len();
        }
        counts
    }
}

impl Run {
    /// Returns whether the block is run, in a soak or otherwise.
    pub(crate) fn applies(self, soak: bool) -> bool {
        match self {
            Run::Always => true,
            Run::Soak => soak,
            Run::Never => false,
        }
    }
}

/// The instructions for the next block.
#[derive(Default)]
struct Instructions {
    run: Option<Run>,
    setup: String,
    status: i32,
}

impl Instructions {
    /// Reads a comment. Comments without a colon are remarks.
    fn read(&mut self, comment: &str, line: usize) -> Result<(), String> {
        let Some((name, value)) = comment.split_once(':') else {
            return Ok(());
        };
        let value = value.trim();
        if value.is_empty() {
            return Err(format!("{line}: {name:?} has no text after the colon"));
        }
        match name {
            "not run" => self.run = Some(Run::Never),
            "soak" => self.run = Some(Run::Soak),
            "setup" => {
                self.setup += value;
                self.setup.push('\n');
            }
            "status" => {
                self.status = value
                    .parse()
                    .map_err(|_| format!("{line}: {value:?} is not a status"))?;
            }
            _ => return Err(format!("{line}: unknown instruction {name:?}")),
        }
        Ok(())
    }

    fn apply(self, code: &str, line: usize) -> Result<Block, String> {
        let mut commands: Vec<Typed> = Vec::new();
        for (at, text) in code.lines().enumerate() {
            let line = line + at;
            if let Some(command) = text.strip_prefix("$ ") {
                commands.push(Typed {
                    line,
                    text: command.to_owned(),
                    status: 0,
                    output: Vec::new(),
                });
                continue;
            }
            let Some(last) = commands.last_mut() else {
                return Err(format!("{line}: output precedes the first command"));
            };
            match text.strip_prefix("> ") {
                Some(more) if last.output.is_empty() => {
                    last.text.push('\n');
                    last.text += more;
                }
                _ => last.output.push(text.to_owned()),
            }
        }
        if let Some(last) = commands.last_mut() {
            last.status = self.status;
        }
        Ok(Block {
            run: self.run.unwrap_or(Run::Always),
            setup: self.setup,
            commands,
        })
    }
}
