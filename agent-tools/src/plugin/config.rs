//! Values of a plugin's configuration, and the places that they go to.

use std::{collections::BTreeMap, path::Path};

use agent_core::{Error, Result, tool::Secret, tool::value_to_text};
use serde_json::Value;

use super::manifest::Declared;

/// Values by name: what is told to anybody, and what is not.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    plain: BTreeMap<String, String>,
    secret: BTreeMap<String, Secret>,
}

impl Values {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a value that is missing, unknown, of another type, or a secret that is
    /// written out.
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

    /// The text with values in place of `${config.NAME}` and the folder in place of `${plugin.dir}`. What is put in is not looked at again.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a name without a value, and for a secret where others could see it.
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

    /// The text without the secrets.
    pub(super) fn hide(&self, text: &str) -> String {
        let secrets = self.secret.values().map(Secret::expose).filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }
}

/// A secret where the reference leads.
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
