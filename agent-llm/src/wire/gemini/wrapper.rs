//! Objects that hold a list to which more may be added.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::wire::json::write as write_json;

/// An object that holds a list among its fields, as a content holds parts. All its fields are kept, those that are `null`
/// too.
#[derive(Debug)]
pub(super) struct Wrapper<'a> {
    /// The other fields.
    pub(super) fields: BTreeMap<String, &'a RawValue>,
    list: String,
    /// The items of the list.
    pub(super) items: Vec<&'a RawValue>,
}

impl<'a> Wrapper<'a> {
    /// The fields of an object; none if the JSON is none.
    pub(super) fn fields(json: &'a str) -> Option<BTreeMap<String, &'a RawValue>> {
        serde_json::from_str(json).ok()
    }

    /// True if the list has this name.
    #[cfg(feature = "requests")]
    pub(super) fn is_named(&self, list: &str) -> bool {
        self.list == list
    }

    /// None unless the JSON is an object with a list under one of these names.
    pub(super) fn read(json: &'a str, lists: &[&str]) -> Option<Self> {
        let mut fields = Self::fields(json)?;
        let list = lists.iter().find(|name| fields.contains_key(**name))?;
        let items = serde_json::from_str(fields.remove(*list)?.get()).ok()?;
        Some(Self { fields, list: (*list).to_owned(), items })
    }

    /// Writes the object up to the first item of its list.
    pub(super) fn open(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (name, json) in &self.fields {
            write_json(name, out);
            out.push(b':');
            out.extend_from_slice(json.get().as_bytes());
            out.push(b',');
        }
        write_json(&self.list, out);
        out.extend_from_slice(b":[");
    }

    /// The JSON of the object with only these items in its list.
    #[cfg(feature = "requests")]
    pub(super) fn with(&self, items: &[&RawValue]) -> String {
        let mut out = Vec::new();
        self.open(&mut out);
        write_items(items, &mut out);
        out.extend_from_slice(b"]}");
        String::from_utf8(out).expect("JSON is text")
    }
}

/// Writes the items, with commas between them.
pub(super) fn write_items(items: &[&RawValue], out: &mut Vec<u8>) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item.get().as_bytes());
    }
}

/// What stands between the brackets of a list; none if the JSON is no list, or an empty one.
pub(super) fn inner(json: &str) -> Option<&str> {
    Some(json.trim().strip_prefix('[')?.strip_suffix(']')?.trim()).filter(|items| !items.is_empty())
}
