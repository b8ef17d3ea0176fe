//! Profiles of known providers, for codecs that are built by hand.

use agent_core::{Error, Result};

use super::{Provider, Providers};
use crate::{AnthropicProfile, GeminiProfile, Profile};

const KNOWN: &str = "a test finds it";

impl Provider {
    /// Copies the provider's name into its profiles, where codecs read it.
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
    /// Returns the profile of a built-in provider.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if no built-in provider of this name supports
    /// OpenAI's wires.
    pub fn named(provider: &str) -> Result<Self> {
        let found = Providers::builtin().find(provider)?.openai.clone();
        found.ok_or_else(|| Error::config(format!("{provider} speaks none of OpenAI's wires")))
    }

    /// Returns OpenAI's profile.
    ///
    /// # Panics
    /// Never: the provider is built in.
    pub fn openai() -> Self {
        Self::named("openai").expect(KNOWN)
    }
}

impl AnthropicProfile {
    /// Returns Anthropic's profile.
    ///
    /// # Panics
    /// Never: the provider is built in.
    pub fn anthropic() -> Self {
        Providers::builtin().get("anthropic").and_then(|known| known.anthropic.clone()).expect(KNOWN)
    }
}

impl GeminiProfile {
    /// Returns the profile of the Gemini API, with keys of AI Studio.
    ///
    /// # Panics
    /// Never: the provider is built in.
    pub fn ai_studio() -> Self {
        Providers::builtin().get("gemini").and_then(|known| known.gemini.clone()).expect(KNOWN)
    }
}
