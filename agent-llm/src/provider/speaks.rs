//! Model wire of a provider, with its profile.

use agent_core::{Error, Result};
use serde_json::Value;

use super::{
    Provider, Wire,
    reach::Wanted,
    way::{Spoken, set},
};
use crate::{
    AnthropicCodec, AnthropicEnvelope, AnthropicProfile, Auth, BedrockCodec, BedrockProfile, Codec, CohereCodec,
    CohereProfile, GeminiCodec, GeminiProfile, OllamaCodec, OllamaProfile, OpenAiChatCodec, OpenAiResponsesCodec,
    Profile,
    wire::claude::{Claude, MAX_TOKENS},
};

/// A wire with the provider's profile for it.
pub(super) enum WireSupport {
    Chat(Profile),
    Responses(Profile),
    Messages(AnthropicProfile),
    Generate(GeminiProfile),
    Cohere(CohereProfile),
    Converse(BedrockProfile),
    Ollama(OllamaProfile),
}

impl WireSupport {
    pub(super) fn holds_to_schemas(&self, model: &str) -> bool {
        match self {
            Self::Chat(profile) | Self::Responses(profile) => profile.json_schema && profile.json_schema_with_tools,
            Self::Messages(profile) => profile.json_schema,
            Self::Generate(profile) => profile.holds_to_schemas(model),
            Self::Converse(profile) => profile.json_schema,
            // With a schema alongside tools, these APIs call no tool or reject the request.
            Self::Cohere(_) | Self::Ollama(_) => false,
        }
    }

    /// Returns the context window that the profile sends to the server.
    pub(super) fn window(&self) -> Option<u64> {
        match self {
            Self::Ollama(profile) => profile.window(),
            _ => None,
        }
    }

    /// Returns the tokens reserved for an answer of `model` if a request sets no limit, with the
    /// arguments of [`codec`](Self::codec).
    pub(super) fn reserved(&self, model: &str, told: Option<u64>, known: Option<u64>) -> Option<u64> {
        match self {
            Self::Messages(_) => told.or(known.map(|most| most.min(MAX_TOKENS))).or(Some(Claude::of(model).max_tokens)),
            _ => None,
        }
    }

    /// Builds the codec of `model`. `told` is the configured output limit, `known` the model's
    /// maximum.
    pub(super) fn codec(self, model: String, told: Option<u64>, known: Option<u64>) -> Result<Box<dyn Codec>> {
        Ok(match self {
            Self::Chat(profile) => Box::new(OpenAiChatCodec::new(model, profile)?),
            Self::Responses(profile) => Box::new(OpenAiResponsesCodec::new(model, profile)?),
            Self::Generate(profile) => Box::new(GeminiCodec::new(model, profile)?),
            Self::Cohere(profile) => Box::new(CohereCodec::new(model, profile)?),
            Self::Converse(profile) => Box::new(BedrockCodec::new(model, profile)?),
            Self::Ollama(profile) => Box::new(OllamaCodec::new(model, profile)?),
            Self::Messages(profile) => {
                let codec = AnthropicCodec::new(model, profile)?;
                match told.or(known.map(|most| most.min(MAX_TOKENS))) {
                    Some(tokens) => Box::new(codec.with_max_tokens(tokens)),
                    None => Box::new(codec),
                }
            }
        })
    }
}

impl Spoken for WireSupport {
    type Way = Wire;

    fn chosen<'a>(name: &'a str, wanted: &Wanted, provider: &Provider) -> Result<(&'a str, Wire)> {
        let said = name.rsplit_once('@').and_then(|(model, wire)| Some((model, wire.parse::<Wire>().ok()?)));
        let (model, said) = said.map_or((name, None), |(model, wire)| (model, Some(wire)));
        if let Some((written, meant)) = model.rsplit_once('@').and_then(|(_, word)| Some((word, Wire::nearest(word)?)))
        {
            return Err(Error::config(format!("there is no wire '{written}': did you mean '{meant}'?")));
        }
        let wire = wanted.wire.or(said).or(provider.wires.first().copied());
        let Some(wire) = wire.filter(|wire| provider.wires.contains(wire)) else {
            let wires: Vec<_> = provider.wires.iter().map(|wire| wire.as_str()).collect();
            let wires = if wires.is_empty() { "no wire of models".to_owned() } else { wires.join(", ") };
            return Err(Error::config(format!("{} speaks {wires}, and nothing else", provider.name)));
        };
        if model.is_empty() {
            return Err(Error::config(format!(
                "which model of {}? It is named {}:model",
                provider.name, provider.name
            )));
        }
        Ok((model, wire))
    }

    fn of(provider: &Provider, wire: Wire) -> Option<Self> {
        Some(match wire {
            Wire::Chat => Self::Chat(provider.openai.clone()?),
            Wire::Responses => Self::Responses(provider.openai.clone()?),
            Wire::Messages => Self::Messages(provider.anthropic.clone()?),
            Wire::Generate => Self::Generate(provider.gemini.clone()?),
            Wire::Cohere => Self::Cohere(provider.cohere.clone()?),
            Wire::Converse => Self::Converse(provider.bedrock.clone()?),
            Wire::Ollama => Self::Ollama(provider.ollama.clone()?),
        })
    }

    fn auth(&self) -> &Auth {
        match self {
            Self::Chat(profile) | Self::Responses(profile) => &profile.auth,
            Self::Messages(profile) => &profile.auth,
            Self::Generate(profile) => &profile.auth,
            Self::Cohere(profile) => &profile.auth,
            Self::Converse(profile) => &profile.auth,
            Self::Ollama(profile) => &profile.auth,
        }
    }

    fn feature(&self) -> Option<&'static str> {
        let is_aws = match self {
            Self::Converse(_) => true,
            Self::Messages(profile) => profile.envelope == AnthropicEnvelope::Bedrock,
            _ => false,
        };
        (is_aws && cfg!(not(feature = "bedrock"))).then_some("bedrock")
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match self {
            Self::Chat(profile) | Self::Responses(profile) => set(profile, name, value),
            Self::Messages(profile) => set(profile, name, value),
            Self::Generate(profile) => set(profile, name, value),
            Self::Cohere(profile) => set(profile, name, value),
            Self::Converse(profile) => set(profile, name, value),
            Self::Ollama(profile) => set(profile, name, value),
        }
    }
}
