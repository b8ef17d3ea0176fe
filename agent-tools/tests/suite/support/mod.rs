//! Calls tools like an executor, without one.

#![allow(dead_code, reason = "some features use a part of it")]

#[cfg(feature = "container")]
pub(crate) mod containers;
pub(crate) mod document;
#[cfg(all(feature = "e2b", target_os = "linux"))]
pub(crate) mod e2b;
pub(crate) mod server;

use agent_core::{
    History, Resources, Result, RunCx, Tool, ToolCall, ToolOutput, ToolRequest,
    engine::{RunDriver, RunParts},
    testing::detached_run,
};
use agent_tools::ArgumentSchema;
use serde_json::Value;

/// Creates a run with these handles.
pub(crate) fn run(resources: Resources) -> RunDriver {
    let detached = detached_run(History::default());
    let cx = detached.cx();
    let mut parts =
        RunParts::new(cx.ids().clone(), detached.engine().emitter().clone(), detached.engine().log().clone());
    parts.resources = resources;
    RunDriver::new(parts)
}

pub(crate) fn request(cx: &RunCx, tool: &dyn Tool, args: Value) -> ToolRequest {
    let call = ToolCall { id: "c1".into(), name: tool.spec().name.into(), arguments: args.to_string(), raw: None };
    ToolRequest::new(cx.clone(), call, args)
}

/// Validates the arguments and calls the tool.
pub(crate) async fn call_in(cx: &RunCx, tool: &dyn Tool, args: Value) -> Result<ToolOutput> {
    ArgumentSchema::compile(&tool.spec())?.check(&args, &[])?;
    tool.call(request(cx, tool, args)).await
}

pub(crate) async fn call(tool: &dyn Tool, args: Value) -> Result<ToolOutput> {
    call_in(run(Resources::default()).cx(), tool, args).await
}
