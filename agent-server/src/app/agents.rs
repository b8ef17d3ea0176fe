//! Served agents, with the former versions that suspended runs still need.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use agent::{Agent, Drain, Error, Result, journal::Journal};

use super::Served;
use crate::{clock::now, files::Files};

/// Maximum number of former versions per agent. A run whose version was dropped uses another one
/// with the same fingerprint.
const FORMER: usize = 8;

/// Agents by name, each with its versions, newest last. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Agents(Arc<RwLock<BTreeMap<String, VecDeque<Version>>>>);

#[derive(Debug)]
struct Version {
    served: Served,
    /// Time at which the version was added: milliseconds since 1970, UTC.
    since: u64,
}

impl Agents {
    pub(super) fn new(agents: Vec<Served>) -> Self {
        let since = now();
        let first = |served: Served| (served.name().to_owned(), VecDeque::from([Version { served, since }]));
        Self(Arc::new(RwLock::new(agents.into_iter().map(first).collect())))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.read().keys().cloned().collect()
    }

    /// Returns the newest version of all agents, by name.
    pub(super) fn all(&self) -> Vec<Served> {
        self.read().values().filter_map(VecDeque::back).map(|newest| newest.served.clone()).collect()
    }

    /// Returns the newest version of the agent of this name.
    pub(super) fn find(&self, name: &str) -> Option<Served> {
        Some(self.read().get(name)?.back()?.served.clone())
    }

    /// Returns the version that was current when a run began, if it has the run's fingerprint; or
    /// else the newest version with that fingerprint; or else the newest one.
    pub(super) fn when(&self, name: &str, began: u64, fingerprint: &str) -> Option<Agent> {
        let agents = self.read();
        let versions = agents.get(name)?;
        let then = versions.iter().rev().find(|version| version.since <= began);
        let mut fitting = then.into_iter().chain(versions.iter().rev());
        let fits = |version: &&Version| version.served.agent().fingerprint() == fingerprint;
        let version = fitting.find(fits).or(versions.back())?;
        Some(version.served.agent().clone())
    }

    /// Replaces the agent of the same name.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if no agent has this name.
    pub(super) fn replace(&self, served: Served) -> Result<()> {
        let mut agents = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(versions) = agents.get_mut(served.name()) else {
            let why = format!("unknown agent '{}': an agent keeps its name while it is served", served.name());
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
    /// Rebuilds the agent with the server's store, drain group and uploaded files.
    ///
    /// # Errors
    /// The errors of the agent's builder.
    pub(crate) fn on(self, journal: &Arc<dyn Journal>, drain: &Drain, files: Option<&Files>) -> Result<Self> {
        let agent = self.agent.to_builder().store(journal.clone()).drain(drain);
        let agent = files.into_iter().fold(agent, |agent, files| files.attach(agent));
        Ok(Self { agent: agent.build()?, ..self })
    }
}
