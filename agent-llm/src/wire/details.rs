//! Provider-specific fields alongside the message.

use agent_core::{Block, message::Citation};
use serde_json::{Map, Value, value::RawValue};

use super::json::lay;

/// Parses JSON; returns `None` for valid JSON with numbers that cannot be represented.
pub(crate) fn parse(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}

/// Details of a streamed answer. Many servers repeat them in every event, which costs one
/// comparison.
#[derive(Debug, Default)]
pub(crate) struct Details {
    fields: Map<String, Value>,
    /// Names, with the last value seen for each.
    heard: Vec<(String, String)>,
}

impl Details {
    /// Adds a field about the whole answer: newer values replace older ones, objects field by
    /// field.
    pub(crate) fn add(&mut self, name: &str, json: &RawValue) {
        if self.is_news(name, json)
            && let Some(value) = parse(json)
        {
            lay(self.field(name), &value);
        }
    }

    /// Adds a field about one piece of the answer: its lists continue the previous ones.
    pub(crate) fn append(&mut self, name: &str, json: &RawValue) {
        if (json.get().contains('[') || self.is_news(name, json))
            && let Some(value) = parse(json)
        {
            extend(self.field(name), value);
        }
    }

    /// Returns all fields, overlaid with those of `choice`.
    pub(crate) fn into_fields(mut self, choice: &Self) -> Map<String, Value> {
        for (name, value) in &choice.fields {
            lay(self.fields.entry(name).or_insert(Value::Null), value);
        }
        self.fields
    }

    /// Adds the web pages in the details as citations to the answer's text, unless the message has
    /// citations.
    pub(crate) fn cite(&self, blocks: &mut [Block]) {
        let text = blocks.iter_mut().find_map(|block| if let Block::Text(text) = block { Some(text) } else { None });
        let Some(text) = text.filter(|text| text.citations.is_empty()) else { return };
        let lists = ["search_results", "citations"].iter().filter_map(|name| self.fields.get(*name)?.as_array());
        for source in lists.into_iter().find(|list| !list.is_empty()).into_iter().flatten() {
            if let Some(url) = source.as_str().or_else(|| source["url"].as_str()) {
                let mut citation = Citation::of_url(url);
                citation.title = source["title"].as_str().map(str::to_owned);
                citation.quote = source["snippet"].as_str().filter(|quote| !quote.is_empty()).map(str::to_owned);
                text.citations.push(citation);
            }
        }
    }

    fn field(&mut self, name: &str) -> &mut Value {
        self.fields.entry(name).or_insert(Value::Null)
    }

    fn is_news(&mut self, name: &str, json: &RawValue) -> bool {
        match self.heard.iter_mut().find(|(known, _)| known == name) {
            Some((_, last)) if last == json.get() => false,
            Some((_, last)) => {
                last.clear();
                last.push_str(json.get());
                true
            }
            None => {
                self.heard.push((name.to_owned(), json.get().to_owned()));
                true
            }
        }
    }
}

/// Appends lists, recursively in objects; replaces any other value.
fn extend(known: &mut Value, more: Value) {
    match (known, more) {
        (_, Value::Null) => {}
        (Value::Array(known), Value::Array(more)) => known.extend(more),
        (Value::Object(known), Value::Object(more)) => {
            more.into_iter().for_each(|(name, more)| extend(known.entry(name).or_insert(Value::Null), more));
        }
        (known, more) => *known = more,
    }
}
