//! Errors in OpenAI's format.

use agent::ErrorKind;
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::{
    ApiError,
    speech::{Ending, code},
};

/// Header that tells OpenAI's clients whether to retry. Without it they retry after 409 and 5xx.
const RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Code of the error for an exhausted spending limit.
const SPENT: &str = "spent";

/// Error in OpenAI's format.
#[derive(Debug)]
pub(super) struct OpenAiError {
    error: ApiError,
    /// True if a run has begun: a repeated request would start another one.
    began: bool,
}

impl OpenAiError {
    /// Marks an error after the beginning of a run, so that clients do not retry.
    pub(super) fn of_run(error: impl Into<ApiError>) -> Self {
        Self { error: error.into(), began: true }
    }
}

impl From<ApiError> for OpenAiError {
    fn from(error: ApiError) -> Self {
        Self { error, began: false }
    }
}

impl From<agent::Error> for OpenAiError {
    fn from(error: agent::Error) -> Self {
        Self { error: error.into(), began: false }
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let (status, is_spent) = (self.error.status(), self.error.code() == SPENT);
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 if is_spent => "insufficient_quota",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let body = json!({"error": {"message": self.error.message(), "type": kind, "param": null, "code": if is_spent { "insufficient_quota" } else { self.error.code() }}});
        let mut response = self.error.into_response();
        *response.body_mut() = Json(body).into_response().into_body();
        response.headers_mut().remove(http::header::CONTENT_LENGTH);
        if self.began || is_spent {
            response.headers_mut().insert(RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// Returns the reason why a run has no answer in this protocol: error kind and message.
pub(super) fn failure(ending: &Ending, run: &str) -> Option<(ErrorKind, String)> {
    match ending {
        Ending::Finished { .. } => None,
        Ending::Interrupted(questions) => {
            let kinds: Vec<_> = questions.iter().map(|question| question.kind.as_str()).collect();
            let message =
                format!("the run '{run}' waits for answers ({}): answer them through the Runs API", kinds.join(", "));
            Some((ErrorKind::Interrupted, message))
        }
        Ending::Paused => Some((ErrorKind::Stopped, format!("the run '{run}' was paused"))),
        Ending::Cancelled => Some((ErrorKind::Cancelled, format!("the run '{run}' was cancelled"))),
        Ending::Failed { kind, message } => Some((*kind, message.clone())),
    }
}

/// Returns the error event of a stream.
pub(super) fn in_stream(kind: ErrorKind, message: &str) -> Value {
    json!({"message": message, "type": "server_error", "param": null, "code": code(kind)})
}

/// Returns the error of a complete response.
pub(super) fn of_whole(kind: ErrorKind, message: String) -> OpenAiError {
    OpenAiError::of_run(match kind {
        ErrorKind::Interrupted | ErrorKind::Stopped | ErrorKind::Cancelled => {
            ApiError::conflict("not_finished", message)
        }
        kind => ApiError::of(&agent::Error::new(kind, message)),
    })
}
