//! Token usage.

use agent_core::Usage;
use serde_json::{Map, Value};

use crate::wire::lenient::count;

/// Merges another `usage` object of an answer: counts are totals of the whole answer, and never
/// shrink, unless the object lists the usage of each model iteration: the totals then exclude
/// compactions, which come first.
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

/// Decodes a `usage` object; invalid counts are ignored.
pub(super) fn usage(said: &Value) -> Usage {
    let mut usage = used(said);
    // Compactions use the same model, and are not part of the totals. Calls of an advisor model are
    // not this model's usage.
    let times = said["iterations"].as_array().into_iter().flatten();
    times.filter(|time| time["type"] == "compaction").for_each(|time| usage += used(time));
    usage.calls = 1;
    usage
}

/// Decodes the usage of the whole answer, or of one iteration. The input excludes cache reads and
/// writes.
fn used(said: &Value) -> Usage {
    let count = |place| count(said, place);
    let mut usage = Usage::new(count("/input_tokens"), count("/output_tokens"));
    usage.cached = count("/cache_read_input_tokens");
    usage.cache_write = count("/cache_creation_input_tokens");
    usage.cache_write_long = count("/cache_creation/ephemeral_1h_input_tokens").min(usage.cache_write);
    usage.reasoning = count("/output_tokens_details/thinking_tokens").min(usage.output);
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(objects: &[&str]) -> Usage {
        let mut known = Map::new();
        objects.iter().for_each(|json| merge(&mut known, serde_json::from_str(json).expect("valid JSON")));
        usage(&Value::Object(known))
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
