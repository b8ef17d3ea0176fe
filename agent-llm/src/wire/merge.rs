//! Merging of JSON fragments with unknown meaning.

use serde_json::{Map, Value};

/// Fields with labels: a fragment repeats them instead of continuing them.
const LABELS: [&str; 9] = ["id", "type", "role", "name", "format", "object", "channel", "signature", "mime_type"];

/// Merges `more` into `known`: texts are concatenated, objects merged by field, lists by the
/// `index` of their items. Any other value is replaced.
pub(crate) fn merge(known: &mut Value, more: Value) {
    match (known, more) {
        (_, Value::Null) => {}
        (Value::String(known), Value::String(more)) => known.push_str(&more),
        (Value::Array(known), Value::Array(more)) => more.into_iter().for_each(|item| merge_item(known, item)),
        (Value::Object(known), Value::Object(more)) => merge_fields(known, more),
        (known, more) => *known = more,
    }
}

pub(crate) fn merge_fields(known: &mut Map<String, Value>, more: Map<String, Value>) {
    more.into_iter().for_each(|(name, value)| merge_field(known, name, value));
}

/// As [`merge`], for one field.
pub(crate) fn merge_field(fields: &mut Map<String, Value>, name: String, value: Value) {
    let is_label = LABELS.contains(&name.as_str());
    match fields.get_mut(&name) {
        Some(known) if !is_label => merge(known, value),
        Some(_) if value.is_null() || value == "" => {}
        _ => {
            fields.insert(name, value);
        }
    }
}

fn merge_item(items: &mut Vec<Value>, item: Value) {
    match items.iter_mut().rev().find(|known| goes_on(known, &item)) {
        Some(known) => merge(known, item),
        None => items.push(item),
    }
}

/// Returns true if `item` has the same index as `known`, and no label shows that it is a different
/// item.
fn goes_on(known: &Value, item: &Value) -> bool {
    let agree = |name: &str| match (&known[name], &item[name]) {
        (Value::Null, _) | (_, Value::Null) => true,
        (known, item) => known == item,
    };
    !item["index"].is_null() && known["index"] == item["index"] && agree("type") && agree("id")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(pieces: impl IntoIterator<Item = Value>) -> Value {
        let mut whole = Value::Null;
        pieces.into_iter().for_each(|piece| merge(&mut whole, piece));
        whole
    }

    #[test]
    fn text_is_joined_and_labels_are_not() {
        let whole = merged([
            json!([{"type": "reasoning.text", "index": 0, "text": "a", "format": "f"}]),
            json!([{"type": "reasoning.text", "index": 0, "text": "b", "format": "f"}]),
            json!([{"type": "reasoning.text", "index": 0, "signature": "s"}]),
            json!([{"type": "reasoning.encrypted", "index": 0, "data": "d"}]),
        ]);
        let text = json!({"type": "reasoning.text", "index": 0, "text": "ab", "format": "f", "signature": "s"});
        assert_eq!(whole, json!([text, {"type": "reasoning.encrypted", "index": 0, "data": "d"}]));
    }

    #[test]
    fn what_cannot_be_joined_is_replaced_and_null_says_nothing() {
        assert_eq!(merged([json!({"n": 1, "t": "x"}), json!({"n": 2, "t": null})]), json!({"n": 2, "t": "x"}));
        assert_eq!(merged([json!([1]), json!([2])]), json!([1, 2]), "items without an index are all kept");
    }
}
