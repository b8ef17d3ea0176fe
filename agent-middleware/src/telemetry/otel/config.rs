//! What [`Telemetry`](super::Telemetry) records.

use serde::{Deserialize, Serialize};

/// What [`Telemetry`](super::Telemetry) records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TelemetryConfig {
    /// Whether and where content is captured. Default: nowhere.
    pub capture: Capture,
    /// The most bytes of text that one attribute holds; the newest messages stay. Default: 32 KiB.
    pub content_bytes: usize,
    /// The names under which tokens are counted. Default: the current ones.
    pub token_metrics: TokenMetrics,
    /// Whether each step of a run has a span, with its calls below it. Default: no; the conventions know of none.
    pub steps: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        let (capture, token_metrics) = (Capture::default(), TokenMetrics::default());
        Self { capture, content_bytes: 32 << 10, token_metrics, steps: false }
    }
}

/// Where content goes: prompts, answers, and the arguments and results of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Capture {
    /// Nowhere.
    #[default]
    Off,
    /// Into attributes of the spans.
    Spans,
    /// Into one event for each model call, at level debug; what tools are given and give back is there with the model call
    /// that follows. Back ends keep events apart from spans, for another time and for other readers.
    Events,
}

/// The names under which tokens are counted: the conventions are about to change them.
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
    /// Both, while dashboards move.
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
