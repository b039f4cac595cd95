//! The libraries' messages on standard error, in the format of the command's own messages.

use std::fmt;
use std::io;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use traxtent_server::volume::ORDER_LOG;

/// Starts printing the warnings and errors of the libraries, and the orders that a server receives.
pub(crate) fn start() {
    // This fails only if the same process has called the command before.
    let _ = tracing::subscriber::set_global_default(printer(io::stderr));
}

fn printer<W>(writer: W) -> impl Subscriber
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let shown = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target(ORDER_LOG, LevelFilter::INFO);
    tracing_subscriber::fmt()
        .with_max_level(Level::INFO)
        .with_ansi(false)
        .with_writer(writer)
        // A failure to write would itself be printed on standard error, and panic.
        .log_internal_errors(false)
        .event_format(OneLine)
        .finish()
        .with(shown)
}

/// A format with one line per event, which begins with the name of the command.
struct OneLine;

impl<S, N> FormatEvent<S, N> for OneLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        line.write_str(match *event.metadata().level() {
            Level::ERROR => "traxtent: ",
            Level::INFO => "traxtent: note: ",
            _ => "traxtent: warning: ",
        })?;
        context.format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Do the libraries' messages have the format of the command's own, one line each, and are
    /// messages below the level of warnings omitted, except those about orders?
    #[test]
    fn lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let subscriber = printer(file.reopen().unwrap());
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!("io_uring_enter: {}", "no memory");
            tracing::warn!("member {} has failed", 1);
            tracing::info!("a detail");
            tracing::info!(target: ORDER_LOG, "order: fail 1");
        });
        assert_eq!(
            fs::read_to_string(file.path()).unwrap(),
            "traxtent: io_uring_enter: no memory\n\
             traxtent: warning: member 1 has failed\n\
             traxtent: note: order: fail 1\n"
        );
    }
}
