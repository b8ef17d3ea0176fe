//! What clients ask of a server.

use std::{panic::AssertUnwindSafe, sync::Arc};

use agent_core::Effect;
use futures::FutureExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as ServedTool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::{Entry, Inner, run};

/// One end of a connection: what the client asks.
#[derive(Clone)]
pub(super) struct Handler(pub(super) Arc<Inner>);

impl Handler {
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.entries.iter().find(|entry| entry.spec.name == name)
    }
}

/// What the client is told of a tool.
fn served(entry: &Entry) -> ServedTool {
    let schema = entry.spec.parameters.as_object().cloned().unwrap_or_default();
    let hints = match entry.options.effect {
        Effect::Pure => ToolAnnotations::new().read_only(true),
        Effect::Idempotent => ToolAnnotations::new().read_only(false).idempotent(true),
        _ => ToolAnnotations::new().read_only(false).idempotent(false),
    };
    ServedTool::new(entry.spec.name.clone(), entry.spec.description.clone(), schema).with_annotations(hints)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        let info = info.with_server_info(Implementation::new(self.0.name.clone(), self.0.version.clone()));
        match &self.0.instructions {
            Some(text) => info.with_instructions(text.clone()),
            None => info,
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.entries.iter().map(served).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<ServedTool> {
        self.entry(name).map(served)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = self.entry(&params.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool '{}'", params.name), None));
        };
        let args = Value::Object(params.arguments.unwrap_or_default());
        // A tool that panics is answered for, or its client would wait without end.
        let called = AssertUnwindSafe(run::call(&self.0.name, entry, args, &context)).catch_unwind().await;
        let result = called.unwrap_or_else(|_| CallToolResult::error(vec![ContentBlock::text("The tool failed.")]));
        Ok(CallToolResponse::Complete(result))
    }
}
