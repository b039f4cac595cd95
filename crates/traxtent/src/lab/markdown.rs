//! Findings as Markdown, with each claim and the command that measures it.

use std::io::Write;
use std::path::PathBuf;

use traxtent_experiments::{Finding, PAPERS};

use crate::claims::{Findings, measured};
use crate::failure::Result;
use crate::output;

/// Prints the findings by paper, then the reasons for missed claims, then the pictures.
pub(super) fn print(findings: &Findings, pictures: &[PathBuf]) -> Result<()> {
    let mut out = output::stdout();
    for paper in PAPERS {
        let of_paper = |finding: &&Finding| finding.claim.id.starts_with(paper.letter);
        let findings: Vec<&Finding> = findings.0.iter().filter(of_paper).collect();
        if findings.is_empty() {
            continue;
        }
        writeln!(out, "## {}: {}\n", paper.letter, paper.title)?;
        writeln!(
            out,
            "| claim | | published | measured | within | verdict | command |\n|---|---|---|---|---|---|---|"
        )?;
        for finding in findings {
            let claim = finding.claim;
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | `traxtent lab run {}` |",
                claim.id,
                claim.says,
                claim.published(),
                measured(finding),
                claim.tolerance(),
                finding.verdict().word(),
                claim.id,
            )?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{}\n", findings.score())?;
    for reason in findings.reasons() {
        writeln!(out, "- {reason}")?;
    }
    for picture in pictures {
        let name = picture.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(out, "\n![{name}]({})", picture.display())?;
    }
    output::finish(out)
}
