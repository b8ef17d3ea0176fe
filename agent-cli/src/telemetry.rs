//! Telemetry of the program: to an OpenTelemetry collector if a file configures one, and logs of a server on standard error.

use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, PoisonError},
};

use agent::{Error, Result, config::Exporter, middleware::telemetry::Otlp};
use tracing_subscriber::{
    Layer, filter::Targets, fmt, layer::SubscriberExt, registry::LookupSpan, util::SubscriberInitExt,
};

use crate::output::{Paint, explained, plain};

/// The process's exporter, until its end.
static SENDING: Mutex<Option<Otlp>> = Mutex::new(None);

/// Levels of the log on standard error, once it is started.
static WRITTEN: Mutex<Option<Targets>> = Mutex::new(None);

/// Has these events written on standard error, once [`write`] or an exporter begins.
#[cfg(feature = "serve")]
pub(crate) fn will_write(which: Targets) {
    *WRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(which);
}

/// Begins to write, unless an exporter of the same process has begun already and with it this.
#[cfg(feature = "serve")]
pub(crate) fn write() {
    drop(tracing_subscriber::registry().with(written()).try_init());
}

fn written<S>() -> Option<impl Layer<S>>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let which = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    Some(
        fmt::layer()
            .log_internal_errors(false)
            .with_writer(stderr)
            .with_ansi(stderr().is_terminal())
            .with_filter(which),
    )
}

/// Starts to export; active spans continue.
///
/// # Errors
/// An address to which nothing can be sent.
pub(crate) fn send(exporter: Exporter) -> Result<()> {
    let mut sending = SENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if sending.is_none() {
        // Its client must not be made on a thread of the runtime.
        let otlp = std::thread::spawn(move || exporter.builder().install()).join();
        let otlp = otlp.map_err(|_| Error::config("the exporter cannot be set up"))??;
        drop(tracing_subscriber::registry().with(otlp.layer()).with(written()).try_init());
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
