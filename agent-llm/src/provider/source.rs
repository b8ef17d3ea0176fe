//! Selection of a provider and a model.

use std::fmt::DebugStruct;

use agent_core::Result;

use super::{
    Provider, Providers,
    reach::{Reach, Wanted},
    way::Spoken,
};
use crate::model::HttpSettings;

/// Requested model: by name, or at a given provider.
pub(super) enum Source {
    /// `provider:model`, among these providers.
    Named(Providers, String),
    At(Box<Provider>, String),
}

impl Source {
    /// Resolves the endpoint.
    ///
    /// # Errors
    /// As [`Reach::by_name`].
    pub(super) fn reach<S: Spoken>(self, wanted: &Wanted, http: &HttpSettings) -> Result<Reach<S>> {
        match self {
            Self::Named(providers, name) => Reach::by_name(&providers, &name, wanted, http),
            Self::At(provider, name) => Reach::at(*provider, &name, wanted, http),
        }
    }

    /// Returns the name, if the model was requested by name.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(_, name) => Some(name),
            Self::At(..) => None,
        }
    }

    pub(super) fn show(&self, shown: &mut DebugStruct<'_, '_>) {
        match self {
            Self::Named(_, name) => shown.field("name", name),
            Self::At(provider, model) => shown.field("provider", &provider.name).field("model", model),
        };
    }
}
