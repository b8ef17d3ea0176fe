//! Resolution of a model's endpoint: provider, URL and key.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Error, Result};
use secrecy::SecretString;
use serde_json::Value;

use super::{
    Identity, Provider, Providers, Wire,
    speaks::WireSupport,
    table::authority,
    way::{Spoken, Way},
};
use crate::{Auth, Credentials, Signer, model::HttpSettings, wire::endpoint::place};

/// Reads an environment variable.
type ReadEnv = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Options requested on a builder.
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

/// Resolved endpoint of a model, or of another service of a provider.
pub(super) struct Reach<S: Spoken = WireSupport> {
    pub(super) provider: Provider,
    pub(super) model: String,
    pub(super) way: S::Way,
    pub(super) speaks: S,
    pub(super) auth: Auth,
    pub(super) key: Option<SecretString>,
    /// Replaces the key.
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    /// Replaces the key and `credentials`.
    pub(super) signer: Option<Arc<dyn Signer>>,
}

impl<S: Spoken> Reach<S> {
    /// Resolves the endpoint of the model named `name`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config), listing everything that is missing or wrong.
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

    /// Resolves the endpoint of the model that `provider` serves as `name`.
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

    /// Adds the resolved key to a builder's HTTP settings.
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

/// Authentication to use.
struct Shown {
    key: Option<SecretString>,
    credentials: Option<Arc<dyn Credentials>>,
    signer: Option<Arc<dyn Signer>>,
    auth: Auth,
}

/// List of missing settings, with instructions.
#[derive(Default)]
struct Lacks(Vec<String>);

impl Lacks {
    /// Fills in a placeholder, if the value is valid in a URL.
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

    /// Resolves the key from the environment or from an identity, if no key was given, and its
    /// placement.
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
        let found = provider.keys.iter().find_map(|key| Some((wanted.variable(Some(&key.variable))?, key)));
        if let Some((value, known)) = found {
            // A value read from a file often ends with a line break.
            let value = value.trim();
            if value.contains(char::is_control) {
                let (name, variable) = (&provider.name, &known.variable);
                self.0.push(format!("a key of {name} that HTTP can send ({variable} has a line break or another control character within)"));
            }
            return Shown { key: Some(value.into()), auth: known.auth.clone().unwrap_or(none.auth), ..none };
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

/// Returns the provider at `url`, which may be another than `provider`. If URL and key came from a
/// pair of variables, the key belongs to the URL.
fn elsewhere(providers: &Providers, provider: &Provider, way: impl Way, url: &str, is_pair: bool) -> Provider {
    let known = providers.at(url, way);
    let mut there = match known {
        // Of two providers that anybody may host, the named one is meant; any other host identifies
        // its provider.
        Some(known) if known.name == provider.name || !(provider.is_everywhere() && known.is_everywhere()) => {
            known.clone()
        }
        _ if provider.is_everywhere() => provider.clone(),
        _ => {
            let host = authority(url);
            let host = host.rsplit_once(':').map_or(host, |(host, _port)| host);
            // Another host, called in the dialect of the named provider.
            Provider {
                name: if host.is_empty() { "unknown" } else { host }.to_owned(),
                keys: if is_pair { provider.keys.clone() } else { Vec::new() },
                keyless: true,
                identity: None,
                recorded: Vec::new(),
                places: BTreeMap::new(),
                base_url_variable: None,
                files: None,
                batch: None,
                ..provider.clone()
            }
        }
    };
    way.set_base_url(&mut there, url);
    there
}

/// Appends the API version, because Google's own clients take a base URL without it.
fn with_version(url: String, way: impl Way) -> String {
    let is_bare = url.split_once("://").is_some_and(|(_, rest)| !rest.trim_end_matches('/').contains('/'));
    if way.lacks_version() && is_bare { format!("{}/v1beta", url.trim_end_matches('/')) } else { url }
}

#[cfg(test)]
mod tests;
