//! An error of JSON-RPC.

use serde::Deserialize;

/// Why a peer did not do what it was asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}
