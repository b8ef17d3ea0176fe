//! Teams as files: a leader and members, or agents in a pattern.

mod built;
mod keys;
mod loaded;
mod read;

use serde::Deserialize;
use serde_json::Value;

pub use self::loaded::{LoadedFile, LoadedTeam};
pub(super) use self::{
    keys::{AGENT_OF_TEAM, TeamKeys, file_schema, member_schema},
    read::{Read, TeamPair},
};
use super::{
    file::FileKeys,
    include::Reader,
    loader::Loader,
    problem::{Problem, Problems},
    schema,
    text::Node,
};

/// Key of a file that describes a team.
pub(super) const TEAM: &str = "team";

/// Keys of a team's file beside the team, which are for all its agents.
const SHARED: [&str; 4] = ["models", "providers", "transport", "telemetry"];

/// The problem of a team's file where an agent's is expected.
pub(super) fn not_an_agent(file: &Node) -> Option<Problem> {
    let entry = file.entries().iter().find(|entry| entry.key == TEAM)?;
    let agents = read::paths(&entry.node);
    let such = agents.first().map_or_else(String::new, |path| format!(", such as '{path}'"));
    let help = format!(
        "name the file of one agent{such}; `agent run`, `agent chat`, `agent inspect`, `agent doctor` and `agent serve` \
         take teams"
    );
    Some(Problem::new(entry.place.clone(), "this file describes a team, and an agent is expected").help(help))
}

impl Loader {
    /// Checks a team and its agents, and makes a loaded team of them.
    pub(super) fn team(&self, pair: Result<TeamPair, Problem>, reader: Reader<'_>) -> Result<LoadedTeam, Problems> {
        let Reader { mut problems, sources, differences, .. } = reader;
        let files = sources.into_files();
        let all = |problems: Vec<Problem>| Problems::new(problems).among(files.clone());
        let TeamPair { mut file, mut agents } = match pair {
            Ok(pair) => pair,
            Err(problem) => {
                problems.push(problem);
                return Err(all(problems));
            }
        };
        let root = &self.schemas().checked;
        let unchecked = file.clone();
        schema::check(&mut file, &root["$defs"]["TeamFile"], root, &mut problems);
        // A problem of a shared key is reported once.
        let is_sound = problems.is_empty();
        for agent in &mut agents {
            agent.refuse_own(&mut problems);
            if is_sound {
                agent.share(&unchecked);
            }
            if let Some(problem) = not_an_agent(&agent.pair.live) {
                problems.push(problem);
            } else {
                self.checked(&mut agent.pair, &mut problems);
            }
        }
        problems.extend(keys::wrong_course(&file));
        if !problems.is_empty() {
            return Err(all(problems));
        }
        let wrong = |e: serde_json::Error| all(vec![Problem::new(file.place.clone(), e.to_string())]);
        let taken = FileKeys::ALL.iter().filter_map(|key| Some(((*key).to_owned(), file.get(key)?.to_json())));
        let own: FileKeys = serde_json::from_value(Value::Object(taken.collect())).map_err(wrong)?;
        let team = file.get(TEAM).map(Node::to_json).unwrap_or_default();
        let keys = TeamKeys::deserialize(team).map_err(wrong)?;
        let mut loaded = Vec::new();
        for agent in agents {
            let read = self.agent(agent.pair, Vec::new()).map_err(|problems| problems.among(files.clone()))?;
            loaded.push((agent.slot, read));
        }
        let name = file.get("name").and_then(Node::text).unwrap_or_default().to_owned();
        let exporter = own.telemetry.map(|telemetry| telemetry.exporter(&name));
        Ok(LoadedTeam {
            name,
            description: own.description.unwrap_or_default(),
            store: own.store,
            exporter,
            budget: own.budget,
            keys,
            agents: loaded,
            place: file.get(TEAM).unwrap_or(&file).place.clone(),
            files,
            differences,
            unused_variables: Vec::new(),
        })
    }
}
