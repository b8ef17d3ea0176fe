//! Parts of an agent as data: a name and a configuration.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A part as data: the name under which the registry holds it, and its configuration.
///
/// Serialised as its name alone, or as a map of the name to the configuration, next to settings
/// that apply to any part:
///
/// ```
/// use agent_exec::PartDefinition;
/// use serde_json::json;
///
/// let part: PartDefinition = serde_json::from_value(json!({"limits": {"model_calls": 5}, "for_all": true}))?;
/// assert_eq!((part.name.as_str(), &part.config, part.for_all), ("limits", &json!({"model_calls": 5}), true));
/// let part: PartDefinition = serde_json::from_value(json!("logging"))?;
/// assert_eq!((part.name.as_str(), part.config.is_null()), ("logging", true));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
#[non_exhaustive]
pub struct PartDefinition {
    /// Name of the part in the registry.
    pub name: String,
    /// The configuration, or null.
    pub config: Value,
    /// For a middleware: true if it also applies to every descendant run.
    pub for_all: bool,
    live: Live,
}

impl PartDefinition {
    /// Returns a part of this name without a configuration.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), config: Value::Null, for_all: false, live: Live(None) }
    }

    /// Sets the configuration.
    #[must_use]
    pub fn config(mut self, config: impl Into<Value>) -> Self {
        self.config = config.into();
        self
    }

    /// Sets the configuration from which the part is actually made: the serialised one with its
    /// references, such as secrets, resolved. The resolved configuration is never serialised,
    /// compared or printed.
    #[must_use]
    pub fn live(mut self, config: Value) -> Self {
        self.live = Live(Some(config));
        self
    }

    pub(crate) fn made_from(&self) -> &Value {
        self.live.0.as_ref().unwrap_or(&self.config)
    }
}

impl From<&str> for PartDefinition {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for PartDefinition {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// A model as data: its name, and its configuration if the registry has no model of that name.
///
/// Serialised as its name alone, or as a map of `name` and the configuration keys.
///
/// ```
/// use agent_exec::ModelDefinition;
/// use serde_json::json;
///
/// let model: ModelDefinition = serde_json::from_value(json!({"name": "openai:gpt-5", "retries": 3}))?;
/// assert_eq!((model.name.as_str(), model.config["retries"].as_u64()), ("openai:gpt-5", Some(3)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
#[non_exhaustive]
pub struct ModelDefinition {
    /// The model's name.
    pub name: String,
    /// The configuration by key; empty if the name is sufficient.
    pub config: Map<String, Value>,
    live: Live,
}

impl ModelDefinition {
    /// Returns a model that is fully specified by its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), config: Map::new(), live: Live(None) }
    }

    /// Sets the resolved configuration of the model, as for [a part](PartDefinition::live).
    #[must_use]
    pub fn live(mut self, config: Value) -> Self {
        self.live = Live(Some(config));
        self
    }

    /// Returns the configuration of the model, including its name.
    pub(crate) fn made_from(&self) -> Value {
        self.live.0.clone().unwrap_or_else(|| Value::Object(self.whole()))
    }

    fn whole(&self) -> Map<String, Value> {
        let mut whole = self.config.clone();
        whole.insert("name".to_owned(), Value::from(self.name.as_str()));
        whole
    }
}

impl From<&str> for ModelDefinition {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for ModelDefinition {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// A configuration with its references resolved.
#[derive(Clone)]
struct Live(Option<Value>);

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "[hidden]" } else { "None" })
    }
}

/// All values are equal: only the serialised configuration identifies a definition.
impl PartialEq for Live {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    Map(Map<String, Value>),
}

impl TryFrom<Written> for PartDefinition {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let mut map = match written {
            Written::Name(name) => return Ok(Self::new(name)),
            Written::Map(map) => map,
        };
        let for_all = match map.remove("for_all") {
            None => false,
            Some(Value::Bool(all)) => all,
            Some(other) => return Err(format!("for_all is true or false, not {other}")),
        };
        let mut entries = map.into_iter();
        match (entries.next(), entries.next()) {
            (Some((name, config)), None) => Ok(Self { name, config, for_all, live: Live(None) }),
            (None, _) => Err("a part has a name".to_owned()),
            (Some((one, _)), Some((other, _))) => {
                Err(format!("'{one}' and '{other}' are two parts; each is an entry of its own in the list"))
            }
        }
    }
}

impl From<PartDefinition> for Written {
    fn from(PartDefinition { name, config, for_all, .. }: PartDefinition) -> Self {
        if config.is_null() && !for_all {
            return Self::Name(name);
        }
        let mut map = Map::from_iter([(name, config)]);
        if for_all {
            map.insert("for_all".to_owned(), Value::Bool(true));
        }
        Self::Map(map)
    }
}

impl TryFrom<Written> for ModelDefinition {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Name(name) => Ok(Self::new(name)),
            Written::Map(mut config) => match config.remove("name") {
                Some(Value::String(name)) => Ok(Self { name, config, live: Live(None) }),
                _ => Err("a model has a name".to_owned()),
            },
        }
    }
}

impl From<ModelDefinition> for Written {
    fn from(model: ModelDefinition) -> Self {
        if model.config.is_empty() { Self::Name(model.name) } else { Self::Map(model.whole()) }
    }
}

#[cfg(feature = "schema")]
mod schema {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{ModelDefinition, PartDefinition};

    impl JsonSchema for PartDefinition {
        fn schema_name() -> Cow<'static, str> {
            "PartDefinition".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "A part: its name, or a map of its name to its configuration.",
                "anyOf": [
                    {"type": "string"},
                    {"type": "object", "properties": {"for_all": false}, "minProperties": 1, "maxProperties": 1},
                    {
                        "type": "object",
                        "properties": {"for_all": {"type": "boolean"}},
                        "required": ["for_all"],
                        "minProperties": 2,
                        "maxProperties": 2,
                    },
                ],
            })
        }
    }

    impl JsonSchema for ModelDefinition {
        fn schema_name() -> Cow<'static, str> {
            "ModelDefinition".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "A model: its name, or its name with a configuration beside it.",
                "anyOf": [
                    {"type": "string"},
                    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                ],
            })
        }
    }
}
