//! Several agents at the same time.

use std::{fmt, sync::Arc};

use agent_core::Result;
use agent_exec::Agent;
use futures::{StreamExt, TryStreamExt, stream};

use super::{PartEnd, PatternEnd, Scope, at_least_one, part};

type Merge = Arc<dyn Fn(&[PartEnd]) -> String + Send + Sync>;
type Split = Arc<dyn Fn(&str) -> Vec<String> + Send + Sync>;

/// Runs parts, at most `most` at the same time, and returns their ends in order.
async fn all(scope: &Scope, parts: Vec<(Agent, String, String)>, most: usize) -> Result<Vec<PartEnd>> {
    let runs = parts.into_iter().map(|(agent, name, text)| async move { part::run(&agent, scope, name, text).await });
    stream::iter(runs).buffered(most).try_collect().await
}

/// Agents that all receive the input, at the same time. A function merges their texts.
#[derive(Clone)]
pub struct Parallel {
    pub(super) agents: Vec<Agent>,
    merge: Merge,
}

impl Parallel {
    /// Creates a pattern whose result joins the texts with blank lines, in the order of the agents.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no agents.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Result<Self> {
        let agents: Vec<_> = agents.into_iter().collect();
        at_least_one("the number of agents", agents.len())?;
        Ok(Self { agents, merge: Arc::new(joined) })
    }

    /// Sets the function that merges the texts.
    #[must_use]
    pub fn merge(mut self, merge: impl Fn(&[PartEnd]) -> String + Send + Sync + 'static) -> Self {
        self.merge = Arc::new(merge);
        self
    }

    /// Runs the agents on a text.
    ///
    /// # Errors
    /// The first error of a run; the others are dropped, and resume if the pattern runs again.
    pub async fn run(&self, scope: &Scope, text: impl Into<String>) -> Result<PatternEnd> {
        let text = text.into();
        let part = |(at, agent): (usize, &Agent)| (agent.clone(), format!("{}-{}", at + 1, agent.name()), text.clone());
        let parts = self.agents.iter().enumerate().map(part).collect();
        let ends = all(scope, parts, self.agents.len()).await?;
        Ok(PatternEnd::new((self.merge)(&ends), ends))
    }
}

fn joined(parts: &[PartEnd]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

/// Splits the input into parts, runs an agent on each, and another agent on their joined texts.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::pattern::{MapReduce, Scope};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let counter = Agent::builder("counter", ScriptedModel::new([Turn::text("3"), Turn::text("4")])).build()?;
/// let adder = Agent::builder("adder", ScriptedModel::new([Turn::text("7")])).build()?;
/// let lines = |text: &str| text.lines().map(str::to_owned).collect();
/// let words = MapReduce::new(lines, counter, adder, 1)?;
/// assert_eq!(words.run(&Scope::new("s", "r"), "to be or\nnot to be then").await?.text, "7");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct MapReduce {
    split: Split,
    pub(super) mapper: Agent,
    pub(super) reducer: Agent,
    concurrency: usize,
}

impl MapReduce {
    /// Creates a pattern that runs at most `concurrency` parts at the same time.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `concurrency` is 0.
    pub fn new(
        split: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
        mapper: Agent,
        reducer: Agent,
        concurrency: usize,
    ) -> Result<Self> {
        at_least_one("concurrency", concurrency)?;
        Ok(Self { split: Arc::new(split), mapper, reducer, concurrency })
    }

    /// Runs the pattern on a text.
    ///
    /// # Errors
    /// The first error of a run; the others are dropped, and resume if the pattern runs again.
    pub async fn run(&self, scope: &Scope, text: impl Into<String>) -> Result<PatternEnd> {
        let split = (self.split)(&text.into());
        let part = |(at, text): (usize, String)| (self.mapper.clone(), format!("map-{}", at + 1), text);
        let parts = split.into_iter().enumerate().map(part).collect();
        let mut ends = all(scope, parts, self.concurrency).await?;
        let reduced = part::run(&self.reducer, scope, "reduce".into(), joined(&ends)).await?;
        let text = reduced.text.clone();
        ends.push(reduced);
        Ok(PatternEnd::new(text, ends))
    }
}

impl fmt::Debug for Parallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parallel").field("agents", &self.agents).finish_non_exhaustive()
    }
}

impl fmt::Debug for MapReduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mapper, reducer) = (&self.mapper, &self.reducer);
        f.debug_struct("MapReduce").field("mapper", mapper).field("reducer", reducer).finish_non_exhaustive()
    }
}
