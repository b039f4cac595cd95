//! The report as a self-contained page: every claim with its measurement, and the figures redrawn.
//!
//! The page follows the reader's preference for light or dark. Tables become cards on narrow
//! screens.

use traxtent_experiments::{Experiment, Finding, PAPERS, Paper, Verdict, experiments};
use traxtent_lab::Figure;

use crate::claims::Findings;
use crate::failure::Result;
use crate::html::escape;
use crate::plot::{self, Key};

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
    let style = include_str!("page.css");
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>The papers' experiments</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    ))
}

/// Returns the introduction, the score, and a link to every claim.
fn summary(head: &Head, findings: &Findings) -> String {
    let chip = |finding: &Finding| {
        let (id, word) = (escape(&finding.claim.id), finding.verdict().word());
        format!("<a class=\"{word}\" href=\"#{id}\" title=\"{word}\">{id}</a>\n")
    };
    let chips: String = findings.0.iter().map(chip).collect();
    let seeds = match head.seeds {
        1 => "with one seed".to_owned(),
        n => {
            format!("with {n} seeds where anything is random, and a verdict had to hold with each")
        }
    };
    let note = head
        .note
        .map_or_else(String::new, |note| format!("<p>{}</p>\n", escape(note)));
    format!(
        "<header>\n<h1>The papers' experiments</h1>\n\
         <p>Published results about disks, compared with what traxtent {} measures on its built-in drives, {seeds}. A claim is \
         <b class=\"met\">met</b> or <b class=\"missed\">missed</b> by a tolerance that was fixed before anything was \
         measured (where a reading of an unclear sentence was chosen later, its experiment says so); it is <b class=\"reported\">reported</b> if no realistic model could be judged by it. Nothing is adjusted \
         towards a claim, and a missed claim stays in the list.</p>\n\
         <p class=\"score\">{}</p>\n{note}<p class=\"chips\">\n{chips}</p>\n\
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
        escape(&how(experiment)),
    ))
}

/// Describes drives, workload and layout in sentences.
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

/// Returns the row of a claim.
fn row(finding: &Finding) -> String {
    let claim = finding.claim;
    let (id, word) = (escape(&claim.id), finding.verdict().word());
    format!(
        "<tr id=\"{id}\"><td class=\"id\">{id}</td><td class=\"says\">{}</td>\
         <td class=\"number\" data-is=\"published\">{}</td><td class=\"number\" data-is=\"measured\">{}</td>\
         <td class=\"number\" data-is=\"within\">{}</td><td class=\"verdict {word}\">{word}</td></tr>\n",
        escape(&claim.says),
        escape(&claim.published()),
        measured(finding),
        escape(&claim.tolerance()),
    )
}

/// Returns the rows of the claims. A reason follows each group of claims that were missed or only
/// reported for the same reason.
fn rows(findings: &[&Finding]) -> String {
    let verdict_and_reason =
        |finding: &&Finding| (finding.verdict(), finding.claim.reason.as_str());
    let mut rows = String::new();
    for alike in findings.chunk_by(|one, next| verdict_and_reason(one) == verdict_and_reason(next))
    {
        rows.extend(alike.iter().map(|finding| row(finding)));
        let why = match verdict_and_reason(&alike[0]) {
            (Verdict::Met, _) | (Verdict::Reported, "") => continue,
            (Verdict::Missed, "") => "the reason is not known",
            (_, known) => known,
        };
        let ids = match alike {
            [one] => one.claim.id.clone(),
            [first, .., last] => format!("{} to {}", first.claim.id, last.claim.id),
            [] => String::new(),
        };
        rows += &format!(
            "<tr class=\"why\"><td colspan=\"6\">{}: {}.</td></tr>\n",
            escape(&ids),
            escape(why)
        );
    }
    rows
}

/// Returns the measured value, with its range over seeds and other candidate values.
fn measured(finding: &Finding) -> String {
    let show = |number| escape(&finding.claim.unit.format(number));
    let mut text = show(finding.measured());
    let (least, most) = (show(finding.spread().min), show(finding.spread().max));
    if least != most {
        text += &format!(" <small>{least} to {most}</small>");
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

fn figure(experiment: &Experiment, picture: &Figure) -> Result<String> {
    let Some(spec) = &experiment.figure else {
        return Ok(String::new());
    };
    let mut panels = String::new();
    for (index, panel) in picture.panels.iter().enumerate() {
        let drawn = plot::inline(picture, index, spec)?;
        let keys: String = drawn.keys.iter().map(key).collect();
        panels += &format!(
            "<div class=\"panel\">\n<h4>{}</h4>\n<ul>{keys}</ul>\n{}</div>\n",
            escape(&panel.title),
            drawn.svg,
        );
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

fn key(key: &Key) -> String {
    let colour = key
        .colour
        .map_or_else(String::new, |colour| format!(" c{}", colour % COLOURS));
    format!(
        "<li><i class=\"{}{colour}\"></i>{}</li>",
        key.class,
        escape(&key.name)
    )
}

/// The number of colours in the style sheet.
const COLOURS: usize = 6;
