//! Token usage.

use agent_core::Usage;
use serde_json::Value;

use crate::wire::lenient::count;

/// Decodes a `usage` object; invalid counts are ignored. The input excludes cache reads and writes.
pub(super) fn usage(said: &Value) -> Usage {
    if !said.is_object() {
        return Usage::default();
    }
    let mut usage = Usage::new(count(said, "/inputTokens"), count(said, "/outputTokens"));
    usage.cached = count(said, "/cacheReadInputTokens");
    usage.cache_write = count(said, "/cacheWriteInputTokens");
    // Cache writes by lifetime.
    let parts = said["cacheDetails"].as_array().into_iter().flatten();
    let long = parts.filter(|part| part["ttl"] == "1h").map(|part| count(part, "/inputTokens")).sum();
    usage.cache_write_long = usage.cache_write.min(long);
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(json: &str) -> Usage {
        super::usage(&serde_json::from_str(json).expect("valid JSON"))
    }

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
