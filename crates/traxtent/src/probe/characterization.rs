//! The characterization of a drive (`traxtent_probe::characterization`), as a profile, a few lines
//! of text, or JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use traxtent_map::TrackMap;
use traxtent_model::geometry::Order;
use traxtent_model::profile::Profile;
use traxtent_probe::characterization::{
    Characterization, CharacterizeOptions, CharacterizeProgress as Stage, LayoutOrder, Residual,
    characterize, residuals,
};
use traxtent_probe::{ProbeError, Target};
use traxtent_units::Count;

use super::Args;
use super::meter::ProbeMeter;
use crate::failure::{Failure, Result, warn};
use crate::progress::Progress;

/// The characterization of a drive, and the accuracy of its fitted profile.
pub(super) struct MeasuredDrive {
    pub(super) characterization: Characterization,
    pub(super) profile: Profile,
    /// The results of `--fit`.
    pub(super) residuals: Vec<Residual>,
}

/// Returns whether the drive should be characterized beyond its tracks.
pub(super) fn wanted(args: &Args) -> bool {
    args.profile.is_some() || args.fit || !args.tracks_only && args.region.is_none()
}

/// Measures the drive. A failure is only a warning, unless a profile or `--fit` was requested, the
/// drive does not rotate, or the user has stopped the command.
pub(super) fn measure(
    target: &mut dyn Target,
    meter: &ProbeMeter,
    tracks: &TrackMap,
    args: &Args,
) -> Result<Option<MeasuredDrive>> {
    let options = CharacterizeOptions {
        destructive: args.destructive,
        seed: args.seed,
    };
    let mut watched = meter.watch(target);
    // The number of steps is not known in advance.
    let progress = Progress::new("characterization steps", None);
    let mut step = |_: Stage| progress.add(1);
    let result =
        characterize(&mut watched, tracks, options, &mut step).and_then(|characterization| {
            let profile = characterization.to_profile();
            let residuals = if args.fit {
                residuals(&mut watched, &profile, options, &mut step)?
            } else {
                Vec::new()
            };
            Ok(MeasuredDrive {
                characterization,
                profile,
                residuals,
            })
        });
    drop(progress);
    // An error does not affect the result: the drive does not support the setting, or is gone.
    let _ = target.switch_caching(true);
    match result {
        Ok(measured) => Ok(Some(measured)),
        Err(_) if meter.stopped() => {
            Err(meter.early_end("stopped during the characterization".to_owned()))
        }
        Err(error @ ProbeError::NotRotating(_)) => Err(Failure::Finding(error.to_string())),
        Err(error) if args.profile.is_some() || args.fit => Err(Failure::Io(error.to_string())),
        Err(error) => {
            warn(format!(
                "the drive was not characterized beyond its tracks: {error}"
            ));
            Ok(None)
        }
    }
}

impl MeasuredDrive {
    /// Writes a summary, one item per line.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let characterization = &self.characterization;
        let mut line = |name: &str, text: String| writeln!(out, "{name:>12}  {text}");
        line("speed", format!("{:.1} RPM", characterization.rpm()))?;
        line("order", order(characterization.layout_order()))?;
        let does = if characterization.zero_latency() {
            "does"
        } else {
            "does not"
        };
        line(
            "zero latency",
            format!("the drive {does} read from the sector at which the head arrives"),
        )?;
        line(
            "measured by",
            format!(
                "{} reads, {} translations, {:.1} s of the drive's time",
                characterization.requests,
                characterization.translations,
                characterization.drive_ms / 1000.0
            ),
        )?;
        for note in characterization.notes() {
            line("note", note.clone())?;
        }
        for residual in &self.residuals {
            line(
                "fit",
                format!(
                    "{}: fitted mean {:.3} ms, drive's mean {:.3} ms ({:+.2} %); demerit {:.3} ms ({:.2} %)",
                    residual.workload,
                    residual.fitted_ms,
                    residual.drive_ms,
                    residual.mean_error() * 100.0,
                    residual.demerit_ms,
                    residual.relative_demerit() * 100.0
                ),
            )?;
        }
        Ok(())
    }

    /// Adds the characterization and the results of `--fit` to a JSON object.
    pub(super) fn add_to(&self, object: &mut Value) {
        let characterization = &self.characterization;
        let LayoutOrder {
            order,
            surfaces,
            width,
            confidence,
        } = characterization.layout_order();
        object["layout_order"] = json!(name(order));
        object["zero_latency"] = json!(characterization.zero_latency());
        object["rpm"] = json!(characterization.rpm());
        let figures = characterization.figures().iter().map(|figure| {
            json!({
                "name": figure.name,
                "value": figure.value,
                "low": figure.low,
                "high": figure.high,
                "unit": figure.unit,
                "how": figure.how,
                "samples": figure.samples,
            })
        });
        object["character"] = json!({
            "surfaces": surfaces,
            "width_tracks": width,
            "order_known_by": format!("{confidence:?}").to_lowercase(),
            "figures": figures.collect::<Vec<_>>(),
            "reads": characterization.requests,
            "translations": characterization.translations,
            "drive_time_s": characterization.drive_ms / 1000.0,
            "notes": characterization.notes(),
        });
        if !self.residuals.is_empty() {
            let residuals = self.residuals.iter().map(|residual| {
                json!({
                    "workload": residual.workload,
                    "requests": residual.requests,
                    "drive_ms": residual.drive_ms,
                    "fitted_ms": residual.fitted_ms,
                    "mean_error": residual.mean_error(),
                    "demerit_ms": residual.demerit_ms,
                    "relative_demerit": residual.relative_demerit(),
                })
            });
            object["fit"] = residuals.collect();
        }
    }
}

/// Returns the name of one of Wong's six layout orders, as used in profiles, or `irregular`.
fn name(order: Option<Order>) -> String {
    let name = order.and_then(|order| Some(json!(order).as_str()?.to_owned()));
    name.unwrap_or_else(|| "irregular".to_owned())
}

fn order(order: LayoutOrder) -> String {
    let LayoutOrder {
        order,
        surfaces,
        width,
        ..
    } = order;
    let name = name(order);
    let width = width.map_or(String::new(), |width| {
        format!(", {} wide", Count(width, "track"))
    });
    format!("{name}{width}, {}", Count(surfaces, "surface"))
}
