//! What others see of runs, as a file says it.

use schemars::JsonSchema;
use serde::Deserialize;

/// What others see of runs, by OpenTelemetry.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelemetryKeys {
    /// The collector's address, such as `http://localhost:4318`. Default: that of the environment (`OTEL_EXPORTER_OTLP_ENDPOINT`).
    endpoint: Option<String>,
    /// What the service is called. Default: the agent's name.
    service: Option<String>,
    /// Which part of the traces that begin here is kept, from 0 to 1. Default: all.
    #[schemars(range(min = 0.0, max = 1.0))]
    sampled: Option<f64>,
    /// Where prompts, answers, and the arguments and results of tools go. Default: nowhere.
    #[allow(dead_code, reason = "the middleware reads it")]
    content: Option<Content>,
    /// Whether each step of a run has a span. Default: false.
    #[allow(dead_code, reason = "the middleware reads it")]
    steps: Option<bool>,
}

/// Where content goes.
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

/// Where traces, metrics and events are sent, as [a file](super::Loaded::exporter) says.
///
/// An exporter is the process's, not an agent's: a program that reads a file sets it up (with the feature `otlp`, by `builder`), as `agent` does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Exporter {
    /// What the service is called.
    pub service: String,
    /// The collector's address; without one, the environment says it.
    pub endpoint: Option<String>,
    /// Which part of the traces that begin here is kept, from 0 to 1; all, without one.
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
