//! What a call used, in all the ways in which servers of OpenAI's APIs say it.

use agent_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::lenient::Count;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// The names in Responses; some servers use both.
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Option<PromptDetails>,
    output_tokens_details: Option<CompletionDetails>,
    /// Servers that give no details.
    prompt_cache_hit_tokens: Count,
    cached_tokens: Count,
    num_cached_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    reasoning_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

/// Reads a `usage` object; one that cannot be read is as good as none.
pub(crate) fn usage(json: &RawValue) -> Usage {
    let Ok(said) = serde_json::from_str::<Said>(json.get()) else { return Usage::default() };
    let prompt_details = said.prompt_tokens_details.or(said.input_tokens_details).unwrap_or_default();
    let completion_details = said.completion_tokens_details.or(said.output_tokens_details).unwrap_or_default();
    let reasoning = completion_details.reasoning_tokens.0.max(said.reasoning_tokens.0);
    let cached = [
        prompt_details.cached_tokens,
        said.prompt_cache_hit_tokens,
        said.cached_tokens,
        said.num_cached_tokens,
        said.cache_read_input_tokens,
    ];
    let prompt = said.prompt_tokens.0.max(said.input_tokens.0);
    let completion = said.completion_tokens.0.max(said.output_tokens.0);
    let cached = cached.into_iter().map(|c| c.0).max().unwrap_or(0).min(prompt);
    let cache_write = prompt_details.cache_write_tokens.0.max(said.cache_creation_input_tokens.0).min(prompt - cached);
    // Some servers count reasoning apart from the completion: their total shows it.
    let apart = reasoning > 0 && said.total_tokens.0 == prompt + completion + reasoning;
    let output = if apart { completion + reasoning } else { completion };
    let mut usage = Usage::new(prompt - cached - cache_write, output);
    (usage.cached, usage.cache_write, usage.reasoning) = (cached, cache_write, reasoning.min(output));
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Usage {
        usage(serde_json::from_str(json).expect("valid JSON"))
    }

    #[test]
    fn no_token_is_counted_twice() {
        let usage = read(
            r#"{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3}}"#,
        );
        assert_eq!((usage.input, usage.cached, usage.output, usage.reasoning), (6, 4, 5, 3));
        assert_eq!((usage.total(), usage.calls), (15, 1));
    }

    #[test]
    fn the_names_of_both_apis_are_known() {
        let usage = read(
            r#"{"input_tokens": 12, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 17}"#,
        );
        assert_eq!((usage.input, usage.cached, usage.output, usage.reasoning), (10, 2, 5, 3));
        assert_eq!(usage.total(), 17);
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        let usage = read(r#"{"prompt_tokens": -3, "completion_tokens": null, "prompt_tokens_details": null}"#);
        assert_eq!(usage, Usage::new(0, 0));
        assert_eq!(read(r#"{"prompt_tokens": 2, "prompt_tokens_details": {"cached_tokens": 9}}"#).prompt(), 2);
        assert_eq!(read("[]"), Usage::new(0, 0));
        assert_eq!(read("7"), Usage::default());
    }

    #[test]
    fn reasoning_that_is_counted_apart_is_output_too() {
        let details = r#""completion_tokens_details": {"reasoning_tokens": 7}"#;
        let apart = format!(r#"{{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22, {details}}}"#);
        assert_eq!((read(&apart).output, read(&apart).reasoning), (12, 7));
    }

    #[test]
    fn the_cache_is_seen_in_every_spelling() {
        for spelling in ["prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens", "cache_read_input_tokens"] {
            let usage = read(&format!(r#"{{"prompt_tokens": 10, "{spelling}": 4}}"#));
            assert_eq!((usage.input, usage.cached), (6, 4), "{spelling}");
        }
    }
}
