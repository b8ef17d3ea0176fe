//! What a call used.

use agent_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::lenient::{Count, Str};

/// What was used. The input excludes what the cache served or took.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Said<'a> {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
    #[serde(borrow)]
    cache_details: Option<&'a RawValue>,
}

/// How much was written to the cache, for how long.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Written<'a> {
    input_tokens: Count,
    #[serde(borrow)]
    ttl: Str<'a>,
}

/// Reads a `usage` object; one that cannot be read is as good as none.
pub(super) fn usage(json: &str) -> Usage {
    let said = Some(json).filter(|json| json.trim_start().starts_with('{')).map(serde_json::from_str::<Said<'_>>);
    let Some(Ok(said)) = said else { return Usage::default() };
    let mut usage = Usage::new(said.input_tokens.0, said.output_tokens.0);
    usage.cached = said.cache_read_input_tokens.0;
    usage.cache_write = said.cache_write_input_tokens.0;
    let details = said.cache_details.and_then(|json| serde_json::from_str::<Vec<Written<'_>>>(json.get()).ok());
    let long =
        details.unwrap_or_default().iter().filter(|part| part.ttl.0 == "1h").map(|part| part.input_tokens.0).sum();
    usage.cache_write_long = usage.cache_write.min(long);
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_counted_beside_the_input() {
        let used = usage(
            r#"{"inputTokens": 3, "outputTokens": 121, "totalTokens": 2072, "cacheReadInputTokens": 1712,
                "cacheWriteInputTokens": 236, "cacheDetails": [{"inputTokens": 36, "ttl": "5m"}, {"inputTokens": 200, "ttl": "1h"}]}"#,
        );
        assert_eq!((used.input, used.cached, used.cache_write, used.output), (3, 1712, 236, 121));
        assert_eq!((used.total(), used.cache_write_long, used.calls), (2072, 200, 1));
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        assert_eq!(usage(r#"{"inputTokens": -3, "cacheDetails": 7}"#), Usage::new(0, 0));
        assert_eq!(usage("[]"), Usage::default());
    }
}
