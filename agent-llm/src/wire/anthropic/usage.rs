//! What a call used.

use agent_core::Usage;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::wire::lenient::{Count, Str};

/// What was used: by the whole answer, or in one of several times that the model was asked for it. The input excludes what
/// the cache served or took.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    input_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    #[serde(borrow)]
    cache_creation: Option<&'a RawValue>,
    output_tokens: Count,
    #[serde(borrow)]
    output_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    iterations: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

impl From<&Said<'_>> for Usage {
    fn from(said: &Said<'_>) -> Self {
        let mut usage = Self::new(said.input_tokens.0, said.output_tokens.0);
        usage.cached = said.cache_read_input_tokens.0;
        usage.cache_write = said.cache_creation_input_tokens.0;
        let long = lenient::<CacheCreation>(said.cache_creation).ephemeral_1h_input_tokens.0;
        usage.cache_write_long = long.min(usage.cache_write);
        let thinking = lenient::<OutputDetails>(said.output_tokens_details).thinking_tokens.0;
        usage.reasoning = thinking.min(usage.output);
        usage
    }
}

/// Adds what one more `usage` object of an answer says: counts are of the whole answer, and never shrink, unless the object
/// says what each time took that the model was asked: the sums are then without compactions, which come first.
pub(super) fn merge(known: &mut Map<String, Value>, more: Map<String, Value>) {
    let is_final = more.get("iterations").is_some_and(Value::is_array);
    for (name, value) in more {
        let is_less =
            |known: &Value| matches!((known.as_u64(), value.as_u64()), (Some(known), Some(more)) if known > more);
        if !value.is_null() && (is_final || !known.get(&name).is_some_and(is_less)) {
            known.insert(name, value);
        }
    }
}

/// Reads a `usage` object; one that cannot be read is as good as none.
pub(super) fn usage(json: &Map<String, Value>) -> Usage {
    // By way of text: numbers are read as they were written.
    let json = serde_json::to_string(json).unwrap_or_default();
    let Ok(said) = serde_json::from_str::<Said<'_>>(&json) else { return Usage::default() };
    let mut usage = Usage::from(&said);
    // What a compaction used is the same model's, and not in the sums. Another model's advice is not of this model.
    let parts: Vec<Said<'_>> = lenient(said.iterations);
    for part in parts.iter().filter(|part| part.kind.as_ref().is_some_and(|kind| kind.0 == "compaction")) {
        usage += Usage::from(part);
    }
    usage.calls = 1;
    usage
}

/// Reads a part; one of another form is as good as none.
fn lenient<'a, T: Deserialize<'a> + Default>(json: Option<&'a RawValue>) -> T {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(objects: &[&str]) -> Usage {
        let mut known = Map::new();
        objects.iter().for_each(|json| merge(&mut known, serde_json::from_str(json).expect("valid JSON")));
        usage(&known)
    }

    #[test]
    fn the_cache_is_counted_beside_the_input() {
        let usage = read(&[r#"{"input_tokens": 10, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3,
            "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
            "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4}}"#]);
        assert_eq!((usage.input, usage.cached, usage.cache_write, usage.output), (10, 2, 3, 5));
        assert_eq!(usage.cache_write_long, 2, "it costs more");
        assert_eq!((usage.total(), usage.reasoning, usage.calls), (20, 4, 1));
    }

    #[test]
    fn counts_of_a_stream_are_not_added_up() {
        let start = r#"{"input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 1}"#;
        assert_eq!(read(&[start, r#"{"output_tokens": 7}"#]).total(), 19);
        assert_eq!(read(&[start, r#"{"input_tokens": 0, "output_tokens": 7}"#]).input, 10, "a gateway forgot");
        assert_eq!(read(&[r#"{"input_tokens": 0}"#, r#"{"input_tokens": 12, "output_tokens": 7}"#]).input, 12);
    }

    #[test]
    fn a_compaction_is_counted_and_another_models_advice_is_not() {
        let part = |kind: &str| format!(r#"{{"type": "{kind}", "input_tokens": 100, "output_tokens": 10}}"#);
        let parts = [part("compaction"), part("message"), part("advisor_message")].join(",");
        let usage = read(&[r#"{"input_tokens": 20}"#, &format!(r#"{{"output_tokens": 5, "iterations": [{parts}]}}"#)]);
        assert_eq!((usage.input, usage.output), (120, 15));
        let start = r#"{"input_tokens": 100, "cache_read_input_tokens": 50}"#;
        let parts = part("compaction") + "," + &part("message");
        let end = format!(r#"{{"input_tokens": 20, "cache_read_input_tokens": 0, "iterations": [{parts}]}}"#);
        let usage = read(&[start, &end]);
        assert_eq!((usage.input, usage.cached), (120, 0), "what the compaction took is not counted twice");
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        assert_eq!(
            read(&[r#"{"input_tokens": -3, "output_tokens": "many", "output_tokens_details": null}"#]).total(),
            0
        );
        assert_eq!(read(&[r#"{"input_tokens": 3, "iterations": 7, "output_tokens_details": []}"#]), Usage::new(3, 0));
    }
}
