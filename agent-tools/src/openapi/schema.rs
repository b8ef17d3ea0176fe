//! Conversion of OpenAPI schemas to the JSON Schema dialect of models and of the framework's
//! validation.

use agent_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::document::{Document, is_set, reference};
use crate::text::cut;

/// Maximum of schemas per operation: inlining references can expand a small document greatly.
const MOST: usize = 400;
/// Maximum of bytes of their text, for the same reason.
const MOST_BYTES: usize = 256 << 10;
/// Maximum length of a schema's description, in bytes.
const LONGEST: usize = 500;
/// Maximum depth of an inlined schema.
const DEEPEST: usize = 24;

/// Keywords that are copied.
const KEPT: &[&str] = &[
    "title",
    "format",
    "default",
    "enum",
    "const",
    "required",
    "uniqueItems",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];
/// JSON Schema types.
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Converts schemas, and inlines references.
pub(super) struct Schemas<'a> {
    document: &'a Document,
    /// References that are being inlined.
    within: Vec<String>,
    left: usize,
    bytes: usize,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self { document, within: Vec::new(), left: MOST, bytes: MOST_BYTES }
    }

    /// Converts the schema of a request value. A part that is too large, too deep or recursive is
    /// replaced by a schema that accepts anything, with a description.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a reference is dangling.
    pub(super) fn write(&mut self, schema: &Value) -> Result<Value> {
        self.write_at(schema, 0)
    }

    fn write_at(&mut self, schema: &Value, depth: usize) -> Result<Value> {
        if let Some(name) = reference(schema) {
            let short = name.rsplit('/').next().unwrap_or_default();
            if self.within.iter().any(|outer| outer == name) || depth > DEEPEST || self.left == 0 {
                return Ok(json!({"description": format!("As {short}.")}));
            }
            self.within.push(name.to_owned());
            let target = self.document.lookup(name)?;
            let mut written = self.write_at(target, depth + 1)?;
            self.within.pop();
            // OpenAPI 3.1 allows a description beside a reference.
            if let (Some(description), Some(written)) = (schema.get("description"), written.as_object_mut()) {
                written.insert("description".to_owned(), description.clone());
            }
            return Ok(written);
        }
        let Value::Object(fields) = schema else {
            return Ok(if schema.is_boolean() { schema.clone() } else { json!({}) });
        };
        if depth > DEEPEST || self.left == 0 {
            return Ok(json!({}));
        }
        self.left -= 1;
        let mut written = Map::new();
        for (keyword, value) in fields {
            self.keyword(keyword, value, fields, &mut written, depth)?;
        }
        nullable(fields, &mut written);
        described(fields, &mut written);
        Ok(written.into())
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        fields: &Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<()> {
        let written = match keyword {
            "properties" => {
                let mut properties = Map::new();
                for (name, property) in value.as_object().into_iter().flatten() {
                    // Read-only properties appear in responses only.
                    if !is_set(self.document.resolve(property)?, "readOnly") && self.afford(name.len()) {
                        properties.insert(name.clone(), self.write_at(property, depth + 1)?);
                    }
                }
                out.insert(keyword.to_owned(), properties.into());
                return Ok(());
            }
            "items" | "additionalProperties" | "not" => {
                out.insert(keyword.to_owned(), self.write_at(value, depth + 1)?);
                return Ok(());
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let Some(all) = value.as_array().filter(|all| !all.is_empty()) else { return Ok(()) };
                let all = all.iter().map(|one| self.write_at(one, depth + 1)).collect::<Result<_>>()?;
                out.insert(keyword.to_owned(), Value::Array(all));
                return Ok(());
            }
            "type" => match types(value) {
                Some(types) => types,
                None => return Ok(()),
            },
            "minimum" | "maximum" => {
                let exclusive = if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                if !value.is_number() {
                    return Ok(());
                }
                // In OpenAPI 3.0 this keyword is a boolean.
                let name = if fields.get(exclusive) == Some(&json!(true)) { exclusive } else { keyword };
                out.insert(name.to_owned(), value.clone());
                return Ok(());
            }
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_number() => value.clone(),
            "required" => self.required(value, fields)?,
            "description" => match value.as_str() {
                Some(said) if said.len() > LONGEST => format!("{}..", cut(said, LONGEST)).into(),
                _ => value.clone(),
            },
            _ if KEPT.contains(&keyword) => value.clone(),
            _ => return Ok(()),
        };
        if self.afford(written.to_string().len()) {
            out.insert(keyword.to_owned(), written);
        }
        Ok(())
    }

    /// Reserves so many more bytes; returns false if the budget is exhausted.
    fn afford(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    /// Returns the required properties without read-only ones.
    fn required(&self, names: &Value, fields: &Map<String, Value>) -> Result<Value> {
        let mut required = Vec::new();
        for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let property = fields.get("properties").and_then(|properties| properties.get(name));
            let comes_back = property.map(|property| self.document.resolve(property)).transpose()?;
            if !comes_back.is_some_and(|property| is_set(property, "readOnly")) {
                required.push(json!(name));
            }
        }
        Ok(required.into())
    }

    /// Returns the properties of a plain object, which can become arguments beside the parameters.
    pub(super) fn plain_object(written: &Value) -> Option<(&Map<String, Value>, Vec<String>)> {
        let object = written.as_object()?;
        let plain = ["type", "properties", "required", "title", "description"];
        let is_plain = object.keys().all(|keyword| plain.contains(&keyword.as_str()))
            && object.get("type") == Some(&json!("object"));
        let properties =
            object.get("properties")?.as_object().filter(|properties| is_plain && !properties.is_empty())?;
        let names = object.get("required").and_then(Value::as_array).into_iter().flatten();
        Some((properties, names.filter_map(|name| name.as_str().map(str::to_owned)).collect()))
    }
}

/// Returns the JSON Schema types in a `type` value.
fn types(value: &Value) -> Option<Value> {
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(all) => Some(all.iter().filter(|name| known(name)).cloned().collect::<Vec<_>>())
            .filter(|all| !all.is_empty())
            .map(Value::Array),
        one => known(one).then(|| one.clone()),
    }
}

/// Converts `nullable` of OpenAPI 3.0.
fn nullable(fields: &Map<String, Value>, out: &mut Map<String, Value>) {
    if fields.get("nullable") != Some(&json!(true)) {
        return;
    }
    if let Some(Value::String(only)) = out.get("type") {
        out.insert("type".to_owned(), json!([only, "null"]));
    }
    if let Some(Value::Array(values)) = out.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// Describes keywords that the framework does not check in words: regular expressions are of
/// another dialect, and servers check them.
fn described(fields: &Map<String, Value>, out: &mut Map<String, Value>) {
    let said =
        ["pattern", "multipleOf", "example"].iter().filter_map(|word| Some(format!("{word}: {}", fields.get(*word)?)));
    let said: Vec<_> = said.filter(|text| text.len() <= 200).collect();
    if said.is_empty() {
        return;
    }
    let before = out.get("description").and_then(Value::as_str).map(|text| format!("{text} ")).unwrap_or_default();
    out.insert("description".to_owned(), format!("{before}({})", said.join("; ")).into());
}

/// Rejects a schema that the framework cannot compile.
pub(super) fn checked(name: &str, schema: Value) -> Result<Value> {
    let spec = agent_core::ToolSpec::new(name, "", schema);
    crate::ArgumentSchema::compile(&spec).map_err(|e| {
        Error::config(format!("the parameters of '{name}' cannot be used: {}", e.message())).with_source(e)
    })?;
    Ok(spec.parameters)
}
