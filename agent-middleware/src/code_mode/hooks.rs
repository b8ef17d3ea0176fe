//! The hooks with which programs take part in a run.

use std::sync::Arc;

use agent_core::{
    Flow, Middleware, ModelRequest, ModelResponse, Placement, Result, RunCx, RunEnd, Tool, ToolResults, Verdict,
};
use async_trait::async_trait;

use super::{CodeMode, program::Kept, tool::RunCode};

#[async_trait]
impl Middleware for CodeMode {
    fn name(&self) -> &str {
        "code_mode"
    }

    fn placement(&self) -> Placement {
        let placement = Placement::default().outside("context_compaction").outside("prompt_caching");
        placement.inside("tool_search").unique()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(RunCode(self.0.clone()))]
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        self.0.close_left(cx)
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if !Kept::of(cx).is_empty()
            && let Some(calls) = self.0.go_on(cx, req).await?
        {
            return Ok(Flow::Answer(calls));
        }
        // If the run does not offer programs, its tools remain the model's own.
        if req.tools.iter().any(|tool| tool.name == self.0.config.tool) {
            req.tools = self.0.show(cx, &req.tools);
        }
        Ok(Flow::Continue)
    }

    async fn after_tools(&self, cx: &RunCx, results: &mut ToolResults) -> Result<Verdict> {
        let kept = Kept::of(cx);
        if kept.is_empty() {
            return Ok(Verdict::Proceed);
        }
        let programs = kept.programs()?;
        let of_program = |id: &str| id.rsplit_once('.').is_some_and(|(program, _)| programs.contains_key(program));
        for result in results.results.iter().filter(|result| of_program(&result.call_id)) {
            kept.note(result)?;
        }
        Ok(Verdict::Proceed)
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if let Ok(RunEnd::Finished(finished)) = end
            && !Kept::of(cx).is_empty()
        {
            self.0.close(cx, "the run was over.")?;
            finished.history = cx.history();
        }
        // A failed sub-agent is not resumed. If it is called again, its conversation shows what the
        // program did.
        if end.is_err() && cx.ids().depth > 0 {
            Kept::of(cx).clear();
        }
        self.0.views.end(cx);
        Ok(())
    }
}
