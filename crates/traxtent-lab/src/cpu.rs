//! The processor time that a measurement takes on the host.

use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The processor time of the calling thread so far. On systems that do not report it, the time
/// since the first call.
pub fn cpu_time() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    // Linux: nanoseconds on a processor, nanoseconds waiting for one, number of time slices.
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok());
    nanoseconds.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}
