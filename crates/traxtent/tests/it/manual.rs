//! The pages of the commands in the book, and the manual pages.

use std::fmt::Write;
use std::{env, fs};

use clap::{Arg, Command};

use super::command::prints;

/// Are the pages in docs/reference/commands up to date with the definition of the command and the
/// files in src/manual? `TRAXTENT_RENEW=1` regenerates them.
#[test]
fn pages_of_the_commands_are_current() {
    if !cfg!(all(feature = "lab", feature = "plot")) {
        testkit::skip!("this build lacks options; it needs `lab` and `plot`");
    }
    let root = root();
    let verbs = shown(&root).map(|verb| (verb.get_name().to_owned(), page(verb)));
    let pages: Vec<_> = verbs.chain([("index".to_owned(), index(&root))]).collect();
    let folder = testkit::workspace().join("docs/reference/commands");
    for (name, page) in &pages {
        let path = folder.join(format!("{name}.md"));
        if env::var_os("TRAXTENT_RENEW").is_some() {
            fs::write(&path, page).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == *page,
            "{name}.md: out of date; run with TRAXTENT_RENEW=1"
        );
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), pages.len());
}

/// Does the file of every verb in src/manual have the exit status, two to five examples and
/// references? Does the manual page show them, and `--help` the examples?
#[test]
fn every_verb_has_examples() {
    for verb in shown(&root()) {
        let name = verb.get_name();
        let manual = manual(name);
        for heading in ["## Exit status\n", "## Examples\n", "## See also\n"] {
            assert!(manual.contains(heading), "{name}: {heading}");
        }
        let examples = manual.matches("\n```console\n").count();
        assert!((2..=5).contains(&examples), "{name}: {examples} examples");
        let page = prints(&["man", name]);
        for heading in [
            ".SH \"EXIT STATUS\"\n",
            ".SH EXAMPLES\n",
            ".SH \"SEE ALSO\"\n",
        ] {
            assert!(page.contains(heading), "{name}: {heading}");
        }
        assert!(!page.contains("]("), "{name}: a link is not translated");
        assert!(
            prints(&[name, "--help"]).contains("\nExamples:\n"),
            "{name}"
        );
    }
}

/// Do the help and the manual page of a subcommand show its own examples only?
#[test]
fn examples_of_a_subcommand() {
    for text in [
        prints(&["man", "plan", "video"]),
        prints(&["plan", "video", "--help"]),
    ] {
        assert!(text.contains("traxtent plan video atlas10k2"), "{text}");
        assert!(!text.contains("traxtent plan stack"), "{text}");
    }
}

fn root() -> Command {
    let mut root = traxtent::command().disable_help_subcommand(true);
    root.build();
    root
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

/// Returns the text of a verb's file in src/manual.
fn manual(name: &str) -> String {
    let path = testkit::workspace().join(format!("crates/traxtent/src/manual/{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the page that lists all commands.
fn index(root: &Command) -> String {
    let mut page = format!("# Commands\n\n```text\n{}\n```\n", usage(root));
    page += "\n| command | purpose |\n|---|---|\n";
    for verb in shown(root) {
        let name = verb.get_name();
        let about = verb
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = writeln!(
            page,
            "| [`traxtent {name}`]({name}.md) | {} |",
            marked(&about)
        );
    }
    page + "\n" + &manual("traxtent")
}

/// Returns the page of a verb and its subcommands.
fn page(verb: &Command) -> String {
    let mut page = String::new();
    describe(verb, "#", &mut page);
    page + "\n" + &manual(verb.get_name())
}

/// Appends the description of a command and of its subcommands.
fn describe(command: &Command, level: &str, page: &mut String) {
    let name = command.get_bin_name().unwrap();
    *page += &format!("{level} {name}\n\n```text\n{}\n```\n", usage(command));
    let about = command.get_long_about().or(command.get_about());
    for text in about
        .iter()
        .flat_map(|about| paragraphs(&about.to_string()))
    {
        *page += &text;
    }
    arguments(command, page);
    let notes = command.get_after_help();
    for text in notes
        .iter()
        .flat_map(|notes| paragraphs(&notes.to_string()))
    {
        // Several subcommands may have the same note.
        if !page.contains(&text) {
            *page += &text;
        }
    }
    for verb in shown(command) {
        *page += "\n";
        describe(verb, "##", page);
    }
}

/// Returns the paragraphs of a help text as Markdown. Indented lines become a block.
fn paragraphs(text: &str) -> Vec<String> {
    let paragraphs = text
        .split("\n\n")
        .map(|text| match text.split_once("\n  ") {
            Some((caption, lines)) => {
                let lines = lines.replace("\n  ", "\n").replace('`', "");
                format!("\n{}\n\n```text\n{lines}\n```\n", wrapped(&marked(caption)))
            }
            None => {
                let stop = if text.ends_with(['.', ':']) { "" } else { "." };
                format!("\n{}{stop}\n", wrapped(&marked(text)))
            }
        });
    paragraphs.collect()
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let forms = usage.trim_start_matches("Usage:").lines().map(str::trim);
    forms.collect::<Vec<_>>().join("\n")
}

/// Appends a table of arguments for each heading of the help.
fn arguments(command: &Command, page: &mut String) {
    let shown = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()));
    let mut tables: Vec<(&str, String)> = Vec::new();
    for arg in shown {
        let heading = arg.get_help_heading().unwrap_or(match arg.is_positional() {
            true => "Arguments",
            false => "Options",
        });
        let row = [spelled(arg), meaning(arg)].map(|cell| cell.replace('|', "\\|"));
        let row = format!("| {} | {} |\n", row[0], row[1]);
        match tables.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, rows)) => *rows += &row,
            None => tables.push((heading, row)),
        }
    }
    for (heading, rows) in tables {
        *page += &format!(
            "\n| {} | meaning |\n|---|---|\n{rows}",
            heading.to_lowercase()
        );
    }
}

/// Returns the argument as it is typed.
fn spelled(arg: &Arg) -> String {
    match arg.get_short() {
        Some(short) => format!("`-{short}`, `{arg}`"),
        None => format!("`{arg}`"),
    }
}

fn meaning(arg: &Arg) -> String {
    let help = arg
        .get_long_help()
        .or(arg.get_help())
        .map(ToString::to_string);
    let mut meaning = marked(&help.unwrap_or_default().replace("\n\n", " "));
    // As in the help.
    let defaults = arg.get_default_values();
    if arg.get_action().takes_values() && !arg.is_hide_default_value_set() && !defaults.is_empty() {
        let defaults = defaults.iter().map(|value| value.to_string_lossy());
        let defaults = defaults.collect::<Vec<_>>().join(", ");
        let _ = write!(meaning, " [default: {defaults}]");
    }
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !arg.is_hide_possible_values_set() && !values.is_empty() {
        let values = values.iter().filter(|value| !value.is_hide_set());
        let values = values.map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({})", value.get_name(), marked(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let stop = if meaning.ends_with(['.', ':']) {
            ""
        } else {
            "."
        };
        let _ = write!(meaning, "{stop} Values: {values}");
    }
    meaning
}

/// Returns a help text as Markdown: with options and the like as code, and pages as links.
fn marked(text: &str) -> String {
    let spans = text
        .split('`')
        .enumerate()
        .map(|(index, span)| match index % 2 {
            0 => span
                .split([' ', '\n'])
                .map(marked_word)
                .collect::<Vec<_>>()
                .join(" "),
            _ => format!("`{span}`"),
        });
    spans.collect()
}

fn marked_word(word: &str) -> String {
    let punctuation = ['(', ')', ',', '.', ';', ':'];
    let core = word.trim_matches(punctuation);
    let marked = match core.strip_prefix("docs/") {
        Some(page) => format!("[{core}](../../{page})"),
        None if core.starts_with("--") || core.contains(['<', '_', '*', '=', '$']) => {
            format!("`{core}`")
        }
        None => return word.to_owned(),
    };
    word.replacen(core, &marked, 1)
}

/// Wraps a paragraph at 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if line.chars().count() + word.chars().count() >= 100 {
            lines.push(word.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines.join("\n")
}
