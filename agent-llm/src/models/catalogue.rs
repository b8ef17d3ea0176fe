//! [`Catalogue`]: models by name.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    sync::{Arc, LazyLock},
};

use agent_core::{Error, ModelInfo, Result, Usage, model::PriceTable};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    ModelEntry, Prices,
    name::{fits, on_bedrock},
};

/// Catalogue of models by name. Cheap to clone.
///
/// A name matches a model's own name or an alias, with or without a `provider/` prefix, and with or
/// without a version suffix: `gpt-5-2025-08-07` is `gpt-5`. The longest match wins. `gpt-5-mini`
/// never matches `gpt-5`, and an unknown model has no price: nothing is guessed.
///
/// As a [`PriceTable`] it returns the standard price of the provider in the entry.
///
/// # Example
///
/// ```
/// use agent_core::{Usage, model::PriceTable};
/// use agent_llm::Catalogue;
/// use serde_json::json;
///
/// let models = Catalogue::builtin();
/// assert_eq!(models.find("gpt-5-2025-08-07").and_then(|model| model.max_context), Some(400_000));
/// assert_eq!(models.cost("openai/gpt-5", &Usage::new(1_000, 100)), Some(2_250), "millionths of a dollar");
/// assert_eq!(models.cost("gpt-5-of-somebody", &Usage::new(1_000, 100)), None);
///
/// // Corrections by the application; omitted fields stay unchanged.
/// let models = models.with(&json!({"models": {
///     "gpt-5": {"price": {"input": 1.0, "output": 8.0}},
///     "our-llama*": {"provider": "ours", "max_context": 32_768, "price": {"input": 0, "output": 0}},
/// }}))?;
/// assert_eq!(models.cost("gpt-5", &Usage::new(1_000, 100)), Some(1_800));
/// assert_eq!(models.cost("our-llama-70b", &Usage::new(1_000, 100)), Some(0));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Catalogue(Arc<Inner>);

struct Inner {
    /// Source text, as the base for additions.
    written: Map<String, Value>,
    checked: Option<String>,
    terms: BTreeMap<String, Terms>,
    entries: BTreeMap<String, ModelEntry>,
}

/// A provider's terms for the models that it sells.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Terms {
    /// Providers whose models it sells at their prices.
    as_at: Vec<String>,
    /// Prefixes of a model's name that do not change the model, such as a region.
    prefixes: Vec<String>,
    /// Price of batch calls, as a fraction of the normal price.
    batch: Option<f64>,
    /// True if the fraction also applies to cache reads and writes.
    batch_cached: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { as_at: Vec::new(), prefixes: Vec::new(), batch: None, batch_cached: true }
    }
}

/// Format of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    checked: Option<String>,
    #[serde(default, rename = "about")]
    _about: String,
    #[serde(default, rename = "sources")]
    _sources: BTreeMap<String, String>,
    #[serde(default)]
    providers: BTreeMap<String, Terms>,
    models: Map<String, Value>,
}

impl Catalogue {
    /// Returns the models known to this release.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
            let file = serde_json::from_str(include_str!("models.json")).expect("the file is part of the program");
            Catalogue::empty().with(&file).expect("the file is part of the program")
        });
        BUILTIN.clone()
    }

    /// Returns an empty catalogue.
    pub fn empty() -> Self {
        let (terms, entries) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Inner { written: Map::new(), checked: None, terms, entries }))
    }

    /// Merges the models in `file` into this catalogue. `file` is an object in the format of this
    /// crate's `models.json`: its `models` has an object for each name. For a known model, given
    /// fields replace the known values, and null removes them. A name that ends with `*` matches
    /// all names with that prefix. Its `providers` contains each provider's terms: `as_at` (whose
    /// prices apply), `prefixes` of names, `batch` (fraction of the price).
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid format, or an unknown field.
    pub fn with(&self, file: &Value) -> Result<Self> {
        let wrong =
            |what: &str, e: serde_json::Error| Error::config(format!("the model catalogue is wrong{what}: {e}"));
        let file = File::deserialize(file).map_err(|e| wrong("", e))?;
        let mut written = self.0.written.clone();
        let mut entries = self.0.entries.clone();
        for (name, newer) in file.models {
            let known = written.entry(name.clone()).or_insert(Value::Null);
            patch(known, newer);
            if known.is_null() {
                written.remove(&name);
                entries.remove(&name);
                continue;
            }
            let entry = ModelEntry::deserialize(&*known).map_err(|e| wrong(&format!(" at '{name}'"), e))?;
            entries.insert(name, entry);
        }
        let checked = file.checked.or_else(|| self.0.checked.clone());
        let mut terms = self.0.terms.clone();
        terms.extend(file.providers);
        Ok(Self(Arc::new(Inner { written, checked, terms, entries })))
    }

    /// As [`with`](Self::with), from a JSON file.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the file cannot be read, and as
    /// [`with`](Self::with).
    pub fn with_file(&self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let wrong =
            |e: &dyn fmt::Display| Error::config(format!("the model catalogue {} cannot be read: {e}", path.display()));
        let text = fs::read_to_string(path).map_err(|e| wrong(&e))?;
        let file = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
        self.with(&file).map_err(|e| e.map_message(|message| format!("{message} (in {})", path.display())))
    }

    /// Loads a catalogue from a JSON file of this format, without the built-in models, which are as
    /// old as this crate's release.
    ///
    /// # Errors
    /// As [`with_file`](Self::with_file).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::empty().with_file(path)
    }

    /// Returns the date on which the newest entry was verified, such as `2026-11-22`. An older
    /// entry has its own [date](ModelEntry::checked).
    pub fn checked(&self) -> Option<&str> {
        self.0.checked.as_deref()
    }

    /// Returns the model that `name` refers to.
    pub fn find(&self, name: &str) -> Option<&ModelEntry> {
        let on_bedrock = on_bedrock(name);
        let fit = |(known, entry): (&String, &'_ ModelEntry)| {
            let own = name.strip_prefix(&entry.provider).and_then(|rest| rest.strip_prefix('/'));
            let prefixes = self.0.terms.get(&entry.provider).map_or(&[][..], |terms| &terms.prefixes);
            let bare = prefixes.iter().find_map(|prefix| own.unwrap_or(name).strip_prefix(prefix.as_str()));
            let names = std::iter::once(known).chain(&entry.aliases);
            names.flat_map(|known| [Some(name), own, bare, on_bedrock].map(|name| fits(known, name?))).flatten().max()
        };
        let fitting = self.0.entries.iter().filter_map(|known| Some((fit(known)?, known.1)));
        fitting.max_by_key(|(length, _)| *length).map(|(_, entry)| entry)
    }

    /// Returns the model that `name` refers to, if `provider` serves it, so that its prices apply.
    /// Microsoft's and Google's clouds sell other vendors' models at the vendors' prices.
    pub fn find_at(&self, provider: &str, name: &str) -> Option<&ModelEntry> {
        let as_at = self.0.terms.get(provider).map_or(&[][..], |terms| &terms.as_at);
        let is_there = |entry: &&ModelEntry| entry.provider == provider || as_at.contains(&entry.provider);
        let own = self.find(&format!("{provider}/{name}")).filter(is_there);
        own.or_else(|| self.find(name).filter(is_there))
    }

    /// Returns the prices of calls at `provider`; `None` if unknown.
    pub(crate) fn prices(&self, provider: &str, name: &str) -> Option<Prices> {
        self.find_at(provider, name)?.price.clone()
    }

    /// Returns the prices of batch calls at `provider`; `None` if it has no batches, or the model
    /// has no price.
    ///
    /// ```
    /// use agent_core::Usage;
    /// use agent_llm::Catalogue;
    ///
    /// let prices = Catalogue::builtin().batch_prices("openai", "gpt-5").expect("it has batches");
    /// assert_eq!(prices.cost(&Usage::new(1_000, 100)), Some(1_125), "half of 2,250");
    /// ```
    pub fn batch_prices(&self, provider: &str, name: &str) -> Option<Prices> {
        let Terms { batch, batch_cached, .. } = self.0.terms.get(provider)?;
        let prices = self.find_at(provider, name)?.price.as_ref()?.times((*batch)?);
        Some(if *batch_cached { prices } else { prices.without_cache() })
    }

    /// Iterates over all models by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ModelEntry)> {
        self.0.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Fills in unset fields of `info` from the catalogue.
    pub(crate) fn complete(&self, mut info: ModelInfo) -> ModelInfo {
        if let Some(entry) = self.find_at(&info.provider, &info.name).or_else(|| self.find(&info.name)) {
            info.context_window = info.context_window.or(entry.max_context);
            info.max_output = info.max_output.or(entry.max_output);
            info.json_schema = entry.json_schema.unwrap_or(info.json_schema);
        }
        info
    }
}

impl PriceTable for Catalogue {
    fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
        self.find(model)?.price.as_ref()?.cost(usage)
    }
}

/// Merges `newer` into `known`, field by field; null removes a field.
fn patch(known: &mut Value, newer: Value) {
    match (known, newer) {
        (Value::Object(known), Value::Object(newer)) => {
            for (field, value) in newer {
                if value.is_null() {
                    known.remove(&field);
                } else {
                    patch(known.entry(field).or_insert(Value::Null), value);
                }
            }
        }
        (known, newer) => *known = newer,
    }
}

impl Default for Catalogue {
    /// Same as [`Catalogue::builtin`].
    fn default() -> Self {
        Self::builtin()
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("models", &self.0.entries.len()).field("checked", &self.0.checked).finish()
    }
}
