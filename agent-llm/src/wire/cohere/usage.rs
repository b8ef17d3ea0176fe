//! Token usage.

use agent_core::{ModelResponse, Usage};
use serde_json::value::RawValue;

use crate::wire::{lenient::Count, open_struct::open_struct};

open_struct! {
    Said {
        tokens: Tokens<'a> = "tokens",
        billed_units: Tokens<'a> = "billed_units",
        cached_tokens: Count = "cached_tokens",
    }
}

open_struct! {
    Tokens {
        input_tokens: Count = "input_tokens",
        output_tokens: Count = "output_tokens",
        reasoning_tokens: Count = "reasoning_tokens",
    }
}

/// Decodes a `usage` object into `response`; an invalid one is ignored. Billed tokens, which are
/// fewer than the tokens read, are kept in the details.
pub(super) fn read(json: &RawValue, response: &mut ModelResponse) {
    let Ok(said) = serde_json::from_str::<Said<'_>>(json.get()) else { return };
    if let Ok(value) = serde_json::from_str(json.get()) {
        response.details.insert("usage".into(), value);
    }
    let count = |count: Option<Count>| count.unwrap_or_default().0;
    let tokens = said.tokens.or(said.billed_units).unwrap_or_default();
    let (input, output) = (count(tokens.input_tokens), count(tokens.output_tokens));
    let cached = count(said.cached_tokens).min(input);
    response.usage = Usage::new(input - cached, output);
    response.usage.cached = cached;
    response.usage.reasoning = count(tokens.reasoning_tokens).min(output);
}
