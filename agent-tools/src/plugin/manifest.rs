//! Plugin manifest: `plugin.yaml`.

use std::collections::BTreeMap;

use agent_core::{Effect, Error, Result};
use semver::{Version, VersionReq};
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) version: Version,
    /// Supported versions of the framework.
    pub(super) framework: VersionReq,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) config: BTreeMap<String, Declared>,
    #[serde(default)]
    pub(super) scripts: BTreeMap<String, Script>,
    #[serde(default)]
    pub(super) mcp: BTreeMap<String, Server>,
    #[serde(default)]
    pub(super) openapi: BTreeMap<String, Api>,
    /// Skill folders.
    #[serde(default)]
    pub(super) skills: Vec<String>,
    /// Prompt files, by name.
    #[serde(default)]
    pub(super) prompts: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) agents: BTreeMap<String, SubAgent>,
    #[serde(default)]
    pub(super) permissions: Vec<Restriction>,
}

/// Configuration value that the application supplies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declared {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    #[serde(default)]
    pub(super) description: String,
    pub(super) default: Option<Value>,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) secret: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    List,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) description: String,
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) parameters: Value,
    #[serde(default)]
    pub(super) effect: EffectClass,
    /// Timeout in seconds.
    #[serde(default = "timeout")]
    pub(super) timeout: u32,
}

fn timeout() -> u32 {
    60
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EffectClass {
    Pure,
    Idempotent,
    #[default]
    AtMostOnce,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// True if the program runs with all rights of this process's user.
    #[serde(default)]
    pub(super) outside_sandbox: bool,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Api {
    pub(super) document: String,
    pub(super) server: Option<String>,
    /// Secrets of security schemes, by the scheme's name.
    #[serde(default)]
    pub(super) secrets: BTreeMap<String, String>,
}

/// Sub-agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubAgent {
    pub(super) description: String,
    /// File of the system prompt.
    pub(super) prompt: String,
    /// Name patterns of its tools.
    #[serde(default)]
    pub(super) tools: Vec<String>,
}

/// Rule for tools. It can only restrict the application's policy: there is no `allow`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Restriction {
    pub(super) policy: RestrictionPolicy,
    /// Tool name pattern, with `*` for any number of characters.
    pub(super) tool: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RestrictionPolicy {
    /// Asks a person.
    Ask,
    /// Excludes the tool.
    Deny,
}

impl From<EffectClass> for Effect {
    fn from(class: EffectClass) -> Self {
        match class {
            EffectClass::Pure => Self::Pure,
            EffectClass::Idempotent => Self::Idempotent,
            EffectClass::AtMostOnce => Self::AtMostOnce,
        }
    }
}

impl Manifest {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) with the key, and the allowed values.
    pub(super) fn read(text: &str) -> Result<Self> {
        let wrong = |why: String| Error::config(format!("plugin.yaml: {why}"));
        let manifest: Self = serde_yaml_ng::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let here = Version::parse(env!("CARGO_PKG_VERSION")).expect("cargo checked it");
        if !manifest.framework.matches(&here) {
            let range = &manifest.framework;
            return Err(wrong(format!("framework: it is made for {range}, and this is {here}")));
        }
        let (scripts, servers) = (manifest.scripts.keys(), manifest.mcp.keys());
        let others = manifest.openapi.keys().chain(manifest.agents.keys()).chain([&manifest.name]);
        let names = scripts.chain(servers).chain(others);
        for name in names {
            let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
            if name.is_empty() || name.len() > 32 || !name.bytes().all(fits) {
                return Err(wrong(format!("'{name}' is no name: write 1 to 32 letters, digits, '_' or '-'")));
            }
        }
        for (name, script) in &manifest.scripts {
            if script.command.is_empty() || script.timeout == 0 {
                return Err(wrong(format!("scripts.{name}: it needs a command and a timeout of a second or more")));
            }
        }
        for (name, server) in &manifest.mcp {
            if server.command.is_empty() == server.url.is_none() {
                return Err(wrong(format!("mcp.{name}: give either a command or a url")));
            }
            if server.outside_sandbox && server.url.is_some() {
                return Err(wrong(format!("mcp.{name}.outside_sandbox: it is for a command")));
            }
        }
        for (name, declared) in &manifest.config {
            if declared.secret && (declared.kind != Kind::String || declared.default.is_some()) {
                return Err(wrong(format!("config.{name}: a secret is a string without a default")));
            }
            if declared.default.as_ref().is_some_and(|value| !declared.kind.fits(value)) {
                return Err(wrong(format!("config.{name}.default: it is not of the type {:?}", declared.kind)));
            }
        }
        Ok(manifest)
    }
}

impl Manifest {
    /// Returns the files that must exist and be text.
    pub(super) fn files(&self) -> impl Iterator<Item = &String> {
        let documents = self.openapi.values().map(|api| &api.document);
        self.prompts.values().chain(documents).chain(self.agents.values().map(|agent| &agent.prompt))
    }

    /// Returns the tool patterns with this restriction.
    pub(super) fn restricted(&self, policy: RestrictionPolicy) -> impl Iterator<Item = &str> {
        self.permissions.iter().filter(move |rule| rule.policy == policy).map(|rule| rule.tool.as_str())
    }
}

impl Kind {
    pub(super) fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
        }
    }
}
