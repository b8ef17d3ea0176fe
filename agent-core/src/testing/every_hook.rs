//! A middleware that overrides every hook with a no-op.

use async_trait::async_trait;

use crate::{
    cx::RunCx,
    error::{Error, Result},
    flow::{Flow, Verdict},
    llm::{Chunk, ModelResponse},
    middleware::{ChunkHook, Middleware, ModelNext, ToolNext},
    model::ModelRequest,
    state::{Exit, RunEnd},
    tool::{ToolBatch, ToolRequest},
    tooling::{ToolOutput, ToolResults},
};

/// Overrides every hook with a no-op, for measuring the cost of hook calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct EveryHook;

#[cfg_attr(not(doc), async_trait)]
impl Middleware for EveryHook {
    async fn before_agent(&self, _: &RunCx) -> Result<()> {
        Ok(())
    }

    async fn after_agent(&self, _: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        Ok(())
    }

    async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        Ok(Flow::Continue)
    }

    async fn after_model(&self, _: &RunCx, _: &mut ModelResponse) -> Result<()> {
        Ok(())
    }

    async fn on_model_error(&self, _: &RunCx, _: &Error) -> Result<Flow<ModelResponse>> {
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        next.run(req).await
    }

    fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
        Some(self)
    }

    async fn before_tools(&self, _: &RunCx, _: &mut ToolBatch) -> Result<()> {
        Ok(())
    }

    async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        Ok(Verdict::Proceed)
    }

    async fn before_tool(&self, _: &RunCx, _: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        Ok(Flow::Continue)
    }

    async fn after_tool(&self, _: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        Ok(())
    }

    async fn on_tool_error(&self, _: &RunCx, _: &ToolRequest, _: &Error) -> Result<Flow<ToolOutput>> {
        Ok(Flow::Continue)
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        next.run(req).await
    }

    async fn on_exit(&self, _: &RunCx, _: &mut Exit) -> Result<Verdict> {
        Ok(Verdict::Proceed)
    }
}

impl ChunkHook for EveryHook {
    fn stream_chunk(&self, _: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
        Ok(Some(chunk))
    }
}
