//! [`Team`] and its builder.

mod agent;
mod builder;

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{Error, Journal, Result};
use agent_exec::Agent;
use tower::Service;

pub use self::builder::TeamBuilder;
use crate::{
    end::TeamEnd,
    parts::{Parts, Plan},
    pattern::Pattern,
    request::TeamRequest,
    run::TeamRun,
    session::TeamSession,
};

/// A team: a leader and the roles that it can spawn, with a task board and mailboxes. Cheap to clone.
/// Implements `tower::Service`.
///
/// Each member is an agent with a session of its own. A member that has nothing to do ends its turn and
/// uses no process; a message starts its next turn, with all messages that arrived since. The team's
/// state is the fold of its journal: after a crash, a run of the same session resumes every member
/// where it was, and no message or claim is lost or repeated.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::{Team, TeamEndReason};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let leader = ScriptedModel::new([
///     Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
///     Turn::call("2", "create_task", json!({"title": "Build it"})),
///     Turn::call("3", "claim_task", json!({"task_id": "T-001", "assignee_agent_id": "builder-1"})),
///     Turn::text("The builder is at work."),
///     Turn::call("4", "finish_team", json!({"summary": "It is built."})),
/// ]);
/// let builder = ScriptedModel::new([
///     Turn::call("1", "update_task_status", json!({"task_id": "T-001", "status": "completed"})),
///     Turn::call("2", "message", json!({"to_agent_id": "leader", "content": "Done."})),
///     Turn::text("I built it."),
/// ]);
/// let team = Team::builder("release")
///     .leader(Agent::builder("lead", leader).build()?)
///     .member("builder", Agent::builder("builder", builder).build()?)
///     .build()?;
///
/// let end = team.run("Build the release.").await?;
/// assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "It is built."));
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Team(Arc<Parts>);

impl Team {
    /// Returns a builder for a team with this name.
    pub fn builder(name: impl Into<String>) -> TeamBuilder {
        TeamBuilder::new(name.into())
    }

    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Name of the team.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The store of the team's session and of its members' sessions.
    pub fn store(&self) -> &Arc<dyn Journal> {
        &self.0.store
    }

    /// The leader's agent, with the tools of the team; `None` if the team runs a pattern.
    pub fn leader(&self) -> Option<&Agent> {
        match &self.0.plan {
            Plan::Leader(leader) => Some(leader),
            Plan::Pattern(_) => None,
        }
    }

    /// The pattern that the team runs; `None` if a leader plans.
    pub fn pattern(&self) -> Option<&Pattern> {
        match &self.0.plan {
            Plan::Leader(_) => None,
            Plan::Pattern(pattern) => Some(pattern),
        }
    }

    /// The roles that the leader can spawn, with their agents.
    pub fn roles(&self) -> impl Iterator<Item = (&str, &Agent)> {
        self.0.roles.iter().map(|(role, agent)| (role.as_str(), agent))
    }

    /// Runs on one message to the leader, in a new session, and waits for the end.
    ///
    /// # Errors
    /// Those of [`TeamRun`].
    pub async fn run(&self, text: impl Into<String>) -> Result<TeamEnd> {
        self.start(TeamRequest::user(text)).await
    }

    /// Prepares a run. Nothing happens until the [`TeamRun`] is awaited or read.
    pub fn start(&self, request: TeamRequest) -> TeamRun {
        TeamRun::new(self.0.clone(), request)
    }

    /// Returns a session of the team, to observe it, to send messages and to answer questions, from any
    /// process, whether or not a run is in progress.
    pub fn session(&self, name: impl Into<Arc<str>>) -> TeamSession {
        TeamSession::new(self.0.clone(), name.into())
    }
}

impl Service<TeamRequest> for Team {
    type Response = TeamEnd;
    type Error = Error;
    type Future = TeamRun;

    /// Always ready. Wrap the team in tower layers to limit it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: TeamRequest) -> TeamRun {
        self.start(request)
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles: Vec<_> = self.0.roles.keys().collect();
        f.debug_struct("Team").field("name", &self.0.name).field("roles", &roles).finish_non_exhaustive()
    }
}
