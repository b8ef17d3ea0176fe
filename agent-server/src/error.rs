//! What a client is told when something cannot be.

use std::{fmt, time::Duration};

use agent::{Error, ErrorKind, Question, Retry};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// An error as a client sees it: a status, a code that programs branch on, and a message for people.
///
/// Protocols that have a form of their own for errors make it from this one.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    kind: Option<ErrorKind>,
    retry_after: Option<Duration>,
    /// What else a program may want to know.
    details: Value,
}

impl ApiError {
    /// An error with this status and code.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), kind: None, retry_after: None, details: Value::Null }
    }

    /// 400: the request says what cannot be.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// 401: nobody knows who asks.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    /// 403: whoever asks may not.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: it is not there, or belongs to somebody else.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 409: not now.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 429: too much, or too often.
    pub fn too_many(code: &'static str, message: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message).after(retry_after)
    }

    /// 422: a key came with another request before.
    pub(crate) fn idempotency_mismatch() -> Self {
        let message = "this Idempotency-Key came with another request before: take a new key";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", message)
    }

    /// 500: a fault of this server, which is not told.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed: its log says why")
    }

    /// Says when it is worth trying again.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Adds what else a program may want to know, an object.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// Says the same with another name: a session has one in the store, which clients are not told.
    #[must_use]
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        self.message = self.message.replace(from, to);
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What programs branch on.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What went wrong and what to do, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The class of the framework's error behind it, if there is one.
    pub fn kind(&self) -> Option<ErrorKind> {
        self.kind
    }

    /// `{"error": {..}}`.
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
    /// What a client is told of an error of the framework. What is of no use to a client goes to the log.
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
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", "the store failed: the server's log says why")
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
