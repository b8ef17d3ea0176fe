//! Configuration of [`Telemetry`](super::Telemetry).

use serde::{Deserialize, Serialize};

/// Configuration of `Telemetry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TelemetryConfig {
    /// Destination of captured content. Default: off.
    pub capture: Capture,
    /// Maximum number of bytes of text in one attribute; the newest messages are kept. Default: 32
    /// KiB.
    pub content_bytes: usize,
    /// Names of the token metrics. Default: the current ones.
    pub token_metrics: TokenMetrics,
    /// Creates a span for each step of a run, as the parent of its calls. Default: false; the
    /// conventions do not define one.
    pub steps: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        let (capture, token_metrics) = (Capture::default(), TokenMetrics::default());
        Self { capture, content_bytes: 32 << 10, token_metrics, steps: false }
    }
}

/// Destination of captured content: prompts, responses, and the arguments and results of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Capture {
    /// Content is not captured.
    #[default]
    Off,
    /// Attributes of the spans.
    Spans,
    /// One event per model call, at level debug; arguments and results of tools are part of the
    /// next model call. Back ends store events separately from spans, with their own retention and
    /// access control.
    Events,
}

/// Names of the token metrics, which the conventions are about to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenMetrics {
    /// One histogram, `gen_ai.client.token.usage`, by type of token.
    #[default]
    Current,
    /// Counters and histograms for each type of token, `gen_ai.client.inference.*`.
    Split,
    /// Both, for the migration of dashboards.
    Both,
}

impl TokenMetrics {
    pub(super) fn current(self) -> bool {
        matches!(self, Self::Current | Self::Both)
    }

    pub(super) fn split(self) -> bool {
        matches!(self, Self::Split | Self::Both)
    }
}
