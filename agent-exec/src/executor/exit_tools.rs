//! Tools that end a run.

use std::sync::Arc;

use agent_core::ToolResults;

/// Names of the tools whose result ends the run.
pub(super) struct ExitTools(Arc<[String]>);

impl ExitTools {
    pub(super) fn new(tools: Arc<[String]>) -> Self {
        Self(tools)
    }

    /// Returns the first called exit tool, in call order, and its text. Returns `None` if any exit
    /// tool failed, so that the model can try again. Errors of other tools are ignored.
    pub(super) fn after_tools(&self, results: &ToolResults) -> Option<(String, String)> {
        let mut called = results.results.iter().filter(|r| self.0.iter().any(|exit| **exit == *r.name)).peekable();
        let first = called.peek().map(|r| (r.name.to_string(), r.output.to_text()))?;
        called.all(|r| !r.output.is_error()).then_some(first)
    }
}
