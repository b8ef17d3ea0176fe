//! Repair of the output limit: for a rejected request whose prompt fits the context window, but not
//! together with the requested answer.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, ModelRequest};

/// Minimum output limit for which a retry is worthwhile, in tokens.
const LEAST: u64 = 1_024;

/// Returns the request with the output limit reduced to the remaining tokens; `None` if the prompt
/// itself is too long, or the message does not contain the numbers.
pub(crate) fn with_room(req: &ModelRequest, refused: &Error) -> Option<ModelRequest> {
    if refused.kind() != ErrorKind::ContextOverflow {
        return None;
    }
    let (prompt, limit) = numbers(refused.message())?;
    let left = limit.checked_sub(prompt).filter(|left| *left >= LEAST)?;
    let fits = |asked: Option<u64>| asked.is_none_or(|asked| asked > left);
    // A thinking budget is part of the output limit.
    let thinks_more = req.params.thinking_tokens.is_some_and(|thinking| thinking >= left);
    if !fits(req.params.max_tokens) || thinks_more {
        return None;
    }
    let mut req = req.clone();
    Arc::make_mut(&mut req.params).max_tokens = Some(left);
    Some(req)
}

/// Extracts the tokens of the prompt, and the context window, from the message.
fn numbers(message: &str) -> Option<(u64, u64)> {
    let said = message.to_lowercase();
    let after = |marker: &str| said.split_once(marker).map(|(_, rest)| integers(rest));
    // Anthropic: "exceed context limit: 190000 + 21333 > 200000".
    if let Some(found) = after("exceed context limit:") {
        return Some((*found.first()?, *found.get(2)?));
    }
    // TGI: "`max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and 512
    // `max_new_tokens`".
    if let Some(found) = after("must be <=") {
        return Some((*found.get(1)?, *found.first()?));
    }
    // OpenAI, vLLM, OpenRouter: "maximum context length is 8192 tokens. However, you requested 9000
    // tokens (1000 in the messages, 8000 in the completion)".
    let limit = *after("maximum context length is")?.first()?;
    let parts = said.split_once('(').map(|(_, rest)| rest).filter(|rest| {
        ["in the messages", "of text input", "in your prompt", "in the prompt"]
            .iter()
            .any(|marker| rest.contains(marker))
    })?;
    Some((*integers(parts).first()?, limit))
}

fn integers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use agent_core::{History, Message, testing::detached_run};

    use super::*;

    /// Returns the output limit of the repaired request.
    fn again(message: &str, asked: Option<u64>) -> Option<u64> {
        let history = History::from_messages([Message::user("hi")]).expect("paired");
        let mut req = ModelRequest::new(detached_run(history).cx().clone());
        Arc::make_mut(&mut req.params).max_tokens = asked;
        with_room(&req, &Error::new(ErrorKind::ContextOverflow, message.to_owned()))
            .and_then(|req| req.params.max_tokens)
    }

    #[test]
    fn an_answer_that_does_not_fit_beside_its_prompt_is_asked_for_in_what_is_left() {
        let claude =
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length";
        assert_eq!(again(claude, Some(64_000)), Some(21_041));
        assert_eq!(again(claude, None), Some(21_041), "the limit that the wire sets by itself is lowered too");
        let vllm = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the \
                    messages, 8000 in the completion).";
        assert_eq!(again(vllm, Some(8_000)), Some(7_192));
        let router = "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens \
                      (100000 of text input, 40000 in the output).";
        assert_eq!(again(router, Some(40_000)), Some(31_072));
        let tgi =
            "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 4000 `inputs` tokens and 5000 `max_new_tokens`";
        assert_eq!(again(tgi, Some(5_000)), Some(4_192));
    }

    #[test]
    fn a_prompt_that_is_too_long_by_itself_is_not_sent_again() {
        for message in [
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199900 + 21333 > 200000",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, \
             4000 in the completion).",
        ] {
            assert_eq!(again(message, Some(21_333)), None, "{message}");
        }
        let fits = "input length and `max_tokens` exceed context limit: 100 + 9000 > 200000";
        assert_eq!(again(fits, Some(9_000)), None, "numbers that contradict themselves change nothing");
    }
}
