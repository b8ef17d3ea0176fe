//! Profiles of providers that are known, for who makes a codec by hand.

use agent_core::{Error, Result};

use super::{Provider, Providers};
use crate::{AnthropicProfile, GeminiProfile, Profile};

const KNOWN: &str = "a test finds it";

impl Provider {
    /// The provider with its name in its profiles, which is where codecs have it from.
    pub(super) fn signed(mut self) -> Self {
        if let Some(profile) = &mut self.openai {
            profile.provider.clone_from(&self.name);
        }
        if let Some(profile) = &mut self.anthropic {
            profile.provider.clone_from(&self.name);
        }
        if let Some(profile) = &mut self.cohere {
            profile.provider.clone_from(&self.name);
        }
        if let Some(profile) = &mut self.bedrock {
            profile.provider.clone_from(&self.name);
        }
        if let Some(profile) = &mut self.ollama {
            profile.provider.clone_from(&self.name);
        }
        if let Some(profile) = &mut self.gemini {
            profile.provider.clone_from(&self.name);
        }
        self
    }
}

impl Profile {
    /// The profile of a provider that comes with this crate.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if none of this name speaks OpenAI's wires.
    pub fn named(provider: &str) -> Result<Self> {
        let found = Providers::builtin().find(provider)?.openai.clone();
        found.ok_or_else(|| Error::config(format!("{provider} speaks none of OpenAI's wires")))
    }

    /// OpenAI.
    ///
    /// # Panics
    /// Never: it is known.
    pub fn openai() -> Self {
        Self::named("openai").expect(KNOWN)
    }
}

impl AnthropicProfile {
    /// Anthropic.
    ///
    /// # Panics
    /// Never: it is known.
    pub fn anthropic() -> Self {
        Providers::builtin().get("anthropic").and_then(|known| known.anthropic.clone()).expect(KNOWN)
    }
}

impl GeminiProfile {
    /// The Gemini API with keys of AI Studio.
    ///
    /// # Panics
    /// Never: it is known.
    pub fn ai_studio() -> Self {
        Providers::builtin().get("gemini").and_then(|known| known.gemini.clone()).expect(KNOWN)
    }
}
