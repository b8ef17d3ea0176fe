//! Models by name and by configuration.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Error, Model, Result};
use agent_exec::{Registry, Relay};
use agent_llm::{Failover, LayeredModel, XmlTools};
use serde_json::Map;

use super::script::{SCRIPT, Script};
use crate::config::{
    file::{ModelConfig, ModelRef, seconds},
    network::Network,
};

/// Before the name of a tool: the model of an agent that [relays](Relay) to it.
pub(in crate::config) const RELAY: &str = "relay:";

/// A model by `provider:model`, or a relay to a tool; none if the name is neither.
pub(in crate::config) fn by_name(name: &str) -> Option<Result<Arc<dyn Model>>> {
    if let Some(tool) = name.strip_prefix(RELAY) {
        return Some(Ok(Arc::new(Relay::to(tool))));
    }
    name.contains(':').then(|| Ok(Arc::new(agent_llm::model(name).build()?) as _))
}

/// The models of a file under names of its own, and those of the program.
pub(in crate::config) struct Models {
    of_file: BTreeMap<String, ModelConfig>,
    of_program: Registry,
    network: Network,
}

impl Models {
    pub(in crate::config) fn new(
        of_file: BTreeMap<String, ModelConfig>,
        of_program: Registry,
        network: Network,
    ) -> Self {
        Self { of_file, of_program, network }
    }

    /// The model of a name: of the file, of the program or of a provider.
    ///
    /// # Errors
    /// An unknown name, a model that is its own fallback, and what a provider lacks.
    pub(in crate::config) fn make(&self, name: &str) -> Result<Arc<dyn Model>> {
        self.named(name, &mut Vec::new())
    }

    pub(in crate::config) fn of(&self, config: &ModelConfig) -> Result<Arc<dyn Model>> {
        self.configured(config, &mut Vec::new())
    }

    fn named(&self, name: &str, path: &mut Vec<String>) -> Result<Arc<dyn Model>> {
        let Some(config) = self.of_file.get(name) else { return self.elsewhere(name) };
        if path.iter().any(|above| above == name) {
            return Err(Error::config(format!(
                "the model '{name}' is its own fallback: {} > {name}",
                path.join(" > ")
            )));
        }
        path.push(name.to_owned());
        let model = self.configured(config, path);
        path.pop();
        model
    }

    /// Returns a model that the file does not define.
    fn elsewhere(&self, name: &str) -> Result<Arc<dyn Model>> {
        if name == SCRIPT {
            return Ok(Arc::new(Script::new(&Map::new())?));
        }
        match self.network.own(name) {
            Some(model) => Ok(Arc::new(model.build()?)),
            None => self.of_program.find_model(name),
        }
    }

    /// Returns a model of a configuration that is more than a name, without its fallbacks.
    fn made(&self, config: &ModelConfig) -> Result<Arc<dyn Model>> {
        if config.name == SCRIPT {
            return Ok(Arc::new(Script::new(&config.options)?));
        }
        let model = self.built(config)?;
        Ok(if config.xml_tools { Arc::new(XmlTools::new(model)) } else { Arc::new(model) })
    }

    fn configured(&self, config: &ModelConfig, path: &mut Vec<String>) -> Result<Arc<dyn Model>> {
        let alone = ModelConfig { fallbacks: Vec::new(), ..config.clone() };
        let is_name = alone == ModelConfig { name: config.name.clone(), ..ModelConfig::default() };
        let first: Arc<dyn Model> = match is_name {
            true if path.last() == Some(&config.name) => self.elsewhere(&config.name)?,
            true => self.named(&config.name, path)?,
            false => self.made(config)?,
        };
        if config.fallbacks.is_empty() {
            return Ok(first);
        }
        let mut models = Failover::builder(first);
        for fallback in &config.fallbacks {
            models = models.fallback(match fallback {
                ModelRef::Name(name) => self.named(name, path)?,
                ModelRef::Config(config) => self.configured(config, path)?,
            });
        }
        Ok(Arc::new(models.build()?))
    }

    fn built(&self, config: &ModelConfig) -> Result<LayeredModel> {
        let mut model = self.network.model(&config.name);
        if let Some(key) = &config.api_key {
            model = model.api_key(key);
        }
        if let Some(url) = &config.base_url {
            model = model.base_url(url);
        }
        for (name, value) in &config.headers {
            model = model.header(name, value);
        }
        for (name, value) in &config.options {
            model = model.option(name, value.clone());
        }
        if let Some(retries) = config.retries {
            model = model.retries(retries);
        }
        if let Some(tokens) = config.context_window {
            model = model.context_window(tokens);
        }
        if let Some(tokens) = config.max_output {
            model = model.max_output(tokens);
        }
        if let Some(time) = config.first_timeout {
            model = model.first_timeout(seconds(time)?);
        }
        if let Some(time) = config.idle_timeout {
            model = model.idle_timeout(seconds(time)?);
        }
        model.build()
    }
}
