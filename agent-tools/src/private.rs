//! Support for the code that `#[tool]` generates. Not part of the public API: it changes without
//! notice.

use std::any::Any;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

pub use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};

use agent_core::{Error, ErrorKind, exact};

pub use crate::{IntoToolOutput, Resource};

use crate::schema;

/// Schema of arguments, built parameter by parameter.
#[derive(Debug)]
pub struct Parameters {
    generator: SchemaGenerator,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { generator: schema::generator(), properties: Map::new(), required: Vec::new() }
    }
}

impl Parameters {
    /// Adds a required parameter.
    #[must_use]
    pub fn required<T: JsonSchema>(mut self, name: &str, description: &str) -> Self {
        self.required.push(name.into());
        self.optional::<T>(name, description, None)
    }

    /// Adds an optional parameter.
    #[must_use]
    pub fn optional<T: JsonSchema>(mut self, name: &str, description: &str, default: Option<Value>) -> Self {
        let mut schema = self.generator.subschema_for::<T>();
        let fields = schema.ensure_object();
        if !description.is_empty() {
            fields.insert("description".to_owned(), description.into());
        }
        if let Some(default) = default {
            fields.insert("default".to_owned(), default);
        }
        self.properties.insert(name.to_owned(), schema.to_value());
        self
    }

    /// Builds the schema.
    pub fn build(mut self) -> Value {
        let mut schema =
            Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), self.properties.into())]);
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        let definitions = self.generator.take_definitions(false);
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), definitions.into());
        }
        schema::lean(Schema::from(schema))
    }
}

/// Returns the schema's representation of a default.
pub fn default_value<T: Serialize>(value: T) -> Option<Value> {
    serde_json::to_value(value).ok()
}

/// Argument of a call.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    name: &'static str,
    /// True if the value may come from the state: it must then not appear in an error.
    hidden: bool,
}

impl Argument {
    /// Creates the argument for the parameter `name`.
    pub const fn new(name: &'static str, hidden: bool) -> Self {
        Self { name, hidden }
    }

    /// Returns the value of a required argument.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if the argument is missing or has another type.
    pub fn required<T: DeserializeOwned>(self, req: &ToolRequest) -> Result<T> {
        self.decode(req)?.ok_or_else(|| self.invalid(req, " is required"))
    }

    /// Returns the value, or the default if the model omitted the argument.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if the argument has another type.
    pub fn optional<T: DeserializeOwned>(self, req: &ToolRequest, default: impl FnOnce() -> T) -> Result<T> {
        Ok(self.decode(req)?.unwrap_or_else(default))
    }

    fn decode<T: DeserializeOwned>(self, req: &ToolRequest) -> Result<Option<T>> {
        let Some(value) = req.args.get(self.name) else { return Ok(None) };
        exact::from_value(value).map(Some).map_err(|e| {
            let why = if self.hidden { " does not fit its type".to_owned() } else { format!(": {e}") };
            self.invalid(req, &why)
        })
    }

    fn invalid(self, req: &ToolRequest, why: &str) -> Error {
        let (tool, name) = (&req.call.name, self.name);
        Error::new(ErrorKind::InvalidArguments, format!("Invalid arguments for tool '{tool}': '{name}'{why}."))
    }
}

/// Runs the function on a thread for blocking work.
///
/// # Errors
/// Errors of the function.
pub async fn blocking(function: impl FnOnce() -> Result<ToolOutput> + Send + 'static) -> Result<ToolOutput> {
    crate::blocking::blocking(function).await
}

/// Returns a live handle of the run.
///
/// # Errors
/// [`ErrorKind::Config`] if the run has no handle of the type.
pub fn resource<T: Any + Send + Sync>(req: &ToolRequest) -> Result<Resource<T>> {
    req.cx.resources().get().map(Resource)
}
