//! What a provider says beside the message, in its own fields.

use agent_core::{Block, message::Citation};
use serde_json::{Map, Value, value::RawValue};

use super::json::lay;

/// JSON that was read as such and holds numbers that no number is, is kept nowhere.
pub(crate) fn parse(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}

/// The fields of an answer under way. Many servers say the same with every event: that costs a comparison.
#[derive(Debug, Default)]
pub(crate) struct Details {
    fields: Map<String, Value>,
    /// The names, and what was said last under each.
    heard: Vec<(String, String)>,
}

impl Details {
    /// Adds a field that stands for the whole answer: what is newer holds, objects field by field.
    pub(crate) fn add(&mut self, name: &str, json: &RawValue) {
        if self.is_news(name, json)
            && let Some(value) = parse(json)
        {
            lay(self.field(name), &value);
        }
    }

    /// Adds a field that speaks of one piece of the answer: its lists go on where the last ended.
    pub(crate) fn append(&mut self, name: &str, json: &RawValue) {
        if (json.get().contains('[') || self.is_news(name, json))
            && let Some(value) = parse(json)
        {
            extend(self.field(name), value);
        }
    }

    /// All fields, with those of `choice` over them.
    pub(crate) fn into_fields(mut self, choice: &Self) -> Map<String, Value> {
        for (name, value) in &choice.fields {
            lay(self.fields.entry(name).or_insert(Value::Null), value);
        }
        self.fields
    }

    /// Adds the pages that the answer says it is from to its text, unless the message itself says where it is from.
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

/// Joins lists, in objects too; of anything else the newer holds.
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
