//! [`Draft`]: our agent file while it is written.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{known::Known, permissions::Rules};

/// In which order middlewares work together, from the outermost. Those that are not among them stand where `OWN` is.
const ORDER: [&str; 12] = [
    "logging",
    OWN,
    "long_tool_output",
    "delegation",
    "runtime_environment",
    "todo_list",
    "tool_search",
    "approval",
    "context_compaction",
    "prompt_caching",
    "reminders",
    "telemetry",
];

const OWN: &str = "";

/// Our agent file while it is written.
#[derive(Default)]
pub(super) struct Draft {
    /// Parts of the program; `None` for a translation for any program.
    pub(super) known: Option<Known>,
    pub(super) fields: Map<String, Value>,
    pub(super) tools: Vec<Value>,
    middleware: Vec<(String, Value)>,
    /// The tools of the workspace that are wanted.
    pub(super) workspace: BTreeSet<&'static str>,
    /// Root of the workspace and of programs.
    pub(super) root: Option<Value>,
    /// True if the agent runs programs.
    pub(super) shell: bool,
    /// Tools that the model searches for.
    pub(super) deferred: Vec<String>,
    /// Names here of NexAU's tools; `None` if there is no such tool.
    pub(super) names: BTreeMap<String, Option<String>>,
    pub(super) rules: Rules,
}

impl Draft {
    /// Nothing yet, for a program that has this.
    pub(super) fn of(known: Option<Known>) -> Self {
        Self { known, ..Self::default() }
    }

    /// Sets a key.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.fields.insert(key.to_owned(), value.into());
    }

    /// Sets a key if there is something to set.
    pub(super) fn set_some(&mut self, key: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets a key of an object, such as `params`.
    pub(super) fn set_in(&mut self, object: &str, key: &str, value: impl Into<Value>) {
        let object = self.fields.entry(object).or_insert_with(|| json!({}));
        object[key] = value.into();
    }

    /// Adds a middleware, or more to the configuration of one that is there.
    pub(super) fn middleware(&mut self, name: &str, config: Map<String, Value>) {
        match self.middleware.iter_mut().find(|(known, _)| known == name) {
            Some((_, Value::Object(known))) => known.extend(config),
            _ => self.middleware.push((name.to_owned(), Value::Object(config))),
        }
    }

    /// Adds a middleware as the application configures it.
    pub(super) fn own_middleware(&mut self, name: &str, config: Value) {
        self.middleware.push((name.to_owned(), config));
    }

    /// The configuration of a middleware that is there.
    pub(super) fn middleware_of(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        self.middleware.iter_mut().find(|(known, _)| known == name).and_then(|(_, config)| config.as_object_mut())
    }

    /// Adds a tool that is there by its name.
    pub(super) fn tool(&mut self, name: &str) {
        if !self.tools.iter().any(|known| known == name) {
            self.tools.push(name.into());
        }
    }

    /// Returns the name here of a tool of NexAU, if there is one.
    pub(super) fn named_here(&self, theirs: &str) -> Option<String> {
        let own = match theirs {
            "LoadSkill" => "load_skill",
            "ToolSearch" => "search_tools",
            other => other,
        };
        self.names.get(theirs).cloned().unwrap_or_else(|| Some(own.to_owned()))
    }

    /// True if the agent has a tool of this name, or a server or a middleware may bring it.
    pub(super) fn may_have(&self, tool: &str) -> bool {
        let has_server = self.tools.iter().any(|entry| entry.get("mcp").is_some() || entry.get("plugin").is_some());
        let of_middleware = self.middleware.iter().any(|(name, _)| brought(name).contains(&tool));
        let of_own = self.middleware.iter().any(|(name, _)| !ORDER.contains(&name.as_str()));
        let of_skills =
            brought("skills").contains(&tool) && self.tools.iter().any(|entry| entry.get("skills").is_some());
        has_server
            || of_own
            || of_middleware
            || of_skills
            || self.names.values().flatten().any(|name| name == tool)
            || self.tools.iter().any(|entry| entry == tool)
            || tool == "search_tools" && !self.deferred.is_empty()
    }

    /// The file.
    pub(super) fn finish(mut self) -> Value {
        let root = self.root.take().unwrap_or_else(|| "${env.SANDBOX_WORK_DIR:-.}".into());
        let mut tools = Vec::new();
        if !self.workspace.is_empty() {
            tools.push(json!({"workspace": {"root": root, "tools": self.workspace}}));
        }
        if self.shell {
            tools.push(json!({"shell": {"root": root}}));
        }
        tools.append(&mut self.tools);
        if !self.deferred.is_empty() {
            self.middleware("tool_search", Map::from_iter([("tools".into(), json!(self.deferred))]));
        }
        let brought = self.middleware.iter().flat_map(|(name, _)| brought(name)).chain(brought("skills"));
        for tool in brought.copied().collect::<Vec<_>>() {
            self.rules.allow(tool);
        }
        if let Some(permissions) = std::mem::take(&mut self.rules).finish() {
            self.middleware("approval", Map::from_iter([("permissions".into(), permissions)]));
        }
        let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(1);
        self.middleware.sort_by_key(|(name, _)| place(name));
        let entry = |(name, config): (String, Value)| match &config {
            Value::Null => name.into(),
            Value::Object(fields) if fields.is_empty() => name.into(),
            _ => json!({name: config}),
        };
        let middleware: Vec<Value> = self.middleware.into_iter().map(entry).collect();
        if let Some(Value::Object(model)) = self.fields.get("model")
            && model.len() == 1
            && let Some(name) = model.get("name").cloned()
        {
            self.fields.insert("model".into(), name);
        }
        for (key, list) in [("tools", tools), ("middleware", middleware)] {
            if !list.is_empty() {
                self.fields.insert(key.into(), list.into());
            }
        }
        Value::Object(self.fields)
    }
}

/// The tools that a middleware brings, which NexAU asks nobody about.
fn brought(middleware: &str) -> &'static [&'static str] {
    match middleware {
        "context_compaction" => &["search_history", "read_archived"],
        "delegation" => &["Agent"],
        "long_tool_output" => &["read_output"],
        "skills" => &["load_skill", "read_skill_file"],
        "tool_search" => &["search_tools"],
        _ => &[],
    }
}
