//! Tools from OpenAPI documents, with a server on loopback.

use crate::support;

use crate::support::server;

use agent_core::Tool;
use serde_json::Value;

mod building;
mod calls;
mod schemas;

/// Returns the tool's output, or its error's message.
async fn api(tool: &dyn Tool, args: Value) -> Result<String, String> {
    support::call(tool, args).await.map(|output| output.to_text()).map_err(|e| e.message().to_owned())
}
