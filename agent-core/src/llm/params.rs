//! Parameters of model calls.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::storage::deep_fields;

/// Parameters of a model call. Unset fields are left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelParams {
    /// Sampling temperature; the range depends on the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Maximum number of tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Seed for reproducible sampling, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Constraint on the choice of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// True if one message may contain several calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Reasoning effort before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Maximum number of reasoning tokens, for models that accept a number instead of an effort; it
    /// then takes precedence over `effort`. Other models reject it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// Modalities of the answer. Default: text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modalities: Vec<Modality>,
    /// Voice of a spoken answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Required form of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<OutputFormat>>,
    /// Provider-specific request fields, merged recursively into the request last: they take
    /// precedence.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Constraint on the choice of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool may be called.
    None,
    /// At least one tool must be called.
    Required,
    /// This tool must be called.
    Tool(String),
}

/// Reasoning effort of a model before its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// No reasoning, if the model supports it.
    None,
    /// Minimal effort.
    Minimal,
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
    /// Very high effort.
    #[serde(rename = "xhigh")]
    XHigh,
    /// The model's maximum effort.
    Max,
}

/// Modality of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Modality {
    /// Text.
    Text,
    /// Images.
    Image,
    /// Audio: speech.
    Audio,
    /// Video.
    Video,
    /// Documents such as PDF.
    Document,
}

/// Voice of a spoken answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Voice {
    /// Provider-specific name of the voice.
    pub name: String,
    /// Provider-specific audio format (`wav`, `mp3`, `pcm16`). Default: the provider's; OpenAI is
    /// asked for `wav`, or `pcm16` when streaming. Gemini accepts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

impl Voice {
    /// Creates a voice with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), format: None }
    }

    /// Sets the audio format.
    #[must_use]
    pub fn format(mut self, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self
    }
}

/// Required form of an answer: JSON of this schema, enforced by the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OutputFormat {
    /// Name of the form: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// Purpose of the form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the answer; null for any JSON.
    pub schema: Value,
    /// True if the provider must reject schemas that it cannot enforce exactly. Default: false.
    #[serde(default)]
    pub strict: bool,
}

impl OutputFormat {
    /// Creates the form of JSON with this schema.
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self { name: name.into(), description: None, schema, strict: false }
    }

    /// Creates the form of any JSON.
    pub fn json() -> Self {
        Self::new("json", Value::Null)
    }

    /// Sets the purpose.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets whether the schema is enforced exactly.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }
}

impl ModelParams {
    /// Returns shared parameters without any field set.
    pub(crate) fn unset() -> Arc<Self> {
        static UNSET: LazyLock<Arc<ModelParams>> = LazyLock::new(Arc::default);
        UNSET.clone()
    }

    /// Sets the sampling temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the maximum number of tokens of an answer.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the reasoning effort.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort);
        self
    }

    /// Sets the maximum number of reasoning tokens.
    #[must_use]
    pub fn thinking_tokens(mut self, most: u64) -> Self {
        self.thinking_tokens = Some(most);
        self
    }

    /// Sets the modalities of the answer.
    #[must_use]
    pub fn modalities(mut self, modalities: impl IntoIterator<Item = Modality>) -> Self {
        self.modalities = modalities.into_iter().collect();
        self
    }

    /// Sets the voice of a spoken answer.
    #[must_use]
    pub fn voice(mut self, voice: Voice) -> Self {
        self.voice = Some(voice);
        self
    }

    /// Sets the required form of the answer.
    #[must_use]
    pub fn output(mut self, format: OutputFormat) -> Self {
        self.output = Some(Arc::new(format));
        self
    }

    /// Sets the constraint on the choice of tools.
    #[must_use]
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Sets a provider-specific request field.
    #[must_use]
    pub fn extra(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(field.into(), value.into());
        self
    }

    /// Overrides these parameters with the set fields of `over`; provider-specific request fields
    /// are merged recursively.
    ///
    /// ```
    /// use agent_core::ModelParams;
    ///
    /// let usual = ModelParams::default().temperature(0.2).max_tokens(500);
    /// let now = usual.with(ModelParams::default().temperature(0.9));
    /// assert_eq!(now, ModelParams::default().temperature(0.9).max_tokens(500));
    /// ```
    #[must_use]
    pub fn with(self, over: Self) -> Self {
        Self {
            temperature: over.temperature.or(self.temperature),
            top_p: over.top_p.or(self.top_p),
            max_tokens: over.max_tokens.or(self.max_tokens),
            stop: if over.stop.is_empty() { self.stop } else { over.stop },
            seed: over.seed.or(self.seed),
            tool_choice: over.tool_choice.or(self.tool_choice),
            parallel_tool_calls: over.parallel_tool_calls.or(self.parallel_tool_calls),
            effort: over.effort.or(self.effort),
            thinking_tokens: over.thinking_tokens.or(self.thinking_tokens),
            modalities: if over.modalities.is_empty() { self.modalities } else { over.modalities },
            voice: over.voice.or(self.voice),
            output: over.output.or(self.output),
            extra: deep_fields(self.extra, over.extra),
        }
    }
}
