//! Agents that hand a conversation over to each other.

use std::fmt;

use agent_core::{
    Effect, Error, ExitReason, Journal, MemoryJournal, Message, Result, RunEnd, RunRequest, Tool, ToolOptions,
    ToolOutput, ToolRequest, ToolSpec, async_trait, journal::RunStatus, run::Ask,
};
use agent_exec::{
    Agent,
    handoff::{Handoff, Handoffs},
};
use serde_json::json;

use super::{Described, PatternEnd, Scope, at_least_one, part};

/// Agents that hand the conversation over to each other, built on [`Handoffs`]. The next message of the
/// session goes to the agent that answered the last one.
///
/// ```
/// use agent_core::{MemoryJournal, testing::{ScriptedModel, Turn}};
/// use agent_exec::Agent;
/// use agent_team::pattern::{Scope, Swarm};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let triage = ScriptedModel::new([Turn::call("c1", "transfer_to_billing", json!({"reason": "an invoice"}))]);
/// let billing = ScriptedModel::new([Turn::text("It is corrected."), Turn::text("You are welcome.")]);
/// let triage = Agent::builder("triage", triage).store(MemoryJournal::default()).build()?;
/// let billing = Agent::builder("billing", billing).build()?;
/// let desk = Swarm::new(triage, "first questions", [(billing, "invoices")], 4)?;
/// assert_eq!(desk.run(&Scope::new("ada", "r1"), "My invoice is wrong.").await?.text, "It is corrected.");
/// assert_eq!(desk.run(&Scope::new("ada", "r2"), "Thanks.").await?.text, "You are welcome.");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Swarm {
    /// The agents, the first one first.
    pub(super) agents: Vec<Described>,
    max_handoffs: u32,
}

impl Swarm {
    /// Creates a group whose conversations begin with `first`. One message causes at most `max_handoffs`
    /// transfers. The agents share the store of the first one; without one, conversations last as long as
    /// the pattern.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no other agent, `max_handoffs` is 0, two agents have one name, or a
    /// name cannot be part of a tool name.
    pub fn new<D: Into<String>>(
        first: Agent,
        description: impl Into<String>,
        others: impl IntoIterator<Item = (Agent, D)>,
        max_handoffs: u32,
    ) -> Result<Self> {
        let first = match first.store() {
            Some(_) => first,
            None => first.to_builder().store(MemoryJournal::default()).build()?,
        };
        let others = others.into_iter().map(|(agent, about)| Described::new(agent, about));
        let swarm =
            Self { agents: std::iter::once(Described::new(first, description)).chain(others).collect(), max_handoffs };
        at_least_one("the number of other agents", swarm.agents.len() - 1)?;
        at_least_one("max_handoffs", max_handoffs as usize)?;
        swarm.handoffs()?;
        Ok(swarm)
    }

    /// Runs the active agent on a message, and those that it hands over to.
    ///
    /// # Errors
    /// Those of the runs; [`ErrorKind::Limit`](agent_core::ErrorKind::Limit) after too many transfers.
    pub async fn run(&self, scope: &Scope, text: impl Into<String>) -> Result<PatternEnd> {
        let handoffs = self.handoffs()?;
        let store = self.store()?;
        let tool = Converse { handoffs, store: store.clone(), first: self.agents[0].agent.name().to_owned() };
        let agent = Agent::of_tool("swarm", tool).store(store).build()?;
        let end = part::run(&agent, scope, "swarm".to_owned(), text.into()).await?;
        Ok(PatternEnd::new(end.text.clone(), vec![end]))
    }

    /// Name of the agent that the next message of a scope's session goes to.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn active(&self, scope: &Scope) -> Result<String> {
        self.handoffs()?.active(&agents_session(&scope.below("swarm").session)).await
    }

    fn store(&self) -> Result<std::sync::Arc<dyn Journal>> {
        let store = self.agents[0].agent.store().cloned();
        store.ok_or_else(|| Error::config("the first agent of a swarm has no store"))
    }

    fn handoffs(&self) -> Result<Handoffs> {
        let [first, others @ ..] = &self.agents[..] else { return Err(Error::config("a swarm has no agents")) };
        let group = Handoffs::builder(first.agent.clone()).max_handoffs(self.max_handoffs);
        let group = if first.description.is_empty() { group } else { group.back_to_first(&first.description) };
        let handoff = |other: &Described| Handoff::to(other.agent.clone(), &other.description);
        others.iter().map(handoff).fold(group, agent_exec::handoff::HandoffsBuilder::agent).build()
    }
}

/// Session of the agents' conversation.
fn agents_session(part: &str) -> String {
    format!("{part}:agents")
}

/// Tool that has the agents answer a message.
struct Converse {
    handoffs: Handoffs,
    store: std::sync::Arc<dyn Journal>,
    first: String,
}

/// State of the runs that a message caused.
enum Found {
    New,
    Open,
    Answered(String),
}

#[async_trait]
impl Tool for Converse {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"],
            "additionalProperties": false,
        });
        ToolSpec::new("converse", "Has the agents answer a message.", parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let ids = req.cx.ids();
        let (session, run) = (agents_session(&ids.session), format!("{}-{}", ids.run_id, req.cx.step()));
        let text = req.args["message"].as_str().unwrap_or_default();
        let mut request = match self.find(&session, &run).await? {
            Found::Answered(text) => return Ok(ToolOutput::text(text)),
            Found::Open => RunRequest::recover(session.clone(), []),
            Found::New => RunRequest::user(text).session(session.clone()).run_id(run),
        };
        loop {
            request.budget = Some(req.cx.budget().clone());
            let checkpoint = match self.handoffs.run(request).await? {
                RunEnd::Interrupted(checkpoint) => checkpoint,
                end => return Ok(ToolOutput::text(end.text()?)),
            };
            let mut answers = Vec::new();
            for question in &checkpoint.questions {
                let ask = Ask::new(&question.kind, question.payload.clone());
                let value = req.ask_with(ask.nonce(&question.id))?.value;
                answers.push(question.answer(value));
            }
            request = RunRequest::recover_with(session.clone(), answers);
        }
    }
}

impl Converse {
    /// Reads what the session has of the runs that began with `run`: each transfer adds a `+` to the id.
    async fn find(&self, session: &str, run: &str) -> Result<Found> {
        let index = self.store.index(session).await?;
        Ok(index.look(|index| {
            let is_of = |id: &str| id.strip_prefix(run).is_some_and(|rest| rest.chars().all(|c| c == '+'));
            let Some(last) = index.runs(&self.first).iter().rfind(|record| is_of(&record.run_id)) else {
                return Found::New;
            };
            match &last.status {
                Some(RunStatus::Finished(ExitReason::Tool(tool))) if tool.starts_with("transfer_to_") => Found::Open,
                Some(RunStatus::Finished(_)) => {
                    let history = index.history_after(&last.run_id).unwrap_or_default();
                    let said =
                        history.iter().rev().filter_map(Message::as_assistant).find(|message| message.has_text());
                    Found::Answered(said.map(agent_core::AssistantMessage::text).unwrap_or_default())
                }
                _ => Found::Open,
            }
        }))
    }
}

impl fmt::Debug for Converse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converse").field("handoffs", &self.handoffs).finish_non_exhaustive()
    }
}
