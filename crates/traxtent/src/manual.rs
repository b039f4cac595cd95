//! The parts of the manual that the definition of the arguments lacks: exit status, examples, and
//! references.
//!
//! Their source is a file per verb, `manual/VERB.md`, which is used in three places. `--help` shows
//! the commands of the examples. The manual pages show everything. The pages in
//! `docs/reference/commands` contain the file as it is (`tests/it/manual.rs` generates them).
//!
//! The files use a small part of Markdown: headings, paragraphs, lists, blocks of code, `code` and
//! links.

use std::fmt::Write;
use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

macro_rules! files {
    ($($verb:literal)*) => {
        &[$(($verb, include_str!(concat!("manual/", $verb, ".md")))),*]
    };
}

/// The manual of the command itself, under its own name, and that of each verb.
const FILES: &[(&str, &str)] = files!(
    "traxtent" "calibrate" "check" "completions" "convert" "demo" "doctor" "drives" "fault" "file" "lab" "map" "plan"
    "probe" "serve" "sim" "validate" "volume"
);

/// An element of a manual.
enum Block<'a> {
    Heading(&'a str),
    Paragraph(String),
    Item(String),
    /// The lines of a block of code.
    Code(Vec<&'a str>),
}

/// Adds the examples to the long help of each verb and its subcommands. The short help (`-h`) has
/// none.
pub(crate) fn with_examples(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_subcommands(|verb| add_examples(verb, &name))
}

fn add_examples(command: Command, parent: &str) -> Command {
    let name = format!("{parent} {}", command.get_name());
    let header = command.get_styles().get_header();
    let mut help = match command.get_after_help() {
        Some(notes) => format!("{}\n\n", notes.ansi()),
        None => String::new(),
    };
    let _ = write!(help, "{header}Examples:{header:#}");
    let mut caption = String::new();
    let mut examples = 0;
    for block in manual(&name) {
        match block {
            Block::Paragraph(text) => caption = text,
            Block::Code(lines) => {
                examples += 1;
                let _ = write!(help, "\n  {}", std::mem::take(&mut caption));
                let typed = lines.iter().filter(|line| line.starts_with(['$', '>']));
                typed.for_each(|line| help.extend(["\n    ", line]));
            }
            Block::Heading(_) | Block::Item(_) => caption.clear(),
        }
    }
    let command = match examples {
        0 => command,
        _ => command.after_long_help(help),
    };
    command.mut_subcommands(|verb| add_examples(verb, &name))
}

/// Returns the manual page of a command whose definition is built.
///
/// # Errors
///
/// Never; writing to memory succeeds.
pub fn man_page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).source(concat!("traxtent ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command
        .get_arguments()
        .any(|argument| !argument.is_hide_set())
    {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let name = command.get_bin_name().unwrap_or(command.get_name());
    // The notes of `traxtent` itself are its exit statuses, which are in its manual anyway.
    let is_verb = name.contains(' ');
    if let Some(notes) = command.get_after_help().filter(|_| is_verb) {
        render_notes(&notes.to_string()).to_writer(&mut page)?;
    }
    man.render_version_section(&mut page)?;
    render(&manual(name)).to_writer(&mut page)?;
    Ok(page)
}

/// Returns the section with the notes that a help text has after the options.
fn render_notes(notes: &str) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["NOTES"]);
    for line in notes.lines() {
        match line.is_empty() {
            true => section.control("PP", []),
            // Lists are indented; they keep their lines.
            false if line.starts_with(' ') => section.control("br", []).text([roman(line)]),
            false => section.text([roman(line)]),
        };
    }
    section
}

/// Returns the manual for a command such as `traxtent volume create`: that of the verb, without the
/// examples of its other subcommands.
fn manual(command: &str) -> Vec<Block<'static>> {
    let verb = command.split(' ').nth(1).unwrap_or(command);
    let file = FILES.iter().find(|(name, _)| *name == verb);
    let mut kept = Vec::new();
    let mut captions = Vec::new();
    for block in blocks(file.map_or("", |(_, text)| text)) {
        match block {
            Block::Paragraph(_) => captions.push(block),
            Block::Code(ref lines) if !lines.iter().any(|line| line.contains(command)) => {
                captions.clear();
            }
            _ => {
                kept.append(&mut captions);
                kept.push(block);
            }
        }
    }
    kept.append(&mut captions);
    kept
}

/// Splits a file into its elements. Comments are omitted; they address the tests of the examples.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            blocks.push(Block::Heading(heading));
        } else if line.starts_with("```") {
            let code = lines.by_ref().take_while(|line| *line != "```");
            blocks.push(Block::Code(code.collect()));
        } else if line.starts_with("<!--") {
            let mut last = line;
            while !last.ends_with("-->") {
                last = lines.next().expect("a comment ends");
            }
        } else if !line.is_empty() {
            let mut whole = line.to_owned();
            while let Some(more) = lines.next_if(|next| continues(next)) {
                whole += " ";
                whole += more.trim_start();
            }
            blocks.push(match whole.strip_prefix("- ") {
                Some(item) => Block::Item(item.to_owned()),
                None => Block::Paragraph(whole),
            });
        }
    }
    blocks
}

/// Whether a line continues a paragraph or an item.
fn continues(line: &str) -> bool {
    !(line.is_empty() || line.starts_with("- ") || line.starts_with("```"))
}

/// Returns the sections of a manual page. Headings without content are omitted.
fn render(blocks: &[Block]) -> Roff {
    let mut page = Roff::new();
    let mut pending = None;
    for block in blocks {
        if let Block::Heading(text) = block {
            pending = Some(text.to_uppercase());
            continue;
        }
        if let Some(heading) = pending.take() {
            page.control("SH", [heading.as_str()]);
        }
        match block {
            Block::Heading(_) => {}
            Block::Paragraph(text) => {
                page.control("PP", []).text(inlines(text));
            }
            Block::Item(text) => {
                page.control("IP", ["\\(bu", "2"]).text(inlines(text));
            }
            Block::Code(lines) => {
                page.control("PP", [])
                    .control("RS", ["4"])
                    .control("EX", []);
                for line in lines {
                    page.text([roman(*line)]);
                }
                page.control("EE", []).control("RE", []);
            }
        }
    }
    page
}

/// Returns a text for a manual page: code in bold, and the targets of links in the form that manual
/// pages use.
fn inlines(text: &str) -> Vec<Inline> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let (label, after) = link.split_once("](").expect("brackets are links");
        let (target, after) = after.split_once(')').expect("a link ends");
        plain += before;
        let page = target.split('#').next().unwrap_or(target);
        plain += &match page.strip_suffix(".md") {
            Some("index") => "`traxtent(1)`".to_owned(),
            Some(verb) if !verb.contains('/') => format!("`traxtent-{verb}(1)`"),
            _ => {
                let page = page.replace("../../", "docs/");
                format!("{label} ({})", page.replace("../", "docs/reference/"))
            }
        };
        rest = after;
    }
    plain += rest;
    let spans = plain.split('`').enumerate();
    spans
        .map(|(index, span)| match index % 2 {
            0 => roman(span),
            _ => bold(span),
        })
        .collect()
}
