//! Handoff: another agent takes over a conversation.

mod builder;
mod filter;
mod run;
mod transfer;

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent_core::{
    Error, ErrorKind, Journal, Message, Result, RunEnd, RunRequest,
    journal::EntryBody,
    run::{ExitReason, RunInput},
};
use serde_json::Value;

pub use self::{
    builder::{Handoff, HandoffsBuilder},
    filter::{HistoryFilter, last_messages, without_tools},
    run::HandoffRun,
};
use crate::Agent;

/// Agents that hand a conversation over to each other. Built by [`Handoffs::builder`]; cheap to clone.
///
/// Each agent gets a tool `transfer_to_<agent>` for every other one. When its model calls the tool,
/// its run ends, and the other agent continues the same conversation with its own instructions and
/// tools. The next message of the session goes to the agent that has the conversation then.
///
/// # Durability
///
/// All agents share one history per session, in the store of the first agent. The transfer is a tool
/// call in that history, and each run records its agent; so readers, [replays](RunRequest::replay)
/// by [`agent`](Self::agent), and a process that [resumes](Self::recover) after a crash know which
/// agent is [active](Self::active). A crash between two agents neither loses nor repeats a transfer:
/// the id of the next run derives from the run that transferred.
///
/// # Limits
///
/// Deadlines and `RunRequest::caps` apply to the run of each agent. To limit the whole, give the
/// request a shared [`budget`](RunRequest::budget).
///
/// ```
/// use agent_core::{MemoryJournal, RunRequest, testing::{ScriptedModel, Turn}};
/// use agent_exec::{Agent, handoff::{Handoff, Handoffs}};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let triage = ScriptedModel::new([Turn::call("c1", "transfer_to_billing", json!({"reason": "an invoice"}))]);
/// let billing = ScriptedModel::new([Turn::text("The invoice is corrected.")]);
/// let triage = Agent::builder("triage", triage).store(MemoryJournal::default()).build()?;
/// let billing = Agent::builder("billing", billing).build()?;
/// let desk = Handoffs::builder(triage).agent(Handoff::to(billing, "Invoices and payments.")).build()?;
///
/// let end = desk.run(RunRequest::user("My invoice is wrong.").session("ada")).await?;
/// assert_eq!(end.text()?, "The invoice is corrected.");
/// assert_eq!(desk.active("ada").await?, "billing");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Handoffs {
    parts: Arc<Parts>,
}

struct Parts {
    agents: BTreeMap<Arc<str>, Agent>,
    first: Arc<str>,
    journal: Arc<dyn Journal>,
    max_handoffs: u32,
}

impl Handoffs {
    /// Returns a builder for a group whose conversations begin with the agent `first`, which must
    /// have a store.
    pub fn builder(first: Agent) -> HandoffsBuilder {
        HandoffsBuilder::new(first)
    }

    /// Returns the agent of this name, with its transfer tools.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.parts.agents.get(name)
    }

    /// Returns the name of the agent that the next message of the session goes to.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn active(&self, session: &str) -> Result<String> {
        Ok(self.next(session).await?.agent.to_string())
    }

    /// Runs a request to the end of the last agent.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub async fn run(&self, request: RunRequest) -> Result<RunEnd> {
        self.start(request).await
    }

    /// Starts a request with new messages, with the agent that is active in its session, or resumes a
    /// checkpoint with its agent. Without a session, the conversation gets a new one.
    ///
    /// # Errors
    /// The returned run fails with the errors of the runs; [`ErrorKind::Limit`] after too many
    /// transfers without an answer; [`ErrorKind::Config`] for a child run, a replay, or a request
    /// with an [`agent_id`](RunRequest::agent_id).
    pub fn start(&self, request: RunRequest) -> HandoffRun {
        HandoffRun::new(self.clone(), request)
    }

    /// Resumes the newest run of the session from the store, also if its process ended between two
    /// agents. `answers` are those to its questions, by question id.
    pub fn recover(
        &self,
        session: impl Into<Arc<str>>,
        answers: impl IntoIterator<Item = (String, Value)>,
    ) -> HandoffRun {
        self.start(RunRequest::recover(session, answers))
    }

    /// Returns the next step of the session.
    async fn next(&self, session: &str) -> Result<Next> {
        let first = || Next { agent: self.parts.first.clone(), transfer: None };
        let index = self.parts.journal.index(session).await?;
        let newest = index.look(|index| {
            let run = index.runs(&self.parts.first).iter().rfind(|run| !run.undone && !run.is_edit)?;
            let target = transfer::target(&index.history(&self.parts.first));
            Some((run.run_id.clone(), run.seq, run.ended.is_some(), target))
        });
        let Some((run, seq, is_over, target)) = newest else { return Ok(first()) };
        if let Some(target) = target.filter(|target| is_over && self.parts.agents.contains_key(target)) {
            return Ok(Next { agent: target, transfer: Some(run) });
        }
        let entries = self.parts.journal.read(session, seq - 1, 1).await?;
        let agent = entries.first().and_then(|entry| match &entry.body {
            EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } => Some(ids.agent.clone()),
            _ => None,
        });
        let agent = agent.filter(|agent| self.parts.agents.contains_key(agent));
        Ok(agent.map_or_else(first, |agent| Next { agent, transfer: None }))
    }

    /// Chooses the agent of a request and completes the request for it.
    async fn route(&self, mut request: RunRequest) -> Result<(Agent, RunRequest)> {
        self.check(&request)?;
        request.agent_id = Some(self.parts.first.clone());
        let name = match &request.input {
            RunInput::Resume { checkpoint, .. } => checkpoint.ids.agent.clone(),
            RunInput::Recover { .. } => {
                let session = request.session.clone().unwrap_or_default();
                let next = self.next(&session).await?;
                if let Some(run) = next.transfer {
                    request = continued(&request, &run, session);
                }
                next.agent
            }
            _ => {
                let session = request.session.get_or_insert_with(|| agent_core::run::new_id().into());
                self.next(session).await?.agent
            }
        };
        let known = || format!("agent '{name}' is not part of this group: {}", self.names().join(", "));
        let agent = self.agent(&name).ok_or_else(|| Error::config(known()))?;
        Ok((agent.clone(), request))
    }

    fn check(&self, request: &RunRequest) -> Result<()> {
        let refused = match () {
            () if request.parent.is_some() => "a sub-agent cannot hand over: let the caller run the group",
            () if request.agent_id.is_some() => "the agents of a group share one agent id: leave agent_id out",
            () if matches!(request.input, RunInput::Replay) => "replay a run with its own agent: Handoffs::agent(name)",
            () => return Ok(()),
        };
        Err(Error::config(refused))
    }

    fn names(&self) -> Vec<&str> {
        self.parts.agents.keys().map(|name| &**name).collect()
    }

    /// Returns the agent and the request that follow an end, if the run ended with a transfer.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if there were `done` transfers, the most that the group allows.
    fn follow(&self, end: &RunEnd, request: &RunRequest, done: u32) -> Result<Option<(Agent, RunRequest)>> {
        let RunEnd::Finished(finished) = end else { return Ok(None) };
        if !matches!(&finished.reason, ExitReason::Tool(_)) {
            return Ok(None);
        }
        let target = transfer::target(&finished.history);
        let Some(agent) = target.and_then(|target| self.parts.agents.get(&target)) else { return Ok(None) };
        if done >= self.parts.max_handoffs {
            let message = format!("the agents transferred the conversation {done} times without an answer");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let request = continued(request, &finished.ids.run_id, finished.ids.session.clone());
        Ok(Some((agent.clone(), request)))
    }
}

/// The agent that continues a session, and the run that transferred to it, if its own run has not
/// begun.
struct Next {
    agent: Arc<str>,
    transfer: Option<Arc<str>>,
}

/// Creates the request with which the conversation continues after the run `run` transferred it:
/// without new messages, and with the options of `request` that are not about one agent (its prompts,
/// its tools, its state).
fn continued(request: &RunRequest, run: &str, session: Arc<str>) -> RunRequest {
    let mut next = request.clone();
    next.input = RunInput::Messages(Vec::<Message>::new());
    (next.system_prompt, next.user_prompt, next.tools) = (None, None, Default::default());
    next.state.clear();
    next.run_id = Some(format!("{run}+").into());
    next.session = Some(session);
    next
}

impl fmt::Debug for Handoffs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoffs").field("agents", &self.names()).finish_non_exhaustive()
    }
}
