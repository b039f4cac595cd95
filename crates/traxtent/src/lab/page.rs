//! The report as a self-contained page: every claim with its measurement, and the figures redrawn.
//!
//! The page follows the reader's preference for light or dark. Tables become cards on narrow
//! screens.

use traxtent_experiments::{Experiment, Finding, PAPERS, Paper, Verdict, experiments};
use traxtent_lab::Figure;
use traxtent_plot::{ExperimentFigure, Inline, Key, colours, inline};

use crate::claims::Findings;
use crate::failure::{Failure, Result};
use crate::html::{escape, prose, verdict};

/// The page's introduction.
pub(super) struct Head {
    /// The number of seeds with which a verdict must hold.
    pub(super) seeds: usize,
    /// A further note for the reader.
    pub(super) note: Option<&'static str>,
    /// The command that creates the page.
    pub(super) command: String,
}

type Pictures = [(&'static Experiment, Figure)];

/// Returns the page.
pub(super) fn html(head: &Head, findings: &Findings, pictures: &Pictures) -> Result<String> {
    let mut body = summary(head, findings);
    for paper in &PAPERS {
        body += &of_paper(paper, findings, pictures)?;
    }
    let style = style();
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>The papers' experiments</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    ))
}

/// Returns the style sheet, with the colours of all pictures.
fn style() -> String {
    let variables = |of: fn(&colours::Colour) -> [u8; 3]| -> String {
        let data = colours::DATA.iter().enumerate();
        data.map(|(k, colour)| format!("--c{k}: {}; ", colours::hex(of(colour))))
            .collect()
    };
    let classes: String = (0..colours::DATA.len())
        .map(|k| format!(".panel i.c{k} {{ background: var(--c{k}); }}\n"))
        .collect();
    format!(
        "{}:root {{ {}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {}}} }}\n{classes}{}",
        include_str!("page.css"),
        variables(|colour| colour.light),
        variables(|colour| colour.dark),
        colours::dark_style(),
    )
}

/// Returns the introduction, the score, and a link to every claim.
fn summary(head: &Head, findings: &Findings) -> String {
    let chip = |finding: &Finding| {
        let (id, word) = (escape(&finding.claim.id), finding.verdict().word());
        let symbol = shown_verdict(word).chars().next().unwrap_or_default();
        format!("<a class=\"{word}\" href=\"#{id}\" title=\"{word}\">{symbol} {id}</a>\n")
    };
    let chips: String = findings.0.iter().map(chip).collect();
    let seeds = match head.seeds {
        1 => "with one seed".to_owned(),
        n => {
            format!("with {n} seeds where anything is random, and a verdict had to hold with each")
        }
    };
    let note = head.note.map_or_else(String::new, |note| {
        format!("<p class=\"note\">{}</p>\n", prose(note))
    });
    format!(
        "<header>\n<h1>The papers' experiments</h1>\n{note}\
         <p>Published results about disks, compared with what traxtent {} measures on its built-in drives, {seeds}. A claim is \
         <b class=\"met\">✓ met</b> or <b class=\"missed\">✗ missed</b> by a tolerance that was fixed before anything was \
         measured (where a reading of an unclear sentence was chosen later, its experiment says so); it is only <b class=\"reported\">○ reported</b> if it says nothing about a realistic model. Nothing is adjusted \
         towards a claim, and a missed claim stays in the list.</p>\n\
         <p>In every picture, aligned data is blue and conventional data is orange. Lines, dots and bars are measured; \
         diamonds are published.</p>\n\
         <p class=\"score\">{}</p>\n<p class=\"chips\">\n{chips}</p>\n\
         <p>This page: <code>{}</code></p>\n</header>\n",
        env!("CARGO_PKG_VERSION"),
        escape(&findings.score()),
        escape(&head.command),
    )
}

fn of_paper(paper: &Paper, findings: &Findings, pictures: &Pictures) -> Result<String> {
    let mut sections = String::new();
    for experiment in experiments() {
        let is_its = |finding: &&Finding| {
            experiment
                .claims
                .iter()
                .any(|claim| claim.id == finding.claim.id)
        };
        let its: Vec<&Finding> = findings.0.iter().filter(is_its).collect();
        if !its.is_empty() && experiment.number.starts_with(paper.letter) {
            let picture = pictures
                .iter()
                .find(|(of, _)| of.number == experiment.number);
            sections += &of_experiment(experiment, &its, picture.map(|(_, figure)| figure))?;
        }
    }
    Ok(if sections.is_empty() {
        sections
    } else {
        format!(
            "<h2>{}: {}</h2>\n{sections}",
            paper.letter,
            escape(paper.title)
        )
    })
}

fn of_experiment(
    experiment: &Experiment,
    findings: &[&Finding],
    picture: Option<&Figure>,
) -> Result<String> {
    let number = escape(&experiment.number);
    let rows = rows(findings);
    let figure = match picture {
        Some(picture) => figure(experiment, picture)?,
        None => String::new(),
    };
    Ok(format!(
        "<section>\n<h3 id=\"group-{number}\">{number} · {}</h3>\n<p class=\"how\">{}</p>\n\
         <table>\n<thead><tr><th>claim</th><th></th><th>published</th><th>measured</th><th>within</th>\
         <th>verdict</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n{figure}\
         <p class=\"command\"><code>traxtent lab run {number}</code></p>\n</section>\n",
        escape(&experiment.title),
        prose(&how(experiment)),
    ))
}

/// Describes drives, workload, layout and differences from the paper in sentences.
fn how(experiment: &Experiment) -> String {
    let drives = match &experiment.drives[..] {
        [one] => format!("Drive: {one}."),
        several => format!("Drives: {}.", several.join(", ")),
    };
    let mut says = format!("{drives} Workload: {}.", experiment.workload);
    if let Some(layout) = &experiment.layout {
        says += &format!(" Layout: {layout}.");
    }
    if let Some(differences) = &experiment.differences {
        says += &format!(" Differences from the paper: {differences}.");
    }
    says
}

fn shown_verdict(word: &str) -> String {
    verdict(word).expect("a verdict's word")
}

/// Returns the row of a claim.
fn row(finding: &Finding) -> String {
    let claim = finding.claim;
    let (id, word) = (escape(&claim.id), finding.verdict().word());
    let verdict = shown_verdict(word);
    format!(
        "<tr id=\"{id}\"><td class=\"id\">{id}</td><td class=\"says\">{}</td>\
         <td class=\"number\" data-is=\"published\">{}</td><td class=\"number\" data-is=\"measured\">{}</td>\
         <td class=\"number\" data-is=\"within\">{}</td><td class=\"verdict {word}\">{verdict}</td></tr>\n",
        prose(&format!("{}.", claim.says)),
        escape(&claim.published()),
        measured(finding),
        escape(&claim.tolerance()),
    )
}

/// Returns the rows of the claims, followed by each reason once, with the claims that it explains.
fn rows(findings: &[&Finding]) -> String {
    let mut rows: String = findings.iter().map(|finding| row(finding)).collect();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in findings {
        let why = match (finding.verdict(), finding.claim.reason.as_str()) {
            (Verdict::Met, _) | (Verdict::Reported, "") => continue,
            (Verdict::Missed, "") => "the reason is not known",
            (_, known) => known,
        };
        let id = finding.claim.id.as_str();
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ids)) => ids.push(id),
            None => reasons.push((why, vec![id])),
        }
    }
    for (why, ids) in reasons {
        rows += &format!(
            "<tr class=\"why\"><td colspan=\"6\"><b>{}</b>: {}.</td></tr>\n",
            escape(&ids.join(", ")),
            prose(why)
        );
    }
    rows
}

/// Returns the measured value, followed by its range if it differs between seeds. With one seed,
/// the other candidate values follow.
fn measured(finding: &Finding) -> String {
    let unit = finding.claim.unit;
    let show = |number| escape(&unit.format(number));
    let mut text = show(finding.measured());
    let spread = finding.spread();
    if unit.format(spread.min) != unit.format(spread.max) {
        let range = escape(&unit.format_range(spread.min, spread.max));
        text += &format!(" <small>{range}</small>");
    }
    if let [sample] = &finding.samples[..] {
        let others = sample
            .candidates
            .iter()
            .filter(|other| **other != sample.measured);
        let others: Vec<String> = others.map(|other| show(*other)).collect();
        if !others.is_empty() {
            text += &format!(" <small>or {}</small>", others.join(" or "));
        }
    }
    text
}

/// The displayed width of a panel that has a row of the page to itself, in pixels.
const WIDE_PX: u32 = 1000;
/// The displayed width of a panel that shares a row, in pixels.
const SHARED_PX: u32 = 490;
/// The displayed width of a panel on a narrow page, in pixels.
const NARROW_PX: u32 = 380;

/// Returns the figure. Each panel is drawn once for wide pages and once for narrow ones, so that
/// its text always has the size of the page's text. The style sheet shows one of the two.
fn figure(experiment: &Experiment, picture: &Figure) -> Result<String> {
    let Some(spec) = &experiment.figure else {
        return Ok(String::new());
    };
    let (class, width) = match picture.panels.len() {
        1 => ("panel alone", WIDE_PX),
        _ => ("panel", SHARED_PX),
    };
    let figure = ExperimentFigure {
        figure: picture,
        spec: Some(spec),
    };
    let mut panels = String::new();
    for (index, panel) in picture.panels.iter().enumerate() {
        let drawn =
            |width| inline(figure, index, width).map_err(|error| Failure::Io(error.to_string()));
        let (wide, narrow) = (drawn(width)?, drawn(NARROW_PX)?);
        panels += &of_panel(class, &panel.title, &wide, &narrow);
    }
    let caption = format!("{} redrawn", escape(&spec.name));
    let points = if spec.published.is_empty() {
        ""
    } else {
        "; diamonds are values from the paper's text"
    };
    Ok(format!(
        "<figure>\n{panels}<figcaption>{caption}{points}.</figcaption>\n</figure>\n"
    ))
}

fn of_panel(class: &str, title: &str, wide: &Inline, narrow: &Inline) -> String {
    let keys: String = wide.keys.iter().map(key).collect();
    format!(
        "<div class=\"{class}\">\n<h4>{}</h4>\n<ul>{keys}</ul>\n\
         <div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n</div>\n",
        escape(title),
        wide.svg,
        narrow.svg,
    )
}

fn key(key: &Key) -> String {
    let colour = key.colour.map_or_else(String::new, |colour| {
        format!(" c{}", colour % colours::DATA.len())
    });
    format!(
        "<li><i class=\"{}{colour}\"></i>{}</li>",
        key.class,
        escape(&key.name)
    )
}
