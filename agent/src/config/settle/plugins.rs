//! Sub-agents and approval rules of a plugin.

use agent_core::Result;
use serde::Deserialize;

use super::{entry, map, part, permissions, text};
use crate::config::{
    parts::tools::plugin::PluginConfig,
    problem::Problem,
    text::{Node, Tree},
};

const PLUGIN: &str = "plugin";

pub(super) fn settle(written: &mut Node, live: &mut Node, problems: &mut Vec<Problem>) {
    let named = |agent: &Node| {
        let tools = agent.get("tools").map(Node::list).unwrap_or_default();
        tools.iter().filter(|tool| part(tool).0 == PLUGIN).cloned().collect::<Vec<_>>()
    };
    for (written_part, live_part) in named(written).iter().zip(named(live)) {
        if let Err(error) = bring(written, live, written_part, &live_part) {
            problems.push(Problem::new(live_part.place, error.message()));
        }
    }
}

fn bring(written: &mut Node, live: &mut Node, written_part: &Node, live_part: &Node) -> Result<()> {
    let place = &live_part.place;
    let Some(config) = part(live_part).1 else { return Ok(()) };
    let Ok(config) = PluginConfig::deserialize(config.to_json()) else { return Ok(()) }; // which the part itself says
    let is_of_agent = config.agent.is_some();
    let parts = config.open()?;
    for agent in [&mut *written, &mut *live] {
        permissions::add(agent, parts.ask.iter().map(|tools| permissions::Said::ask(tools, place)).collect());
    }
    if is_of_agent {
        return Ok(());
    }
    for sub_agent in &parts.agents {
        for (agent, plugin) in [(&mut *written, written_part), (&mut *live, live_part)] {
            let Some(model) = agent.get("model").cloned() else { continue };
            let mut plugin = plugin.clone();
            if let Some(config) = plugin.get_mut(PLUGIN) {
                config.put("agent", text(place, &sub_agent.name));
            }
            let below = map(
                place,
                vec![
                    entry("name", text(place, &sub_agent.name)),
                    entry("model", model),
                    entry("system", text(place, &sub_agent.prompt)),
                    entry("tools", Node::new(place.clone(), Tree::List(vec![plugin]))),
                ],
            );
            let said =
                map(place, vec![entry("description", text(place, &sub_agent.description)), entry("agent", below)]);
            if agent.get("sub_agents").is_none() {
                agent.put("sub_agents", map(place, Vec::new()));
            }
            // One that the file names itself wins.
            if let Some(all) = agent.get_mut("sub_agents").filter(|all| all.get(&sub_agent.name).is_none()) {
                all.put(&sub_agent.name, said);
            }
        }
    }
    Ok(())
}
