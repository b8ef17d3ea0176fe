//! A chat of several agents.

use std::{fmt, sync::Arc};

use agent_core::{Error, Result};
use agent_exec::Agent;

use super::{PatternEnd, PatternReason, Scope, at_least_one, part};

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

/// A chat in which a function selects the next speaker by name. It ends when the function returns
/// `None`, or after a number of rounds, which is required: a chat without a limit may never end.
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
    select: Select,
    rounds: usize,
}

impl GroupChat {
    /// Creates a chat of at most this number of contributions.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no agents or no rounds.
    pub fn new(
        agents: impl IntoIterator<Item = Agent>,
        select: impl Fn(&[Said]) -> Option<String> + Send + Sync + 'static,
        rounds: usize,
    ) -> Result<Self> {
        let agents: Vec<_> = agents.into_iter().collect();
        at_least_one("the number of agents", agents.len())?;
        at_least_one("the number of rounds", rounds)?;
        Ok(Self { agents, select: Arc::new(select), rounds })
    }

    /// Runs the chat on a topic; the result is the last contribution.
    ///
    /// # Errors
    /// Those of the runs; [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the function names no agent.
    pub async fn run(&self, scope: &Scope, topic: impl Into<String>) -> Result<PatternEnd> {
        let (topic, mut said, mut parts) = (topic.into(), Vec::<Said>::new(), Vec::new());
        let mut reason = PatternReason::Rounds;
        for round in 1..=self.rounds {
            let Some(name) = (self.select)(&said) else {
                reason = PatternReason::Done;
                break;
            };
            let speaker = self.agents.iter().find(|agent| agent.name() == name);
            let speaker =
                speaker.ok_or_else(|| Error::tool(format!("the selector chose '{name}', which is no agent")))?;
            let heard: String = said.iter().map(|said| format!("\n\n{}: {}", said.by, said.text)).collect();
            let end = part::run(speaker, scope, format!("{round}-{name}"), format!("{topic}{heard}")).await?;
            said.push(Said { by: name, text: end.text.clone() });
            parts.push(end);
        }
        if reason == PatternReason::Rounds && (self.select)(&said).is_none() {
            reason = PatternReason::Done;
        }
        let text = said.pop().map(|last| last.text).unwrap_or_default();
        Ok(PatternEnd { reason, ..PatternEnd::new(text, parts) })
    }
}

impl fmt::Debug for GroupChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agents, rounds) = (&self.agents, &self.rounds);
        f.debug_struct("GroupChat").field("agents", agents).field("rounds", rounds).finish_non_exhaustive()
    }
}
