//! Telemetry of a file.

use schemars::JsonSchema;
use serde::Deserialize;

/// Export of runs by OpenTelemetry.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelemetryKeys {
    /// The collector's address, such as `http://localhost:4318`. Default: that of the environment (`OTEL_EXPORTER_OTLP_ENDPOINT`).
    endpoint: Option<String>,
    /// Name of the service. Default: the agent's name.
    service: Option<String>,
    /// Share of the traces that are sampled, from 0 to 1. Default: 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    sampled: Option<f64>,
    /// Destination of prompts, answers, and the arguments and results of tools. Default: none.
    #[allow(dead_code, reason = "the middleware reads it")]
    content: Option<Content>,
    /// Gives each step of a run a span. Default: false.
    #[allow(dead_code, reason = "the middleware reads it")]
    steps: Option<bool>,
}

/// Destination of content.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Content {
    Off,
    Spans,
    Events,
}

/// The keys that the middleware reads, and what it calls them.
pub(super) const OF_THE_MIDDLEWARE: [(&str, &str); 2] = [("content", "capture"), ("steps", "steps")];

/// Exporter of traces, metrics and events of [a file](super::Loaded::exporter).
///
/// An exporter is the process's, not an agent's: a program that reads a file sets it up (with the feature `otlp`, by `builder`), as `agent` does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Exporter {
    /// Name of the service.
    pub service: String,
    /// The collector's address; without one, the environment says it.
    pub endpoint: Option<String>,
    /// Share of the traces that are sampled, from 0 to 1; `None` samples all.
    pub sampled: Option<f64>,
}

impl TelemetryKeys {
    pub(super) fn exporter(self, agent: &str) -> Exporter {
        let Self { endpoint, service, sampled, .. } = self;
        Exporter { service: service.unwrap_or_else(|| agent.to_owned()), endpoint, sampled }
    }
}

#[cfg(feature = "otlp")]
impl Exporter {
    /// Begins to set it up; [`install`](crate::middleware::telemetry::OtlpBuilder::install) starts it.
    ///
    /// ```no_run
    /// use agent::config::Loader;
    ///
    /// # fn main() -> agent::Result<()> {
    /// let loaded = Loader::new().load("clerk.yaml")?;
    /// let otlp = loaded.exporter().map(|exporter| exporter.builder().install()).transpose()?;
    /// // `otlp.layer()` goes into the program's tracing subscriber
    /// # drop(otlp);
    /// # Ok(()) }
    /// ```
    pub fn builder(&self) -> crate::middleware::telemetry::OtlpBuilder {
        let mut otlp = crate::middleware::telemetry::Otlp::builder(&self.service);
        if let Some(endpoint) = &self.endpoint {
            otlp = otlp.endpoint(endpoint);
        }
        match self.sampled {
            Some(part) => otlp.sampled(part),
            None => otlp,
        }
    }
}
