//! [`Keys`]: the keys of one object of NexAU's file.

use serde_json::{Map, Value};

use super::difference::Differences;

/// The keys of an object that nobody has read yet, and where it stands.
pub(super) struct Keys {
    path: String,
    left: Map<String, Value>,
}

impl Keys {
    /// The keys of what stands at `path`; none, and a difference, if that is no object.
    pub(super) fn of(path: impl Into<String>, value: Value, differences: &mut Differences) -> Self {
        let path = path.into();
        let left = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            _ => {
                differences.impossible(&path, "expects an object", "it is not read");
                Map::new()
            }
        };
        Self { path, left }
    }

    /// Where a key of it stands.
    pub(super) fn path(&self, key: &str) -> String {
        below(&self.path, key)
    }

    /// What a key says that nobody has read yet.
    pub(super) fn peek(&self, key: &str) -> Option<&Value> {
        self.left.get(key).filter(|value| !value.is_null())
    }

    /// True if there is such a key that nobody has read.
    pub(super) fn has(&self, key: &str) -> bool {
        self.peek(key).is_some()
    }

    /// Reads a key. Null is nothing.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.left.remove(key).filter(|value| !value.is_null())
    }

    /// Passes over keys that say nothing here.
    pub(super) fn skip<const N: usize>(&mut self, keys: [&str; N]) {
        self.left.retain(|key, _| !keys.contains(&key.as_str()));
    }

    /// Reads a key that is a text.
    pub(super) fn text(&mut self, key: &str, differences: &mut Differences) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text),
            _ => {
                differences.impossible(self.path(key), "expects a text", "it is not read");
                None
            }
        }
    }

    /// Reads a key that is a list, each item with its place.
    pub(super) fn list(&mut self, key: &str, differences: &mut Differences) -> Vec<(String, Value)> {
        match self.take(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                let path = self.path(key);
                items.into_iter().enumerate().map(|(at, item)| (below(&path, &at.to_string()), item)).collect()
            }
            Some(_) => {
                differences.impossible(self.path(key), "expects a list", "it is not read");
                Vec::new()
            }
        }
    }

    /// Reads a key that is an object, of which there are the keys; none if it is not there.
    pub(super) fn object(&mut self, key: &str, differences: &mut Differences) -> Option<Self> {
        let value = self.take(key)?;
        Some(Self::of(self.path(key), value, differences))
    }

    /// Whatever was not read.
    pub(super) fn rest(self) -> impl Iterator<Item = (String, String, Value)> {
        let Self { path, left } = self;
        left.into_iter().filter(|(_, value)| !value.is_null()).map(move |(key, value)| (below(&path, &key), key, value))
    }

    /// Says of whatever was not read that there is no such key.
    pub(super) fn refuse_rest(self, differences: &mut Differences) {
        for (path, key, _) in self.rest() {
            differences.impossible(path, format!("has no key '{key}'"), "it is left out: is it misspelt?");
        }
    }
}

/// The place of a key or an item below another place: a JSON pointer.
pub(super) fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}
