//! How a model is to answer.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::storage::deep_fields;

/// How a model is to answer. Everything unset is left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelParams {
    /// Randomness; the provider's range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Most tokens that the answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes sampling repeatable where the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Whether and which tool must be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether one message may hold several calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// How much the model is to think before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Most tokens that the model may think: for models that are told a number in place of an effort, which it then wins
    /// over. Others refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// What the answer may be made of; text if nothing is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modalities: Vec<Modality>,
    /// How a spoken answer is to sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// The form that the answer must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<OutputFormat>>,
    /// Fields of the provider's own request, merged into it last and deeply: what stands here wins.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Whether and which tool must be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Tool(String),
}

/// How much a model is to think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// Not at all, where the model can be told so.
    None,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More than that.
    #[serde(rename = "xhigh")]
    XHigh,
    /// As much as the model can.
    Max,
}

/// In which form something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Modality {
    /// Text.
    Text,
    /// Images.
    Image,
    /// Sound: speech.
    Audio,
    /// Moving images.
    Video,
    /// Documents as they are: PDF.
    Document,
}

/// How a spoken answer is to sound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Voice {
    /// The voice, as the provider calls it.
    pub name: String,
    /// The form of the sound, as the provider calls it (`wav`, `mp3`, `pcm16`). Default: the provider's; OpenAI's is asked for
    /// `wav`, or `pcm16` where it streams. Gemini takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

impl Voice {
    /// The voice of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), format: None }
    }

    /// Sets the form of the sound.
    #[must_use]
    pub fn format(mut self, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self
    }
}

/// The form that an answer must have: JSON of this schema, which the provider enforces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OutputFormat {
    /// What the form is called: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the answer; null if any JSON will do.
    pub schema: Value,
    /// Whether the provider must refuse schemas that it cannot enforce word for word. Default: false.
    #[serde(default)]
    pub strict: bool,
}

impl OutputFormat {
    /// JSON of this schema.
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self { name: name.into(), description: None, schema, strict: false }
    }

    /// Any JSON.
    pub fn json() -> Self {
        Self::new("json", Value::Null)
    }

    /// Says what it is for.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets whether the schema is enforced word for word.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }
}

impl ModelParams {
    /// Parameters of which none is set; all callers share them.
    pub(crate) fn unset() -> Arc<Self> {
        static UNSET: LazyLock<Arc<ModelParams>> = LazyLock::new(Arc::default);
        UNSET.clone()
    }

    /// Sets the randomness.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the most tokens that an answer may have.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets how much the model thinks first.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort);
        self
    }

    /// Sets the most tokens that the model may think.
    #[must_use]
    pub fn thinking_tokens(mut self, most: u64) -> Self {
        self.thinking_tokens = Some(most);
        self
    }

    /// Sets what the answer may be made of.
    #[must_use]
    pub fn modalities(mut self, modalities: impl IntoIterator<Item = Modality>) -> Self {
        self.modalities = modalities.into_iter().collect();
        self
    }

    /// Sets how a spoken answer is to sound.
    #[must_use]
    pub fn voice(mut self, voice: Voice) -> Self {
        self.voice = Some(voice);
        self
    }

    /// Sets the form of the answer.
    #[must_use]
    pub fn output(mut self, format: OutputFormat) -> Self {
        self.output = Some(Arc::new(format));
        self
    }

    /// Sets whether and which tool must be called.
    #[must_use]
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Sets a field of the provider's own request.
    #[must_use]
    pub fn extra(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(field.into(), value.into());
        self
    }

    /// These, with what `over` sets in their place; its fields of the provider's own request are merged into these, deeply.
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
