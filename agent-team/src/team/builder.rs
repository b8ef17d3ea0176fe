//! [`TeamBuilder`].

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use agent_core::{Budget, Caps, Error, Journal, MemoryJournal, Result, run::Clock};
use agent_exec::Agent;

use super::Team;
use crate::{member::LEADER, parts::Parts, settings::Settings, tools::TeamTool};

/// Builder of a [`Team`]; [`build`](Self::build) checks the settings.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct TeamBuilder {
    name: String,
    leader: Option<Agent>,
    roles: Vec<(String, Agent)>,
    descriptions: BTreeMap<String, String>,
    settings: Settings,
    store: Option<Arc<dyn Journal>>,
    clock: Clock,
    idle_after: Duration,
    budget: Option<Budget>,
    caps: Option<Caps>,
    concurrency: Option<usize>,
    problems: Vec<String>,
}

impl TeamBuilder {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            leader: None,
            roles: Vec::new(),
            descriptions: BTreeMap::new(),
            settings: Settings::default(),
            store: None,
            clock: Clock::default(),
            idle_after: Duration::from_secs(10),
            budget: None,
            caps: None,
            concurrency: None,
            problems: Vec::new(),
        }
    }

    /// Sets the agent that leads the team. Its id in the team is `leader`.
    pub fn leader(mut self, agent: Agent) -> Self {
        self.leader = Some(agent);
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
    /// agent, or else memory.
    pub fn store(mut self, store: impl Journal) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the wall clock. Default: the system clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the team. Each member's agent receives the team's tools and store.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no leader, for an invalid or
    /// duplicate role, for a description of an undeclared role, for a limit of zero, or if an agent
    /// has a tool with the name of a team tool.
    pub fn build(mut self) -> Result<Team> {
        let leader =
            self.leader.take().ok_or_else(|| Error::config("a team needs a leader: set it with leader(..)"))?;
        self.check()?;
        let store = self.store.or_else(|| leader.store().cloned());
        let store = store.unwrap_or_else(|| Arc::new(MemoryJournal::default()));
        let mut settings = self.settings;
        for (role, _) in &self.roles {
            settings.roles.insert(role.clone(), self.descriptions.get(role).cloned().unwrap_or_default());
        }
        let leader = leader.to_builder().store(store.clone()).tools(TeamTool::of_leader(&settings.roles)).build()?;
        let with_tools = |(role, agent): (String, Agent)| {
            Ok((role, agent.to_builder().store(store.clone()).tools(TeamTool::of_member()).build()?))
        };
        Ok(Team::new(Parts {
            name: self.name.into(),
            leader,
            roles: self.roles.into_iter().map(with_tools).collect::<Result<_>>()?,
            settings,
            store,
            clock: self.clock,
            idle_after: self.idle_after,
            budget: self.budget,
            caps: self.caps,
            concurrency: self.concurrency,
            running: std::sync::Mutex::default(),
        }))
    }

    fn check(&self) -> Result<()> {
        let mut problems = self.problems.clone();
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
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
