//! What only writes show.

/// What is known of writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Writes {
    pub(super) settle_ms: f64,
    pub(super) read_after_write_ms: Option<f64>,
    pub(super) hit_after_read_ms: Option<f64>,
    pub(super) hit_after_write_ms: Option<f64>,
    pub(super) miss_after_read_ms: Option<f64>,
    pub(super) miss_after_write_ms: Option<f64>,
    pub(super) sector_ms: Option<f64>,
    pub(super) zero_latency: Option<bool>,
}
