//! The server's messages: warnings and errors on standard error, all others in nbdkit's debug log.
//!
//! nbdkit's own function for errors adds the name of the connection, which these messages do not
//! concern.

use std::ffi::CString;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::abi;

/// Begins to pass the server's messages on.
pub(crate) fn start() {
    let subscriber = tracing_subscriber::registry().with(Messages);
    // nbdkit loads the plugin once, so none is set yet.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct Messages;

impl<S: Subscriber> Layer<S> for Messages {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        if *event.metadata().level() <= Level::WARN {
            // There may be no reader. One call writes the line, so that lines of several threads do
            // not mix.
            let line = format!("traxtent: {}\n", text.0);
            let _ = io::stderr().write_all(line.as_bytes());
        } else {
            debug(&text.0);
        }
    }
}

/// The message of an event, and its other fields.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

fn debug(what: &str) {
    let line = CString::new(what.replace('\0', " ")).expect("it has no zero byte");
    // SAFETY: the format takes one string, which lives during the call.
    unsafe { abi::nbdkit_debug(c"%s".as_ptr(), line.as_ptr()) };
}
