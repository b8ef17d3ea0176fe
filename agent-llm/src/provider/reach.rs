//! How a model is reached: its provider, its address and its key.

use std::sync::Arc;

use agent_core::{Error, Result};
use secrecy::SecretString;
use serde_json::Value;

use super::{
    Identity, Provider, Providers, Wire,
    speaks::Speaks,
    table::authority,
    way::{Spoken, Way},
};
use crate::{Auth, Credentials, Signer, model::HttpSettings, wire::endpoint::place};

/// Reads a variable of the environment.
type ReadEnv = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a builder was told of the way.
pub(super) struct Wanted {
    pub(super) wire: Option<Wire>,
    pub(super) base_url: Option<String>,
    pub(super) options: Vec<(String, Value)>,
    pub(super) env: ReadEnv,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { wire: None, base_url: None, options: Vec::new(), env: Box::new(|name| std::env::var(name).ok()) }
    }
}

/// The way to a model, or to what else a provider serves.
pub(super) struct Reach<S: Spoken = Speaks> {
    pub(super) provider: Provider,
    pub(super) model: String,
    pub(super) way: S::Way,
    pub(super) speaks: S,
    pub(super) auth: Auth,
    pub(super) key: Option<SecretString>,
    /// In place of a key.
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    /// In place of both.
    pub(super) signer: Option<Arc<dyn Signer>>,
}

impl<S: Spoken> Reach<S> {
    /// The way to the model that is called `name`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config): all that is missing or wrong with it.
    pub(super) fn by_name(providers: &Providers, name: &str, wanted: &Wanted, http: &HttpSettings) -> Result<Self> {
        let Some((provider, model)) = name.split_once(':') else {
            let known = http.catalogue.find(name).and_then(|entry| providers.get(&entry.provider));
            let near = known.map(|known| format!(": did you mean {}:{name}?", known.name)).unwrap_or_default();
            return Err(Error::config(format!("'{name}' names no provider: a model is named provider:model{near}")));
        };
        let provider = providers.find(provider)?;
        let (model, way) = S::chosen(model, wanted, provider)?;
        let provider = match (&wanted.base_url, wanted.variable(provider.base_url_variable.as_deref())) {
            (Some(url), _) => elsewhere(providers, provider, way, url, false),
            (None, Some(url)) => elsewhere(providers, provider, way, &with_version(url, way), true),
            (None, None) => provider.clone(),
        };
        Self::along(provider, model, way, wanted, http)
    }

    /// The way to the model that `provider` calls `name`.
    ///
    /// # Errors
    /// As [`by_name`](Self::by_name).
    pub(super) fn at(provider: Provider, name: &str, wanted: &Wanted, http: &HttpSettings) -> Result<Self> {
        let (model, way) = S::chosen(name, wanted, &provider)?;
        let provider = match &wanted.base_url {
            Some(url) => elsewhere(&Providers::of_process(), &provider, way, url, false),
            None => provider,
        };
        Self::along(provider, model, way, wanted, http)
    }

    fn along(mut provider: Provider, model: &str, way: S::Way, wanted: &Wanted, http: &HttpSettings) -> Result<Self> {
        let name = provider.name.clone();
        let (places, fields): (Vec<_>, Vec<_>) =
            wanted.options.iter().partition(|(option, _)| provider.places.contains_key(option));
        let mut lacks = Lacks::default();
        for (place, value) in places {
            provider = lacks.fill(provider, place, value.as_str());
        }
        while let Some(hole) = way.base_url(&provider).and_then(place).map(str::to_owned) {
            let known = provider.places.get(&hole).cloned().unwrap_or_default();
            let value = known.variables.iter().find_map(|variable| wanted.variable(Some(variable)));
            let value = value.or_else(|| provider.identity?.place(&hole, &wanted.env));
            provider = lacks.fill(provider, &hole, value.as_deref().or(known.default.as_deref()));
        }
        let provider = provider.signed();
        let Some(mut speaks) = S::of(&provider, way) else {
            return Err(Error::config(format!("{name} has no profile '{}' for the wire {way}", way.profile())));
        };
        for (option, value) in fields {
            speaks.set(option, value).map_err(|why| {
                let places: String = provider.places.keys().map(|place| format!(", {place}")).collect();
                Error::config(format!("'{option}' cannot be set for {name} on the wire {way}: {why}{places}"))
            })?;
        }
        if let Some(feature) = speaks.feature() {
            lacks.0.push(format!("what reads its streams (enable the feature '{feature}')"));
        }
        let Shown { key, credentials, signer, auth } = lacks.key(&provider, speaks.auth(), wanted, http);
        if cfg!(not(feature = "http")) && http.transport.is_none() {
            lacks.0.push("a transport (enable the feature 'http', or use transport(..))".to_owned());
        }
        lacks.none(&format!("{name}:{model}"))?;
        Ok(Self { provider, model: model.to_owned(), way, speaks, auth, key, credentials, signer })
    }

    /// Adds the key that was found to what a builder was told.
    pub(super) fn equip(&mut self, http: &mut HttpSettings) {
        if http.api_key.is_none() {
            http.api_key = self.key.take();
        }
        http.credentials = http.credentials.take().or(self.credentials.take());
        http.signer = http.signer.take().or(self.signer.take());
    }
}

impl Wanted {
    fn variable(&self, name: Option<&str>) -> Option<String> {
        (self.env)(name?).filter(|value| !value.trim().is_empty())
    }
}

/// What is shown to a provider, and how.
struct Shown {
    key: Option<SecretString>,
    credentials: Option<Arc<dyn Credentials>>,
    signer: Option<Arc<dyn Signer>>,
    auth: Auth,
}

/// What is missing, with what to set.
#[derive(Default)]
struct Lacks(Vec<String>);

impl Lacks {
    /// Fills in a place, if there is a value for it that an address can have there.
    fn fill(&mut self, provider: Provider, place: &str, value: Option<&str>) -> Provider {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let value = value.filter(|value| !value.is_empty());
        if !value.is_some_and(|value| value.chars().all(is_word)) {
            let what = if value.is_some() { "that is one word" } else { "of the account" };
            let variables = provider.places.get(place).map(|place| place.variables.join(" or ")).unwrap_or_default();
            self.0.push(format!("a {place} {what} (set {variables}, or use option(\"{place}\", ..))"));
            return provider.with(place, "unknown");
        }
        provider.with(place, value.unwrap_or_default())
    }

    /// The key from the environment or the tokens of an identity, if no key was given, and how it is shown.
    fn key(&mut self, provider: &Provider, auth: &Auth, wanted: &Wanted, http: &HttpSettings) -> Shown {
        let shown = |header: &str| match auth {
            Auth::Bearer => header.eq_ignore_ascii_case("authorization"),
            Auth::Header(name) => header.eq_ignore_ascii_case(name),
        };
        let is_given = http.api_key.is_some()
            || http.credentials.is_some()
            || http.signer.is_some()
            || http.headers.iter().any(|(header, _)| shown(header));
        let none = Shown { key: None, credentials: None, signer: None, auth: auth.clone() };
        if is_given {
            return none;
        }
        let found =
            provider.keys.iter().find_map(|key| Some((wanted.variable(Some(&key.variable))?, key.auth.clone())));
        if let Some((key, own)) = found {
            return Shown { key: Some(key.into()), auth: own.unwrap_or(none.auth), ..none };
        }
        if let Some(credentials) = provider.identity.and_then(Identity::credentials) {
            return Shown { credentials: Some(credentials), auth: Auth::Bearer, ..none };
        }
        let region = wanted.options.iter().find(|(name, _)| name == "region").and_then(|(_, value)| value.as_str());
        if let Some(signer) = provider.identity.and_then(|identity| identity.signer(region, http.may_bring_key)) {
            return Shown { signer: Some(signer), ..none };
        }
        if !provider.keyless && !http.may_bring_key {
            let variables: Vec<_> = provider.keys.iter().map(|key| key.variable.as_str()).collect();
            let feature = provider.identity.map(|identity| format!(", or enable the feature '{}'", identity.feature()));
            let (name, variables) = (&provider.name, variables.join(" or "));
            self.0
                .push(format!("a key of {name} (set {variables}, or use api_key(..){})", feature.unwrap_or_default()));
        }
        none
    }

    fn none(self, model: &str) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Error::config(format!("{model} lacks {}", self.0.join(", and "))))
    }
}

/// Who is at `url`, of whom `provider` was said. If the two were said by a pair of variables, so was the key.
fn elsewhere(providers: &Providers, provider: &Provider, way: impl Way, url: &str, is_pair: bool) -> Provider {
    let known = providers.at(url, way);
    let mut there = match known {
        // Of two that anybody may run, the one that was said is meant; the host of any other is its own.
        Some(known) if known.name == provider.name || !(provider.is_everywhere() && known.is_everywhere()) => {
            known.clone()
        }
        _ if provider.is_everywhere() => provider.clone(),
        _ => {
            let host = authority(url);
            let host = host.rsplit_once(':').map_or(host, |(host, _port)| host);
            let mut own = way.own(if host.is_empty() { "unknown" } else { host }, url, provider);
            own.keys = if is_pair { provider.keys.clone() } else { Vec::new() };
            own
        }
    };
    way.set_base_url(&mut there, url);
    there
}

/// Google's own clients take a base URL without the version of the API.
fn with_version(url: String, way: impl Way) -> String {
    let is_bare = url.split_once("://").is_some_and(|(_, rest)| !rest.trim_end_matches('/').contains('/'));
    if way.lacks_version() && is_bare { format!("{}/v1beta", url.trim_end_matches('/')) } else { url }
}

#[cfg(test)]
mod tests;
