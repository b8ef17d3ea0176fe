//! Fields of a JSON object to write.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Fields of an object, in the order of writing.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(&'a str, Value)>);

impl<'a> Fields<'a> {
    /// Adds a field, if it has a value.
    pub(crate) fn say(&mut self, name: &'a str, value: Option<impl Serialize>) {
        self.0.extend(value.map(|value| (name, json!(value))));
    }

    /// Returns true if the field is set.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }

    /// Returns the fields; `None` if it is empty.
    pub(crate) fn some(self) -> Option<Self> {
        Some(self).filter(|fields| !fields.0.is_empty())
    }

    /// Removes a field and returns its value.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(at).1)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl From<Fields<'_>> for Map<String, Value> {
    fn from(fields: Fields<'_>) -> Self {
        fields.0.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
