//! Equality of requests.

use agent_core::{Error, Result};
use serde_json::Value;

use super::exchange::{Asked, Content, Piece};

/// The parts of a request that are compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) method: String,
    pub(super) url: String,
    /// A JSON body by its value; any other body as text.
    pub(super) body: Value,
}

/// Parts of a request that the comparison ignores.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored {
    /// JSON Pointers, in which `*` matches any name or index.
    fields: Vec<Vec<String>>,
    host: bool,
}

impl Ignored {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid JSON Pointer.
    pub(super) fn new(pointers: &[String], host: bool) -> Result<Self> {
        let fields = pointers.iter().map(|pointer| {
            let names = pointer.strip_prefix('/').ok_or_else(|| {
                Error::config(format!(
                    "'{pointer}' is no JSON Pointer: write it as in '/metadata/user' or '/messages/*/id'"
                ))
            })?;
            Ok(names.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect())
        });
        Ok(Self { fields: fields.collect::<Result<_>>()?, host })
    }

    pub(super) fn key(&self, asked: &Asked) -> Key {
        let mut body = match &asked.body {
            None => Value::Null,
            Some(Content::Json(json)) => serde_json::from_str(json.get()).unwrap_or_default(),
            Some(Content::Chunks(pieces)) => pieces.iter().map(text).collect::<String>().into(),
        };
        self.fields.iter().for_each(|pointer| remove(&mut body, pointer));
        let url = match asked.url.split_once("://").and_then(|(_, rest)| rest.split_once('/')) {
            Some((_, path)) if self.host => format!("/{path}"),
            _ => asked.url.clone(),
        };
        Key { method: asked.method.clone(), url, body }
    }
}

fn text(piece: &Piece) -> &str {
    match piece {
        Piece::Text(text) => text,
        Piece::Binary { hex } => hex,
    }
}

fn remove(value: &mut Value, pointer: &[String]) {
    let Some((first, rest)) = pointer.split_first() else { return };
    match value {
        Value::Object(fields) if rest.is_empty() => match first.as_str() {
            "*" => fields.clear(),
            name => _ = fields.remove(name),
        },
        Value::Object(fields) => {
            let inside = fields.iter_mut().filter(|(name, _)| first == "*" || first == *name);
            inside.for_each(|(_, value)| remove(value, rest));
        }
        Value::Array(items) => {
            let chosen = |at: usize| first == "*" || first.parse() == Ok(at);
            if rest.is_empty() {
                let mut at = 0..;
                items.retain(|_| !at.next().is_some_and(chosen));
            } else {
                let inside = items.iter_mut().enumerate().filter(|(at, _)| chosen(*at));
                inside.for_each(|(_, item)| remove(item, rest));
            }
        }
        _ => {}
    }
}
