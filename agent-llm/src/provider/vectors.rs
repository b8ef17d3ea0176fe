//! Embedding and reranking APIs of providers.

use std::fmt;

use agent_core::{Error, Result};
use serde_json::Value;

use super::{
    Provider,
    reach::Wanted,
    way::{Spoken, Way, set},
};
use crate::{
    Auth,
    embed::{EmbedProfile, EmbedWire},
    rank::{RankProfile, RankWire},
};

/// URL and key placement of a provider's models of one family.
struct Family<'a> {
    base_url: &'a str,
    auth: &'a Auth,
}

macro_rules! family {
    ($profile:expr) => {
        $profile.as_ref().map(|profile| Family { base_url: &profile.base_url, auth: &profile.auth })
    };
}

impl EmbedWire {
    fn family(self, provider: &Provider) -> Option<Family<'_>> {
        match self {
            Self::Openai => family!(provider.openai),
            Self::Gemini | Self::Vertex => family!(provider.gemini),
            Self::Cohere => family!(provider.cohere),
            Self::Bedrock | Self::Ollama => None,
        }
    }
}

impl RankWire {
    fn family(self, provider: &Provider) -> Option<Family<'_>> {
        match self {
            Self::Cohere if provider.cohere.is_some() => family!(provider.cohere),
            Self::Cohere | Self::Voyage => family!(provider.openai),
            Self::Google | Self::Bedrock => None,
        }
    }
}

/// Defines a kind of API with its own profile, for providers that may not serve models.
macro_rules! way {
    ($(#[$about:meta])* $Way:ident($Wire:ty), $Profile:ident, $field:ident, $name:literal, $what:literal) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $Way(pub(super) $Wire);

        impl fmt::Display for $Way {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0.as_str())
            }
        }

        impl Way for $Way {
            fn profile(self) -> &'static str {
                $name
            }

            fn base_url(self, provider: &Provider) -> Option<&str> {
                let profile = provider.$field.as_ref()?;
                match profile.base_url.as_str() {
                    "" => self.0.family(provider).map(|family| family.base_url),
                    own => Some(own),
                }
            }

            fn set_base_url(self, provider: &mut Provider, url: &str) {
                url.clone_into(&mut provider.$field.get_or_insert_default().base_url);
            }

            fn lacks_version(self) -> bool {
                self.0.as_str() == "gemini"
            }
        }

        impl Spoken for $Profile {
            type Way = $Way;

            fn chosen<'a>(name: &'a str, _: &Wanted, provider: &Provider) -> Result<(&'a str, $Way)> {
                let Some(profile) = &provider.$field else {
                    let why = format!("{} is not known to serve {}", provider.name, $what);
                    return Err(Error::config(why));
                };
                if name.is_empty() {
                    return Err(Error::config(format!("which model of {0}? It is named {0}:model", provider.name)));
                }
                Ok((name, $Way(profile.wire)))
            }

            fn of(provider: &Provider, way: $Way) -> Option<Self> {
                let mut profile = provider.$field.clone()?;
                way.base_url(provider)?.clone_into(&mut profile.base_url);
                let auth = way.0.family(provider).map(|family| family.auth.clone());
                profile.auth = Some(profile.auth.or(auth).unwrap_or_default());
                Some(profile)
            }

            fn auth(&self) -> &Auth {
                self.auth.as_ref().unwrap_or(&Auth::Bearer)
            }

            fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
                set(self, name, value)
            }
        }
    };
}

way! {
    /// Embedding API.
    Embeds(EmbedWire), EmbedProfile, embed, "embed", "embeddings"
}

way! {
    /// Reranking API.
    Ranks(RankWire), RankProfile, rerank, "rerank", "rerankers"
}
