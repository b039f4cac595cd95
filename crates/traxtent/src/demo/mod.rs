//! `traxtent demo`: the benefit of track alignment, on the drive of the paper and on a current one.

mod paper;
mod probe;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use traxtent_model::profile::{OriginKind, Profile, builtin};
use traxtent_plot::{Curve, Draw, DrawError, Efficiency, EfficiencyPanel, colours};
use traxtent_probe::Algorithm;
use traxtent_sim::efficiency::{EfficiencyCurve, Queue, random_in_zone_0, sequential_in_zone_0};
use traxtent_sim::{SimulateError, TestDrive, WorkloadResult};

use crate::NO_LAB;
use crate::failure::{Failure, Result, note};
use crate::html::{escape, prose};
use crate::map::draw_tracks;
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::plot;
use crate::table::{Side, Table};
use paper::Comparison;
use probe::BlindProbe;

/// The drive of the paper's figures.
const PAPER_DRIVE: &str = "atlas10k2";

/// The drive that represents current drives.
const MODERN_DRIVE: &str = "generic-20tb";

/// The number of points per track on an efficiency curve: the number of multiples of 8 KiB in the
/// paper's track.
const POINTS_PER_TRACK: u32 = 33;
/// The size, in tracks, after which efficiency curves have one more point.
const TRACKS_MAX: u32 = 4;

/// The displayed width of a panel on a wide page, in pixels.
const PANEL_WIDTH_PX: u32 = 480;
/// The displayed width of a panel on a narrow page, in pixels.
const NARROW_WIDTH_PX: u32 = 380;

/// The file name of the report.
const REPORT: &str = "report.html";
/// The file name of the picture of efficiencies.
const PICTURE: &str = "efficiency.svg";
/// The file name of the picture of tracks.
const TRACKS: &str = "tracks.svg";

/// The name of the curve of aligned reads, here and in the paper's experiments.
const ALIGNED: &str = "aligned to tracks";

/// The seed of every workload of the demo.
const SEED: u64 = 1;

/// Show the benefit of track alignment, compared with published results
///
/// Simulates the Quantum Atlas 10K II, the drive of the track-aligned extents paper (FAST 2002).
/// Finds the drive's tracks by probing and compares them with the true ones, draws them, reads
/// them aligned and unaligned, compares the results with the paper's, and draws efficiency against
/// request size for this drive and a current one. Takes less than a minute.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The directory for the report and its pictures
    #[arg(long, value_name = "DIR", default_value = "traxtent-demo")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    check_files(&args.out)?;
    let drive = test_drive(PAPER_DRIVE)?;
    let probes = [
        (Algorithm::Angle, "by timing reads"),
        (Algorithm::Tree, "by translating addresses"),
    ]
    .into_iter()
    .map(|(algorithm, how)| {
        note(format!("finding the tracks of {PAPER_DRIVE} {how}"));
        BlindProbe::of(&drive, algorithm)
    })
    .collect::<Result<Vec<_>>>()?;
    note("reading tracks, aligned and unaligned");
    let head_times = HeadTimes::measure(&drive).map_err(broken)?;
    if cfg!(feature = "lab") {
        note("measuring what the paper claims");
    }
    let comparison = paper::compare()?;
    let modern = test_drive(MODERN_DRIVE)?;
    note(format!(
        "measuring efficiency on {PAPER_DRIVE} and {MODERN_DRIVE}"
    ));
    let modern_head_times = HeadTimes::measure(&modern).map_err(broken)?;
    let picture = picture(&drive, &modern)?;
    let fitted = fitted(&drive.profile);
    let report = Report {
        drive,
        probes,
        head_times,
        modern_head_times,
        comparison,
        modern: assumed_sentence(&modern.profile),
        fitted,
    };
    let files = report.write_files(&args.out, &picture)?;
    if args.json {
        output::json(&report.json(&files))
    } else {
        report.print(&files)
    }
}

/// Refuses a directory in which a file of the demo would overwrite another file. Creates the
/// directory if needed.
fn check_files(folder: &Path) -> Result<()> {
    let (report, picture, tracks) = (
        folder.join(REPORT),
        folder.join(PICTURE),
        folder.join(TRACKS),
    );
    overwrite::check(
        [],
        &[
            ("--out", Some(&report), Some(OutputFormat::Page)),
            ("--out", Some(&picture), Some(OutputFormat::Picture)),
            ("--out", Some(&tracks), Some(OutputFormat::Picture)),
        ],
    )?;
    output::folder(folder)
}

/// Returns a built-in drive.
fn test_drive(name: &str) -> Result<TestDrive> {
    let profile = builtin(name).expect("a built-in drive");
    TestDrive::new(profile, SEED).map_err(|error| Failure::input(format!("demo: {error}")))
}

/// Returns the failure of a simulation. The demo uses only built-in drives, so none is expected.
fn broken(error: SimulateError) -> Failure {
    Failure::input(format!("demo: {error}"))
}

fn measure(drive: &TestDrive, workload: &str) -> Result<WorkloadResult, SimulateError> {
    drive.run(workload.parse()?)
}

/// Head times of track-sized reads in milliseconds: unaligned and aligned, onereq and tworeq.
struct HeadTimes {
    rows: [(&'static str, f64, f64); 2],
}

impl HeadTimes {
    fn measure(drive: &TestDrive) -> Result<HeadTimes, SimulateError> {
        let track = drive.track_sectors();
        let time = |aligned, queue| -> Result<f64, SimulateError> {
            Ok(measure(drive, &random_in_zone_0(track, aligned, queue))?.head_time_ms)
        };
        let row =
            |name, queue| Ok::<_, SimulateError>((name, time(false, queue)?, time(true, queue)?));
        Ok(HeadTimes {
            rows: [row("onereq", Queue::OneReq)?, row("tworeq", Queue::TwoReq)?],
        })
    }
}

/// Returns the picture of efficiency against request size, for the paper's drive and a current one.
fn picture(drive: &TestDrive, modern: &TestDrive) -> Result<Efficiency> {
    let mut panels = std::thread::scope(|scope| {
        let running = [drive, modern].map(|drive| scope.spawn(|| panel(drive)));
        running.map(|thread| thread.join().expect("a measurement does not panic"))
    })
    .into_iter()
    .collect::<Result<Vec<_>, _>>()
    .map_err(broken)?;
    panels[0].marks = paper::marks();
    Ok(Efficiency {
        panels,
        panel_width: PANEL_WIDTH_PX,
    })
}

fn panel(drive: &TestDrive) -> Result<EfficiencyPanel, SimulateError> {
    let track = drive.track_sectors();
    let step = (track / POINTS_PER_TRACK).max(1);
    let most = track * TRACKS_MAX + step;
    let points = |aligned| -> Result<Vec<(f64, f64)>, SimulateError> {
        let efficiency = |sectors| -> Result<f64, SimulateError> {
            let reads = random_in_zone_0(sectors, aligned, Queue::TwoReq);
            Ok(measure(drive, &reads)?.efficiency())
        };
        let curve = EfficiencyCurve::measure(step, most, efficiency)?;
        let points = curve.points.into_iter();
        Ok(points
            .map(|(sectors, efficiency)| (drive.kb(sectors), efficiency))
            .collect())
    };
    let streaming = measure(drive, &sequential_in_zone_0(track))?.efficiency();
    let curve = |name: &str, points| Curve {
        name: name.to_owned(),
        points,
    };
    Ok(EfficiencyPanel {
        title: title(&drive.profile),
        curves: vec![
            curve(ALIGNED, points(true)?),
            curve("unaligned", points(false)?),
            curve(
                "sequential",
                vec![(0.0, streaming), (drive.kb(most), streaming)],
            ),
        ],
        marks: Vec::new(),
        track_kib: drive.kb(track),
    })
}

/// Returns a sentence that names the figures that were fitted to the paper. Agreement that follows
/// from them says nothing about the model.
fn fitted(profile: &Profile) -> String {
    let cites = |origin: &str| origin.contains("FAST 2002") || origin.contains("section 5.2");
    let entries = profile.provenance.0.iter();
    let keys: Vec<&str> = entries
        .filter(|(_, origin)| origin.starts_with("fitted: ") && cites(origin))
        .map(|(key, _)| key.as_str())
        .collect();
    format!(
        "Fitted to this paper: {}; `traxtent drives show {}` gives details.",
        keys.join(", "),
        profile.name
    )
}

/// Returns a sentence with the number of a drive's figures that are assumed.
fn assumed_sentence(profile: &Profile) -> String {
    let paths = profile.value_paths();
    let tally = profile.provenance.tally(paths.iter().map(String::as_str));
    let assumed = tally[OriginKind::Assumed as usize];
    format!(
        "Of the {} figures of {}, {assumed} are assumed.",
        paths.len(),
        profile.name
    )
}

/// Returns the model's name up to the first comma, with its year.
fn title(profile: &Profile) -> String {
    let model = profile.model.split(", ").next().unwrap_or_default();
    match profile.year {
        Some(year) => format!("{model} ({year})"),
        None => model.to_owned(),
    }
}

/// All results of the demo.
struct Report {
    drive: TestDrive,
    probes: Vec<BlindProbe>,
    head_times: HeadTimes,
    modern_head_times: HeadTimes,
    /// The comparison with the paper; `None` if this build cannot make it.
    comparison: Option<Comparison>,
    /// A sentence that names the profile's figures that were fitted to the paper.
    fitted: String,
    /// A sentence with the number of the current drive's figures that are assumed.
    modern: String,
}

impl Report {
    fn intro(&self) -> String {
        let track = self.drive.track_sectors();
        format!(
            "{}: 5,000 random reads of a track ({track} sectors, {} KiB) in the outermost zone",
            self.drive.profile.model,
            self.drive.kb(track)
        )
    }

    fn head_time_table(&self) -> Table {
        let published = self
            .comparison
            .as_ref()
            .map(|found| &found.head_time_changes);
        let mut columns = vec![
            ("HEAD TIME", Side::Left),
            ("UNALIGNED", Side::Right),
            ("ALIGNED", Side::Right),
            ("CHANGE", Side::Right),
        ];
        columns.extend(published.map(|_| ("PUBLISHED", Side::Right)));
        let mut table = Table::new(columns);
        let mut row =
            |name: String, (unaligned, aligned): (f64, f64), published: Option<String>| {
                let cells = [
                    name,
                    format!("{unaligned:.2} ms"),
                    format!("{aligned:.2} ms"),
                    format!("{:+.1} %", (aligned / unaligned - 1.0) * 100.0),
                ];
                table.row(cells.into_iter().chain(published));
            };
        for (index, (name, unaligned, aligned)) in self.head_times.rows.iter().enumerate() {
            let published = published.map(|changes| changes[index].clone());
            row((*name).to_owned(), (*unaligned, *aligned), published);
        }
        for (name, unaligned, aligned) in &self.modern_head_times.rows {
            let name = format!("{name}, {MODERN_DRIVE}");
            row(
                name,
                (*unaligned, *aligned),
                published.map(|_| String::new()),
            );
        }
        table
    }

    fn print(&self, files: &Files) -> Result<()> {
        let mut out = output::stdout();
        writeln!(
            out,
            "{}, probed without knowledge of its layout:",
            self.drive.profile.model
        )?;
        for probe in &self.probes {
            writeln!(out, "  {}", probe.summary_line())?;
        }
        writeln!(out, "\n{}\n", self.intro())?;
        self.head_time_table().write(&mut out)?;
        match &self.comparison {
            Some(found) => {
                writeln!(
                    out,
                    "\nCompared with the paper (Track-Aligned Extents, FAST 2002), with the built-in profile (its fitted figures are listed below):\n"
                )?;
                found.table.write(&mut out)?;
                writeln!(out, "\n{}", found.score)?;
                for reason in &found.reasons {
                    writeln!(out, "  {reason}")?;
                }
            }
            None => writeln!(out, "\nNot compared with the paper: {NO_LAB}.")?,
        }
        writeln!(out, "  {}", self.fitted)?;
        writeln!(
            out,
            "\n{} It represents current drives in the picture.",
            self.modern
        )?;
        writeln!(out, "\nwrote {}", files.report.display())?;
        for picture in files.picture.iter().chain(&files.tracks) {
            writeln!(out, "wrote {}", picture.display())?;
        }
        writeln!(out, "\nWhat to try next:")?;
        for (command, why) in NEXT {
            writeln!(out, "  {command}\n      {why}")?;
        }
        output::finish(out)
    }

    fn json(&self, files: &Files) -> Value {
        let row = |(name, unaligned, aligned): &(&str, f64, f64)| json!({ "workload": name, "unaligned_ms": unaligned, "aligned_ms": aligned });
        json!({
            "drive": self.drive.profile.name,
            "probes": self.probes.iter().map(BlindProbe::json).collect::<Vec<_>>(),
            "head_times": self.head_times.rows.iter().map(row).collect::<Vec<_>>(),
            "modern_drive": MODERN_DRIVE,
            "modern_head_times": self.modern_head_times.rows.iter().map(row).collect::<Vec<_>>(),
            "claims": self.comparison.as_ref().map(|found| &found.claims),
            "met": self.comparison.as_ref().map(|found| found.met),
            "missed": self.comparison.as_ref().map(|found| found.missed),
            "report": files.report,
            "picture": files.picture,
            "tracks": files.tracks,
        })
    }

    /// Writes the report, and the pictures if this build can draw.
    fn write_files(&self, folder: &Path, picture: &Efficiency) -> Result<Files> {
        let mut files = Files {
            report: folder.join(REPORT),
            picture: None,
            tracks: None,
        };
        let mut svg = String::new();
        if cfg!(feature = "plot") {
            let path = folder.join(PICTURE);
            plot::write(&path, picture)?;
            svg = pictures_for_page(picture)?;
            files.picture = Some(path);
            let path = folder.join(TRACKS);
            draw_tracks(&self.drive.profile.name, &self.probes[0].tracks, &path)?;
            files.tracks = Some(path);
        }
        output::write(&files.report, self.html(&svg).as_bytes())?;
        Ok(files)
    }

    /// Returns the report as a single self-contained page.
    fn html(&self, svg: &str) -> String {
        let comparison = match &self.comparison {
            Some(found) => found.html(),
            None => format!(
                "<p>Not compared with the paper: {}.</p>\n<ul>\n",
                escape(NO_LAB)
            ),
        };
        let probes: String = self
            .probes
            .iter()
            .map(|probe| format!("<li>{}</li>\n", escape(&probe.summary_line())))
            .collect();
        let next: String = NEXT
            .iter()
            .map(|(command, why)| {
                format!(
                    "<dt><code>{}</code></dt><dd>{}</dd>\n",
                    escape(command),
                    escape(why)
                )
            })
            .collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>The benefit of track alignment</title>\n<style>\n{}{}</style>\n</head>\n<body>\n\
             <h1>The benefit of track alignment</h1>\n<p>The drive's tracks, probed without knowledge of its layout:</p>\n<ul>\n{probes}</ul>\n\
             <p>{}.</p>\n{}\n\
             <p>Head time runs from the first movement for a request until the head is free again; with <i>tworeq</i> it is the reciprocal of throughput. <i>onereq</i> keeps one \
             request at the drive, and <i>tworeq</i> always keeps one more queued.</p>\n\
             {svg}\
             <p>Both panels show <i>tworeq</i>, with reads in the outermost zone; efficiency is relative to the zone's rate. Diamonds are points A and B of the paper's Fig. 1 and the \
             unaligned efficiency that it states at A's size. {}</p>\n\
             <h2>Comparison with the paper</h2>\n<p>Schindler, Griffin, Lumb and Ganger, <i>Track-Aligned Extents: Matching \
             Access Patterns to Disk Drive Characteristics</i>, FAST 2002. The drive's figures are taken as they \
             are; those that were fitted to this paper are named below.</p>\n{comparison}<li>{}</li>\n</ul>\n\
             <h2>What to try next</h2>\n<dl>\n{next}</dl>\n</body>\n</html>\n",
            include_str!("page.css"),
            colours::dark_style(),
            escape(&self.intro()),
            self.head_time_table().html(),
            escape(&self.modern),
            prose(&self.fitted),
        )
    }
}

/// Returns the picture for a page. Its panels are side by side on a wide page, and stacked on a
/// narrow one.
fn pictures_for_page(picture: &Efficiency) -> Result<String> {
    let broken = |error: DrawError| Failure::Io(error.to_string());
    let narrow: String = picture
        .panels
        .iter()
        .map(|panel| {
            Efficiency {
                panels: vec![panel.clone()],
                panel_width: NARROW_WIDTH_PX,
            }
            .svg()
        })
        .collect::<Result<_, _>>()
        .map_err(broken)?;
    Ok(format!(
        "<div class=\"wide\">{}</div>\n<div class=\"narrow\">{narrow}</div>\n",
        picture.svg().map_err(broken)?
    ))
}

/// The files that were written.
struct Files {
    report: PathBuf,
    picture: Option<PathBuf>,
    tracks: Option<PathBuf>,
}

/// Commands to try next, each with its purpose.
const NEXT: [(&str, &str); 5] = [
    (
        "traxtent probe toshiba-x300 --tracks-only --map x300.map",
        "find the tracks of a drive of 5 TB and write them to a map",
    ),
    (
        "traxtent drives",
        "the built-in drives, and how well founded each is",
    ),
    (
        "traxtent map atlas10k2 --lbn 1000000",
        "which track an LBN is on",
    ),
    (
        "traxtent sim generic-20tb random,size=4KiB --set workload.outstanding=1,4,16,64",
        "the effect of queueing",
    ),
    (
        "traxtent sim disksim:my.parv my.trace --plot response.svg",
        "your own drive and trace",
    ),
];
