//! Configuration values of a plugin, and their substitution.

use std::{collections::BTreeMap, path::Path};

use agent_core::{Error, Result, tool::Secret, tool::value_to_text};
use serde_json::Value;

use super::manifest::Declared;

/// Public and secret values by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    plain: BTreeMap<String, String>,
    secret: BTreeMap<String, Secret>,
}

impl Values {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a value that is missing, unknown or
    /// of another type, or for a secret that is given in plain text.
    pub(super) fn read(declared: &BTreeMap<String, Declared>, given: &Value) -> Result<Self> {
        let empty = serde_json::Map::new();
        let given = match given {
            Value::Null => &empty,
            Value::Object(given) => given,
            _ => return Err(Error::config("the configuration of a plugin is an object of values by name")),
        };
        if let Some(name) = given.keys().find(|name| !declared.contains_key(*name)) {
            let known = declared.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Error::config(format!("config.{name}: the plugin has no such value; it has: {known}")));
        }
        let mut values = Self::default();
        for (name, declared) in declared {
            let wrong = |why: &str| Error::config(format!("config.{name}: {why}"));
            match given.get(name).or(declared.default.as_ref()) {
                None if declared.required => return Err(wrong("it is required, and has no value")),
                None => {}
                Some(value) if declared.secret => {
                    values.secret.insert(name.clone(), secret(value).map_err(|why| wrong(&why))?);
                }
                Some(value) if declared.kind.fits(value) => {
                    values.plain.insert(name.clone(), value_to_text(value));
                }
                Some(_) => return Err(wrong(&format!("it is to be of the type {:?}", declared.kind))),
            }
        }
        Ok(values)
    }

    /// Replaces `${config.NAME}` by values and `${plugin.dir}` by the folder. Replacements are not
    /// expanded again.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a name without a value, and for a
    /// secret at a place where others could see it.
    pub(super) fn fill(&self, text: &str, dir: &Path, may_be_secret: bool) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let wrong = |why: &str| Error::config(format!("'{text}': {why}"));
            let (name, after) = after.split_once('}').ok_or_else(|| wrong("'${' has no '}'"))?;
            filled.push_str(before);
            rest = after;
            if name == "plugin.dir" {
                filled.push_str(dir.to_str().ok_or_else(|| wrong("the plugin's folder has no name in UTF-8"))?);
                continue;
            }
            let key = name.strip_prefix("config.").ok_or_else(|| wrong("write ${config.NAME} or ${plugin.dir}"))?;
            match (self.plain.get(key), self.secret.get(key)) {
                (Some(value), _) => filled.push_str(value),
                (None, Some(value)) if may_be_secret => filled.push_str(value.expose()),
                (None, Some(_)) => return Err(wrong("a secret may stand in env, headers and secrets alone")),
                (None, None) => return Err(wrong(&format!("config.{key} has no value"))),
            }
        }
        Ok(filled + rest)
    }

    /// Redacts the secrets in a text.
    pub(super) fn hide(&self, text: &str) -> String {
        let secrets = self.secret.values().map(Secret::expose).filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }
}

/// Resolves the reference to a secret.
fn secret(reference: &Value) -> Result<Secret, String> {
    let one = |key: &str| reference.as_object().filter(|all| all.len() == 1)?.get(key)?.as_str();
    if let Some(name) = one("env") {
        return std::env::var(name).map(Secret::from).map_err(|_| format!("the variable {name} is not set"));
    }
    if let Some(path) = one("file") {
        let read = std::fs::read_to_string(path).map_err(|e| format!("the file '{path}' cannot be read: {e}"))?;
        return Ok(Secret::from(read.trim_end()));
    }
    Err("it is a secret: refer to it by {\"env\": NAME} or {\"file\": PATH}".to_owned())
}
