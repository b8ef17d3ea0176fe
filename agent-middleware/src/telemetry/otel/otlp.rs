//! [`Otlp`]: export to a collector.

use std::{fmt, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use opentelemetry::{global, trace::TracerProvider};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource, logs::SdkLoggerProvider, metrics::SdkMeterProvider, trace::Sampler, trace::SdkTracerProvider,
};
use tracing::Subscriber;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::TARGET;

/// Exports traces, metrics and events to an OpenTelemetry collector, by OTLP over HTTP, in batches
/// and from dedicated threads. With the feature `otlp-tls`, also over HTTPS.
///
/// Traces contain all spans that the subscriber admits, including the application's own; events are
/// those of [`Telemetry`](crate::Telemetry). If the collector is unavailable, its data is lost,
/// without other effects.
///
/// # Order
///
/// Set it up first and shut it down last: spans that end after [`shutdown`](Self::shutdown) are
/// lost.
///
/// # Example
///
/// ```no_run
/// use agent_middleware::telemetry::Otlp;
/// use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};
///
/// let otlp = Otlp::builder("my-service").endpoint("http://collector:4318").install()?;
/// tracing_subscriber::registry().with(otlp.layer()).init();
/// // agents run
/// otlp.shutdown()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[must_use = "what is not shut down loses its last batch"]
pub struct Otlp {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    logs: SdkLoggerProvider,
    timeout: Duration,
}

/// Builder of [`Otlp`]. Unset options are taken from the environment
/// (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_RESOURCE_ATTRIBUTES`,
/// `OTEL_BSP_*` and so on).
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before install()"]
pub struct OtlpBuilder {
    service: String,
    endpoint: Option<String>,
    timeout: Duration,
    sampled: Option<f64>,
    #[cfg(feature = "otlp-tls")]
    certificates: Option<Vec<u8>>,
}

impl Otlp {
    /// Returns a builder for the service of this name.
    pub fn builder(service: impl Into<String>) -> OtlpBuilder {
        OtlpBuilder {
            service: service.into(),
            endpoint: None,
            timeout: Duration::from_secs(10),
            sampled: None,
            #[cfg(feature = "otlp-tls")]
            certificates: None,
        }
    }

    /// Returns the layer for the application's subscriber.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let spans = tracing_opentelemetry::layer().with_tracer(self.traces.tracer("agent"));
        let events = OpenTelemetryTracingBridge::new(&self.logs);
        spans.and_then(events.with_filter(filter_fn(|event| event.target() == TARGET)))
    }

    /// Exports all pending data. Blocks the thread.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if the collector did not accept everything; the rejected data is
    /// lost.
    pub fn flush(&self) -> Result<()> {
        all([self.traces.force_flush(), self.metrics.force_flush(), self.logs.force_flush()])
    }

    /// Exports all pending data and stops the threads. Blocks, for each kind of data at most twice
    /// the timeout.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn shutdown(self) -> Result<()> {
        // The batch processors report a failed export to a flush, not to a shutdown.
        let exported = self.flush();
        let Self { traces, metrics, logs, timeout } = self;
        let stopped = all([
            traces.shutdown_with_timeout(timeout),
            metrics.shutdown_with_timeout(timeout),
            logs.shutdown_with_timeout(timeout),
        ]);
        exported.and(stopped)
    }
}

impl OtlpBuilder {
    /// Sets the collector's URL, without the path. Default: from the environment, otherwise
    /// `http://localhost:4318`.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets the timeout of one export, and of the shutdown. Default: 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the fraction of traces starting here that is sampled, 0 to 1; other traces keep their
    /// original decision. Default: from the environment (`OTEL_TRACES_SAMPLER`), otherwise all.
    pub fn sampled(mut self, part: f64) -> Self {
        self.sampled = Some(part);
        self
    }

    /// Sets the trusted root certificates in PEM, for a collector with a private certificate
    /// authority. Default: from the environment (`OTEL_EXPORTER_OTLP_CERTIFICATE`, a file),
    /// otherwise the machine's root certificates.
    #[cfg(feature = "otlp-tls")]
    pub fn certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates = Some(pem.into());
        self
    }

    /// Starts the export, and installs its meter provider globally.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unusable URL or certificate, or an invalid sampling fraction.
    pub fn install(self) -> Result<Otlp> {
        if let Some(part) = self.sampled.filter(|part| !(0.0..=1.0).contains(part)) {
            return Err(Error::config(format!("the part of traces that is kept must be 0 to 1, and is {part}")));
        }
        let named = self.endpoint.clone().or_else(|| std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok());
        named.as_deref().map_or(Ok(()), usable)?;
        #[cfg(feature = "otlp-tls")]
        let client = super::otlp_tls::client(self.timeout, self.certificates.as_deref())?;
        let url = |path| self.endpoint.as_ref().map(|base| format!("{}/v1/{path}", base.trim_end_matches('/')));
        // Three builders of different types with the same methods.
        macro_rules! exporter {
            ($kind:ident, $path:literal) => {{
                let builder = $kind::builder().with_http().with_timeout(self.timeout);
                #[cfg(feature = "otlp-tls")]
                let builder = opentelemetry_otlp::WithHttpConfig::with_http_client(builder, client.clone());
                let builder = match url($path) {
                    Some(url) => builder.with_endpoint(url),
                    None => builder,
                };
                builder.build().map_err(|e| Error::config("the exporter cannot be set up").with_source(e))?
            }};
        }
        let resource = Resource::builder().with_service_name(self.service.clone()).build();
        let traces = SdkTracerProvider::builder()
            .with_resource(resource.clone())
            .with_batch_exporter(exporter!(SpanExporter, "traces"));
        let traces = match self.sampled {
            Some(part) => traces.with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(part)))),
            None => traces,
        };
        let metrics = SdkMeterProvider::builder().with_resource(resource.clone());
        let metrics = metrics.with_periodic_exporter(exporter!(MetricExporter, "metrics")).build();
        let logs = SdkLoggerProvider::builder().with_resource(resource);
        let logs = logs.with_batch_exporter(exporter!(LogExporter, "logs")).build();
        global::set_meter_provider(metrics.clone());
        Ok(Otlp { traces: traces.build(), metrics, logs, timeout: self.timeout })
    }
}

/// Refuses an unusable URL.
fn usable(url: &str) -> Result<()> {
    if url.starts_with("http://") || (cfg!(feature = "otlp-tls") && url.starts_with("https://")) {
        return Ok(());
    }
    Err(Error::config(match cfg!(feature = "otlp-tls") {
        true => "the collector's address must begin with http:// or https://",
        false => {
            "the collector's address must begin with http://: for https:// enable the feature 'otlp-tls', or send to a \
             collector on this machine, which sends on"
        }
    }))
}

fn all<E: std::error::Error + Send + Sync + 'static>(results: [Result<(), E>; 3]) -> Result<()> {
    results.into_iter().collect::<Result<(), E>>().map_err(|e| {
        Error::new(ErrorKind::Transport, "the collector did not take everything that was to be sent").with_source(e)
    })
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
