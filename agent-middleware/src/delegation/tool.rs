//! The tool that runs a sub-agent.

use std::{sync::Arc, time::Duration};

use agent_core::{
    Effect, Error, ErrorKind, ExitReason, Finished, Part, PerRun, Reconciled, Result, RunCx, SubAgent, SubAgents, Tool,
    ToolOptions, ToolOutput, ToolRequest, ToolSpec,
};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::DelegationConfig;

/// How long the call of a cancelled sub-agent may take to hand up where the sub-agent stands.
const CANCEL_GRACE: Duration = Duration::from_millis(50);

/// Runs a sub-agent as a tool call.
pub(super) struct Delegate {
    spec: ToolSpec,
    /// The key of the one agent that it runs; a parameter if unset.
    key: Option<String>,
    offer: Arc<Offer>,
}

/// What all tools of one [`Delegation`](super::Delegation) share.
pub(super) struct Offer {
    pub(super) config: DelegationConfig,
    pub(super) agents: SubAgents,
    pub(super) running: Arc<PerRun<Semaphore>>,
}

#[derive(Deserialize)]
struct Args {
    agent: Option<String>,
    message: String,
}

impl Delegate {
    /// One tool for all agents.
    pub(super) fn any(agents: &[SubAgent], offer: Arc<Offer>) -> Self {
        let keys: Vec<_> = agents.iter().map(|a| a.key.as_str()).collect();
        let list: String = agents.iter().map(|a| format!("\n- **{}**: {}", a.key, a.description)).collect();
        let description = format!(
            "Hands a task to another agent and returns its answer. The agent sees nothing of this conversation: say \
             everything that it must know. Available agents:{list}"
        );
        let parameters = json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": keys, "description": "Which agent."},
                "message": {"type": "string", "description": "The task, complete in itself."},
            },
            "required": ["agent", "message"],
            "additionalProperties": false,
        });
        Self { spec: ToolSpec::new(&offer.config.tool, description, parameters), key: None, offer }
    }

    /// A tool of one agent.
    pub(super) fn one(agent: &SubAgent, offer: Arc<Offer>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {"message": {"type": "string", "description": "The task, complete in itself."}},
            "required": ["message"],
            "additionalProperties": false,
        });
        Self { spec: ToolSpec::new(&agent.key, &agent.description, parameters), key: Some(agent.key.clone()), offer }
    }

    /// Waits until the run may have one more sub-agent.
    async fn permit(&self, cx: &RunCx) -> Result<Option<OwnedSemaphorePermit>> {
        let Some(most) = self.offer.config.max_concurrent else { return Ok(None) };
        let running = self.offer.running.of(cx, || Semaphore::new(most.max(1)));
        tokio::select! {
            permit = running.acquire_owned() => Ok(Some(permit.expect("the semaphore is never closed"))),
            () = cx.cancellation().cancelled() => {
                Err(Error::new(ErrorKind::Cancelled, "cancelled before the sub-agent began"))
            }
        }
    }
}

#[async_trait]
impl Tool for Delegate {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        let mut options = ToolOptions::default().effect(Effect::Reconcilable);
        options.cancel_grace = CANCEL_GRACE;
        options
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Args { agent, message } = req.parse()?;
        let key = self.key.clone().or(agent).unwrap_or_default();
        self.offer.agents.get(&key)?;
        let max_depth = self.offer.config.max_depth;
        if req.cx.ids().depth >= max_depth {
            return Err(Error::tool(format!(
                "Sub-agent '{key}' was not started: agents may be nested at most {max_depth} deep. Do the task yourself."
            )));
        }
        let _permit = self.permit(&req.cx).await?;
        match req.call_sub_agent(&key, message).await {
            Ok(finished) => Ok(output(&key, &finished)),
            Err(e) if ends_the_caller(e.kind()) => Err(e),
            Err(e) => Err(failure(&key, e)),
        }
    }

    /// That a sub-agent starts is durable before it does anything: one of which nothing is known did nothing.
    async fn reconcile(&self, _: ToolRequest) -> Result<Reconciled> {
        Ok(Reconciled::DidNot)
    }
}

/// What is not the sub-agent's failure alone.
fn ends_the_caller(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::Cancelled | ErrorKind::Store | ErrorKind::NonDeterminism)
}

fn output(key: &str, finished: &Finished) -> ToolOutput {
    let Finished { answer, reason, ids, .. } = finished;
    let note = match reason {
        ExitReason::StepLimit => Some("reached its step limit before it was done".to_owned()),
        ExitReason::Budget => Some("used up its budget before it was done".to_owned()),
        ExitReason::Length => Some("was cut off at the length limit of its model".to_owned()),
        ExitReason::ContentFilter => Some("had its answer withheld by the provider".to_owned()),
        ExitReason::Stopped(why) => Some(format!("was stopped: {why}")),
        _ => answer.is_empty().then(|| "gave no answer".to_owned()),
    };
    let note = note.map(|note| format!("[Sub-agent '{key}' {note}.]"));
    let shown: Vec<_> = [Some(answer.clone()).filter(|a| !a.is_empty()), note].into_iter().flatten().collect();
    let value = json!({"agent": key, "run_id": ids.run_id, "answer": answer, "reason": reason.to_string()});
    ToolOutput::value(value).shown_as(vec![Part::text(shown.join("\n\n"))])
}

fn failure(key: &str, e: Error) -> Error {
    let run = e.checkpoint().map(|c| &*c.ids.run_id).or_else(|| e.context("run_id"));
    let run = run.map(|run| format!(" (run {run})")).unwrap_or_default();
    Error::tool(format!("Sub-agent '{key}' failed{run}: {}", e.message())).with_source(e)
}
