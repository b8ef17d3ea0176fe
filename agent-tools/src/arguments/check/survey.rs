//! Check that a schema uses only keywords which the built-in validator supports.

use serde_json::{Map, Value};

use super::{Type, small::resolve};

/// Keywords of JSON Schema that the built-in validator does not support.
const OTHERS: [&str; 15] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "multipleOf",
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// # Errors
/// Describes the fault in the schema, and its location.
pub(super) fn survey(schema: &Value) -> Result<(), String> {
    Survey { root: schema, path: String::new() }.schema(schema)
}

/// Walk through a schema that visits each part once: references are resolved but not followed.
struct Survey<'a> {
    root: &'a Value,
    path: String,
}

impl<'a> Survey<'a> {
    fn schema(&mut self, whole: &'a Value) -> Result<(), String> {
        let schema = match whole {
            Value::Bool(_) => return Ok(()),
            Value::Object(schema) => schema,
            _ => return Err(self.wrong("a schema is an object, true or false")),
        };
        if let Some(keyword) = OTHERS.into_iter().find(|keyword| schema.contains_key(*keyword)) {
            return Err(
                self.wrong(&format!("'{keyword}' is checked with the feature \"json-schema\" of agent-tools alone"))
            );
        }
        let above = self.root;
        self.root = if schema.contains_key("$id") { whole } else { above };
        for (keyword, value) in schema {
            let length = self.path.len();
            self.path.extend(["/", keyword]);
            self.keyword(keyword, value)?;
            self.path.truncate(length);
        }
        self.root = above;
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value) -> Result<(), String> {
        let is_size = || value.is_u64() || value.as_f64().is_some_and(|float| float >= 0.0 && float.fract() == 0.0);
        match keyword {
            "additionalProperties" | "else" | "if" | "items" | "not" | "then" => self.schema(value),
            "$defs" | "definitions" | "properties" => match value {
                Value::Object(schemas) => self.each(schemas),
                _ => Err(self.wrong("it must be an object")),
            },
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => match value {
                Value::Array(schemas) if !schemas.is_empty() => schemas.iter().try_for_each(|one| self.schema(one)),
                _ => Err(self.wrong("it must be a list of schemas")),
            },
            "type" => self.types(value),
            "$ref" if resolve(self.root, value).is_none() => Err(self.wrong("it must point into the schema itself")),
            "enum" if !value.is_array() => Err(self.wrong("it must be a list")),
            "required" if !value.as_array().is_some_and(|all| all.iter().all(Value::is_string)) => {
                Err(self.wrong("it must be a list of names"))
            }
            "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" if !value.is_number() => {
                Err(self.wrong("it must be a number"))
            }
            "maxItems" | "maxLength" | "maxProperties" | "minItems" | "minLength" | "minProperties" if !is_size() => {
                Err(self.wrong("it must be a size"))
            }
            "uniqueItems" if !value.is_boolean() => Err(self.wrong("it must be true or false")),
            _ => Ok(()), // annotation
        }
    }

    fn each(&mut self, schemas: &'a Map<String, Value>) -> Result<(), String> {
        for (name, schema) in schemas {
            let length = self.path.len();
            self.path.extend(["/", name]);
            self.schema(schema)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn types(&self, value: &Value) -> Result<(), String> {
        let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        match names.iter().find(|name| name.as_str().and_then(Type::named).is_none()) {
            Some(name) => Err(self.wrong(&format!("{name} is no type"))),
            None if names.is_empty() => Err(self.wrong("it names no type")),
            None => Ok(()),
        }
    }

    fn wrong(&self, why: &str) -> String {
        if self.path.is_empty() { why.to_owned() } else { format!("{why} (at {})", self.path) }
    }
}
