//! The parts of a team.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use agent_core::{Budget, Caps, Error, Journal, Result, run::Clock, run::new_id};
use agent_exec::{Agent, Drain};

use crate::{event::Watchers, log::TeamLog, member::LEADER, pattern::Pattern, settings::Settings};

/// Agents, settings and store of a [`Team`](crate::Team).
pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) plan: Plan,
    pub(crate) roles: BTreeMap<String, Agent>,
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn Journal>,
    pub(crate) clock: Clock,
    pub(crate) idle_after: Duration,
    pub(crate) budget: Option<Budget>,
    pub(crate) caps: Option<Caps>,
    /// Maximum number of turns at the same time.
    pub(crate) concurrency: Option<usize>,
    pub(crate) drain: Option<Drain>,
    /// Logs of the runs in this process, by session.
    pub(crate) running: Mutex<HashMap<Arc<str>, Weak<TeamLog>>>,
}

/// Course of a team's work.
pub(crate) enum Plan {
    /// A leader plans.
    Leader(Agent),
    /// A pattern.
    Pattern(Pattern),
}

impl Parts {
    /// Returns the agent of a role.
    pub(crate) fn agent(&self, role: &str) -> Result<&Agent> {
        if let Plan::Leader(leader) = &self.plan
            && role == LEADER
        {
            return Ok(leader);
        }
        let unknown = || {
            let known: Vec<_> = self.roles.keys().map(String::as_str).collect();
            Error::config(format!(
                "the team has a member of the role '{role}', which is not declared; roles: {}",
                known.join(", ")
            ))
        };
        self.roles.get(role).ok_or_else(unknown)
    }

    /// Opens the log of a session for its driver: there is one at a time.
    pub(crate) async fn open_driver(self: &Arc<Self>, session: &Arc<str>, watchers: Watchers) -> Result<Arc<TeamLog>> {
        let log = self.open_as(session, &self.identity(), watchers).await?;
        let log = Arc::new(log);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, log| log.strong_count() > 0);
        running.insert(session.clone(), Arc::downgrade(&log));
        Ok(log)
    }

    /// Returns the log of a session for a client: that of the driver if it is in this process.
    pub(crate) async fn open_client(&self, session: &Arc<str>) -> Result<Arc<TeamLog>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(session).and_then(Weak::upgrade);
        match running {
            Some(log) => Ok(log),
            None => {
                let writer = format!("{}/{}", self.identity(), new_id());
                Ok(Arc::new(self.open_as(session, &writer, Watchers::default()).await?))
            }
        }
    }

    /// Name of the team in its session's journal. No agent has it, so that an agent of the team's name can
    /// be served beside the team.
    fn identity(&self) -> Arc<str> {
        format!("team:{}", self.name).into()
    }

    async fn open_as(&self, session: &Arc<str>, writer: &str, watchers: Watchers) -> Result<TeamLog> {
        let (store, team, clock) = (self.store.clone(), self.identity(), self.clock.clone());
        TeamLog::open(store, session.clone(), team, writer, clock, watchers).await
    }
}
