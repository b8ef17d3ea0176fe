//! [`Guard`], its subjects and its verdicts.

use std::sync::Arc;

use agent_core::{Result, RunCx};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Stage at which a guard checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardStage {
    /// The user's messages, before a model is called with them.
    Input,
    /// A model's response.
    Output,
    /// The arguments of a tool call, before it runs.
    ToolInput,
    /// A tool's output, before a model receives it.
    ToolOutput,
}

/// The subject of a check.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardSubject {
    /// Stage of the check.
    pub stage: GuardStage,
    /// The text; for arguments, their JSON.
    pub text: String,
    /// The tool, if the subject belongs to a call.
    pub tool: Option<Arc<str>>,
}

/// Verdict of a guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardVerdict {
    /// The subject passes.
    Pass,
    /// The subject is replaced by this text. Arguments are replaced by the text's JSON.
    Replace(String),
    /// The subject is refused. A tool call is answered with this text, and the run continues; at
    /// other stages the run ends with it.
    Refuse(String),
    /// The run ends with this answer.
    Finish(String),
    /// The run fails with this message.
    Fail(String),
}

/// Checks input or output. Async closures are guards:
///
/// ```
/// use agent_middleware::{Guardrails, guardrails::{GuardStage, GuardSubject, GuardVerdict, Guarded}};
///
/// let short = Guarded::new("short", |_cx, subject: GuardSubject| async move {
///     Ok(match subject.text.len() {
///         0..1000 => GuardVerdict::Pass,
///         _ => GuardVerdict::Refuse("Please say it in fewer words.".to_owned()),
///     })
/// });
/// let guardrails = Guardrails::new().guard(short.at(GuardStage::Input));
/// # drop(guardrails);
/// ```
#[async_trait]
pub trait Guard: Send + Sync + 'static {
    /// Returns the verdict on the subject.
    ///
    /// # Errors
    /// If there is no verdict. The guard's [`OnGuardError`](super::OnGuardError) defines the
    /// consequence.
    async fn check(&self, cx: &RunCx, subject: &GuardSubject) -> Result<GuardVerdict>;
}

#[async_trait]
impl<F, Fut> Guard for F
where
    F: Fn(RunCx, GuardSubject) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<GuardVerdict>> + Send + 'static,
{
    async fn check(&self, cx: &RunCx, subject: &GuardSubject) -> Result<GuardVerdict> {
        self(cx.clone(), subject.clone()).await
    }
}
