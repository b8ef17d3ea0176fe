//! Objects with a list to which items can be added.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

/// Fields of an object, including `null` ones.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// An object with a list among its fields, such as a content with its parts.
#[derive(Debug)]
pub(super) struct Wrapper<'a> {
    /// Other fields.
    pub(super) fields: Fields<'a>,
    list: String,
    /// Items of the list.
    pub(super) items: Vec<&'a RawValue>,
}

impl<'a> Wrapper<'a> {
    /// Parses an object with a list under one of these names; `None` for any other JSON.
    pub(super) fn read(json: &'a RawValue, lists: &[&str]) -> Option<Self> {
        let mut fields: Fields<'_> = serde_json::from_str(json.get()).ok()?;
        let list = lists.iter().find(|name| fields.contains_key(**name))?;
        let items = serde_json::from_str(fields.remove(*list)?.get()).ok()?;
        Some(Self { fields, list: (*list).to_owned(), items })
    }

    /// Returns true if the list has this name.
    #[cfg(feature = "requests")]
    pub(super) fn is_named(&self, list: &str) -> bool {
        self.list == list
    }

    /// Returns the object's JSON with these items in its list, left open for more items.
    pub(super) fn open(&self, items: &[&RawValue]) -> String {
        let quoted = |name: &str| Value::from(name).to_string();
        let fields: String = self.fields.iter().map(|(name, json)| format!("{}:{json},", quoted(name))).collect();
        let items: Vec<_> = items.iter().map(|item| item.get()).collect();
        format!("{{{fields}{}:[{}", quoted(&self.list), items.join(","))
    }

    /// Returns the object's JSON with exactly these items in its list.
    #[cfg(feature = "requests")]
    pub(super) fn with(&self, items: &[&RawValue]) -> Box<RawValue> {
        RawValue::from_string(self.open(items) + "]}").expect("it is JSON")
    }
}

/// Returns the text between the brackets of a list; `None` if the JSON is not a list, or is empty.
pub(super) fn inner(json: &str) -> Option<&str> {
    Some(json.trim().strip_prefix('[')?.strip_suffix(']')?.trim()).filter(|items| !items.is_empty())
}
