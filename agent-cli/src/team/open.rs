//! The team that the options mean.

use std::sync::Arc;

use agent::{
    Error, Result,
    config::{DifferenceKind, LoadedFile, LoadedTeam, StoreAddress},
    core::Journal,
    team::Team,
};

use agent_server::ServedTeam;

use crate::{
    cli::Global,
    load::{NO_MODEL, is_stand_in, loader, no_variable, with_options},
    output::{Paint, plain},
    store, telemetry,
};

/// A team, with its store open.
pub(crate) struct Opened {
    pub(crate) team: Team,
    pub(crate) description: String,
}

/// Returns the team if the options name a team's file.
///
/// # Errors
/// All that is wrong with the file, and options that a team does not have.
pub(crate) fn team_of(global: &Global) -> Result<Option<LoadedTeam>> {
    let Some(file) = global.file.as_ref().filter(|file| loader(global).is_team(file)) else { return Ok(None) };
    let LoadedFile::Team(team) = loader(global).load_file(file)? else { return Ok(None) };
    if let Some(unused) = team.unused_variables().first() {
        return Err(no_variable(unused, &format!(" in {}", file.display())));
    }
    let of_one = [("--name", global.name.is_some()), ("--system", global.system.is_some())];
    if let Some((option, _)) = of_one.iter().find(|(_, is_given)| *is_given) {
        return Err(Error::config(format!(
            "{option} is for one agent, and {} describes a team: write it into the files of the agents",
            file.display()
        )));
    }
    Ok(Some(*team))
}

/// Adds the options of the command line to the agents, and tells what the user should know.
///
/// # Errors
/// A directory that cannot be the agents', or a telemetry exporter that cannot be started.
fn read(team: LoadedTeam, global: &Global) -> Result<LoadedTeam> {
    if let Some(exporter) = team.exporter() {
        telemetry::send(exporter.clone())?;
    }
    let tell = |text: &str| eprintln!("{}", Paint::stderr().dim(&plain(text)));
    let lost = team.differences().iter().filter(|difference| difference.kind == DifferenceKind::Impossible);
    lost.for_each(|difference| tell(&format!("agent: {difference}")));
    let has_stand_in = team.agents().any(|(_, agent)| is_stand_in(&agent.definition().model.name));
    if has_stand_in && global.model.as_deref() != Some(NO_MODEL) {
        tell("agent: the offline stand-in answers, which only finds and quotes; --model names another");
    }
    team.with_agents(|agent| with_options(agent, global))
}

/// Returns the team as a server serves it, on the server's store.
///
/// # Errors
/// Those of the team's parts, with the place in its files.
pub(crate) fn served(team: LoadedTeam, global: &Global) -> Result<ServedTeam> {
    let team = read(team, global)?;
    Ok(ServedTeam::new(team.builder()?).description(team.description()))
}

/// Opens the store of a team and builds it.
///
/// # Errors
/// Those of the store and of the team's parts, with the place in its files.
pub(crate) async fn open(team: LoadedTeam, global: &Global) -> Result<Opened> {
    let team = read(team, global)?;
    let address: StoreAddress = store::address(global, team.store())?;
    let journal: Arc<dyn Journal> = address.open().await?;
    let description = team.description().to_owned();
    let built = team.builder()?.store(journal).build().map_err(|error| team.located(error))?;
    Ok(Opened { team: built, description })
}
