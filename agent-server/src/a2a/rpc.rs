//! JSON-RPC messages.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ApiError;

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
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        Self::new(-32601, format!("unknown method '{method}'"))
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
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
        Err(RpcError { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}
