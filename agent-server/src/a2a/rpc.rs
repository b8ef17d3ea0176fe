//! JSON-RPC messages.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::version::Version;
use crate::{
    ApiError,
    clock::{now, timestamp},
};

/// JSON-RPC request.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    #[serde(default)]
    pub(super) id: Value,
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Value,
}

/// JSON-RPC error, with the protocol's codes.
#[derive(Debug, PartialEq)]
pub(super) struct RpcError {
    code: i32,
    message: String,
    /// True if details are sent, as version 1.0 requires.
    has_details: bool,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), has_details: false }
    }

    /// Returns the error in the form of this version.
    pub(super) fn in_version(self, version: Version) -> Self {
        Self { has_details: version == Version::V10, ..self }
    }

    pub(super) fn unknown_method(method: &str, named: Option<Version>) -> Self {
        Self::new(-32601, format!("unknown method '{method}'")).in_version(named.unwrap_or_default())
    }

    pub(super) fn version(named: &str) -> Self {
        let message = format!("version '{named}' of the protocol is not supported here: use 1.0 or 0.3");
        Self::new(-32009, message).in_version(Version::V10)
    }

    /// Returns the status of the error in the HTTP+JSON binding, and its name.
    fn http(&self) -> (StatusCode, &'static str) {
        match self.code {
            -32001 | -32601 => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            -32602 | -32600 | -32700 | -32005 => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
            -32603 | -32006 => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
            _ => (StatusCode::BAD_REQUEST, "FAILED_PRECONDITION"),
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.http().0
    }

    /// Returns the body of the error in the HTTP+JSON binding.
    pub(super) fn of_http(&self) -> Value {
        let (status, name) = self.http();
        json!({"error": {
            "code": status.as_u16(), "status": name, "message": self.message, "details": self.details(),
        }})
    }

    /// Names the error of the protocol, if it is one.
    fn details(&self) -> Vec<Value> {
        let reason = match self.code {
            -32001 => "TASK_NOT_FOUND",
            -32002 => "TASK_NOT_CANCELABLE",
            -32003 => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            -32004 => "UNSUPPORTED_OPERATION",
            -32009 => "VERSION_NOT_SUPPORTED",
            _ => return Vec::new(),
        };
        let timestamp = timestamp(now());
        vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org",
            "metadata": {"timestamp": timestamp},
        })]
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(-32001, message)
    }

    pub(super) fn not_cancelable() -> Self {
        Self::new(-32002, "the task is over")
    }

    pub(super) fn no_push() -> Self {
        Self::new(-32003, "push notifications are not supported: poll or stream the task")
    }

    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(-32004, message)
    }
}

impl From<ApiError> for RpcError {
    fn from(error: ApiError) -> Self {
        let code = match error.status().as_u16() {
            404 => -32001,
            400..500 => -32602,
            _ => -32603,
        };
        Self::new(code, error.message())
    }
}

/// Builds the response to a request.
pub(super) fn reply(id: &Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => {
            let mut told = json!({"code": error.code, "message": error.message});
            let details = if error.has_details { error.details() } else { Vec::new() };
            if !details.is_empty() {
                told["data"] = details.into();
            }
            json!({"jsonrpc": "2.0", "id": id, "error": told})
        }
    }
}
