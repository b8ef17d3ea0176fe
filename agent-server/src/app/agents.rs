//! The agents that are served: as they are now, and as they were when runs began that wait.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use agent::{Agent, Drain, Error, Result, journal::Journal};

use super::Served;
use crate::{
    clock::now,
    files::{Files, PutIn},
};

/// Former versions of an agent that are kept for runs that wait; a run that waits longer goes on with the oldest that fits it.
const FORMER: usize = 8;

/// Agents by name, each with its versions, the newest last.
#[derive(Debug)]
pub(super) struct Agents(RwLock<BTreeMap<String, VecDeque<Version>>>);

#[derive(Debug)]
struct Version {
    served: Served,
    /// When it came: milliseconds since 1970, UTC.
    since: u64,
}

impl Agents {
    pub(super) fn new(agents: Vec<Served>) -> Self {
        let since = now();
        let first = |served: Served| (served.name().to_owned(), VecDeque::from([Version { served, since }]));
        Self(RwLock::new(agents.into_iter().map(first).collect()))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.read().keys().cloned().collect()
    }

    /// All of them, by name.
    pub(super) fn all(&self) -> Vec<Served> {
        self.read().values().filter_map(VecDeque::back).map(|newest| newest.served.clone()).collect()
    }

    /// The agent of this name.
    pub(super) fn find(&self, name: &str) -> Option<Served> {
        Some(self.read().get(name)?.back()?.served.clone())
    }

    /// The agent of this name as it was when a run began, or else the newest that takes the run's checkpoint, or else the newest.
    pub(super) fn when(&self, name: &str, began: u64, fingerprint: &str) -> Option<Agent> {
        let agents = self.read();
        let versions = agents.get(name)?;
        let then = versions.iter().rev().find(|version| version.since <= began);
        let mut fitting = then.into_iter().chain(versions.iter().rev());
        let fits = |version: &&Version| version.served.agent().fingerprint() == fingerprint;
        let version = fitting.find(fits).or(versions.back())?;
        Some(version.served.agent().clone())
    }

    /// Puts an agent in the place of the one of its name.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn replace(&self, served: Served) -> Result<()> {
        let mut agents = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(versions) = agents.get_mut(served.name()) else {
            let why = format!("no agent '{}' is served: an agent keeps its name while it is served", served.name());
            return Err(Error::config(why));
        };
        if versions.len() > FORMER {
            versions.pop_front();
        }
        versions.push_back(Version { served, since: now() });
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, VecDeque<Version>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    /// The same on a server's store, drained with its other agents, and with the files that clients upload.
    ///
    /// # Errors
    /// If its parts do not go together with these.
    pub(crate) fn on(self, journal: &Arc<dyn Journal>, drain: &Drain, files: Option<&Files>) -> Result<Self> {
        let agent = self.agent.to_builder().store(journal.clone()).drain(drain);
        let agent = files.cloned().map(PutIn).into_iter().fold(agent, agent::AgentBuilder::middleware);
        Ok(Self { agent: agent.build()?, ..self })
    }
}
