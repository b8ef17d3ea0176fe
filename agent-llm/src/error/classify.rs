//! Maps provider error codes and HTTP statuses to [`ErrorKind`] and [`Retry`].

use agent_core::{ErrorKind, Retry};

use super::{ProviderError, aws};

/// Codes and types that determine the error kind, whatever the status.
const CODES: [(&str, ErrorKind); 34] = [
    ("context_length_exceeded", ErrorKind::ContextOverflow),
    ("exceed_context_size_error", ErrorKind::ContextOverflow),
    ("request_too_large", ErrorKind::ContextOverflow),
    ("too_many_prompt_tokens", ErrorKind::ContextOverflow),
    ("model_max_prompt_tokens_exceeded", ErrorKind::ContextOverflow),
    // Z.ai's code for a prompt that is too long.
    ("1261", ErrorKind::ContextOverflow),
    ("insufficient_quota", ErrorKind::Quota),
    ("usage_limit_reached", ErrorKind::Quota),
    ("usage_not_included", ErrorKind::Quota),
    ("billing_hard_limit_reached", ErrorKind::Quota),
    ("billing_error", ErrorKind::Quota),
    ("content_filter", ErrorKind::ContentFiltered),
    ("content_policy_violation", ErrorKind::ContentFiltered),
    ("data_inspection_failed", ErrorKind::ContentFiltered),
    ("rate_limit_exceeded", ErrorKind::RateLimited),
    ("rate_limit_error", ErrorKind::RateLimited),
    ("resource_exhausted", ErrorKind::RateLimited),
    ("overloaded_error", ErrorKind::Overloaded),
    ("server_overloaded", ErrorKind::Overloaded),
    ("server_is_overloaded", ErrorKind::Overloaded),
    ("insufficient_system_resource", ErrorKind::Overloaded),
    ("slow_down", ErrorKind::Overloaded),
    ("unavailable", ErrorKind::Overloaded),
    ("invalid_api_key", ErrorKind::Authentication),
    ("authentication_error", ErrorKind::Authentication),
    ("permission_error", ErrorKind::Authentication),
    ("invalid_request_error", ErrorKind::InvalidRequest),
    ("invalid_prompt", ErrorKind::InvalidRequest),
    ("previous_response_not_found", ErrorKind::InvalidRequest),
    ("timeout_error", ErrorKind::Timeout),
    ("server_error", ErrorKind::Provider),
    ("api_error", ErrorKind::Provider),
    ("internal_server_error", ErrorKind::Provider),
    // The model produced a malformed tool call; a retry may succeed.
    ("tool_use_failed", ErrorKind::Provider),
];

/// Google's status names.
const GOOGLE: [(&str, ErrorKind); 14] = [
    ("api_key_invalid", ErrorKind::Authentication),
    ("unauthenticated", ErrorKind::Authentication),
    ("permission_denied", ErrorKind::Authentication),
    ("billing_disabled", ErrorKind::Quota),
    ("invalid_argument", ErrorKind::InvalidRequest),
    ("failed_precondition", ErrorKind::InvalidRequest),
    ("out_of_range", ErrorKind::InvalidRequest),
    ("not_found", ErrorKind::InvalidRequest),
    ("unimplemented", ErrorKind::InvalidRequest),
    ("deadline_exceeded", ErrorKind::Timeout),
    ("cancelled", ErrorKind::Provider),
    ("aborted", ErrorKind::Provider),
    ("internal", ErrorKind::Provider),
    ("unknown", ErrorKind::Provider),
];

/// Message fragments that indicate a context overflow without a code.
const OVERFLOW: [&str; 18] = [
    "context length",
    "context_length",
    "context window",
    "context size",
    "context limit",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "maximum prompt length",
    "exceeds the maximum number of tokens",
    "prompt exceeds max length",
    "exceeded model token limit",
    "longer than the maximum model length",
    "`max_new_tokens` must be <=",
    "context shift is disabled",
    "input tokens exceeded",
    "total length of all messages is too long",
    "prompt token count of",
];

pub(super) fn classify(error: &ProviderError) -> (ErrorKind, Retry) {
    let kind = kind(error);
    let retry = match kind {
        ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Timeout | ErrorKind::Provider => {
            Retry::Temporary(error.retry_after)
        }
        _ => Retry::Permanent,
    };
    (kind, retry)
}

fn kind(error: &ProviderError) -> ErrorKind {
    let by_name = [&error.code, &error.kind].into_iter().flatten().find_map(|name| by_code(name));
    match (error.status, by_name) {
        // These kinds are more specific than any status.
        (_, Some(kind @ (ErrorKind::ContextOverflow | ErrorKind::Quota | ErrorKind::ContentFiltered))) => kind,
        // llama.cpp responds with status 500.
        (None | Some(400 | 413 | 422 | 500), _) if is_overflow(&error.message) => ErrorKind::ContextOverflow,
        (Some(status), _) => by_status(status).or(by_name).unwrap_or(ErrorKind::InvalidRequest),
        (None, _) => by_name.unwrap_or(ErrorKind::Provider),
    }
}

fn by_status(status: u16) -> Option<ErrorKind> {
    Some(match status {
        300..=399 => ErrorKind::Protocol,
        401 | 403 => ErrorKind::Authentication,
        402 => ErrorKind::Quota,
        408 | 504 => ErrorKind::Timeout,
        409 => ErrorKind::Provider, // a lock was not free in time
        413 => ErrorKind::ContextOverflow,
        429 => ErrorKind::RateLimited,
        503 | 529 => ErrorKind::Overloaded,
        500.. => ErrorKind::Provider,
        _ => return None,
    })
}

fn by_code(name: &str) -> Option<ErrorKind> {
    let known = CODES.iter().chain(&GOOGLE).find(|(code, _)| name.eq_ignore_ascii_case(code));
    known.map(|(_, kind)| *kind).or_else(|| aws::kind(name))
}

fn is_overflow(message: &str) -> bool {
    let message = message.to_lowercase();
    OVERFLOW.iter().any(|marker| message.contains(marker))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn kind_of(status: Option<u16>, code: &str, message: &str) -> ErrorKind {
        let code = Some(code.to_owned()).filter(|c| !c.is_empty());
        classify(&ProviderError { status, code, message: message.into(), ..ProviderError::default() }).0
    }

    #[test]
    fn every_status_has_its_kind() {
        for (status, kind) in [
            (302, ErrorKind::Protocol),
            (400, ErrorKind::InvalidRequest),
            (401, ErrorKind::Authentication),
            (402, ErrorKind::Quota),
            (403, ErrorKind::Authentication),
            (404, ErrorKind::InvalidRequest),
            (408, ErrorKind::Timeout),
            (409, ErrorKind::Provider),
            (413, ErrorKind::ContextOverflow),
            (422, ErrorKind::InvalidRequest),
            (429, ErrorKind::RateLimited),
            (500, ErrorKind::Provider),
            (502, ErrorKind::Provider),
            (503, ErrorKind::Overloaded),
            (504, ErrorKind::Timeout),
            (529, ErrorKind::Overloaded),
        ] {
            assert_eq!(kind_of(Some(status), "", "why"), kind, "{status}");
        }
    }

    #[test]
    fn a_conversation_that_is_too_long_is_told_from_other_bad_requests() {
        let said =
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
        assert_eq!(kind_of(Some(400), "", said), ErrorKind::ContextOverflow);
        assert_eq!(kind_of(Some(400), "context_length_exceeded", ""), ErrorKind::ContextOverflow);
        let llama = "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it";
        assert_eq!(kind_of(Some(400), "400", llama), ErrorKind::ContextOverflow);
        assert_eq!(kind_of(Some(400), "unsupported_value", "bad role"), ErrorKind::InvalidRequest);
        assert_eq!(kind_of(None, "", "prompt is too long: 210000 tokens > 200000"), ErrorKind::ContextOverflow);
    }

    #[test]
    fn a_conversation_that_is_too_long_is_known_in_the_words_of_each_server() {
        for (status, code, said) in [
            (500, "", "context shift is disabled"),
            (400, "400", "The decoder prompt (length 40000) is longer than the maximum model length of 32768."),
            (
                422,
                "",
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 and 512",
            ),
            (400, "", "Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)"),
            (400, "1261", "Prompt exceeds max length"),
            (400, "model_max_prompt_tokens_exceeded", "prompt token count of 150000 exceeds the limit of 128000"),
            (400, "", "Input Tokens Exceeded: Number of input tokens exceeds maximum length."),
            (400, "too_many_prompt_tokens", "The total length of all messages is too long."),
        ] {
            assert_eq!(kind_of(Some(status), code, said), ErrorKind::ContextOverflow, "{said}");
        }
        assert_eq!(kind_of(Some(500), "", "context deadline exceeded"), ErrorKind::Provider);
    }

    #[test]
    fn no_credit_is_told_from_too_fast() {
        assert_eq!(kind_of(Some(429), "insufficient_quota", ""), ErrorKind::Quota);
        assert_eq!(kind_of(Some(429), "rate_limit_exceeded", ""), ErrorKind::RateLimited);
    }

    #[test]
    fn the_names_of_google_say_what_a_stream_has_no_status_for() {
        for (name, kind) in [
            ("RESOURCE_EXHAUSTED", ErrorKind::RateLimited),
            ("UNAVAILABLE", ErrorKind::Overloaded),
            ("UNAUTHENTICATED", ErrorKind::Authentication),
            ("DEADLINE_EXCEEDED", ErrorKind::Timeout),
            ("INTERNAL", ErrorKind::Provider),
            ("INVALID_ARGUMENT", ErrorKind::InvalidRequest),
        ] {
            assert_eq!(kind_of(None, name, "why"), kind, "{name}");
        }
        let said = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
        assert_eq!(kind_of(Some(400), "INVALID_ARGUMENT", said), ErrorKind::ContextOverflow);
        assert_eq!(kind_of(Some(504), "DEADLINE_EXCEEDED", ""), ErrorKind::Timeout);
    }

    #[test]
    fn the_exceptions_of_aws_are_known_by_their_names() {
        for (status, name, kind) in [
            (None, "throttlingException", ErrorKind::RateLimited),
            (None, "ServiceUnavailableException", ErrorKind::Overloaded),
            (None, "modelStreamErrorException", ErrorKind::Provider),
            (None, "validationException", ErrorKind::InvalidRequest),
            (Some(424), "ModelErrorException", ErrorKind::Provider),
            (Some(400), "ServiceQuotaExceededException", ErrorKind::Quota),
            (Some(400), "ThrottlingException", ErrorKind::RateLimited),
            (Some(400), "ExpiredTokenException", ErrorKind::Authentication),
            (Some(403), "AccessDeniedException", ErrorKind::Authentication),
        ] {
            assert_eq!(kind_of(status, name, "why"), kind, "{name}");
        }
        let long = "Input is too long for requested model.";
        assert_eq!(kind_of(Some(400), "ValidationException", long), ErrorKind::ContextOverflow);
    }

    #[test]
    fn only_what_may_pass_is_temporary_and_keeps_the_delay() {
        let seven = Some(Duration::from_secs(7));
        let retry = |status| {
            classify(&ProviderError { status: Some(status), retry_after: seven, ..ProviderError::default() }).1
        };
        for status in [408, 409, 429, 500, 503, 529] {
            assert_eq!(retry(status), Retry::Temporary(seven), "{status}");
        }
        for status in [302, 400, 401, 402, 404, 413] {
            assert_eq!(retry(status), Retry::Permanent, "{status}");
        }
    }
}
