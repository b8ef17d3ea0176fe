//! [`LoadedTeam`]: a team that was read.

use std::path::PathBuf;

use agent_core::Result;
use agent_exec::AgentBuilder;
use agent_team::Team;

use super::keys::TeamKeys;
use crate::config::{
    Difference, Exporter, Loaded, StoreAddress, UnusedVariable,
    file::BudgetConfig,
    problem::{Problem, Problems},
    text::Place,
};

/// Content of a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadedFile {
    /// An agent.
    Agent(Box<Loaded>),
    /// A team.
    Team(Box<LoadedTeam>),
}

/// A team that was read from files. [`Loader::load_file`](crate::config::Loader::load_file) returns it.
///
/// ```
/// use agent::{config::{Format, Loader, LoadedFile}, prelude::*, team::TeamEndReason};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let text = "
/// name: post
/// team:
///   sequence:
///     - {name: writer, model: 'offline:any', system: Write a draft.}
///     - {name: editor, model: 'offline:any', system: Improve the draft.}
/// ";
/// let LoadedFile::Team(team) = Loader::new().read_file(text, Format::Yaml)? else { panic!("a team") };
/// let end = team.into_team().await?.run("Write about tea.").await?;
/// assert_eq!((end.reason, end.members.len()), (TeamEndReason::Finished, 2));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LoadedTeam {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) store: Option<StoreAddress>,
    pub(super) exporter: Option<Exporter>,
    pub(super) budget: BudgetConfig,
    pub(super) keys: TeamKeys,
    /// The agents, each with its place in the team.
    pub(super) agents: Vec<(String, Loaded)>,
    /// Place of the key `team`.
    pub(super) place: Place,
    pub(super) files: Vec<PathBuf>,
    pub(super) differences: Vec<Difference>,
    pub(in crate::config) unused_variables: Vec<UnusedVariable>,
}

impl LoadedTeam {
    /// Name of the team.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The team's description; empty if the file has none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The store that the file names.
    pub fn store(&self) -> Option<&StoreAddress> {
        self.store.as_ref()
    }

    /// Exporter of the team's traces, if the file has the key `telemetry`.
    pub fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }

    /// The agents of the team, each with its place in it: `leader`, the name of a role, or the place in a
    /// pattern, such as `debate/debaters/1`.
    pub fn agents(&self) -> impl Iterator<Item = (&str, &Loaded)> {
        self.agents.iter().map(|(slot, agent)| (slot.as_str(), agent))
    }

    /// The files that the team was read from, in the order of reading.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Differences from NexAU of all files of NexAU among them.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Variables that were set and that no file declares or refers to.
    pub fn unused_variables(&self) -> &[UnusedVariable] {
        &self.unused_variables
    }

    /// Changes the builder of each agent, for what is not data.
    ///
    /// # Errors
    /// The first error of `change`.
    pub fn with_agents(mut self, mut change: impl FnMut(AgentBuilder) -> Result<AgentBuilder>) -> Result<Self> {
        for (_, agent) in &mut self.agents {
            agent.builder = change(agent.builder.clone())?;
        }
        Ok(self)
    }

    /// Opens the store and builds the team.
    ///
    /// # Errors
    /// Those of [`StoreAddress::open`]; those of the agents and of
    /// [`TeamBuilder::build`](agent_team::TeamBuilder::build), with their source location.
    pub async fn into_team(self) -> Result<Team> {
        let builder = self.builder()?;
        let builder = match &self.store {
            Some(address) => builder.store(address.open().await?),
            None => builder,
        };
        builder.build().map_err(|error| self.located(error))
    }

    /// Returns an error of building the team with the place of the team in its file.
    pub fn located(&self, error: agent_core::Error) -> agent_core::Error {
        let has_place = std::error::Error::source(&error).is_some_and(<dyn std::error::Error>::is::<Problems>);
        if error.kind() != agent_core::ErrorKind::Config || has_place {
            return error;
        }
        Problems::from(Problem::new(self.place.clone(), error.message())).into()
    }
}
