//! JSON-RPC error.

use serde::Deserialize;

/// JSON-RPC error of a peer.
#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}
