//! Objects that hold a list to which more may be added.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

/// The fields of an object, those that are `null` too.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// An object that holds a list among its fields, as a content holds parts.
#[derive(Debug)]
pub(super) struct Wrapper<'a> {
    /// The other fields.
    pub(super) fields: Fields<'a>,
    list: String,
    /// The items of the list.
    pub(super) items: Vec<&'a RawValue>,
}

impl<'a> Wrapper<'a> {
    /// None unless the JSON is an object with a list under one of these names.
    pub(super) fn read(json: &'a RawValue, lists: &[&str]) -> Option<Self> {
        let mut fields: Fields<'_> = serde_json::from_str(json.get()).ok()?;
        let list = lists.iter().find(|name| fields.contains_key(**name))?;
        let items = serde_json::from_str(fields.remove(*list)?.get()).ok()?;
        Some(Self { fields, list: (*list).to_owned(), items })
    }

    /// True if the list has this name.
    #[cfg(feature = "requests")]
    pub(super) fn is_named(&self, list: &str) -> bool {
        self.list == list
    }

    /// The JSON of the object with these items in its list, to which more may be added.
    pub(super) fn open(&self, items: &[&RawValue]) -> String {
        let quoted = |name: &str| Value::from(name).to_string();
        let fields: String = self.fields.iter().map(|(name, json)| format!("{}:{json},", quoted(name))).collect();
        let items: Vec<_> = items.iter().map(|item| item.get()).collect();
        format!("{{{fields}{}:[{}", quoted(&self.list), items.join(","))
    }

    /// The JSON of the object with only these items in its list.
    #[cfg(feature = "requests")]
    pub(super) fn with(&self, items: &[&RawValue]) -> Box<RawValue> {
        RawValue::from_string(self.open(items) + "]}").expect("it is JSON")
    }
}

/// What stands between the brackets of a list; none if the JSON is no list, or an empty one.
pub(super) fn inner(json: &str) -> Option<&str> {
    Some(json.trim().strip_prefix('[')?.strip_suffix(']')?.trim()).filter(|items| !items.is_empty())
}
