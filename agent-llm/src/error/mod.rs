//! Conversion of provider errors into this framework's errors, shared by all wires.

mod aws;
mod classify;
mod delay;
mod google;
pub(crate) mod refused_tool;
pub(crate) mod room;

use std::time::Duration;

use agent_core::{Error, ErrorKind, Retry};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// Maximum length of a provider's message, in characters.
const LONGEST_MESSAGE: usize = 1_000;

/// An error reported by a provider: in the response to a request, inside a stream, or in place of
/// an answer.
///
/// ```
/// use agent_core::ErrorKind;
/// use agent_llm::ProviderError;
/// use http::{HeaderMap, StatusCode};
///
/// let body = br#"{"error": {"message": "Slow down", "type": "requests", "code": "rate_limit_exceeded"}}"#;
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "7".parse()?);
/// let error = ProviderError::from_response(StatusCode::TOO_MANY_REQUESTS, &headers, body).into_error("acme");
/// assert_eq!(error.kind(), ErrorKind::RateLimited);
/// assert_eq!(error.to_string(), "rate limited: Slow down (provider: acme, status: 429, code: rate_limit_exceeded)");
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ProviderError {
    /// HTTP status, or the status named in the body.
    pub status: Option<u16>,
    /// The provider's code, such as `context_length_exceeded`.
    pub code: Option<String>,
    /// The provider's type, such as `invalid_request_error`.
    pub kind: Option<String>,
    /// The provider's human-readable message.
    pub message: String,
    /// Delay that the provider asks for.
    pub retry_after: Option<Duration>,
    /// The provider's request id, for its support.
    pub request_id: Option<String>,
}

impl ProviderError {
    /// Parses an error response. Accepts the error bodies of all known providers, and bodies that
    /// are not JSON.
    pub fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let mut said = serde_json::from_str::<Value>(&text).map(|json| Self::from_json(&json)).unwrap_or_default();
        if status.is_redirection() {
            said.message = "redirects are not followed: check the base URL".into();
        } else if is_html(&text) {
            said.message = "the answer is a web page".into();
        } else if said.message.is_empty() {
            said.message = text.trim().into();
        }
        let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let request_id = ["x-request-id", "request-id", "x-amzn-requestid"].into_iter().find_map(header);
        Self {
            status: Some(status.as_u16()),
            retry_after: delay::retry_after(headers).or(said.retry_after),
            code: said.code.or_else(|| header("x-amzn-errortype").map(|kind| aws::name(&kind).to_owned())),
            request_id: request_id.or(said.request_id),
            ..said
        }
    }

    /// Parses an error object, or an object that contains one under `error`.
    pub fn from_json(json: &Value) -> Self {
        let outer = json.get(0).unwrap_or(json); // some gateways wrap the object in a list
        let inner = outer.get("error").filter(|e| e.is_object()).unwrap_or(outer);
        let field = |name: &str| inner.get(name).or_else(|| outer.get(name)).filter(|v| !v.is_null());
        let text = |name: &str| field(name).map(text_of).filter(|t| !t.is_empty());
        let code = text("code");
        let status = text("status");
        let named_status = [status.clone(), text("status_code"), code.clone()].into_iter().flatten();
        // The message of the upstream provider is more specific than the router's own.
        let behind = inner.pointer("/metadata/raw").map(text_of);
        let message =
            ["message", "Message", "error", "detail", "errors"].into_iter().find_map(text).unwrap_or_default();
        Self {
            status: named_status.filter_map(|s| s.parse().ok()).find(|s| (400..600).contains(s)),
            code: google::reason(inner).map(str::to_owned).or(code),
            // Google uses named statuses.
            kind: text("type")
                .or_else(|| text("error_type"))
                .or_else(|| Some(aws::name(&text("__type")?).to_owned()))
                .or(status.filter(|s| s.parse::<u16>().is_err())),
            message: behind.map_or(message.clone(), |raw| format!("{message}: {raw}")),
            retry_after: google::retry_delay(inner),
            request_id: text("request_id"),
        }
    }

    /// Converts this into the error that layers act on, with `provider` and the other facts as its
    /// context.
    pub fn into_error(self, provider: &str) -> Error {
        let (kind, retry) = classify::classify(&self);
        let message = match self.message.trim() {
            "" => "the provider gave no reason".to_owned(),
            said => bounded(said, LONGEST_MESSAGE),
        };
        let facts = [
            ("provider", Some(provider.to_owned())),
            ("status", self.status.map(|s| s.to_string())),
            ("code", self.code.or(self.kind)),
            ("request_id", self.request_id),
        ];
        let error = Error::new(kind, message).with_retry(retry);
        facts.into_iter().fold(error, |e, (name, fact)| match fact {
            Some(fact) => e.with_context(name, bounded(&fact, LONGEST_MESSAGE)),
            None => e,
        })
    }
}

/// Builds the error for an answer that violates the protocol. It quotes the beginning of `body`,
/// unless it is a web page.
pub(crate) fn not_the_protocol(provider: &str, what: &str, body: &str) -> Error {
    if is_html(body) {
        return web_page(provider);
    }
    Error::new(ErrorKind::Protocol, format!("{what}: {}", bounded(body.trim(), 200)))
        .with_retry(Retry::Temporary(None))
        .with_context("provider", provider)
}

/// Builds the error from an error object that arrives in place of an answer, or in the middle of
/// one.
pub(crate) fn refused(provider: &str, json: &str) -> Error {
    ProviderError::from_json(&serde_json::from_str(json).unwrap_or_default()).into_error(provider)
}

/// Builds the error for a body that is not a valid `what`, with the reason `why`.
#[cfg(feature = "requests")]
pub(crate) fn no_request(what: &str, why: serde_json::Error) -> Error {
    let message = format!("the body is not {what}: {}", bounded(&why.to_string(), 200));
    Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent).with_source(why)
}

/// Builds the error for a stream that ended before its answer was complete.
pub(crate) fn truncated(provider: &str) -> Error {
    Error::new(ErrorKind::Truncated, "the stream ended before the answer was complete")
        .with_retry(Retry::Temporary(None))
        .with_context("provider", provider)
}

/// Builds the error for an HTML page in place of an answer.
pub(crate) fn web_page(provider: &str) -> Error {
    Error::new(ErrorKind::Protocol, "the answer is a web page: check that the base URL is that of the API")
        .with_retry(Retry::Permanent)
        .with_context("provider", provider)
}

fn is_html(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Truncates `text` to at most `most` characters, marking the truncation.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(body: &str) -> String {
        ProviderError::from_response(StatusCode::BAD_REQUEST, &HeaderMap::new(), body.as_bytes()).message
    }

    #[test]
    fn the_message_is_found_in_every_known_shape() {
        for body in [
            r#"{"error": {"message": "why"}}"#,
            r#"{"error": "why", "code": "7"}"#,
            r#"{"object": "error", "message": "why"}"#,
            r#"{"detail": "why"}"#,
            r#"[{"error": {"message": "why", "status": "INVALID_ARGUMENT"}}]"#,
            r#"{"type": "error", "error": {"type": "api_error", "message": "why"}}"#,
            "why",
        ] {
            assert_eq!(message_of(body), "why", "{body}");
        }
        assert_eq!(message_of(r#"{"error": {"message": "outer", "metadata": {"raw": "why"}}}"#), "outer: why");
        assert_eq!(message_of("<html>"), "the answer is a web page");
    }

    #[test]
    fn an_error_of_google_is_read_with_its_details() {
        let body = br#"{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]}}"#;
        let said = ProviderError::from_response(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), body);
        assert_eq!(said.kind.as_deref(), Some("RESOURCE_EXHAUSTED"));
        let error = said.into_error("gemini");
        let seven = Retry::Temporary(Some(Duration::from_secs(7)));
        assert_eq!((error.kind(), error.retry()), (ErrorKind::RateLimited, seven));

        let body = br#"{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT", "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}"#;
        let error = ProviderError::from_response(StatusCode::BAD_REQUEST, &HeaderMap::new(), body).into_error("gemini");
        assert_eq!((error.kind(), error.context("code")), (ErrorKind::Authentication, Some("API_KEY_INVALID")));
    }

    #[test]
    fn an_error_of_aws_is_named_by_a_header_or_by_its_type() {
        let body = br#"{"message": "Too many requests"}"#;
        let mut headers = HeaderMap::new();
        let values =
            [("x-amzn-errortype", "ThrottlingException:http://internal.amazon.test/"), ("x-amzn-requestid", "r-1")];
        for (name, value) in values {
            headers.insert(name, value.parse().expect("a value"));
        }
        let error = ProviderError::from_response(StatusCode::BAD_REQUEST, &headers, body).into_error("bedrock");
        assert_eq!((error.kind(), error.context("code")), (ErrorKind::RateLimited, Some("ThrottlingException")));
        assert_eq!(error.context("request_id"), Some("r-1"));
        let body = br#"{"__type": "com.amazon.coral.service#ExpiredTokenException", "message": "It has expired"}"#;
        let error =
            ProviderError::from_response(StatusCode::BAD_REQUEST, &HeaderMap::new(), body).into_error("bedrock");
        assert_eq!((error.kind(), error.message()), (ErrorKind::Authentication, "It has expired"));
    }

    #[test]
    fn a_long_message_is_cut() {
        let error = ProviderError { message: "é".repeat(5_000), ..ProviderError::default() }.into_error("p");
        assert_eq!(error.message().chars().count(), LONGEST_MESSAGE + 1);
    }

    #[test]
    fn a_status_is_taken_from_the_body_where_there_is_no_other() {
        let said = |json: &str| ProviderError::from_json(&serde_json::from_str(json).expect("valid JSON")).status;
        assert_eq!(said(r#"{"error": {"code": 502, "message": "upstream"}}"#), Some(502));
        assert_eq!(said(r#"{"error": {"code": "content_filter", "status": 400}}"#), Some(400));
        assert_eq!(said(r#"{"error": {"code": 3051}}"#), None);
    }
}
