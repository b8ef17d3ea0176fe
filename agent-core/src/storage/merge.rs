//! Merge rules for state values.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::error::Result;

type Custom = dyn Fn(Option<Value>, Value) -> Result<Value> + Send + Sync;

/// Rule for merging a new value into the current one.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Merge {
    /// Replace the current value.
    #[default]
    Replace,
    /// Concatenate lists; a single value counts as a list of one.
    Append,
    /// Merge objects recursively, field by field; replace anything else.
    Merge,
    /// A custom rule: receives the current value, if any, and the new one.
    Custom(Arc<Custom>),
}

impl Merge {
    /// Creates a custom rule.
    pub fn custom(rule: impl Fn(Option<Value>, Value) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(rule))
    }

    /// Merges `new` into `current`.
    ///
    /// # Errors
    /// Only those of a custom rule.
    pub fn apply(&self, current: Option<Value>, new: Value) -> Result<Value> {
        Ok(match self {
            Self::Replace => new,
            Self::Append => {
                let mut list = current.map_or_else(Vec::new, as_list);
                list.extend(as_list(new));
                Value::Array(list)
            }
            Self::Merge => match current {
                Some(current) => deep(current, new),
                None => new,
            },
            Self::Custom(rule) => rule(current, new)?,
        })
    }
}

fn as_list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        one => vec![one],
    }
}

fn deep(current: Value, new: Value) -> Value {
    match (current, new) {
        (Value::Object(current), Value::Object(new)) => Value::Object(deep_fields(current, new)),
        (_, new) => new,
    }
}

/// Merges objects recursively, field by field.
pub(crate) fn deep_fields(mut current: Map<String, Value>, new: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in new {
        let joined = match current.remove(&key) {
            Some(old) => deep(old, value),
            None => value,
        };
        current.insert(key, joined);
    }
    current
}

impl fmt::Debug for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replace => "Replace",
            Self::Append => "Append",
            Self::Merge => "Merge",
            Self::Custom(_) => "Custom",
        })
    }
}
