//! Teams over HTTP: the routes of `/api/teams`, and NexAU's of `/team`.

mod ag_ui;
mod events;
mod live;
mod nexau;
mod routes;
mod view;

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent::{
    Drain, Error, Result,
    journal::Journal,
    team::{Team, TeamBuilder},
};
use axum::{Router, extract::FromRef};

use self::live::LiveRuns;
use crate::{
    app::{App, Served},
    caller::Caller,
    error::ApiError,
};

/// Served team with its description.
///
/// ```
/// use agent::{Agent, team::Team, testing::{ScriptedModel, Turn}};
/// use agent_server::{ServedTeam, Server};
///
/// # fn main() -> agent::Result<()> {
/// let lead = Agent::builder("lead", ScriptedModel::new([Turn::text("Hello!")])).build()?;
/// let team = Team::builder("release").leader(lead);
/// let server = Server::builder().team(ServedTeam::new(team).description("Makes releases.")).build()?;
/// # let _ = server;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ServedTeam {
    builder: TeamBuilder,
    description: String,
}

impl ServedTeam {
    /// Creates a served team without a description. The team gets the server's store.
    pub fn new(builder: TeamBuilder) -> Self {
        Self { builder, description: String::new() }
    }

    /// Sets the description of the team's purpose.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }
}

impl From<TeamBuilder> for ServedTeam {
    fn from(builder: TeamBuilder) -> Self {
        Self::new(builder)
    }
}

/// A team on the server's store.
#[derive(Debug)]
struct OnStore {
    team: Team,
    description: String,
}

/// The served teams and their active runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Teams(Arc<Inner>);

struct Inner {
    teams: BTreeMap<String, OnStore>,
    live: LiveRuns,
}

impl Teams {
    /// Builds the teams on the server's store; their members are drained with the agents.
    ///
    /// # Errors
    /// The errors of the teams' builders, and two teams of one name.
    pub(crate) fn new(served: Vec<ServedTeam>, journal: &Arc<dyn Journal>, drain: &Drain) -> Result<Self> {
        let mut teams = BTreeMap::new();
        for ServedTeam { builder, description } in served {
            let team = builder.store(journal.clone()).drain(drain).build()?;
            let name = team.name().to_owned();
            if teams.insert(name.clone(), OnStore { team, description }).is_some() {
                return Err(Error::config(format!("two teams are named '{name}': rename one of them")));
            }
        }
        Ok(Self(Arc::new(Inner { teams, live: LiveRuns::default() })))
    }

    /// The teams as agents, for protocols that know agents.
    ///
    /// # Errors
    /// The errors of the agents' builders.
    pub(crate) fn as_agents(&self) -> Result<Vec<Served>> {
        let agent =
            |served: &OnStore| Ok(Served::new(served.team.to_agent().build()?).description(served.description.clone()));
        self.0.teams.values().map(agent).collect()
    }

    /// Returns the team of this name.
    ///
    /// # Errors
    /// 404 if the caller may not use such a team.
    fn find(&self, caller: &Caller, name: &str) -> std::result::Result<&OnStore, ApiError> {
        let found = self.0.teams.get(name).filter(|_| caller.may_use(name));
        found.ok_or_else(|| {
            let known: Vec<_> = self.0.teams.keys().filter(|name| caller.may_use(name)).map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            ApiError::not_found(format!("unknown team '{name}'; teams: {known}"))
        })
    }

    fn live(&self) -> &LiveRuns {
        &self.0.live
    }
}

/// State of the handlers.
#[derive(Clone)]
struct TeamsState {
    app: App,
    teams: Teams,
}

impl FromRef<TeamsState> for App {
    fn from_ref(state: &TeamsState) -> Self {
        state.app.clone()
    }
}

impl FromRef<TeamsState> for Teams {
    fn from_ref(state: &TeamsState) -> Self {
        state.teams.clone()
    }
}

/// Routes of teams.
pub(crate) fn router(app: &App, teams: &Teams) -> Router<App> {
    let state = TeamsState { app: app.clone(), teams: teams.clone() };
    Router::new().merge(routes::router()).merge(nexau::router()).merge(ag_ui::router()).with_state(state)
}

impl fmt::Debug for Teams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teams").field("teams", &self.0.teams.keys()).finish_non_exhaustive()
    }
}
