//! Putting a call together from its deltas.

use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::{Map, Value};

use super::events::CallDelta;
use crate::wire::{
    content::push_arguments,
    ids::{NAMELESS, call_id},
    merge::merge_field,
};

/// A call under way.
#[derive(Debug, Default)]
pub(super) struct CallFold {
    /// The server's number for it, if it has one.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    kind: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
    function_rest: Map<String, Value>,
    rest: Map<String, Value>,
    pub(super) is_spoken: bool,
}

impl CallFold {
    /// A call of which only the server's number for it is known, if it has one.
    pub(super) fn new(index: Option<u64>) -> Self {
        Self { index, ..Self::default() }
    }

    /// True once its name and its id are known, and more has come than these: until then there may be more of the name.
    pub(super) fn can_be_spoken(&self, others_follow: bool) -> bool {
        !self.name.is_empty() && !self.id.is_empty() && (others_follow || !self.arguments.is_empty())
    }

    pub(super) fn push(&mut self, delta: &CallDelta<'_>) -> serde_json::Result<()> {
        if let Some(id) = &delta.id
            && self.id.is_empty()
        {
            self.id.push_str(&id.0);
        }
        if let (None, Some(kind)) = (&self.kind, &delta.kind) {
            self.kind = Some(kind.0.to_string());
        }
        if let Some(function) = &delta.function {
            // A name comes whole, in pieces before the arguments, or again with every piece of them.
            if let Some(name) = &function.name
                && (self.name.is_empty() || self.arguments.is_empty() && self.name != name.0)
            {
                self.name.push_str(&name.0);
            }
            if let Some(more) = function.arguments {
                push_arguments(more, &mut self.arguments)?;
            }
            for (name, json) in &function.rest {
                merge_field(&mut self.function_rest, name.0.to_string(), serde_json::from_str(json.get())?);
            }
        }
        for (name, json) in &delta.rest {
            merge_field(&mut self.rest, name.0.to_string(), serde_json::from_str(json.get())?);
        }
        Ok(())
    }
}

/// A call as it would have come whole.
pub(super) struct WholeCall<'a> {
    pub(super) call: &'a CallFold,
    pub(super) at: usize,
    pub(super) response: &'a str,
}

impl Serialize for WholeCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let call = self.call;
        let mut map = serializer.serialize_map(None)?;
        match call.id.as_str() {
            "" => map.serialize_entry("id", &call_id(self.response, self.at))?,
            id => map.serialize_entry("id", id)?,
        }
        map.serialize_entry("type", call.kind.as_deref().unwrap_or("function"))?;
        // A call of another kind has what it says in a field of its kind.
        if !call.name.is_empty() || !call.arguments.is_empty() || call.kind.as_deref().is_none_or(|k| k == "function") {
            map.serialize_entry("function", &WholeFunction(call))?;
        }
        call.rest.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

struct WholeFunction<'a>(&'a CallFold);

impl Serialize for WholeFunction<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", if self.0.name.is_empty() { NAMELESS } else { &self.0.name })?;
        map.serialize_entry("arguments", &self.0.arguments)?;
        self.0.function_rest.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}
