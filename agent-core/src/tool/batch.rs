//! [`ToolBatch`]: the calls of one message.

use super::ToolRequest;
use crate::tooling::ToolOutput;

/// The calls of one message before they run: a [`before_tools`](crate::Middleware::before_tools)
/// hook may edit, answer and drop them.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolBatch {
    /// The calls, in call order; results have the same order, regardless of the execution order.
    pub calls: Vec<BatchCall>,
}

/// One call of a [`ToolBatch`].
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchCall {
    /// The request to execute.
    pub request: ToolRequest,
    /// The answer of a hook, if there is one: the tool then does not run.
    pub answer: Option<ToolOutput>,
}

impl ToolBatch {
    /// Creates a batch of unanswered requests.
    pub fn new(requests: impl IntoIterator<Item = ToolRequest>) -> Self {
        Self { calls: requests.into_iter().map(|request| BatchCall { request, answer: None }).collect() }
    }
}

impl BatchCall {
    /// Answers the call without running the tool.
    pub fn answer(&mut self, output: ToolOutput) {
        self.answer = Some(output);
    }

    /// Drops the call: it is answered "not run" with the reason, so that calls and results in the
    /// history stay paired.
    pub fn drop_with(&mut self, reason: &str) {
        self.answer(ToolOutput::error(format!("Not run: {reason}")));
    }
}
