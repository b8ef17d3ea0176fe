//! [`Providers`]: table of providers.

use std::{
    fmt, fs,
    path::Path,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use agent_core::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use super::{EmbedderBuilder, ModelBuilder, Provider, RerankerBuilder, way::Way};
use crate::wire::json::lay;

/// Table of providers by name. Cheap to clone.
///
/// ```
/// use agent_llm::Providers;
/// use serde_json::json;
///
/// // A custom gateway: like OpenAI, with another URL and another key.
/// let providers = Providers::builtin().with(&json!([{
///     "like": "openai", "name": "gateway", "keys": ["GATEWAY_KEY"], "base_url_variable": null,
///     "openai": {"base_url": "https://llm.acme.example/v1"},
/// }]))?;
/// let model = providers.model("gateway:gpt-5").api_key("sk-..").build()?;
///
/// let error = providers.model("gatevay:gpt-5").build().expect_err("a slip of the pen");
/// assert!(error.message().contains("did you mean gateway?"));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Providers(Arc<Vec<Provider>>);

/// Providers of this process, if they were replaced.
static INSTALLED: RwLock<Option<Providers>> = RwLock::new(None);

impl Providers {
    /// Returns the providers built into this release.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Providers> = LazyLock::new(|| {
            let file = serde_json::from_str(include_str!("providers.json")).expect("the file is part of the program");
            Providers(Arc::default()).with(&file).expect("the file is part of the program")
        });
        BUILTIN.clone()
    }

    /// Returns the providers of this process, which [`model`](crate::model),
    /// [`embedder`](crate::embedder) and [`reranker`](crate::reranker) use: those set with
    /// [`install`](Self::install), or else [`builtin`](Self::builtin).
    pub fn of_process() -> Self {
        let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
        installed.clone().unwrap_or_else(Self::builtin)
    }

    /// Installs these providers for this process; they apply to names resolved from now on.
    pub fn install(self) {
        *INSTALLED.write().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }

    /// Returns the table with this provider added, replacing one of the same name.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the provider is inconsistent; the error lists
    /// all problems.
    pub fn register(mut self, provider: Provider) -> Result<Self> {
        provider.check()?;
        let provider = provider.signed();
        let all = Arc::make_mut(&mut self.0);
        match all.iter_mut().find(|known| known.name == provider.name) {
            Some(known) => *known = provider,
            None => all.push(provider),
        }
        Ok(self)
    }

    /// Returns the table with the providers in `file` added: a list of [`Provider`]s as JSON. A
    /// provider that is `like` another contains only the differences; null removes a field. If it
    /// sets keys or a URL, it does not inherit the other's APIs at separate URLs (`embed`,
    /// `rerank`).
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid format or an unknown field, and as
    /// [`register`](Self::register).
    pub fn with(&self, file: &Value) -> Result<Self> {
        let wrong = |e: &dyn fmt::Display| Error::config(format!("the list of providers is wrong: {e}"));
        let list = file.as_array().ok_or_else(|| wrong(&"it is no list"))?;
        list.iter().try_fold(self.clone(), |known, said| {
            let mut said = said.clone();
            if let Some(like) = said.as_object_mut().and_then(|said| said.remove("like")) {
                let like = known.find(like.as_str().unwrap_or_default())?;
                let mut whole = serde_json::to_value(like).map_err(|e| wrong(&e))?;
                whole["recorded"] = Value::Array(Vec::new()); // those exchanges were with the other
                for asked in ["embed", "rerank"] {
                    if let Some(recorded) = whole.get_mut(asked).and_then(|asked| asked.get_mut("recorded")) {
                        *recorded = false.into();
                    }
                }
                whole["identity"] = Value::Null; // its tokens are for the other provider only
                (whole["files"], whole["batch"]) = (Value::Null, Value::Null); // may lack these APIs
                if is_elsewhere(&said) {
                    // An API at a separate URL would still be called there, with the other
                    // provider's key.
                    for asked in ["embed", "rerank"] {
                        if says(&whole[asked], "base_url") && said[asked].get("base_url").is_none() {
                            whole[asked] = Value::Null;
                        }
                    }
                }
                lay(&mut whole, &said);
                said = whole;
            }
            if let Some(said) = said.as_object_mut() {
                said.retain(|_, value| !value.is_null());
            }
            let name = said["name"].as_str().unwrap_or_default().to_owned();
            let provider = Provider::deserialize(said).map_err(|e| wrong(&format!("at '{name}': {e}")))?;
            known.register(provider)
        })
    }

    /// As [`with`](Self::with), from a JSON file.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the file cannot be read, and as
    /// [`with`](Self::with).
    pub fn with_file(&self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let wrong =
            |e: &dyn fmt::Display| Error::config(format!("the providers in {} cannot be read: {e}", path.display()));
        let text = fs::read_to_string(path).map_err(|e| wrong(&e))?;
        let file = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
        self.with(&file).map_err(|e| e.map_message(|message| format!("{message} (in {})", path.display())))
    }

    /// Returns the provider of this name.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.0.iter().find(|provider| provider.name == name)
    }

    /// Returns the provider of this name.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if it is unknown; the error suggests similar
    /// names, or lists all if none is similar.
    pub fn find(&self, name: &str) -> Result<&Provider> {
        self.get(name).ok_or_else(|| {
            let names: Vec<_> = self.0.iter().map(|provider| provider.name.as_str()).collect();
            let near: Vec<_> = names.iter().copied().filter(|known| is_near(known, name)).collect();
            Error::config(match near.is_empty() {
                true => format!("there is no provider '{name}': there are {}", names.join(", ")),
                false => format!("there is no provider '{name}': did you mean {}?", near.join(" or ")),
            })
        })
    }

    /// Returns the provider of this API at the host of `url`.
    pub(super) fn at(&self, url: &str, way: impl Way) -> Option<&Provider> {
        let host = authority(url);
        let is_there = |known: &&Provider| way.base_url(known).is_some_and(|known| fits(authority(known), host));
        self.0.iter().find(is_there).filter(|_| !host.is_empty())
    }

    /// Iterates over all providers, in order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.0.iter()
    }

    /// Returns a builder for the model named `provider:model`: as [`model`](crate::model), with the
    /// providers of this table.
    pub fn model(&self, name: impl Into<String>) -> ModelBuilder {
        ModelBuilder::named(self.clone(), name.into())
    }

    /// Returns a builder for the embedder named `provider:model`: as [`embedder`](crate::embedder),
    /// with the providers of this table.
    pub fn embedder(&self, name: impl Into<String>) -> EmbedderBuilder {
        EmbedderBuilder::named(self.clone(), name.into())
    }

    /// Returns a builder for the reranker named `provider:model`: as [`reranker`](crate::reranker),
    /// with the providers of this table.
    pub fn reranker(&self, name: impl Into<String>) -> RerankerBuilder {
        RerankerBuilder::named(self.clone(), name.into())
    }
}

impl Default for Providers {
    /// Same as [`Providers::builtin`].
    fn default() -> Self {
        Self::builtin()
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|provider| &provider.name)).finish()
    }
}

/// Returns true if a provider that is `like` another has its own keys or URL.
fn is_elsewhere(said: &Value) -> bool {
    says(said, "keys") || said.as_object().is_some_and(|said| said.values().any(|asked| says(asked, "base_url")))
}

/// Returns true if the field is set.
fn says(said: &Value, field: &str) -> bool {
    match said.get(field) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// Returns the host and the port of a URL.
pub(super) fn authority(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "" };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_user, host)| host)
}

/// Returns true if `host` matches `known`, in which `{..}` matches anything.
fn fits(known: &str, host: &str) -> bool {
    let local = host.strip_prefix("127.0.0.1").map(|port| format!("localhost{port}"));
    let host = local.as_deref().unwrap_or(host);
    match known.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?.1))) {
        Some((start, end)) => host.len() > start.len() + end.len() && host.starts_with(start) && host.ends_with(end),
        None => host.eq_ignore_ascii_case(known),
    }
}

/// Returns true if the names are similar: one contains the other, or their distance is at most two.
fn is_near(known: &str, name: &str) -> bool {
    let (known, name) = (known.to_lowercase(), name.to_lowercase());
    name.len() > 2 && (known.contains(&name) || name.contains(&known) || distance(&known, &name) <= 2)
}

/// Returns the Levenshtein distance.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
