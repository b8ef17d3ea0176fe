//! Patterns over agents: small compositions, each with an end condition that is checked when it is built.
//!
//! | pattern | agents | ends |
//! |---|---|---|
//! | [`Sequence`] | each receives the text of the one before | after the last |
//! | [`Parallel`] | all receive the input; a merge combines their texts | when all have ended |
//! | [`Router`] | one of several receives the input | when it has ended |
//! | [`MapReduce`] | one for each part of the input, a bounded number at a time; one combines | after the reducer |
//! | [`Debate`] | several argue in rounds, a judge decides | after the rounds |
//! | [`Optimiser`] | one writes, one evaluates | when a draft is accepted, or after the rounds |
//! | [`GroupChat`] | a function selects who speaks next | when the selector returns `None`, or after the rounds |
//!
//! A pattern runs in a [`Scope`]: a session and a run id. Each part is a run of its agent in a session of
//! its own, named after the scope and the part. If the agents have a store, a pattern that runs again
//! in the same scope, for example after a crash, repeats no part that finished and resumes those that
//! did not. The functions given to a pattern run again, and must return the same results.
//!
//! ```
//! use agent_core::testing::{ScriptedModel, Turn};
//! use agent_exec::Agent;
//! use agent_team::pattern::{Scope, Sequence};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let agent = |name: &str, text: &str| Agent::builder(name, ScriptedModel::new([Turn::text(text)])).build();
//! let sequence = Sequence::new([agent("writer", "a draft")?, agent("editor", "a text")?])?;
//! let end = sequence.run(&Scope::new("ada/post", "r1"), "Write a post.").await?;
//! assert_eq!((end.text.as_str(), end.parts.len()), ("a text", 2));
//! # Ok::<(), agent_core::Error>(()) }).unwrap();
//! ```

mod any;
mod chat;
mod fan_out;
mod magentic;
mod part;
mod rounds;
mod sequence;
mod supervisor;
mod swarm;

use std::{fmt, sync::Arc};

use agent_core::{Error, Result, Usage};
use agent_exec::Agent;
use serde::{Deserialize, Serialize};

pub(crate) use self::part::PartLog;
pub use self::{
    any::Pattern,
    chat::{GroupChat, Said},
    fan_out::{MapReduce, Parallel},
    magentic::{Magentic, MagenticBuilder},
    rounds::{Debate, Optimiser},
    sequence::{Router, Sequence},
    supervisor::Supervisor,
    swarm::Swarm,
};

/// The place of a pattern's runs: a session, and the id of one use of the pattern in it.
#[derive(Clone)]
pub struct Scope {
    session: Arc<str>,
    run: Arc<str>,
    /// The team that runs the pattern, if one does.
    team: Option<Arc<PartLog>>,
}

impl Scope {
    /// Creates a scope. A pattern that runs again with the same session and run id continues where it
    /// stopped.
    pub fn new(session: impl Into<Arc<str>>, run: impl Into<Arc<str>>) -> Self {
        Self { session: session.into(), run: run.into(), team: None }
    }

    /// Makes the parts turns of members of a team.
    pub(crate) fn of_team(mut self, team: PartLog) -> Self {
        self.team = Some(Arc::new(team));
        self
    }

    /// Creates the scope of a pattern within this one, for patterns as parts of others.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        let (session, run) = (format!("{}:{name}", self.session), format!("{}-{name}", self.run));
        Self { session: session.into(), run: run.into(), team: self.team.clone() }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("session", &self.session).field("run", &self.run).finish_non_exhaustive()
    }
}

/// One finished part of a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartEnd {
    /// Name of the part, such as `2-editor`.
    pub name: String,
    /// Text of the answer.
    pub text: String,
    /// Usage of the run.
    pub usage: Usage,
}

/// Reason why a pattern ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PatternReason {
    /// The pattern is complete.
    Done,
    /// The limit on rounds was reached first.
    Rounds,
    /// The work made no progress, and planning again did not help.
    Stalled,
}

/// End of a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PatternEnd {
    /// Text of the result.
    pub text: String,
    /// Reason of the end.
    pub reason: PatternReason,
    /// All parts, in the order of their names in the pattern.
    pub parts: Vec<PartEnd>,
    /// Usage of all parts.
    pub usage: Usage,
}

impl PatternEnd {
    fn new(text: impl Into<String>, parts: Vec<PartEnd>) -> Self {
        let mut usage = Usage::default();
        parts.iter().for_each(|part| usage += part.usage);
        Self { text: text.into(), reason: PatternReason::Done, parts, usage }
    }
}

/// An agent with a description for the model that chooses it.
#[derive(Clone, Debug)]
struct Described {
    agent: Agent,
    description: String,
}

impl Described {
    fn new(agent: Agent, description: impl Into<String>) -> Self {
        Self { agent, description: description.into() }
    }
}

/// A list of agents for a prompt, one a line.
fn described(agents: &[Described]) -> String {
    let line = |agent: &Described| match agent.description.is_empty() {
        true => format!("\n- {}", agent.agent.name()),
        false => format!("\n- {}: {}", agent.agent.name(), agent.description),
    };
    agents.iter().map(line).collect()
}

/// Refuses a limit of zero: the pattern would never do anything.
fn at_least_one(name: &str, count: usize) -> Result<()> {
    match count {
        0 => Err(Error::config(format!("{name} must be at least 1"))),
        _ => Ok(()),
    }
}
