//! Tool descriptions for models.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ServerTool;
use crate::message::{Cache, Raw};

/// Description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Name by which the model calls it: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// Purpose and usage of the tool.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
    /// JSON Schema of the returned [value](super::ToolOutput::as_value), if known: for programs
    /// that call the tool. It is not sent to models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Requests that the provider caches the prompt up to the end of this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Provider-specific JSON of the tool, which is sent to that provider instead. A tool that runs
    /// at the provider has nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
    /// The equivalent provider-hosted tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerTool>,
}

impl ToolSpec {
    /// Creates a tool with these parameters.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, description, parameters, output: None, cache: None, raw: None, server: None }
    }

    /// Creates a tool that runs at the provider of `raw`. Other providers do not receive it.
    pub fn server_side(name: impl Into<String>, raw: Raw) -> Self {
        Self { raw: Some(raw), ..Self::new(name, "", Value::Null) }
    }

    /// Creates a provider-hosted tool, for any provider.
    pub fn of_server(tool: impl Into<ServerTool>) -> Self {
        let tool = tool.into();
        Self { server: Some(tool.clone()), ..Self::new(tool.name(), "", Value::Null) }
    }

    /// Declares the equivalent provider-hosted tool, which models are trained for: a provider that
    /// has it receives that instead of the parameters.
    #[must_use]
    pub fn with_server(mut self, tool: impl Into<ServerTool>) -> Self {
        self.server = Some(tool.into());
        self
    }

    /// True if the tool runs at a provider.
    pub fn is_server_side(&self) -> bool {
        self.parameters.is_null()
    }

    /// Sets the provider-specific JSON of the tool.
    #[must_use]
    pub fn with_raw(mut self, raw: Raw) -> Self {
        self.raw = Some(raw);
        self
    }

    /// Sets the JSON Schema of the returned value, if there is one.
    #[must_use]
    pub fn with_output(mut self, schema: Option<Value>) -> Self {
        self.output = schema;
        self
    }

    /// Requests that the provider caches the prompt up to the end of this tool.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }
}

/// Maximum length of a property key that all providers accept.
const LONGEST_KEY: usize = 64;

/// Returns the keys of one schema's properties that some providers refuse, each with the key to
/// offer in its place: letters, digits, `_`, `.` and `-`, at most 64 characters. The mapping depends
/// on the keys alone, so that the names of arguments can be restored with it.
///
/// ```
/// use agent_core::tool::portable_keys;
///
/// let renamed = portable_keys(["$top", "@top", "name"]);
/// assert_eq!(renamed, [("$top".to_owned(), "_top".to_owned()), ("@top".to_owned(), "_top_2".to_owned())]);
/// ```
pub fn portable_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let is_portable = |key: &&str| (1..=LONGEST_KEY).contains(&key.len()) && key.chars().all(is_allowed);
    let (mut taken, mut others) = (std::collections::BTreeSet::new(), Vec::new());
    for key in keys {
        if is_portable(&key) {
            taken.insert(key.to_owned());
        } else {
            others.push(key);
        }
    }
    others.sort_unstable();
    let renamed = others.into_iter().map(|key| {
        let plain: String = key.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
        let numbered = |n: u32| {
            let suffix = if n == 1 { String::new() } else { format!("_{n}") };
            let kept = plain.get(..LONGEST_KEY - suffix.len()).unwrap_or(&plain);
            if kept.is_empty() { format!("key{suffix}") } else { format!("{kept}{suffix}") }
        };
        let portable = (1..).map(numbered).find(|portable| taken.insert(portable.clone()));
        (key.to_owned(), portable.unwrap_or_default())
    });
    renamed.collect()
}

/// Key of one way of encoding or measuring tools: a wire, its settings, and the parts that it
/// replays verbatim.
///
/// Two encoders that would encode any tool differently must have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WireKey(u64);

impl WireKey {
    /// Creates a key from a hashable value.
    pub fn new(of: &impl std::hash::Hash) -> Self {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        Self(BuildHasherDefault::<DefaultHasher>::default().hash_one(of))
    }
}

/// The tools offered in one model call; by default none. Cheap to clone; caches their encoded form.
#[derive(Clone, Default)]
pub struct ToolSpecs(Option<Arc<Inner>>);

#[derive(Default)]
struct Inner {
    specs: Vec<ToolSpec>,
    written: Mutex<Option<(WireKey, Bytes)>>,
    total: Mutex<Option<(WireKey, u64)>>,
}

impl ToolSpecs {
    /// Returns the result of `write` for the tools, cached under `key`.
    pub fn written(&self, key: WireKey, write: impl FnOnce(&[ToolSpec]) -> Vec<u8>) -> Bytes {
        let Some(inner) = &self.0 else { return write(&[]).into() };
        let mut slot = inner.written.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some((k, bytes)) if *k == key => bytes.clone(),
            _ => {
                let bytes = Bytes::from(write(&inner.specs));
                *slot = Some((key, bytes.clone()));
                bytes
            }
        }
    }

    /// Returns the result of `measure` for the tools, cached under `key`.
    pub fn total(&self, key: WireKey, measure: impl FnOnce(&[ToolSpec]) -> u64) -> u64 {
        let Some(inner) = &self.0 else { return measure(&[]) };
        let mut slot = inner.total.lock().unwrap_or_else(PoisonError::into_inner);
        match *slot {
            Some((k, total)) if k == key => total,
            _ => slot.insert((key, measure(&inner.specs))).1,
        }
    }
}

impl Deref for ToolSpecs {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        self.0.as_deref().map_or(&[], |inner| &inner.specs)
    }
}

impl FromIterator<ToolSpec> for ToolSpecs {
    fn from_iter<I: IntoIterator<Item = ToolSpec>>(specs: I) -> Self {
        Self(Some(Arc::new(Inner { specs: specs.into_iter().collect(), ..Inner::default() })))
    }
}

impl PartialEq for ToolSpecs {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl fmt::Debug for ToolSpecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|s| &s.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_counted_of_tools_is_not_counted_again() {
        let (tools, counted) = (ToolSpecs::from_iter([ToolSpec::new("look", "Looks.", json!({}))]), Mutex::new(0));
        let total = |key: &str| {
            let count = |tools: &[ToolSpec]| {
                *counted.lock().expect("free") += 1;
                tools.len() as u64
            };
            tools.clone().total(WireKey::new(&key), count)
        };
        assert_eq!((total("a"), total("a"), *counted.lock().expect("free")), (1, 1, 1));
        assert_eq!((total("b"), *counted.lock().expect("free")), (1, 2), "by another counter");
    }
}
