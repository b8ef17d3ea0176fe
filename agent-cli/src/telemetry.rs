//! What a file wants sent to an OpenTelemetry collector.

use std::sync::{Mutex, PoisonError};

use agent::{Error, Result, config::Exporter, middleware::telemetry::Otlp};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

use crate::output::{Paint, explained, plain};

/// The process's exporter, until its end.
static SENDING: Mutex<Option<Otlp>> = Mutex::new(None);

/// Begins to send; what is under way goes on.
///
/// # Errors
/// An address to which nothing can be sent.
pub(crate) fn send(exporter: Exporter) -> Result<()> {
    let mut sending = SENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if sending.is_none() {
        // Its client must not be made on a thread of the runtime.
        let otlp = std::thread::spawn(move || exporter.builder().install()).join();
        let otlp = otlp.map_err(|_| Error::config("the exporter cannot be set up"))??;
        drop(tracing_subscriber::registry().with(otlp.layer()).try_init());
        *sending = Some(otlp);
    }
    Ok(())
}

/// Sends what is left. A collector that does not take it changes nothing about how the program ends.
pub(crate) fn finish() {
    let sending = SENDING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Err(error)) = sending.map(Otlp::shutdown) {
        eprintln!("{}", Paint::stderr().dim(&plain(&format!("agent: telemetry: {}", explained(&error)))));
    }
}
