//! The tools that manage background sub-agents.

use std::{sync::Arc, time::Duration};

use agent_core::{
    Effect, Error, ErrorKind, Message, Result, RunCx, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
    engine::SubRuns,
    journal::{EntryBody, RunStatus, SubAgentRecord},
    tool::Reconciled,
};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    child::{Child, Waiting},
    tool::Offer,
};

/// A tool that manages background sub-agents.
pub(super) struct Manage {
    what: What,
    offer: Arc<Offer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Status,
    Wait,
    Steer,
    Cancel,
}

#[derive(Deserialize)]
struct Args {
    id: Option<String>,
    message: Option<String>,
    seconds: Option<f64>,
}

impl Manage {
    /// Returns all management tools.
    pub(super) fn all(offer: &Arc<Offer>) -> impl Iterator<Item = Arc<dyn Tool>> {
        let tool = |what| Arc::new(Self { what, offer: offer.clone() }) as Arc<dyn Tool>;
        [What::Status, What::Wait, What::Steer, What::Cancel].into_iter().map(tool)
    }

    async fn status(&self, cx: &RunCx, id: Option<&str>) -> Result<ToolOutput> {
        let children = self.offer.family(cx).children(id);
        if let (Some(id), []) = (id, &*children) {
            return past(cx, id).await;
        }
        let lines: Vec<_> = children.iter().map(|child| format!("- {}", child.status())).collect();
        let none = || "No sub-agent runs in the background.".to_owned();
        Ok(ToolOutput::text(if lines.is_empty() { none() } else { lines.join("\n") }))
    }

    async fn wait(&self, cx: &RunCx, id: Option<&str>, most: Option<Duration>) -> Result<ToolOutput> {
        let family = self.offer.family(cx);
        let mut children = family.children(id);
        match id {
            Some(id) if children.is_empty() => return past(cx, id).await,
            Some(_) => {}
            None => children.retain(|child| child.is_live()),
        }
        if children.is_empty() {
            return Ok(ToolOutput::text("No sub-agent runs in the background."));
        }
        let waiting = Waiting::on(cx, children);
        let ended = family.watch(|| match waiting.take_end() {
            Some(output) => Some(output),
            None if waiting.is_any_running() => None,
            None => Some(ToolOutput::text(format!("None of them goes on by itself:\n{}", waiting.status()))),
        });
        match most {
            None => Ok(ended.await),
            Some(most) => Ok(tokio::time::timeout(most, ended).await.unwrap_or_else(|_| {
                ToolOutput::text(format!("Not done after {} s:\n{}", most.as_secs_f64(), waiting.status()))
            })),
        }
    }

    async fn cancel(&self, cx: &RunCx, child: &Arc<Child>) -> Result<ToolOutput> {
        if !child.is_live() {
            return Ok(ToolOutput::text(child.status()));
        }
        child.give_up();
        SubRuns::of(cx).report(&child.run, None)?;
        let stopped = || (!child.is_running()).then_some(());
        self.offer.family(cx).watch(stopped).await;
        Ok(ToolOutput::text(child.status()))
    }

    /// Returns the background sub-agent with this id.
    async fn child(&self, cx: &RunCx, id: Option<&str>) -> Result<Arc<Child>> {
        let found = id.and_then(|id| self.offer.family(cx).children(Some(id)).pop());
        match found {
            Some(child) => Ok(child),
            None => {
                let ids: Vec<_> = self.offer.family(cx).children(None).iter().map(|child| child.status()).collect();
                let ids = if ids.is_empty() { "none".to_owned() } else { ids.join("; ") };
                let id = id.unwrap_or_default();
                Err(Error::tool(format!(
                    "No sub-agent with the id '{id}' is in the background. In the background: {ids}"
                )))
            }
        }
    }
}

#[async_trait]
impl Tool for Manage {
    fn spec(&self) -> ToolSpec {
        let tool = &self.offer.config.tool;
        let id = json!({"type": "string", "description": "The sub-agent's id."});
        let (name, description, properties, required) = match self.what {
            What::Status => ("status", "Says how far the agents in the background are.", json!({"id": id}), json!([])),
            What::Wait => {
                let seconds =
                    json!({"type": "number", "minimum": 0, "description": "Wait no longer. Default: no limit."});
                let what = "Waits for an agent in the background and returns its answer; without an id for the first that \
                            is done.";
                ("wait", what, json!({"id": id, "seconds": seconds}), json!([]))
            }
            What::Steer => {
                let message = json!({"type": "string", "description": "What it should know or do."});
                let what = "Tells an agent in the background something while it works.";
                ("steer", what, json!({"id": id, "message": message}), json!(["id", "message"]))
            }
            What::Cancel => ("cancel", "Cancels an agent in the background.", json!({"id": id}), json!(["id"])),
        };
        let parameters =
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        ToolSpec::new(format!("{tool}_{name}"), description, parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(match self.what {
            What::Status | What::Wait => Effect::Pure,
            What::Steer => Effect::Reconcilable,
            What::Cancel => Effect::Idempotent,
        })
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Args { id, message, seconds } = req.parse()?;
        let (cx, id) = (&req.cx, id.as_deref().filter(|id| !id.trim().is_empty()));
        match self.what {
            What::Status => self.status(cx, id).await,
            What::Wait => {
                let most = seconds.map(Duration::try_from_secs_f64).transpose();
                let most = most.map_err(|_| Error::tool("seconds must be a number of seconds that is not negative"))?;
                self.wait(cx, id, most).await
            }
            What::Steer => {
                let child = self.child(cx, id).await?;
                child.handle.steer(Message::user(message.unwrap_or_default())).map_err(|_| over(&child))?;
                Ok(ToolOutput::text("It is told before its next step."))
            }
            What::Cancel => {
                let child = self.child(cx, id).await?;
                self.cancel(cx, &child).await
            }
        }
    }

    /// Checks whether the journal contains the message to the sub-agent.
    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let Args { id, message, .. } = req.parse()?;
        let (id, message) = (id.unwrap_or_default(), Message::user(message.unwrap_or_default()));
        let (cx, mut told, mut runs) = (&req.cx, false, Vec::new());
        SubRuns::of(cx)
            .each_entry(|entry| match &entry.body {
                EntryBody::RunStarted { ids, .. } if *ids.agent_id == *id => runs.push(ids.run_id.clone()),
                EntryBody::ToolStarted { call_id, .. } if entry.run == cx.ids().run_id && *call_id == req.call.id => {
                    told = false;
                }
                EntryBody::Steered { message: kept } => told |= runs.contains(&entry.run) && *kept == message,
                _ => {}
            })
            .await?;
        Ok(match told {
            true => Reconciled::Happened(ToolOutput::text("It is told before its next step.")),
            false => Reconciled::DidNot,
        })
    }
}

fn over(child: &Child) -> Error {
    let Child { key, id, .. } = child;
    Error::tool(format!("Sub-agent '{key}' is over: call it again with the id {id} and the message."))
}

/// Reports a sub-agent that is not in the background of this run, as recorded in the journal.
async fn past(cx: &RunCx, id: &str) -> Result<ToolOutput> {
    let known = SubRuns::of(cx).known().await?;
    let Some(SubAgentRecord { key, status, answer, .. }) = known.iter().find(|record| *record.id == *id) else {
        let ids: Vec<_> = known.iter().map(|record| &*record.id).collect();
        let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        let message = format!("No sub-agent with the id '{id}' was called in this conversation. Ids so far: {ids}");
        return Err(Error::new(ErrorKind::SubAgentNotFound, message));
    };
    let how = match status {
        Some(RunStatus::Finished(_)) => format!("done.\n\n{}", answer.as_deref().unwrap_or_default()),
        Some(RunStatus::Failed) => "failed; it can be called again with its id".to_owned(),
        Some(RunStatus::Cancelled) => "cancelled; it can be called again with its id".to_owned(),
        _ => "not under way; it can be called again with its id".to_owned(),
    };
    let value = json!({"agent": key, "id": id, "answer": answer.as_ref().map_or(Value::Null, |text| json!(text))});
    Ok(ToolOutput::value(value).shown_as(vec![format!("{key} (id {id}): {how}").into()]))
}
