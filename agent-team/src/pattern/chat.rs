//! A chat of several agents.

use std::{fmt, sync::Arc};

use agent_core::{Error, Result};
use agent_exec::Agent;

use super::{PartEnd, PatternEnd, PatternReason, Scope, at_least_one, part};

/// One contribution to a [`GroupChat`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Said {
    /// Name of the agent.
    pub by: String,
    /// Text of the contribution.
    pub text: String,
}

type Select = Arc<dyn Fn(&[Said]) -> Option<String> + Send + Sync>;

/// Selection of the next speaker.
#[derive(Clone)]
enum Selector {
    Function(Select),
    Agent(Box<Agent>),
}

/// A chat in which a function, or an agent, selects the next speaker by name. It ends when the selector
/// says so, or after a number of rounds, which is required: a chat without a limit may never end.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::pattern::{GroupChat, PatternReason, Said, Scope};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let agent = |name: &str, text: &str| Agent::builder(name, ScriptedModel::new([Turn::text(text)])).build();
/// let in_turn = |said: &[Said]| ["ada", "bob"].get(said.len()).map(|name| (*name).to_owned());
/// let chat = GroupChat::new([agent("ada", "Tea?")?, agent("bob", "Coffee.")?], in_turn, 10)?;
/// let end = chat.run(&Scope::new("s", "r"), "What do we drink?").await?;
/// assert_eq!((end.text.as_str(), end.reason), ("Coffee.", PatternReason::Done));
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct GroupChat {
    agents: Vec<Agent>,
    select: Selector,
    until: Option<String>,
    rounds: usize,
}

impl GroupChat {
    /// Answer of a selecting agent that ends the chat.
    pub const DONE: &str = "DONE";

    /// Creates a chat of at most this number of contributions.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no agents or no rounds.
    pub fn new(
        agents: impl IntoIterator<Item = Agent>,
        select: impl Fn(&[Said]) -> Option<String> + Send + Sync + 'static,
        rounds: usize,
    ) -> Result<Self> {
        Self::of(agents.into_iter().collect(), Selector::Function(Arc::new(select)), rounds)
    }

    /// Creates a chat whose next speaker an agent selects: it answers with a name, or with
    /// [`DONE`](Self::DONE).
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn by(selector: Agent, agents: impl IntoIterator<Item = Agent>, rounds: usize) -> Result<Self> {
        Self::of(agents.into_iter().collect(), Selector::Agent(Box::new(selector)), rounds)
    }

    /// Creates a chat in which the agents speak in turn, in the given order.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn in_turn(agents: impl IntoIterator<Item = Agent>, rounds: usize) -> Result<Self> {
        let agents: Vec<_> = agents.into_iter().collect();
        let names: Vec<_> = agents.iter().map(|agent| agent.name().to_owned()).collect();
        let next = move |said: &[Said]| names.get(said.len() % names.len().max(1)).cloned();
        Self::of(agents, Selector::Function(Arc::new(next)), rounds)
    }

    /// Ends the chat after a contribution that contains this text.
    #[must_use]
    pub fn until(mut self, text: impl Into<String>) -> Self {
        self.until = Some(text.into());
        self
    }

    fn of(agents: Vec<Agent>, select: Selector, rounds: usize) -> Result<Self> {
        at_least_one("the number of agents", agents.len())?;
        at_least_one("the number of rounds", rounds)?;
        Ok(Self { agents, select, until: None, rounds })
    }

    /// Runs the chat on a topic; the result is the last contribution.
    ///
    /// # Errors
    /// Those of the runs; [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the function names no agent.
    pub async fn run(&self, scope: &Scope, topic: impl Into<String>) -> Result<PatternEnd> {
        let (topic, mut said, mut parts) = (topic.into(), Vec::<Said>::new(), Vec::new());
        let mut reason = PatternReason::Rounds;
        for round in 1..=self.rounds {
            let Some(name) = self.next(scope, round, &topic, &said, &mut parts).await? else {
                reason = PatternReason::Done;
                break;
            };
            let speaker = self.agents.iter().find(|agent| agent.name() == name);
            let speaker =
                speaker.ok_or_else(|| Error::tool(format!("the selector chose '{name}', which is no agent")))?;
            let end = part::run(speaker, scope, format!("{round}-{name}"), heard(&topic, &said)).await?;
            said.push(Said { by: name, text: end.text.clone() });
            parts.push(end);
            let last = said.last().map(|said| said.text.as_str()).unwrap_or_default();
            if self.until.as_ref().is_some_and(|until| last.contains(until.as_str())) {
                reason = PatternReason::Done;
                break;
            }
        }
        if let Selector::Function(select) = &self.select
            && reason == PatternReason::Rounds
            && select(&said).is_none()
        {
            reason = PatternReason::Done;
        }
        let text = said.pop().map(|last| last.text).unwrap_or_default();
        Ok(PatternEnd { reason, ..PatternEnd::new(text, parts) })
    }

    /// Name of the next speaker; `None` at the end of the chat.
    async fn next(
        &self,
        scope: &Scope,
        round: usize,
        topic: &str,
        said: &[Said],
        parts: &mut Vec<PartEnd>,
    ) -> Result<Option<String>> {
        let selector = match &self.select {
            Selector::Function(select) => return Ok(select(said)),
            Selector::Agent(selector) => selector,
        };
        let names = self.agents.iter().map(Agent::name).collect::<Vec<_>>().join(", ");
        let asked = format!(
            "Who speaks next: {names}? Answer with the name only, or with {} if the conversation has reached its \
             goal.\n\n{}",
            Self::DONE,
            heard(topic, said)
        );
        let choice = part::run(selector, scope, format!("{round}-select"), asked).await?;
        let name = choice.text.trim().to_owned();
        parts.push(choice);
        Ok((name != Self::DONE).then_some(name))
    }

    /// The agents, with the one that selects.
    pub(super) fn each(&self) -> impl Iterator<Item = &Agent> {
        let selector = match &self.select {
            Selector::Function(_) => None,
            Selector::Agent(selector) => Some(&**selector),
        };
        selector.into_iter().chain(&self.agents)
    }

    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut Agent> {
        let selector = match &mut self.select {
            Selector::Function(_) => None,
            Selector::Agent(selector) => Some(&mut **selector),
        };
        selector.into_iter().chain(&mut self.agents)
    }
}

/// The topic and all contributions.
fn heard(topic: &str, said: &[Said]) -> String {
    let said: String = said.iter().map(|said| format!("\n\n{}: {}", said.by, said.text)).collect();
    format!("{topic}{said}")
}

impl fmt::Debug for GroupChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agents, rounds) = (&self.agents, &self.rounds);
        f.debug_struct("GroupChat").field("agents", agents).field("rounds", rounds).finish_non_exhaustive()
    }
}
