//! [`Guard`], what it sees and what it says.

use std::sync::Arc;

use agent_core::{Result, RunCx};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Where something is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardStage {
    /// What the user said, before a model is called on it.
    Input,
    /// What a model said.
    Output,
    /// The arguments of a tool call, before it runs.
    ToolInput,
    /// What a tool gave, before a model is shown it.
    ToolOutput,
}

/// What is checked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardSubject {
    /// Where it is checked.
    pub stage: GuardStage,
    /// The text; of arguments, their JSON.
    pub text: String,
    /// The tool, if it is about a call.
    pub tool: Option<Arc<str>>,
}

/// What a guard says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardVerdict {
    /// It may go on.
    Pass,
    /// It goes on as this. Arguments are replaced by the text's JSON.
    Replace(String),
    /// It goes no further. A tool's call is answered with this text, and the run goes on; elsewhere the run ends with it.
    Refuse(String),
    /// The run ends, and this is its answer.
    Finish(String),
    /// The run fails, with this message.
    Fail(String),
}

/// Checks what goes in or comes out. Async closures are guards:
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
    /// Says what becomes of the subject.
    ///
    /// # Errors
    /// If it cannot be said. The guard's [`OnGuardError`](super::OnGuardError) tells what that means.
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
