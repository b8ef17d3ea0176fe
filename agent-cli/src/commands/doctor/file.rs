//! Checks of an agent's file: its keys, models, tools and their servers, sub-agents, store and collector.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use agent::{
    Agent, AgentBuilder, AgentDefinition,
    config::{Exporter, Loaded},
    core::model::ToolFinding,
    llm::Catalogue,
};

use super::{Finding, machine};
use crate::{
    cli::{Doctor, Global},
    listing,
    load::{is_stand_in, loader},
    output::{count, explained},
    store,
};

pub(super) async fn findings(file: &Path, wanted: &Doctor, global: &Global) -> Vec<Finding> {
    let loaded = match loader(global).require_servers().load(file) {
        Ok(loaded) => loaded,
        Err(problems) => return problems.iter().map(problem).collect(),
    };
    let mut findings = vec![Finding::well("file", about_files(&loaded))];
    if loaded.description().is_empty() {
        findings.push(Finding::well(
            "description",
            "none: an agent that this is a sub-agent of must say what it is good for",
        ));
    }
    let differences = loaded.differences().iter();
    findings.extend(differences.map(|difference| Finding::well("NexAU", difference.to_string())));
    let mut models = BTreeMap::new();
    gather_models(loaded.definition(), "", &mut models);
    findings.extend(models.iter().map(|(name, whose)| model(name, whose)));
    findings.extend(sub_agents(loaded.definition(), ""));
    findings.push(store_of(&loaded, global).await);
    if uses(loaded.definition(), &|definition| {
        definition.tools.iter().any(|tool| ["shell", "command"].contains(&tool.name.as_str()))
    }) {
        findings.push(machine::sandbox(true));
    }
    findings.extend(loaded.exporter().map(telemetry));
    if wanted.network {
        findings.extend(machine::reach_models(&addresses(&loaded)).await);
    }
    let mut agents = Vec::new();
    gather_agents(loaded.definition(), "", &mut agents);
    for key in &agents {
        findings.extend(agent(&loaded, key).await);
    }
    findings
}

pub(super) fn telemetry(exporter: &Exporter) -> Finding {
    let endpoint = exporter.endpoint.as_deref().unwrap_or("the collector that the environment names");
    Finding::well("telemetry", format!("runs are told to {endpoint}"))
}

/// The providers of an agent's models, each with the address that the file sets.
pub(super) fn addresses(loaded: &Loaded) -> BTreeSet<(String, Option<String>)> {
    let address = |(name, url): (&str, Option<&str>)| {
        let provider = name.split_once(':').map_or(name, |(provider, _)| provider);
        (provider.to_owned(), url.map(str::to_owned))
    };
    loaded.model_addresses().map(address).collect()
}

/// The agents by the keys that lead to them, the one at the top first, which has none.
pub(super) fn gather_agents(definition: &AgentDefinition, key: &str, agents: &mut Vec<String>) {
    agents.push(key.to_owned());
    for (name, below) in &definition.sub_agents {
        let key = if key.is_empty() { name.clone() } else { format!("{key}/{name}") };
        gather_agents(&below.agent, &key, agents);
    }
}

/// Checks the tools of the agent with this key.
pub(super) async fn agent(loaded: &Loaded, key: &str) -> Vec<Finding> {
    let built = match key {
        "" => loaded.builder().build().map_err(|error| loaded.locator().located(error)),
        key => loaded.sub_agent(key).and_then(AgentBuilder::build),
    };
    let of = |what: &str| if key.is_empty() { what.to_owned() } else { format!("{what} of {key}") };
    let mut findings = match built {
        Ok(agent) => tools(&agent).await,
        Err(error) => vec![Finding::ill("agent", explained(&error), "correct the file at this place")],
    };
    findings.iter_mut().for_each(|finding| finding.what = of(&finding.what));
    findings
}

pub(super) fn problem(problem: &agent::config::Problem) -> Finding {
    let place = format!("{}:{}:{}", problem.file().display(), problem.line(), problem.column());
    Finding {
        what: "file".to_owned(),
        is_well: false,
        found: format!("{place}: {}", problem.message()),
        advice: problem.advice().map(str::to_owned),
    }
}

fn about_files(loaded: &Loaded) -> String {
    let files: Vec<_> = loaded.files().iter().map(|file| file.display().to_string()).collect();
    format!("agent '{}', read from {}", loaded.definition().name, files.join(", "))
}

/// Models by name, with the agents that ask them.
pub(super) fn gather_models(definition: &AgentDefinition, above: &str, models: &mut BTreeMap<String, Vec<String>>) {
    let name = format!("{above}{}", definition.name);
    // An agent elsewhere has its own.
    if !definition.model.name.starts_with("relay:") {
        models.entry(definition.model.name.clone()).or_default().push(name.clone());
    }
    for below in definition.sub_agents.values() {
        gather_models(&below.agent, &format!("{name} > "), models);
    }
}

/// That it can be made was seen when the file was read.
pub(super) fn model(name: &str, whose: &[String]) -> Finding {
    let plain = name.split_once(':').map_or(name, |(_, model)| model.split('@').next().unwrap_or(model));
    let known = Catalogue::builtin().iter().find(|(known, _)| *known == plain).map(|(_, entry)| {
        let window = entry.max_context.map_or_else(String::new, |tokens| format!(", {} tokens", count(tokens)));
        let can = |has: Option<bool>, what: &str| if has == Some(true) { format!(", {what}") } else { String::new() };
        let priced = if entry.price.is_some() { ", priced" } else { "" };
        format!("{window}{}{}{priced}", can(entry.tools, "tools"), can(entry.json_schema, "JSON Schema"))
    });
    let known = known.unwrap_or_else(|| match is_stand_in(name) {
        true => ": the offline stand-in, which only finds and quotes".to_owned(),
        false => ": not in the catalogue, so neither its window nor its price is known".to_owned(),
    });
    Finding::well("model", format!("{name}{known} (for {})", whose.join(", ")))
}

pub(super) fn sub_agents(definition: &AgentDefinition, above: &str) -> Vec<Finding> {
    let name = format!("{above}{}", definition.name);
    let offered = definition.middleware.iter().any(|part| part.name == "delegation");
    let mut findings = Vec::new();
    if !definition.sub_agents.is_empty() {
        let keys: Vec<_> = definition.sub_agents.keys().map(String::as_str).collect();
        let how = if offered { "offered to its model" } else { "for code alone: the model is not offered them" };
        findings.push(Finding::well("sub-agents", format!("of {name}: {}; {how}", keys.join(", "))));
    }
    let below = definition.sub_agents.values().flat_map(|below| sub_agents(&below.agent, &format!("{name} > ")));
    findings.extend(below);
    findings
}

pub(super) fn uses(definition: &AgentDefinition, is_so: &dyn Fn(&AgentDefinition) -> bool) -> bool {
    is_so(definition) || definition.sub_agents.values().any(|below| uses(&below.agent, is_so))
}

async fn store_of(loaded: &Loaded, global: &Global) -> Finding {
    match store::address(global, loaded.store()) {
        Ok(address) => machine::store_at(&address).await,
        Err(error) => Finding::ill("store", "none", explained(&error)),
    }
}

/// The agent's own tools, and set by set those of servers, which are started or reached for it.
async fn tools(agent: &Agent) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = |specs: &[agent::tool::ToolSpec]| match specs {
        [] => "none".to_owned(),
        specs => specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", "),
    };
    findings.push(Finding::well("tools", names(agent.tools())));
    let mut all = agent.tools().to_vec();
    for tools in agent.toolsets() {
        findings.push(match listing::of_toolset(tools).await {
            Ok(specs) => {
                let found = Finding::well("server", names(&specs));
                all.extend(specs);
                found
            }
            Err(error) => Finding::ill(
                "server",
                explained(&error),
                "see that the program is installed or the address is right, and what it needs",
            ),
        });
    }
    findings.extend(refused(&agent.check_tools(&all)));
    findings
}

/// The tools that the provider of the model refuses, or takes in a repaired form, one finding for
/// each tool.
fn refused(found: &[ToolFinding]) -> Vec<Finding> {
    let mut by_tool = BTreeMap::<Option<&str>, Vec<&ToolFinding>>::new();
    found.iter().for_each(|one| by_tool.entry(one.tool.as_deref()).or_default().push(one));
    let finding = |(tool, found): (Option<&str>, Vec<&ToolFinding>)| {
        let lines = |line: &dyn Fn(&ToolFinding) -> String| {
            let lines: BTreeSet<String> = found.iter().map(|one| line(one)).collect();
            lines.into_iter().collect::<Vec<_>>().join("\n")
        };
        let text = lines(&|one| {
            let name = tool.unwrap_or("all tools");
            let ToolFinding { rule, source, .. } = one;
            match &one.repair {
                Some(repair) => format!("{name} is sent in another form: {repair}. Rule: {rule}. Source: {source}"),
                None => format!("{name}: the provider refuses all requests. Rule: {rule}. Source: {source}"),
            }
        });
        let is_well = found.iter().all(|one| one.repair.is_some());
        Finding { what: "tool".to_owned(), is_well, found: text, advice: Some(lines(&|one| one.remedy.clone())) }
    };
    by_tool.into_iter().map(finding).collect()
}
