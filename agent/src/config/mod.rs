//! Agents as files: YAML, JSON or TOML.
//!
//! A file is an [`AgentDefinition`](crate::AgentDefinition), written by hand: what an agent is made of, by the names of parts, with
//! what a program would give beside it. [`Loader`] reads files; [`Registry`] has the parts, the built-in ones and a program's own;
//! [`Problems`] say all that is wrong with a file, each with its line, its column and the nearest right word.
//!
//! ```yaml
//! name: clerk
//! description: Answers questions about this folder.
//! model: anthropic:claude-opus-4-5
//! system: Answer in one sentence. Today's city is ${variables.city}.
//! variables: {city: Bern}
//! tools:
//!   - workspace: {root: ., read_only: true}
//! middleware:
//!   - limits: {model_calls: 20}
//!   - approval: {permissions: {default: allow, rules: [{policy: ask, tool: write_file}]}}
//! ```
//!
//! # Example
//!
//! ```
//! use agent::{config::{Format, Loader, Registry}, prelude::*, testing::{ScriptedModel, Turn}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let registry = Registry::builtin().model("small", ScriptedModel::new([Turn::text("Grüezi!")]));
//! let loaded = Loader::new().registry(registry).read(
//!     "name: greeter\nmodel: small\nsystem: Greet in the language of ${variables.city}.\nvariables: {city: Bern}",
//!     Format::Yaml,
//! )?;
//! let agent = loaded.into_builder().build()?;
//! let RunEnd::Finished(end) = agent.run("Hello").await? else { panic!("it finishes") };
//! assert_eq!(end.answer, "Grüezi!");
//!
//! let problems = Loader::new().read("name: greeter\nmodle: openai:gpt-5", Format::Yaml).unwrap_err();
//! assert!(problems.to_string().contains("2:1: unknown key 'modle'"), "{problems}");
//! assert!(problems.to_string().contains("did you mean 'model'?"));
//! # Ok(()) }
//! ```
//!
//! # References
//!
//! `${env.NAME}`, `${env.NAME:-default}`, `${variables.NAME}` and `${file.PATH}` stand in any value, never in a key or a comment. They
//! are followed when the file is read, once: what is put in is not looked at again. `$${` stands for `${`. A variable may refer to those
//! above it; one of a group is `${variables.GROUP.NAME}`. Where a secret is
//! expected, such as an `api_key`, nothing but a reference is taken.
//!
//! # Files of files
//!
//! `extends: base.yaml` begins with another file: maps are joined key by key, everything else is replaced. A sub-agent is written in
//! its place or by the path of its file. An entry `include: parts.yaml` of a list of parts stands for those that the file lists. All paths are relative to the file in which they stand.
//!
//! # Files of teams
//!
//! A file with the key `team` describes a team: a leader with members, or agents in a pattern (feature `team`). Each agent is the path of
//! its file, or the agent itself. `Loader::load_file` reads agents and teams.
//!
//! # Files of NexAU
//!
//! A file with `type: agent` or `llm_config` is one of NexAU. It is translated; [`Loaded::differences`] lists the differences,
//! and what cannot be had is a problem.

mod file;
mod include;
mod listed;
mod loaded;
mod loader;
mod locate;
mod near;
mod network;
mod nexau;
mod parts;
mod problem;
mod references;
mod registry;
mod reload;
mod schema;
mod settle;
mod sources;
mod store;
#[cfg(feature = "team")]
mod team;
mod telemetry;
mod text;

#[cfg(feature = "team")]
pub use self::team::{LoadedFile, LoadedTeam};
pub use self::{
    loaded::{Loaded, to_yaml},
    loader::Loader,
    locate::Locator,
    nexau::{Difference, DifferenceKind},
    problem::{Problem, Problems},
    references::UnusedVariable,
    registry::Registry,
    reload::{Reloading, Watched},
    store::StoreAddress,
    telemetry::Exporter,
    text::Format,
};

/// Translates an agent file of NexAU, and returns the differences. References (`${env.NAME}`) stay as they are,
/// and files that it names are named in the translation. [`Loader`] does this by itself.
///
/// ```
/// use serde_json::json;
///
/// let file = json!({"type": "agent", "name": "helper", "llm_config": {"model": "gpt-5", "base_url": "https://llm.acme.example"},
///     "max_iteration": 5});
/// let (agent, differences) = agent::config::from_nexau(file);
/// assert_eq!(agent["model"]["name"], "openai:gpt-5@chat");
/// assert!(differences.iter().any(|difference| difference.path == "/max_iteration"), "a slip of the pen");
/// ```
pub fn from_nexau(file: serde_json::Value) -> (serde_json::Value, Vec<Difference>) {
    nexau::translate(file)
}
