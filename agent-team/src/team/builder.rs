//! [`TeamBuilder`].

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use agent_core::{Budget, Caps, Error, Journal, MemoryJournal, Result, run::Clock};
use agent_exec::{Agent, AgentBuilder, Drain};

use super::Team;
use crate::{
    member::LEADER,
    parts::{Parts, Plan},
    pattern::Pattern,
    settings::Settings,
    tools::TeamTool,
};

/// Builder of a [`Team`]; [`build`](Self::build) checks the settings.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct TeamBuilder {
    name: String,
    leader: Option<Agent>,
    pattern: Option<Pattern>,
    roles: Vec<(String, Agent)>,
    descriptions: BTreeMap<String, String>,
    settings: Settings,
    store: Option<Arc<dyn Journal>>,
    clock: Clock,
    idle_after: Duration,
    budget: Option<Budget>,
    caps: Option<Caps>,
    concurrency: Option<usize>,
    drain: Option<Drain>,
    problems: Vec<String>,
}

impl TeamBuilder {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            leader: None,
            pattern: None,
            roles: Vec::new(),
            descriptions: BTreeMap::new(),
            settings: Settings::default(),
            store: None,
            clock: Clock::default(),
            idle_after: Duration::from_secs(10),
            budget: None,
            caps: None,
            concurrency: None,
            drain: None,
            problems: Vec::new(),
        }
    }

    /// Sets the agent that leads the team. Its id in the team is `leader`.
    pub fn leader(mut self, agent: Agent) -> Self {
        self.leader = Some(agent);
        self
    }

    /// Sets the pattern that the team runs in place of a leader. Each part of the pattern is a turn of a
    /// member, so that events, questions, budgets and recovery are those of a team.
    ///
    /// ```
    /// use agent_core::testing::{ScriptedModel, Turn};
    /// use agent_exec::Agent;
    /// use agent_team::{Team, TeamEndReason, pattern::Sequence};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let agent = |name: &str, text: &str| Agent::builder(name, ScriptedModel::new([Turn::text(text)])).build();
    /// let sequence = Sequence::new([agent("writer", "a draft")?, agent("editor", "a text")?])?;
    /// let end = Team::builder("post").pattern(sequence).build()?.run("Write a post.").await?;
    /// assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "a text"));
    /// assert_eq!(end.members[1].id.as_ref(), "2-editor");
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    pub fn pattern(mut self, pattern: impl Into<Pattern>) -> Self {
        self.pattern = Some(pattern.into());
        self
    }

    /// Declares a role that the leader can spawn, any number of times, and its agent.
    pub fn member(mut self, role: impl Into<String>, agent: Agent) -> Self {
        self.roles.push((role.into(), agent));
        self
    }

    /// Describes a role to the leader's model: what its members are good at.
    pub fn describe(mut self, role: impl Into<String>, description: impl Into<String>) -> Self {
        self.descriptions.insert(role.into(), description.into());
        self
    }

    /// Sets the maximum number of members besides the leader at one time. Default: 10.
    pub fn max_members(mut self, most: u32) -> Self {
        self.settings.max_members = most;
        self
    }

    /// Sets the maximum number of turns of all members together in one run. Default: unlimited.
    pub fn max_rounds(mut self, most: u32) -> Self {
        self.settings.max_rounds = Some(most);
        self
    }

    /// Sets the number of consecutive turns without progress after which an idle team ends as
    /// quiescent. Between these turns the leader is notified that nobody works. With 1, the leader's
    /// first text in an idle team ends the run. Default: 3.
    pub fn max_idle_turns(mut self, most: u32) -> Self {
        self.settings.max_idle_turns = most;
        self
    }

    /// Sets the time for which all members must be idle before the leader is notified. Messages of the
    /// user within that time resume the team without a notice. Default: 10 seconds.
    pub fn idle_after(mut self, time: Duration) -> Self {
        self.idle_after = time;
        self
    }

    /// Sets the time after which the leader is notified of a turn that is still running, once per
    /// turn. Default: never.
    pub fn stall_after(mut self, time: Duration) -> Self {
        self.settings.stall_after = self.millis("stall_after", time);
        self
    }

    /// Sets the time limit of a run, from its start and over restarts. Default: none.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.settings.deadline = self.millis("deadline", limit);
        self
    }

    /// Sets the lease of claims: a task returns to the board if its owner has had no turn for this
    /// long. Default: none.
    pub fn task_lease(mut self, lease: Duration) -> Self {
        self.settings.task_lease = self.millis("task_lease", lease);
        self
    }

    /// Sets the folder of the tasks' deliverables, as members see it. Default: `tasks`.
    pub fn deliverables(mut self, folder: impl Into<String>) -> Self {
        self.settings.deliverables = folder.into();
        self
    }

    /// Sets the maximum number of turns at the same time. Default: unlimited.
    pub fn max_concurrent_turns(mut self, most: usize) -> Self {
        self.concurrency = Some(most);
        self
    }

    /// Sets the caps on each run of the team: on all its members together, over restarts. Tool calls
    /// of turns that ended before a restart do not count.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = Some(caps);
        self
    }

    /// Sets a budget that all runs of the team share.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the store of the team's session and of its members' sessions. Default: that of the leader's
    /// agent or of the pattern's first agent, or else memory.
    pub fn store(mut self, store: impl Journal) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the wall clock. Default: the system clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Lets `drain` stop the members' runs when the application shuts down.
    pub fn drain(mut self, drain: &Drain) -> Self {
        self.drain = Some(drain.clone());
        self
    }

    /// Builds the team. Each member's agent receives the team's tools and store.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is neither a leader nor a pattern, or both, for an invalid or
    /// duplicate role, for a description of an undeclared role, for a limit of zero, or if an agent
    /// has a tool with the name of a team tool.
    pub fn build(mut self) -> Result<Team> {
        self.check()?;
        let first = self.leader.as_ref().or_else(|| self.pattern.as_ref()?.agents().first().copied());
        let store = self.store.clone().or_else(|| first?.store().cloned());
        let store = store.unwrap_or_else(|| Arc::new(MemoryJournal::default()));
        let drain = self.drain.clone();
        let drained = |agent: AgentBuilder| match &drain {
            Some(drain) => agent.drain(drain),
            None => agent,
        };
        let on_store = |agent: &Agent| drained(agent.to_builder().store(store.clone()));
        let mut settings = self.settings;
        for (role, _) in &self.roles {
            settings.roles.insert(role.clone(), self.descriptions.get(role).cloned().unwrap_or_default());
        }
        let plan = match (self.leader.take(), self.pattern.take()) {
            (None, None) => {
                return Err(Error::config("a team needs a leader or a pattern: set it with leader(..) or pattern(..)"));
            }
            (Some(leader), _) => {
                let tools = TeamTool::of_leader(&settings.roles);
                Plan::Leader(on_store(&leader).tools(tools).build()?)
            }
            (None, Some(mut pattern)) => {
                settings.pattern = Some(pattern.name().to_owned());
                for agent in pattern.agents_mut() {
                    *agent = on_store(agent).build()?;
                }
                Plan::Pattern(pattern)
            }
        };
        let with_tools =
            |(role, agent): (String, Agent)| Ok((role, on_store(&agent).tools(TeamTool::of_member()).build()?));
        Ok(Team::new(Parts {
            name: self.name.into(),
            plan,
            roles: self.roles.into_iter().map(with_tools).collect::<Result<_>>()?,
            settings,
            store,
            clock: self.clock,
            idle_after: self.idle_after,
            budget: self.budget,
            caps: self.caps,
            concurrency: self.concurrency,
            drain: self.drain,
            running: std::sync::Mutex::default(),
        }))
    }

    fn check(&self) -> Result<()> {
        let mut problems = self.problems.clone();
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        if self.pattern.is_some() && (self.leader.is_some() || !self.roles.is_empty()) {
            problems.push("a pattern has no leader and no roles: leave them out".to_owned());
        }
        if self.name.is_empty() {
            problems.push("the name of the team is empty".to_owned());
        }
        for (at, (role, _)) in self.roles.iter().enumerate() {
            if role == LEADER {
                problems.push(format!("'{LEADER}' is the role of the leader: name the role differently"));
            } else if !is_name(role) {
                problems.push(format!("role '{role}': use letters, digits, '_' and '-'"));
            }
            if self.roles[..at].iter().any(|(earlier, _)| earlier == role) {
                problems.push(format!("role '{role}' is declared twice"));
            }
        }
        for role in self.descriptions.keys().filter(|role| !self.roles.iter().any(|(known, _)| known == *role)) {
            problems.push(format!("role '{role}' is described and not declared: add it with member(..)"));
        }
        let zero = [
            ("max_members", self.settings.max_members == 0),
            ("max_rounds", self.settings.max_rounds == Some(0)),
            ("max_idle_turns", self.settings.max_idle_turns == 0),
            ("max_concurrent_turns", self.concurrency == Some(0)),
        ];
        problems.extend(zero.into_iter().filter(|(_, is_zero)| *is_zero).map(|(name, _)| format!("{name} is 0")));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::config(format!("team '{}': {}", self.name, problems.join("; ")))),
        }
    }

    fn millis(&mut self, name: &str, time: Duration) -> Option<u64> {
        if time.is_zero() {
            self.problems.push(format!("{name} is 0"));
        }
        Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for TeamBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamBuilder")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
