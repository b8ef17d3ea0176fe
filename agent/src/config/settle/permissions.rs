//! Translates permissions of tools into rules of the middleware `approval`.

use agent_middleware::Permissions;

use super::{entry, list, map, part, position, text};
use crate::config::{
    problem::Problem,
    registry::{Naming, Registry},
    text::{Node, Tree},
};

const APPROVAL: &str = "approval";
const PERMISSION: &str = "permission";

/// A permission, and the pattern of the tools that it is about.
pub(super) struct Said {
    tools: String,
    policy: Node,
}

#[cfg(all(feature = "plugins", target_os = "linux"))]
impl Said {
    /// Calls of these tools are asked about.
    pub(super) fn ask(tools: &str, place: &crate::config::text::Place) -> Self {
        Self { tools: tools.to_owned(), policy: text(place, "ask") }
    }
}

pub(super) fn settle(registry: &Registry, written: &mut Node, live: &mut Node) {
    let names: Vec<Vec<String>> =
        live.get("tools").map(Node::list).unwrap_or_default().iter().map(|tool| names(registry, tool)).collect();
    let [of_written, of_live] = [&mut *written, &mut *live].map(|agent| {
        let Some(Tree::List(tools)) = agent.get_mut("tools").map(|node| &mut node.tree) else { return Vec::new() };
        tools.iter_mut().zip(&names).flat_map(|(tool, names)| taken(registry, tool, names)).collect()
    });
    add(written, of_written);
    add(live, of_live);
}

/// Returns the permissions of a settled agent.
pub(in crate::config) fn of(live: &Node) -> Option<Permissions> {
    let at = position(live, "middleware", APPROVAL)?;
    let config = part(&live.get("middleware")?.list()[at]).1?;
    let is_shadow = matches!(config.get("shadow").map(|node| &node.tree), Some(Tree::Bool(true)));
    let said = config.get("permissions").filter(|_| !is_shadow)?;
    serde_json::from_value(said.to_json()).ok()
}

/// Returns the problems of permissions of servers.
pub(super) fn wrong(registry: &Registry, live: &Node) -> Vec<Problem> {
    live.get("tools").map(Node::list).unwrap_or_default().iter().filter_map(|tool| of_all(registry, tool)).collect()
}

/// A permission of a server whose tools have no beginning of their own: as a rule it would be about every tool there is.
fn of_all(registry: &Registry, tool: &Node) -> Option<Problem> {
    let (name, config) = part(tool);
    let said = config.filter(|_| registry.naming.get(name) == Some(&Naming::Server))?;
    let is_bare = said.get("prefix").and_then(Node::text) == Some("");
    let permission = said.get(PERMISSION).filter(|_| is_bare)?;
    let why = "without a prefix, nothing tells this server's tools from all others";
    let help = "give it a `prefix`, or name its tools in the rules of the middleware `approval`";
    Some(Problem::new(permission.place.clone(), why).help(help))
}

/// The names of the tools of which something may be said, in the order in which it is.
fn names(registry: &Registry, tool: &Node) -> Vec<String> {
    let (name, config) = part(tool);
    let Some((naming, config)) = registry.naming.get(name).zip(config) else { return Vec::new() };
    let own = |key: &str| config.get(key).and_then(Node::text);
    match naming {
        Naming::Tool => vec![own("name").unwrap_or(name).to_owned()],
        Naming::Server => {
            let prefix = own("prefix").map_or_else(|| format!("{}_", own("name").unwrap_or_default()), str::to_owned);
            vec![format!("{prefix}*")]
        }
        Naming::Set => {
            let prefix = own("prefix").unwrap_or_default();
            let changed = config.get("change").map(Node::entries).unwrap_or_default().iter();
            let named = |changed: &crate::config::text::Entry| {
                let name = changed.node.get("name").and_then(Node::text).unwrap_or(&changed.key);
                format!("{prefix}{name}")
            };
            changed.map(named).collect()
        }
    }
}

/// Takes what is said of permissions out of the tool.
fn taken(registry: &Registry, tool: &mut Node, names: &[String]) -> Vec<Said> {
    let name = part(tool).0.to_owned();
    let Some((naming, config)) = registry.naming.get(&name).zip(tool.get_mut(&name)) else { return Vec::new() };
    let said =
        |(tools, node): (&String, &mut Node)| Some(Said { tools: tools.clone(), policy: node.take(PERMISSION)? });
    if *naming == Naming::Set {
        let changed = config.get_mut("change").map(Node::entries_mut).unwrap_or_default();
        names.iter().zip(changed.iter_mut().map(|entry| &mut entry.node)).filter_map(said).collect()
    } else {
        names.iter().zip([config]).filter_map(said).collect()
    }
}

/// Adds the rules to the middleware, and creates it if it is missing.
pub(super) fn add(agent: &mut Node, said: Vec<Said>) {
    let Some(place) = said.first().map(|said| said.policy.place.clone()) else { return };
    let rule = |Said { tools, policy }: Said| {
        let place = policy.place.clone();
        map(&place, vec![entry("policy", policy), entry("tool", text(&place, &tools))])
    };
    let rules = said.into_iter().map(rule);
    let at = position(agent, "middleware", APPROVAL);
    let is_named = at.is_some();
    // A repeated call was already approved.
    let retry = position(agent, "middleware", "tool_retry");
    let middleware = list(agent, "middleware", &place);
    let at = at.unwrap_or_else(|| {
        let at = retry.unwrap_or(middleware.len());
        middleware.insert(at, text(&place, APPROVAL));
        at
    });
    let part = &mut middleware[at];
    if part.text().is_some() {
        *part = map(&place, vec![entry(APPROVAL, map(&place, Vec::new()))]);
    }
    let Some(config) = part.get_mut(APPROVAL) else { return };
    if matches!(config.tree, Tree::Null) {
        config.tree = Tree::Map(Vec::new());
    }
    if config.get("permissions").is_none() {
        // Without rules, an `approval` that the file names asks about risky calls: with these rules it still does.
        if is_named && config.get("if_risky").is_none() {
            config.put("if_risky", Node::new(place.clone(), Tree::List(vec![text(&place, "*")])));
        }
        config.put("permissions", map(&place, vec![entry("default", text(&place, "allow"))]));
    }
    if let Some(permissions) = config.get_mut("permissions") {
        list(permissions, "rules", &place).extend(rules);
    }
}
