//! What a model is told of tools.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WireKey;

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name that the model calls it by: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
}

impl ToolSpec {
    /// A tool with these parameters.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }
}

/// The tools on offer in one model call. Cheap to clone; remembers how a wire wrote them.
#[derive(Clone)]
pub struct ToolSpecs(Arc<Inner>);

#[derive(Default)]
struct Inner {
    specs: Vec<ToolSpec>,
    written: Mutex<Option<(WireKey, Bytes)>>,
}

impl ToolSpecs {
    /// What `write` makes of the tools; kept under `key` and not made again.
    pub fn written(&self, key: WireKey, write: impl FnOnce(&[ToolSpec]) -> Vec<u8>) -> Bytes {
        let mut slot = self.0.written.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some((k, bytes)) if *k == key => bytes.clone(),
            _ => {
                let bytes = Bytes::from(write(&self.0.specs));
                *slot = Some((key, bytes.clone()));
                bytes
            }
        }
    }
}

impl Default for ToolSpecs {
    /// No tools.
    fn default() -> Self {
        static NONE: LazyLock<ToolSpecs> = LazyLock::new(|| ToolSpecs(Arc::default()));
        NONE.clone()
    }
}

impl Deref for ToolSpecs {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        &self.0.specs
    }
}

impl FromIterator<ToolSpec> for ToolSpecs {
    fn from_iter<I: IntoIterator<Item = ToolSpec>>(specs: I) -> Self {
        Self(Arc::new(Inner { specs: specs.into_iter().collect(), written: Mutex::default() }))
    }
}

impl fmt::Debug for ToolSpecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|s| &s.name)).finish()
    }
}
