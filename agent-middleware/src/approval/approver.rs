//! Decisions inside the process.

use std::collections::BTreeSet;

use agent_core::{Result, RunCx};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decision, DecisionKind};

/// A tool call that waits for a decision; also the payload of the question for decisions outside of
/// the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Description of the tool, from the configuration or else from the tool itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments as the model wrote them, without injected ones; redacted ones are
    /// `[redacted]`.
    pub arguments: Value,
    /// For a command line: the beginnings of commands that [`Remember::Prefix`](super::Remember::Prefix)
    /// approves, such as `cargo test`. Empty for other calls, and for a line that no prefixes cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Reason for the question.
    pub why: String,
    /// Accepted decisions.
    pub decisions: BTreeSet<DecisionKind>,
}

/// Decides inside the process: on a console, in a test, or by calling another model.
///
/// Async closures are approvers:
///
/// ```
/// use agent_middleware::{Approval, approval::Decision};
///
/// let approval = Approval::new().ask("*").decide_with(|_cx, request: agent_middleware::approval::ApprovalRequest| async move {
///     Ok(if request.tool.starts_with("read_") { Decision::approve() } else { Decision::reject("read only") })
/// });
/// # drop(approval);
/// ```
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Decides about one call. Live handles of the run are in `cx.resources()`.
    ///
    /// # Errors
    /// An error fails the run; the tool does not run.
    async fn decide(&self, cx: &RunCx, request: ApprovalRequest) -> Result<Decision>;
}

#[async_trait]
impl<F, Fut> Approver for F
where
    F: Fn(RunCx, ApprovalRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Decision>> + Send + 'static,
{
    async fn decide(&self, cx: &RunCx, request: ApprovalRequest) -> Result<Decision> {
        self(cx.clone(), request).await
    }
}
