//! Errors in responses to clients.

use std::{fmt, time::Duration};

use agent::{Error, ErrorKind, Question, Retry};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// Error response: an HTTP status, a code for programs, and a message for people.
///
/// Protocols with their own error format convert it.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    kind: Option<ErrorKind>,
    retry_after: Option<Duration>,
    /// Additional details for programs.
    details: Value,
}

impl ApiError {
    /// Creates an error with this status and code.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), kind: None, retry_after: None, details: Value::Null }
    }

    /// 400: the request is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// 401: the caller is not authenticated.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    /// 403: the caller lacks the permission.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: the object does not exist or belongs to another tenant.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 409: the request conflicts with the current state.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 429: a limit or quota is exceeded.
    pub fn too_many(code: &'static str, message: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message).after(retry_after)
    }

    /// 422: the idempotency key was used with another request.
    pub(crate) fn idempotency_mismatch() -> Self {
        let message = "this Idempotency-Key was used with another request: use a new key";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", message)
    }

    /// 500: an internal error, whose cause is only logged.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error: see the server's log")
    }

    /// Sets the delay of the `Retry-After` header.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Adds an object of details for programs.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// Replaces a name in the message: clients do not see the names of sessions in the store.
    #[must_use]
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        self.message = self.message.replace(from, to);
        self
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the code for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the message for people: what failed and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the kind of the framework error behind it, if any.
    pub fn kind(&self) -> Option<ErrorKind> {
        self.kind
    }

    /// Returns the body `{"error": {..}}`.
    pub fn body(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message, "kind": self.kind});
        if let (Some(error), Value::Object(details)) = (error.as_object_mut(), &self.details) {
            error.extend(details.clone());
        }
        json!({"error": error})
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

impl ApiError {
    /// Converts an error of the framework. Internal causes are only logged.
    pub fn of(error: &Error) -> Self {
        let questions: Vec<Question> = error.checkpoint().map(|c| c.questions.clone()).unwrap_or_default();
        let kind = error.kind();
        let message = || error.message().to_owned();
        let mut told = match kind {
            ErrorKind::Busy => Self::conflict("busy", message()).details(json!({"questions": questions})),
            ErrorKind::Stale => Self::conflict("stale", message()),
            ErrorKind::AnswerRefused => Self::conflict("answer_refused", message()),
            ErrorKind::NonDeterminism => Self::conflict("non_determinism", message()),
            ErrorKind::Config
            | ErrorKind::InvalidRequest
            | ErrorKind::History
            | ErrorKind::InvalidArguments
            | ErrorKind::SubAgentNotFound => Self::invalid(message()),
            ErrorKind::Limit | ErrorKind::Quota => Self::too_many("budget", message(), Duration::from_secs(60)),
            ErrorKind::RateLimited | ErrorKind::Overloaded => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message())
            }
            ErrorKind::Stopped | ErrorKind::Cancelled => Self::conflict("over", message()),
            ErrorKind::Store => {
                tracing::error!(error = %error, "the store failed");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", "the store failed: see the server's log")
            }
            _ => {
                tracing::error!(error = %error, "a request failed");
                Self::internal()
            }
        };
        told.kind = Some(kind);
        if let Retry::Temporary(Some(delay)) = error.retry() {
            told.retry_after = Some(delay);
        }
        told
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(delay) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(delay.as_secs().max(1)));
        }
        response
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ApiError {}
