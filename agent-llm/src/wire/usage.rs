//! Usage, in all variants of OpenAI-compatible servers.

use agent_core::{ModelResponse, Usage};
use serde_json::value::RawValue;

use super::{
    lenient::{Count, Str},
    open_struct::open_struct,
};

open_struct! {
    Said {
        prompt_tokens: Count = "prompt_tokens",
        completion_tokens: Count = "completion_tokens",
        total_tokens: Count = "total_tokens",
        prompt_tokens_details: PromptDetails<'a> = "prompt_tokens_details",
        completion_tokens_details: CompletionDetails<'a> = "completion_tokens_details",
        // Names in Responses; some servers use both.
        input_tokens: Count = "input_tokens",
        output_tokens: Count = "output_tokens",
        input_tokens_details: PromptDetails<'a> = "input_tokens_details",
        output_tokens_details: CompletionDetails<'a> = "output_tokens_details",
        // Servers without nested details.
        prompt_cache_hit_tokens: Count = "prompt_cache_hit_tokens",
        cached_tokens: Count = "cached_tokens",
        num_cached_tokens: Count = "num_cached_tokens",
        cache_read_input_tokens: Count = "cache_read_input_tokens",
        cache_creation_input_tokens: Count = "cache_creation_input_tokens",
        reasoning_tokens: Count = "reasoning_tokens",
    }
}

open_struct! {
    PromptDetails {
        cached_tokens: Count = "cached_tokens",
        cache_write_tokens: Count = "cache_write_tokens",
        audio: Count = "audio_tokens",
    }
}

open_struct! {
    CompletionDetails {
        reasoning_tokens: Count = "reasoning_tokens",
        audio: Count = "audio_tokens",
        accepted: Count = "accepted_prediction_tokens",
        rejected: Count = "rejected_prediction_tokens",
    }
}

/// Decodes a `usage` object into `response`; an invalid one is ignored. Information beyond
/// [`Usage`], such as the cost, is kept in the details.
pub(crate) fn read(json: &RawValue, response: &mut ModelResponse) {
    let Ok(said) = serde_json::from_str::<Said<'_>>(json.get()) else { return };
    if says_more(&said)
        && let Ok(value) = serde_json::from_str(json.get())
    {
        response.details.insert("usage".into(), value);
    }
    response.usage = usage(said);
}

fn usage(said: Said<'_>) -> Usage {
    let count = |count: Option<Count>| count.unwrap_or_default().0;
    let prompt_details = said.prompt_tokens_details.or(said.input_tokens_details).unwrap_or_default();
    let completion_details = said.completion_tokens_details.or(said.output_tokens_details).unwrap_or_default();
    let reasoning = count(completion_details.reasoning_tokens).max(count(said.reasoning_tokens));
    let cached = [
        prompt_details.cached_tokens,
        said.prompt_cache_hit_tokens,
        said.cached_tokens,
        said.num_cached_tokens,
        said.cache_read_input_tokens,
    ];
    let prompt = count(said.prompt_tokens).max(count(said.input_tokens));
    let completion = count(said.completion_tokens).max(count(said.output_tokens));
    let cached = cached.into_iter().map(count).max().unwrap_or(0).min(prompt);
    let cache_write = count(prompt_details.cache_write_tokens).max(count(said.cache_creation_input_tokens));
    let cache_write = cache_write.min(prompt - cached);
    // Some servers exclude reasoning from the completion tokens: the total reveals it.
    let apart = reasoning > 0 && count(said.total_tokens) == prompt + completion + reasoning;
    let output = if apart { completion + reasoning } else { completion };
    let mut usage = Usage::new(prompt - cached - cache_write, output);
    (usage.cached, usage.cache_write, usage.reasoning) = (cached, cache_write, reasoning.min(output));
    usage
}

/// Returns true if there is non-zero information beyond [`Usage`].
fn says_more(said: &Said<'_>) -> bool {
    let has = |rest: &[(Str<'_>, &RawValue)]| rest.iter().any(|(_, json)| !["0", "0.0", "{}"].contains(&json.get()));
    let count = |count: Option<Count>| count.is_some_and(|count| count.0 > 0);
    let of_prompt = |more: &PromptDetails<'_>| has(&more.rest) || count(more.audio);
    let of_completion = |more: &CompletionDetails<'_>| {
        has(&more.rest) || count(more.audio) || count(more.accepted) || count(more.rejected)
    };
    has(&said.rest)
        || [&said.prompt_tokens_details, &said.input_tokens_details].into_iter().flatten().any(of_prompt)
        || [&said.completion_tokens_details, &said.output_tokens_details].into_iter().flatten().any(of_completion)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(json: &str) -> ModelResponse {
        let mut response = ModelResponse::new("a");
        super::read(serde_json::from_str(json).expect("valid JSON"), &mut response);
        response
    }

    fn read(json: &str) -> Usage {
        response(json).usage
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
        assert_eq!(read("[]"), Usage::default());
        assert_eq!(read("7"), Usage::default());
    }

    #[test]
    fn reasoning_that_is_counted_apart_is_output_too() {
        let details = r#""completion_tokens_details": {"reasoning_tokens": 7}"#;
        let apart = format!(r#"{{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22, {details}}}"#);
        assert_eq!((read(&apart).output, read(&apart).reasoning), (12, 7));
    }

    #[test]
    fn what_there_is_no_room_for_is_a_detail_unless_it_is_nothing() {
        let nothing = r#"{"prompt_tokens": 1, "completion_tokens_details": {"audio_tokens": 0, "image_tokens": 0}}"#;
        assert!(response(nothing).details.is_empty());
        let priced = r#"{"prompt_tokens": 1, "cost": 0.002}"#;
        assert_eq!(response(priced).details["usage"]["cost"], 0.002);
        let spoken = r#"{"completion_tokens": 3, "completion_tokens_details": {"audio_tokens": 2}}"#;
        assert_eq!(response(spoken).details["usage"]["completion_tokens_details"]["audio_tokens"], 2);
    }

    #[test]
    fn the_cache_is_seen_in_every_spelling() {
        for spelling in ["prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens", "cache_read_input_tokens"] {
            let usage = read(&format!(r#"{{"prompt_tokens": 10, "{spelling}": 4}}"#));
            assert_eq!((usage.input, usage.cached), (6, 4), "{spelling}");
        }
    }
}
