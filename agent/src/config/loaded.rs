//! [`Loaded`]: an agent that was read, and agents as the texts of files.

use std::path::PathBuf;

use agent_core::Result;
use agent_exec::{AgentBuilder, AgentDefinition, Registry as Parts};
use agent_middleware::Permissions;
use serde_json::Value;

use super::{
    locate::Locator, nexau::Difference, references::UnusedVariable, store::StoreAddress, telemetry::Exporter, text,
};

/// An agent that was read from files.
#[derive(Debug)]
pub struct Loaded {
    pub(super) definition: AgentDefinition,
    pub(super) description: String,
    pub(super) store: Option<StoreAddress>,
    pub(super) exporter: Option<Exporter>,
    pub(super) permissions: Option<Permissions>,
    pub(super) parts: Parts,
    pub(super) written: Value,
    pub(super) files: Vec<PathBuf>,
    pub(super) differences: Vec<Difference>,
    pub(in crate::config) builder: AgentBuilder,
    pub(super) locator: Locator,
    pub(super) model_addresses: Vec<(String, Option<String>)>,
    pub(super) unused_variables: Vec<UnusedVariable>,
}

impl Loaded {
    /// The agent as data, with its references as they are written.
    pub fn definition(&self) -> &AgentDefinition {
        &self.definition
    }

    /// The agent's description; empty if the file has none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The store that it asks for.
    pub fn store(&self) -> Option<&StoreAddress> {
        self.store.as_ref()
    }

    /// Permissions of its tools: the rules of its middleware `approval`, and the permissions of single tools.
    pub fn permissions(&self) -> Option<&Permissions> {
        self.permissions.as_ref()
    }

    /// Exporter of its traces, if it has the key `telemetry`. Spans are created whether or not they are exported.
    pub fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }

    /// The files that it was read from in the order of reading, with those that references put in and those that were looked for.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// All that the files say in one file of YAML, which [`Loader`](super::Loader) reads again: what they extend is joined, sub-agents stand in their
    /// places, and references are as they are written. Paths are those of the files, so that it is to stand where they do.
    ///
    /// ```
    /// use agent::config::{Format, Loader};
    ///
    /// let text = "name: clerk\nmodel: quick\nmodels: {quick: {name: 'offline:any'}}\nvariables: {city: Bern}\nsystem: ${variables.city}\n";
    /// let loaded = Loader::new().read(text, Format::Yaml)?;
    /// let again = Loader::new().read(loaded.to_yaml()?, Format::Yaml)?;
    /// assert_eq!(again.definition(), loaded.definition());
    /// # Ok::<(), agent::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for what YAML cannot hold.
    pub fn to_yaml(&self) -> Result<String> {
        text::to_yaml(&self.written).map_err(agent_core::Error::config)
    }

    /// Differences from NexAU, if the file is one of NexAU.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// The builder of one of its sub-agents alone, with the models and the parts that its files know.
    ///
    /// # Errors
    /// If there is no such sub-agent.
    pub fn sub_agent(&self, key: &str) -> Result<AgentBuilder> {
        let of = |definition: &AgentDefinition| self.parts.builder(definition);
        let below = key.split('/').try_fold(&self.definition, |agent, key| Some(&agent.sub_agents.get(key)?.agent));
        below.map_or_else(|| Err(agent_core::Error::config(format!("there is no sub-agent '{key}'"))), of)
    }

    /// Variables that were [set](super::Loader::variable) and that no file declares or refers to.
    pub fn unused_variables(&self) -> &[UnusedVariable] {
        &self.unused_variables
    }

    /// Finds source locations for errors of building the agent.
    pub fn locator(&self) -> &Locator {
        &self.locator
    }

    /// Names of the models that the agent and its sub-agents call, each with the address that the file sets.
    pub fn model_addresses(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.model_addresses.iter().map(|(name, url)| (name.as_str(), url.as_deref()))
    }

    /// The builder, for what is not data. The store is not opened yet.
    pub fn builder(&self) -> AgentBuilder {
        self.builder.clone()
    }

    /// As [`builder`](Self::builder), where nothing else is wanted.
    pub fn into_builder(self) -> AgentBuilder {
        self.builder
    }

    /// Opens the store, and builds the agent.
    ///
    /// # Errors
    /// As [`StoreAddress::open`], and as [`AgentBuilder::build`] with the [source location](Locator::located).
    pub async fn into_agent(self) -> Result<agent_exec::Agent> {
        let builder = match &self.store {
            Some(address) => self.builder.store(address.open().await?),
            None => self.builder,
        };
        builder.build().map_err(|error| self.locator.located(error))
    }
}

/// An agent as the text of a file in YAML, which [`Loader`](super::Loader) reads again.
///
/// ```
/// use agent::{AgentDefinition, config::{self, Format, Loader}, prelude::*};
///
/// let text = "name: clerk\nmodel: offline:any\nmiddleware:\n  - limits: {model_calls: 5}\n";
/// let loader = Loader::new();
/// let definition: AgentDefinition = loader.read(text, Format::Yaml)?.definition().clone();
/// let again = loader.read(config::to_yaml(&definition)?, Format::Yaml)?;
/// assert_eq!(again.definition(), &definition);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for a definition that is no data.
pub fn to_yaml(definition: &AgentDefinition) -> Result<String> {
    let mut file = serde_json::to_value(definition).map_err(|e| agent_core::Error::config(e.to_string()))?;
    offered_as_it_says(&mut file);
    text::to_yaml(&file).map_err(agent_core::Error::config)
}

/// A file offers sub-agents to the model by itself, a definition does what its middleware does: the file says so where the two differ.
fn offered_as_it_says(agent: &mut Value) {
    let has_delegation = agent["middleware"]
        .as_array()
        .is_some_and(|parts| parts.iter().any(|part| part == "delegation" || part.get("delegation").is_some()));
    let Some(below) = agent.get_mut("sub_agents").and_then(Value::as_object_mut) else { return };
    for sub_agent in below.values_mut() {
        offered_as_it_says(&mut sub_agent["agent"]);
    }
    if !has_delegation && !below.is_empty() {
        agent["offer_sub_agents"] = Value::Bool(false);
    }
}
