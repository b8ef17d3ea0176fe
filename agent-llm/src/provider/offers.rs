//! Kinds of batch and file APIs: [`BatchApi`], [`FileApi`].

use serde::{Deserialize, Serialize};

/// Kind of a provider's batch API.
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

/// Kind of a provider's file API.
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
