//! The faults that can be injected into a disk, by name.
//!
//! A fault is written as one line, `latent-error,lbn=1000,sectors=8`, or as an entry of a
//! [scenario](super::Scenario).

use std::fmt;
use std::str::FromStr;

use super::cut::Tearing;
use super::duration_text;
use traxtent_units::{Lbn, Span};

/// A fault of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `power-cut`: power fails, and writes that are not durable may be lost in part or completely.
    PowerCut {
        /// `seed`: determines which data is lost. Default: the next seed of the scenario.
        seed: Option<u64>,
        /// `tearing`: the unit that is not torn. Default: `physical`.
        tearing: Tearing,
        /// `for`: the time without power, including the time to spin up. Default: none.
        off: Span,
    },
    /// `latent-error`: reads fail until the sectors are written again. The error affects whole
    /// physical sectors.
    LatentError {
        /// `lbn`: the first bad sector.
        lbn: Lbn,
        /// `sectors`: the number of sectors. Default: 1.
        sectors: u32,
        /// `revolutions`: the number of retries before the drive reports the error. Default: 0.
        revolutions: u32,
    },
    /// `slow-sector`: reads succeed, but only after additional revolutions.
    SlowSector {
        /// `lbn`: the first slow sector.
        lbn: Lbn,
        /// `sectors`: the number of sectors. Default: 1.
        sectors: u32,
        /// `revolutions`: the number of additional revolutions per physical sector. Required.
        revolutions: u32,
    },
    /// `grown-defect`: the sectors are bad. Their data has moved to spares, and accesses go there.
    GrownDefect {
        /// `lbn`: the first bad sector.
        lbn: Lbn,
        /// `sectors`: the number of sectors. Default: 1.
        sectors: u32,
    },
    /// `stall`: the drive does nothing for a time, and then continues.
    Stall {
        /// `for`: the length of the stall.
        length: Span,
    },
    /// `vanish`: the drive disappears for a time. Requests fail, and outstanding writes have no
    /// effect. Acknowledged data stays in its cache, because the power is on. (For a loss of power,
    /// see `power-cut`.)
    Vanish {
        /// `for`: the time for which the drive is absent.
        length: Span,
    },
    /// `lying-flush`: a flush is acknowledged but makes nothing durable.
    LyingFlush {
        /// `for`: the duration of this behaviour. Default: permanently.
        length: Option<Span>,
    },
    /// `lying-fua`: a write with force unit access takes its usual time, but is no more durable
    /// than any other write.
    LyingFua {
        /// `for`: the duration of this behaviour. Default: permanently.
        length: Option<Span>,
    },
}

/// An error in the description of a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
#[non_exhaustive]
pub struct FaultError {
    /// The key, `fault` for an unknown fault, or a parameter that has no value.
    pub key: String,
    /// The problem.
    pub problem: String,
}

/// The keys of all faults.
const KEYS: [&str; 6] = ["seed", "tearing", "for", "lbn", "sectors", "revolutions"];
/// The maximum number of sectors of a latent error or of a slow sector fault.
const SECTORS_MAX: u64 = 4096;
/// The maximum number of sectors that one fault can move to spares. Each physical sector has its
/// own spare.
const MOVED_MAX: u64 = 64;
/// The maximum number of retries or additional revolutions per physical sector.
const REVOLUTIONS_MAX: u64 = 1000;

impl Fault {
    /// The names of all faults.
    pub const NAMES: [&'static str; 8] = [
        "power-cut",
        "latent-error",
        "slow-sector",
        "grown-defect",
        "stall",
        "vanish",
        "lying-flush",
        "lying-fua",
    ];

    /// The fault's name.
    pub fn name(&self) -> &'static str {
        Fault::NAMES[match self {
            Fault::PowerCut { .. } => 0,
            Fault::LatentError { .. } => 1,
            Fault::SlowSector { .. } => 2,
            Fault::GrownDefect { .. } => 3,
            Fault::Stall { .. } => 4,
            Fault::Vanish { .. } => 5,
            Fault::LyingFlush { .. } => 6,
            Fault::LyingFua { .. } => 7,
        }]
    }

    /// Returns whether the fault concerns writes that are complete but not durable. On a drive
    /// without a write cache, there are none.
    pub fn concerns_write_cache(&self) -> bool {
        matches!(
            self,
            Fault::PowerCut { .. } | Fault::LyingFlush { .. } | Fault::LyingFua { .. }
        )
    }

    /// Returns the fault called `name` with the parameters in `fields`.
    ///
    /// # Errors
    /// Returns an error if the fault or a key is unknown, or if a key is missing, is given twice or
    /// has an invalid value. The error names the key.
    pub fn from_fields(name: &str, fields: &[(&str, &str)]) -> Result<Fault, FaultError> {
        let mut fields = Fields::new(name, fields);
        let fault = match name {
            "power-cut" => Fault::PowerCut {
                seed: fields.whole("seed", 0..=u64::MAX)?,
                tearing: fields.take("tearing", str::parse)?.unwrap_or_default(),
                off: fields
                    .take("for", duration_text::parse)?
                    .unwrap_or_default(),
            },
            "latent-error" => Fault::LatentError {
                lbn: fields.lbn()?,
                sectors: fields.sectors(SECTORS_MAX)?,
                revolutions: fields
                    .whole("revolutions", 0..=REVOLUTIONS_MAX)?
                    .unwrap_or(0) as u32,
            },
            "slow-sector" => Fault::SlowSector {
                lbn: fields.lbn()?,
                sectors: fields.sectors(SECTORS_MAX)?,
                revolutions: match fields.whole("revolutions", 1..=REVOLUTIONS_MAX)? {
                    Some(number) => number as u32,
                    None => return Err(fields.missing("revolutions")),
                },
            },
            "grown-defect" => Fault::GrownDefect {
                lbn: fields.lbn()?,
                sectors: fields.sectors(MOVED_MAX)?,
            },
            "stall" => Fault::Stall {
                length: fields.length()?,
            },
            "vanish" => Fault::Vanish {
                length: fields.length()?,
            },
            "lying-flush" => Fault::LyingFlush {
                length: fields.take("for", duration_text::parse)?,
            },
            "lying-fua" => Fault::LyingFua {
                length: fields.take("for", duration_text::parse)?,
            },
            _ => {
                return Err(FaultError {
                    key: "fault".to_owned(),
                    problem: format!(
                        "{name:?} is not a fault; the faults are {}",
                        Fault::NAMES.join(", ")
                    ),
                });
            }
        };
        fields.done()?;
        Ok(fault)
    }

    /// Returns the parameters of the fault by key, in the form that [`Fault::from_fields`] reads.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let place = |lbn: Lbn, sectors: u32| {
            vec![("lbn", lbn.to_string()), ("sectors", sectors.to_string())]
        };
        let time = |length: Span| ("for", duration_text::write(length));
        match *self {
            Fault::PowerCut { seed, tearing, off } => {
                let seed = seed.map(|seed| ("seed", seed.to_string()));
                let rest = [("tearing", tearing.to_string()), time(off)];
                seed.into_iter().chain(rest).collect()
            }
            Fault::LatentError {
                lbn,
                sectors,
                revolutions,
            }
            | Fault::SlowSector {
                lbn,
                sectors,
                revolutions,
            } => {
                let mut fields = place(lbn, sectors);
                fields.push(("revolutions", revolutions.to_string()));
                fields
            }
            Fault::GrownDefect { lbn, sectors } => place(lbn, sectors),
            Fault::Stall { length } | Fault::Vanish { length } => vec![time(length)],
            Fault::LyingFlush { length } | Fault::LyingFua { length } => {
                length.map(time).into_iter().collect()
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.fields()
            .iter()
            .try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default().trim();
        let fields: Vec<(&str, &str)> = parts
            .map(|part| {
                let problem = || FaultError {
                    key: part.trim().to_owned(),
                    problem: "expected key=value, with times as one word, such as for=3s"
                        .to_owned(),
                };
                let (key, value) = part.split_once('=').ok_or_else(problem)?;
                Ok((key.trim(), value.trim()))
            })
            .collect::<Result<_, _>>()?;
        Fault::from_fields(name, &fields)
    }
}

/// The keys and values of a fault that have not been read yet.
struct Fields<'a> {
    name: &'a str,
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    fn new(name: &'a str, given: &[(&'a str, &'a str)]) -> Fields<'a> {
        Fields {
            name,
            given: given.to_vec(),
            known: Vec::new(),
        }
    }

    fn take<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, FaultError> {
        self.known.push(key);
        let Some(found) = self.given.iter().position(|(given, _)| *given == key) else {
            return Ok(None);
        };
        let (_, value) = self.given.remove(found);
        if self.given.iter().any(|(given, _)| *given == key) {
            return Err(FaultError {
                key: key.to_owned(),
                problem: "given twice".to_owned(),
            });
        }
        read(value).map(Some).map_err(|problem| FaultError {
            key: key.to_owned(),
            problem: format!("{value:?}: {problem}"),
        })
    }

    fn whole(
        &mut self,
        key: &'static str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, FaultError> {
        self.take(key, |text| {
            let number = text.parse().ok().filter(|number| bounds.contains(number));
            number.ok_or_else(|| {
                format!(
                    "expected a whole number from {} to {}",
                    bounds.start(),
                    bounds.end()
                )
            })
        })
    }

    fn lbn(&mut self) -> Result<Lbn, FaultError> {
        let lbn = self.whole("lbn", 0..=u64::MAX >> 1)?;
        lbn.map(Lbn).ok_or_else(|| self.missing("lbn"))
    }

    fn sectors(&mut self, max: u64) -> Result<u32, FaultError> {
        Ok(self.whole("sectors", 1..=max)?.unwrap_or(1) as u32)
    }

    fn length(&mut self) -> Result<Span, FaultError> {
        let length = self.take("for", duration_text::parse)?;
        length.ok_or_else(|| self.missing("for"))
    }

    /// Returns the error for a key that is missing. A key that no fault has is probably meant to be
    /// that one.
    fn missing(&self, key: &str) -> FaultError {
        let mut given = self.given.iter().map(|(given, _)| *given);
        if let Some(misspelt) = given.find(|given| !KEYS.contains(given)) {
            return FaultError {
                key: misspelt.to_owned(),
                problem: format!("not a key of {}, which requires {key}", self.name),
            };
        }
        FaultError {
            key: key.to_owned(),
            problem: format!("missing; {} requires it", self.name),
        }
    }

    /// Returns an error if there are keys that have not been read.
    fn done(&self) -> Result<(), FaultError> {
        match self.given.first() {
            None => Ok(()),
            Some((key, _)) => Err(FaultError {
                key: (*key).to_owned(),
                problem: format!(
                    "not a key of {}; its keys are {}",
                    self.name,
                    self.known.join(", ")
                ),
            }),
        }
    }
}
