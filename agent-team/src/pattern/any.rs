//! [`Pattern`]: one of the patterns.

use agent_core::Result;
use agent_exec::Agent;

use super::{
    Debate, GroupChat, Magentic, MapReduce, Optimiser, Parallel, PatternEnd, Router, Scope, Sequence, Supervisor, Swarm,
};

/// Any pattern, for code that stores or runs one without regard to its kind.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::pattern::{Pattern, Scope, Sequence};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let writer = Agent::builder("writer", ScriptedModel::new([Turn::text("a draft")])).build()?;
/// let pattern = Pattern::from(Sequence::new([writer])?);
/// assert_eq!(pattern.name(), "sequence");
/// assert_eq!(pattern.run(&Scope::new("s", "r"), "Write.").await?.text, "a draft");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Pattern {
    /// Agents that run one after the other.
    Sequence(Sequence),
    /// Agents that run at the same time.
    Parallel(Parallel),
    /// One of several agents.
    Router(Router),
    /// An agent on each part of the input, and another one on their results.
    MapReduce(MapReduce),
    /// Agents that argue, and a judge.
    Debate(Debate),
    /// A writer and an evaluator.
    Optimiser(Optimiser),
    /// Agents that speak in a selected order.
    GroupChat(GroupChat),
    /// A supervisor that gives tasks to workers.
    Supervisor(Supervisor),
    /// Agents that hand a conversation over to each other.
    Swarm(Swarm),
    /// A manager with a plan.
    Magentic(Magentic),
}

impl Pattern {
    /// Name of the pattern, such as `map_reduce`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sequence(_) => "sequence",
            Self::Parallel(_) => "parallel",
            Self::Router(_) => "router",
            Self::MapReduce(_) => "map_reduce",
            Self::Debate(_) => "debate",
            Self::Optimiser(_) => "optimiser",
            Self::GroupChat(_) => "group_chat",
            Self::Supervisor(_) => "supervisor",
            Self::Swarm(_) => "swarm",
            Self::Magentic(_) => "magentic",
        }
    }

    /// Runs the pattern on a text.
    ///
    /// # Errors
    /// Those of the pattern.
    pub async fn run(&self, scope: &Scope, text: impl Into<String>) -> Result<PatternEnd> {
        let text = text.into();
        match self {
            Self::Sequence(pattern) => pattern.run(scope, text).await,
            Self::Parallel(pattern) => pattern.run(scope, text).await,
            Self::Router(pattern) => pattern.run(scope, text).await,
            Self::MapReduce(pattern) => pattern.run(scope, text).await,
            Self::Debate(pattern) => pattern.run(scope, text).await,
            Self::Optimiser(pattern) => pattern.run(scope, text).await,
            Self::GroupChat(pattern) => pattern.run(scope, text).await,
            Self::Supervisor(pattern) => pattern.run(scope, text).await,
            Self::Swarm(pattern) => pattern.run(scope, text).await,
            Self::Magentic(pattern) => pattern.run(scope, text).await,
        }
    }

    /// The agents of the pattern.
    pub fn agents(&self) -> Vec<&Agent> {
        match self {
            Self::Sequence(pattern) => pattern.0.iter().collect(),
            Self::Parallel(pattern) => pattern.agents.iter().collect(),
            Self::Router(pattern) => pattern.each().collect(),
            Self::MapReduce(pattern) => vec![&pattern.mapper, &pattern.reducer],
            Self::Debate(pattern) => pattern.debaters.iter().chain([&pattern.judge]).collect(),
            Self::Optimiser(pattern) => vec![&pattern.writer, &pattern.evaluator],
            Self::GroupChat(pattern) => pattern.each().collect(),
            Self::Supervisor(pattern) => {
                let workers = pattern.workers.iter().map(|worker| &worker.agent);
                std::iter::once(&pattern.supervisor).chain(workers).collect()
            }
            Self::Swarm(pattern) => pattern.agents.iter().map(|agent| &agent.agent).collect(),
            Self::Magentic(pattern) => {
                let agents = pattern.agents.iter().map(|agent| &agent.agent);
                std::iter::once(&pattern.manager).chain(agents).chain(&pattern.approver).collect()
            }
        }
    }

    /// The agents, to be replaced by others of the same names.
    pub(crate) fn agents_mut(&mut self) -> Vec<&mut Agent> {
        match self {
            Self::Sequence(pattern) => pattern.0.iter_mut().collect(),
            Self::Parallel(pattern) => pattern.agents.iter_mut().collect(),
            Self::Router(pattern) => pattern.each_mut().collect(),
            Self::MapReduce(pattern) => vec![&mut pattern.mapper, &mut pattern.reducer],
            Self::Debate(pattern) => pattern.debaters.iter_mut().chain([&mut pattern.judge]).collect(),
            Self::Optimiser(pattern) => vec![&mut pattern.writer, &mut pattern.evaluator],
            Self::GroupChat(pattern) => pattern.each_mut().collect(),
            Self::Supervisor(pattern) => {
                let workers = pattern.workers.iter_mut().map(|worker| &mut worker.agent);
                std::iter::once(&mut pattern.supervisor).chain(workers).collect()
            }
            Self::Swarm(pattern) => pattern.agents.iter_mut().map(|agent| &mut agent.agent).collect(),
            Self::Magentic(pattern) => {
                let agents = pattern.agents.iter_mut().map(|agent| &mut agent.agent);
                std::iter::once(&mut pattern.manager).chain(agents).chain(&mut pattern.approver).collect()
            }
        }
    }
}

macro_rules! from_patterns {
    ($($pattern:ident,)*) => {$(
        impl From<$pattern> for Pattern {
            fn from(pattern: $pattern) -> Self {
                Self::$pattern(pattern)
            }
        }
    )*};
}

from_patterns! {
    Sequence, Parallel, Router, MapReduce, Debate, Optimiser, GroupChat, Supervisor, Swarm, Magentic,
}
