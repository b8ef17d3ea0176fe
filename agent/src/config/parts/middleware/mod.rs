//! Middleware by name.

mod chat_history;
mod guardrails;
mod knowledge;
mod long_term_memory;

use std::sync::Arc;

use agent_core::{Error, Middleware, Model, Result};
use agent_exec::{AgentSoFar, ModelDefinition, Registry as Parts};
use agent_middleware::{Approval, Builtin, approval::ApprovalConfig};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::config::{Registry, file::ModelRef};

/// Adds those that a configuration makes.
pub(in crate::config) fn register(mut registry: Registry) -> Registry {
    for builtin in Builtin::all() {
        let name = builtin.name();
        let schema = move |generator: &mut SchemaGenerator| match builtin.asks_model() {
            true => beside::<AskedModel>(builtin.schema(generator), generator),
            false => builtin.schema(generator),
        };
        registry.middlewares.insert(name.to_owned(), Arc::new(schema));
        registry.parts = registry.parts.middleware_by(name, |config, from| match builtin.asks_model() {
            true => {
                let (own, config) = split::<AskedModel>(name, config)?;
                builtin.make(config, &own.of(from)?, from.sub_agents)
            }
            false => builtin.make(config.clone(), from.model, from.sub_agents),
        });
    }
    let registry = chat_history::register(registry);
    let registry = guardrails::register(registry);
    let registry = knowledge::register(registry);
    long_term_memory::register(registry)
}

/// Has the middleware `approval` of files let calls of these tools run without asking.
pub(in crate::config) fn preapprove(parts: Parts, tools: Vec<String>) -> Parts {
    const APPROVAL: &str = "approval";
    parts.middleware_by(APPROVAL, move |config, _| {
        let config: ApprovalConfig = read(APPROVAL, config.clone())?;
        let approval = tools.iter().cloned().fold(Approval::from(config), Approval::preapprove);
        Ok(Arc::new(approval) as Arc<dyn Middleware>)
    })
}

/// Keys of a middleware that calls a model.
#[derive(Deserialize, JsonSchema)]
struct AskedModel {
    /// The model that is asked. Default: the agent's own.
    #[schemars(with = "Option<ModelRef>")]
    model: Option<ModelDefinition>,
}

impl AskedModel {
    /// # Errors
    /// A model that cannot be made.
    fn of(&self, from: AgentSoFar<'_>) -> Result<Arc<dyn Model>> {
        match &self.model {
            Some(model) => from.registry.make_model(model),
            None => Ok(from.model.clone()),
        }
    }
}

/// The schema of a configuration with the keys that files have beside it.
fn beside<Own: JsonSchema>(config: Schema, generator: &mut SchemaGenerator) -> Schema {
    let own = Own::json_schema(generator).to_value();
    let mut config = config.to_value();
    if let Some(name) = config.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
        config = generator.definitions().get(name).cloned().unwrap_or(config);
    }
    if let Some(properties) = own.get("properties").and_then(Value::as_object) {
        let known =
            config.as_object_mut().map(|config| config.entry("properties").or_insert_with(|| Map::new().into()));
        if let Some(Value::Object(known)) = known {
            known.extend(properties.clone());
        }
    }
    Schema::try_from(config).unwrap_or_default()
}

/// Parts a configuration into the keys that files have beside it, and the rest.
///
/// # Errors
/// Keys with values that do not fit.
fn split<Own: DeserializeOwned + JsonSchema>(name: &str, config: &Value) -> Result<(Own, Value)> {
    let mut rest = config.as_object().cloned().unwrap_or_default();
    let schema = schemars::schema_for!(Own);
    let keys = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let own: Map<_, _> = keys.filter_map(|(key, _)| Some((key.clone(), rest.remove(key)?))).collect();
    Ok((read(name, Value::Object(own))?, Value::Object(rest)))
}

/// Reads a configuration; null is an empty one.
fn read<C: DeserializeOwned>(name: &str, config: Value) -> Result<C> {
    let config = if config.is_null() { Value::Object(Map::new()) } else { config };
    C::deserialize(config).map_err(|e| Error::config(format!("the configuration of middleware '{name}' is wrong: {e}")))
}
