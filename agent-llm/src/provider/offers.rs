//! What providers offer beside answers: [`Batching`], [`FileApi`].

use serde::{Deserialize, Serialize};

/// How a provider takes batches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Batching {
    /// Whose way it has.
    pub api: BatchApi,
    /// What an answer costs, in hundredths of what it costs otherwise. Default: 50.
    #[serde(default = "half")]
    pub price_percent: u8,
}

fn half() -> u8 {
    50
}

/// Whose way of taking batches a provider has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BatchApi {
    /// OpenAI's: a file of requests, of Chat Completions or of Responses.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic's Message Batches.
    Anthropic,
    /// Gemini's `batchGenerateContent`.
    Gemini,
    /// Mistral's batch jobs.
    Mistral,
}

/// Whose way of keeping files a provider has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileApi {
    /// OpenAI's `/files`.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic's `/v1/files`.
    Anthropic,
    /// Gemini's `/files`.
    Gemini,
}
