//! Checks of a team's file: its course, and each of its agents.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use agent::config::{LoadedFile, LoadedTeam};

use super::{Finding, file, machine};
use crate::{
    cli::{Doctor, Global},
    load::loader,
    output::explained,
    store,
};

pub(super) async fn findings(file: &Path, wanted: &Doctor, global: &Global) -> Vec<Finding> {
    let team = match loader(global).require_servers().load_file(file) {
        Ok(LoadedFile::Team(team)) => team,
        Ok(_) => return vec![Finding::ill("file", "the file describes no team", "name a team's file")],
        Err(problems) => return problems.iter().map(file::problem).collect(),
    };
    let mut findings = vec![Finding::well("file", about_files(&team)), course(&team)];
    findings.extend(team.differences().iter().map(|difference| Finding::well("NexAU", difference.to_string())));
    let (mut models, mut addresses, mut runs_commands) = (BTreeMap::new(), BTreeSet::new(), false);
    for (slot, agent) in team.agents() {
        file::gather_models(agent.definition(), &format!("{slot}: "), &mut models);
        addresses.extend(file::addresses(agent));
        runs_commands |= file::uses(agent.definition(), &|definition| {
            definition.tools.iter().any(|tool| ["shell", "command"].contains(&tool.name.as_str()))
        });
    }
    findings.extend(models.iter().map(|(name, whose)| file::model(name, whose)));
    findings.push(match store::address(global, team.store()) {
        Ok(address) => machine::store_at(&address).await,
        Err(error) => Finding::ill("store", "none", explained(&error)),
    });
    if runs_commands {
        findings.push(machine::sandbox(true));
    }
    findings.extend(team.exporter().map(file::telemetry));
    if wanted.network {
        findings.extend(machine::reach_models(&addresses).await);
    }
    for (slot, agent) in team.agents() {
        findings.extend(file::sub_agents(agent.definition(), &format!("{slot}: ")));
        let mut keys = Vec::new();
        file::gather_agents(agent.definition(), "", &mut keys);
        for key in keys {
            let mut of_agent = file::agent(agent, &key).await;
            of_agent.iter_mut().for_each(|finding| finding.what = format!("{} of {slot}", finding.what));
            findings.extend(of_agent);
        }
    }
    findings
}

fn about_files(team: &LoadedTeam) -> String {
    let files: Vec<_> = team.files().iter().map(|file| file.display().to_string()).collect();
    format!("team '{}', read from {}", team.name(), files.join(", "))
}

/// Compatibility of the agents, and how they work.
fn course(team: &LoadedTeam) -> Finding {
    match team.builder().and_then(|builder| builder.build().map_err(|error| team.located(error))) {
        Ok(built) => match built.pattern() {
            Some(pattern) => Finding::well("team", format!("pattern {}", pattern.name())),
            None => {
                let roles: Vec<_> = built.roles().map(|(role, _)| role).collect();
                Finding::well("team", format!("a leader, and members of the roles {}", roles.join(", ")))
            }
        },
        Err(error) => Finding::ill("team", explained(&error), "correct the file at this place"),
    }
}
