//! The result of a check as data, and its form in JSON.

use serde::{Serialize, Serializer};

use crate::cost::CostResult;
use crate::finding::{AffectedShare, Finding, FindingCost, Fix, Misalignment, Rule, Severity};
use crate::measure::GridMeasurement;
use crate::stack::{Layer, LayerId, Stack};

/// The version of the JSON format. It increases when a field changes its meaning or is removed, but
/// not when a field is added.
pub const SCHEMA: u32 = 1;

/// The complete result, as it appears in JSON.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The name of the machine, if the stack is from an archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<&'a str>,
    /// The layers. `on` and `layer` are indices into this list.
    pub layers: &'a [Layer],
    /// The measurements, if any were requested.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub measured: &'a [Measurement],
    /// The findings, worst first.
    pub findings: &'a [ReportRow],
    /// The number of findings of each severity.
    pub tally: SeverityCounts,
}

/// A finding with its fix and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportRow {
    /// The finding.
    pub finding: Finding,
    /// The fix; `None` if there is nothing to fix.
    pub fix: Option<Fix>,
    /// Its cost, or the reason why the cost is not given.
    pub cost: CostResult,
}

/// The fields of a row in JSON, in this order.
#[derive(Serialize)]
struct RowFields<'a> {
    rule: Rule,
    severity: Severity,
    layer: LayerId,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    off: Option<Misalignment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a Fix>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<AffectedShare>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<&'a FindingCost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_cost_reason: Option<String>,
}

impl Serialize for ReportRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ReportRow { finding, fix, cost } = self;
        let fields = RowFields {
            rule: finding.rule,
            severity: finding.severity,
            layer: finding.layer,
            what: &finding.what,
            off: finding.off,
            fix: fix.as_ref(),
            share: finding.share,
            cost: cost.as_ref().ok(),
            no_cost_reason: cost.as_ref().err().map(ToString::to_string),
        };
        fields.serialize(serializer)
    }
}

/// The number of findings of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeverityCounts {
    /// Faults.
    pub faults: usize,
    /// Warnings.
    pub warnings: usize,
    /// Findings for information.
    pub infos: usize,
}

impl SeverityCounts {
    /// Counts findings.
    pub fn of(findings: &[ReportRow]) -> SeverityCounts {
        let count = |severity| {
            findings
                .iter()
                .filter(|row| row.finding.severity == severity)
                .count()
        };
        SeverityCounts {
            faults: count(Severity::Fault),
            warnings: count(Severity::Warning),
            infos: count(Severity::Info),
        }
    }
}

impl<'a> Report<'a> {
    /// Returns the report of a stack, without measurements.
    pub fn new(host: Option<&'a str>, stack: &'a Stack, findings: &'a [ReportRow]) -> Report<'a> {
        Report {
            schema: SCHEMA,
            host,
            layers: &stack.layers,
            measured: &[],
            findings,
            tally: SeverityCounts::of(findings),
        }
    }

    /// Returns the same report with measurements.
    pub fn with_measured(self, measured: &'a [Measurement]) -> Report<'a> {
        Report { measured, ..self }
    }
}

/// A measured property of a device, and the kernel's value for it.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The block device.
    pub node: String,
    /// The result of the measurement.
    #[serde(flatten)]
    pub measured: GridMeasurement,
    /// The kernel's value in bytes.
    pub claimed_bytes: Option<u64>,
}
