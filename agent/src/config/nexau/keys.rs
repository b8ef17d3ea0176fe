//! [`Keys`]: the keys of one object of NexAU's file.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Map, Value};

use super::difference::Differences;
use crate::config::near;

/// The keys of an object that nobody has read yet, and where it stands.
pub(super) struct Keys {
    path: String,
    left: Map<String, Value>,
    /// The keys that are known here.
    known: RefCell<BTreeSet<String>>,
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
        Self { path, left, known: RefCell::default() }
    }

    /// Returns the JSON pointer of a key.
    pub(super) fn path(&self, key: &str) -> String {
        below(&self.path, key)
    }

    /// Returns the value of a key that was not read yet.
    pub(super) fn peek(&self, key: &str) -> Option<&Value> {
        self.known.borrow_mut().insert(key.to_owned());
        self.left.get(key).filter(|value| !value.is_null())
    }

    /// True if there is such a key that nobody has read.
    pub(super) fn has(&self, key: &str) -> bool {
        self.peek(key).is_some()
    }

    /// Reads a key. Null is nothing.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.known.get_mut().insert(key.to_owned());
        self.left.remove(key).filter(|value| !value.is_null())
    }

    /// Passes over keys that say nothing here.
    pub(super) fn skip<const N: usize>(&mut self, keys: [&str; N]) {
        self.known.get_mut().extend(keys.map(str::to_owned));
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

    /// The known key that is spelt most like this one.
    pub(super) fn nearest(&self, key: &str) -> Option<String> {
        let known = self.known.borrow();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        near::nearest(key, &known).map(str::to_owned)
    }

    /// The keys that are known here.
    pub(super) fn known(&self) -> BTreeSet<String> {
        self.known.borrow().clone()
    }

    /// The keys that were not read, with their places.
    pub(super) fn rest(self) -> impl Iterator<Item = (String, String, Value)> {
        let Self { path, left, .. } = self;
        left.into_iter().filter(|(_, value)| !value.is_null()).map(move |(key, value)| (below(&path, &key), key, value))
    }

    /// Reports each key that was not read as unknown.
    pub(super) fn refuse_rest(self, differences: &mut Differences) {
        let near: Vec<_> = self.left.keys().map(|key| self.nearest(key)).collect();
        let near: BTreeMap<_, _> = self.left.keys().cloned().zip(near).collect();
        for (path, key, _) in self.rest() {
            let here = match near.get(&key).and_then(Option::as_ref) {
                Some(near) => format!("it is left out; did you mean '{near}'?"),
                None => "it is left out".to_owned(),
            };
            differences.impossible(path, format!("{UNKNOWN_KEY} '{key}'"), here);
        }
    }
}

/// Start of the message about a key that NexAU does not have.
pub(in crate::config) const UNKNOWN_KEY: &str = "has no key";

/// The place of a key or an item below another place: a JSON pointer.
pub(super) fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}
