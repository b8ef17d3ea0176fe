//! OpenAPI document as JSON, with resolution of references.

use agent_core::{Error, Result};
use serde_json::{Map, Value};

use super::yaml::Yaml;
use crate::text::percent_decoded;

/// Maximum size of a document in bytes.
const LARGEST: usize = 32 << 20;
/// Maximum length of a chain of references.
const MOST_HOPS: usize = 32;

/// OpenAPI 3 document.
#[derive(Debug)]
pub(super) struct Document(Value);

impl Document {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the text is not an OpenAPI 3.0 or
    /// 3.1 document.
    pub(super) fn read(text: &str) -> Result<Self> {
        if text.len() > LARGEST {
            return Err(Error::config(format!("the OpenAPI document is larger than {} MiB", LARGEST >> 20)));
        }
        let document: Value = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text).map_err(|e| unread("JSON", e))?,
            false => serde_yaml_ng::from_str(text).map(|Yaml(document)| document).map_err(|e| unread("YAML", e))?,
        };
        match document.get("openapi").and_then(Value::as_str) {
            Some(version) if version.starts_with("3.") => Ok(Self(document)),
            Some(version) => {
                Err(Error::config(format!("the document is of OpenAPI {version}, and 3.0 and 3.1 are read")))
            }
            None if document.get("swagger").is_some() => {
                Err(Error::config("the document is of Swagger 2: convert it to OpenAPI 3 first"))
            }
            None => Err(Error::config("the document has no field 'openapi', so it is none of OpenAPI 3")),
        }
    }

    pub(super) fn root(&self) -> &Value {
        &self.0
    }

    /// Resolves a value: returns the value itself, or the target of its reference.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a reference leads out of the
    /// document, is dangling or circular.
    pub(super) fn resolve<'a>(&'a self, value: &'a Value) -> Result<&'a Value> {
        let mut value = value;
        for _ in 0..MOST_HOPS {
            match reference(value) {
                Some(name) => value = self.lookup(name)?,
                None => return Ok(value),
            }
        }
        Err(Error::config("a reference of the document leads in a circle"))
    }

    /// Looks up the target of a reference.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub(super) fn lookup(&self, name: &str) -> Result<&Value> {
        let Some(pointer) = name.strip_prefix('#') else {
            let message = format!("'{name}' leads out of the document: bundle the document into one file");
            return Err(Error::config(message));
        };
        let pointer = percent_decoded(pointer);
        self.0.pointer(&pointer).ok_or_else(|| Error::config(format!("'{name}' leads to nothing in the document")))
    }
}

fn unread(form: &str, e: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::config(format!("the OpenAPI document cannot be read as {form}: {e}")).with_source(e)
}

/// Returns the reference that replaces a value.
pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

/// Iterates over a list field; a missing field is empty.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Iterates over an object field; a missing field is empty.
pub(super) fn fields<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(field).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// Returns a text field; a missing field is empty.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns true if the field is present and true.
pub(super) fn is_set(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool).unwrap_or(false)
}
