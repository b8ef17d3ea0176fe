//! What providers offer beside answers: [`BatchApi`], [`FileApi`].

use serde::{Deserialize, Serialize};

/// Whose way of taking batches a provider has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
