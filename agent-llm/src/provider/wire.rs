//! [`Wire`]: wire protocols of models.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Provider, table::distance, way::Way};

/// Wire protocol of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wire {
    /// `chat`: OpenAI Chat Completions, which nearly all servers support.
    Chat,
    /// `responses`: OpenAI Responses.
    Responses,
    /// `messages`: Anthropic Messages.
    Messages,
    /// `generate`: Gemini's generateContent.
    Generate,
    /// `cohere`: Cohere's Chat, version 2.
    Cohere,
    /// `converse`: Amazon Bedrock's Converse.
    Converse,
    /// `ollama`: Ollama's own chat.
    Ollama,
}

impl Wire {
    const ALL: [Self; 7] =
        [Self::Chat, Self::Responses, Self::Messages, Self::Generate, Self::Cohere, Self::Converse, Self::Ollama];

    /// Returns the name, as used after the `@` of a model's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Generate => "generate",
            Self::Cohere => "cohere",
            Self::Converse => "converse",
            Self::Ollama => "ollama",
        }
    }
}

impl Way for Wire {
    fn profile(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses => "openai",
            Self::Messages => "anthropic",
            Self::Generate => "gemini",
            Self::Cohere => "cohere",
            Self::Converse => "bedrock",
            Self::Ollama => "ollama",
        }
    }

    fn base_url(self, provider: &Provider) -> Option<&str> {
        match self {
            Self::Chat | Self::Responses => provider.openai.as_ref().map(|profile| &*profile.base_url),
            Self::Messages => provider.anthropic.as_ref().map(|profile| &*profile.base_url),
            Self::Generate => provider.gemini.as_ref().map(|profile| &*profile.base_url),
            Self::Cohere => provider.cohere.as_ref().map(|profile| &*profile.base_url),
            Self::Converse => provider.bedrock.as_ref().map(|profile| &*profile.base_url),
            Self::Ollama => provider.ollama.as_ref().map(|profile| &*profile.base_url),
        }
    }

    fn set_base_url(self, provider: &mut Provider, url: &str) {
        let base_url = match self {
            Self::Chat | Self::Responses => &mut provider.openai.get_or_insert_default().base_url,
            Self::Messages => &mut provider.anthropic.get_or_insert_default().base_url,
            Self::Generate => &mut provider.gemini.get_or_insert_default().base_url,
            Self::Cohere => &mut provider.cohere.get_or_insert_default().base_url,
            Self::Converse => &mut provider.bedrock.get_or_insert_default().base_url,
            Self::Ollama => &mut provider.ollama.get_or_insert_default().base_url,
        };
        url.clone_into(base_url);
    }

    fn lacks_version(self) -> bool {
        self == Self::Generate
    }
}

impl Wire {
    /// Returns the wire whose misspelt name `word` probably is. Versions of models, such as
    /// `20250929`, are not near to any.
    pub(super) fn nearest(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .filter(|wire| word.len() > 2 && distance(wire.as_str(), word) <= 2)
            .min_by_key(|wire| distance(wire.as_str(), word))
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Wire {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|wire| wire.as_str() == name).ok_or(())
    }
}
