//! What a call used.

use agent_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::lenient::{Count, Str};

/// The input excludes what the cache served or took.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said<'a> {
    input_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    output_tokens: Count,
    output_tokens_details: Option<Details>,
    #[serde(borrow)]
    iterations: Option<Vec<Iteration<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Count,
}

/// One of several times that the model was asked within a call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Iteration<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    input_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    output_tokens: Count,
}

/// Adds what a `usage` object says to what is known: counts are of the whole answer, and never shrink. One that cannot be
/// read is as good as none.
pub(super) fn add(known: &mut Usage, json: &RawValue) {
    let Ok(said) = serde_json::from_str::<Said<'_>>(json.get()) else { return };
    let mut usage = Usage::new(said.input_tokens.0, said.output_tokens.0);
    usage.cached = said.cache_read_input_tokens.0;
    usage.cache_write = said.cache_creation_input_tokens.0;
    // What a compaction used is the same model's, and not in the sums. Another model's advice is not of this model.
    let compactions = said.iterations.iter().flatten();
    for compaction in compactions.filter(|part| part.kind.as_ref().is_some_and(|kind| kind.0 == "compaction")) {
        usage.input += compaction.input_tokens.0;
        usage.cached += compaction.cache_read_input_tokens.0;
        usage.cache_write += compaction.cache_creation_input_tokens.0;
        usage.output += compaction.output_tokens.0;
    }
    usage.reasoning = said.output_tokens_details.unwrap_or_default().thinking_tokens.0.min(usage.output);
    known.calls = 1;
    known.input = known.input.max(usage.input);
    known.cached = known.cached.max(usage.cached);
    known.cache_write = known.cache_write.max(usage.cache_write);
    known.output = known.output.max(usage.output);
    known.reasoning = known.reasoning.max(usage.reasoning);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frames: &[&str]) -> Usage {
        let mut usage = Usage::default();
        frames.iter().for_each(|json| add(&mut usage, serde_json::from_str(json).expect("valid JSON")));
        usage
    }

    #[test]
    fn the_cache_is_counted_beside_the_input() {
        let usage = read(&[r#"{"input_tokens": 10, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3,
            "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4}}"#]);
        assert_eq!((usage.input, usage.cached, usage.cache_write, usage.output), (10, 2, 3, 5));
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
        let usage = read(&[&format!(r#"{{"input_tokens": 20, "output_tokens": 5, "iterations": [{parts}]}}"#)]);
        assert_eq!((usage.input, usage.output), (120, 15));
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        assert_eq!(read(&["[]", "7", r#"{"output_tokens": "many"}"#]), Usage::new(0, 0));
        assert_eq!(read(&["7"]), Usage::default());
    }
}
