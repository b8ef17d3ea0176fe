//! Who decides inside the process.

use std::collections::BTreeSet;

use agent_core::{Result, RunCx};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decision, DecisionKind};

/// A tool call that waits for a decision; also the payload of the question, for those who decide elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What it does, as the configuration or else the tool itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments as the model gave them; injected ones are not among them, and those that are not to be shown are
    /// `[redacted]`.
    pub arguments: Value,
    /// Why it is asked about.
    pub why: String,
    /// Decisions that are accepted.
    pub decisions: BTreeSet<DecisionKind>,
}

/// Decides inside the process: on a console, in a test, by asking another model.
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
    /// Fails the run; the tool does not run.
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
