//! One agent after the other, and one of several.

use std::fmt;

use agent_core::{Error, Result};
use agent_exec::Agent;

use super::{PatternEnd, Scope, at_least_one, part};

/// Agents that run one after the other; each receives the text of the one before.
#[derive(Clone, Debug)]
pub struct Sequence(pub(super) Vec<Agent>);

impl Sequence {
    /// Creates a sequence.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no agents.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Result<Self> {
        let agents: Vec<_> = agents.into_iter().collect();
        at_least_one("the number of agents", agents.len())?;
        Ok(Self(agents))
    }

    /// Runs the agents on a text.
    ///
    /// # Errors
    /// The first error of a run; the runs after it do not start.
    pub async fn run(&self, scope: &Scope, text: impl Into<String>) -> Result<PatternEnd> {
        let (mut text, mut parts) = (text.into(), Vec::new());
        for (at, agent) in self.0.iter().enumerate() {
            let name = format!("{}-{}", at + 1, agent.name());
            let end = part::run(agent, scope, name, text).await?;
            text = end.text.clone();
            parts.push(end);
        }
        Ok(PatternEnd::new(text, parts))
    }
}

/// Sends the input to one of several agents: a function of the input, or an agent, chooses.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::pattern::{Router, Scope};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let agent = |name: &str, text: &str| Agent::builder(name, ScriptedModel::new([Turn::text(text)])).build();
/// let router = Router::by(agent("chooser", "billing")?, [agent("billing", "Paid.")?, agent("support", "Fixed.")?])?;
/// assert_eq!(router.run(&Scope::new("s", "r"), "Where is my invoice?").await?.text, "Paid.");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Router {
    choose: Choose,
    agents: Vec<Agent>,
}

#[derive(Clone)]
enum Choose {
    Function(std::sync::Arc<dyn Fn(&str) -> String + Send + Sync>),
    Agent(Box<Agent>),
}

impl Router {
    /// Creates a router whose function returns the name of an agent.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no agents.
    pub fn new(
        choose: impl Fn(&str) -> String + Send + Sync + 'static,
        agents: impl IntoIterator<Item = Agent>,
    ) -> Result<Self> {
        Self::of(Choose::Function(std::sync::Arc::new(choose)), agents)
    }

    /// Creates a router whose agent answers with the name of an agent.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn by(chooser: Agent, agents: impl IntoIterator<Item = Agent>) -> Result<Self> {
        Self::of(Choose::Agent(Box::new(chooser)), agents)
    }

    fn of(choose: Choose, agents: impl IntoIterator<Item = Agent>) -> Result<Self> {
        let agents: Vec<_> = agents.into_iter().collect();
        at_least_one("the number of agents", agents.len())?;
        Ok(Self { choose, agents })
    }

    /// Runs the chosen agent on a text.
    ///
    /// # Errors
    /// Those of the runs; [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the choice names no agent.
    pub async fn run(&self, scope: &Scope, text: impl Into<String>) -> Result<PatternEnd> {
        let (text, mut parts) = (text.into(), Vec::new());
        let choice = match &self.choose {
            Choose::Function(choose) => choose(&text),
            Choose::Agent(chooser) => {
                let names = self.names();
                let asked =
                    format!("Which of these agents should answer: {names}? Answer with its name only.\n\n{text}");
                parts.push(part::run(chooser, scope, "choice".into(), asked).await?);
                parts[0].text.trim().to_owned()
            }
        };
        let chosen = self.agents.iter().find(|agent| agent.name() == choice);
        let chosen = chosen.ok_or_else(|| {
            Error::tool(format!("the router chose '{choice}', which is no agent; agents: {}", self.names()))
        })?;
        parts.push(part::run(chosen, scope, chosen.name().to_owned(), text).await?);
        let text = parts.last().map(|part| part.text.clone()).unwrap_or_default();
        Ok(PatternEnd::new(text, parts))
    }

    /// The agents, with the one that chooses.
    pub(super) fn each(&self) -> impl Iterator<Item = &Agent> {
        let chooser = match &self.choose {
            Choose::Function(_) => None,
            Choose::Agent(chooser) => Some(&**chooser),
        };
        chooser.into_iter().chain(&self.agents)
    }

    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut Agent> {
        let chooser = match &mut self.choose {
            Choose::Function(_) => None,
            Choose::Agent(chooser) => Some(&mut **chooser),
        };
        chooser.into_iter().chain(&mut self.agents)
    }

    fn names(&self) -> String {
        self.agents.iter().map(Agent::name).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("agents", &self.agents).finish_non_exhaustive()
    }
}
