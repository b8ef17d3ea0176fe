//! Calls whose arguments come piece by piece, which the API does only for those who ask for it.

use agent_core::{Block, ToolCall, message::Origin};
use serde_json::{Value, json};

use super::read::{CallSaid, PartSaid};
use crate::wire::{
    json::raw_text,
    lenient::{Str, text},
    open_struct::open_struct,
};

open_struct! {
    /// More of one argument.
    ArgSaid {
        path: Str<'a> = "jsonPath" | "json_path",
        text: Str<'a> = "stringValue" | "string_value",
        number: Value = "numberValue" | "number_value",
        truth: Value = "boolValue" | "bool_value",
    }
}

/// A call under way.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) id: String,
    /// Its provider gave it no id.
    is_made_up: bool,
    pub(super) name: String,
    args: Value,
    signature: Option<String>,
}

impl Partial {
    /// Begins a call; `name` makes an id for one that has none.
    pub(super) fn new(call: &CallSaid<'_>, name: impl FnOnce() -> String) -> Self {
        let id = call.id.as_ref().filter(|id| !id.is_empty()).map(|id| id.0.to_string());
        Self {
            is_made_up: id.is_none(),
            id: id.unwrap_or_else(name),
            name: call.name().to_owned(),
            args: json!({}),
            signature: None,
        }
    }

    /// Adds a piece.
    pub(super) fn take(&mut self, said: &PartSaid<'_>, call: &CallSaid<'_>) {
        if let Some(args) = &call.args {
            self.args.clone_from(args);
        }
        for arg in call.partial.iter().flatten() {
            let value = match arg {
                ArgSaid { text: Some(text), .. } => json!(text.0),
                ArgSaid { number, truth, .. } => number.as_ref().or(truth.as_ref()).cloned().unwrap_or_default(),
            };
            put(&mut self.args, text(&arg.path), value);
        }
        self.signature = said.signed().map(str::to_owned).or(self.signature.take());
    }

    /// The whole call, as it would have come at once.
    pub(super) fn finish(self, origin: &Origin) -> Block {
        let arguments = self.args.to_string();
        let says_more = !self.is_made_up || self.signature.is_some();
        let mut part = json!({"functionCall": {"name": self.name, "args": self.args}});
        if !self.is_made_up {
            part["functionCall"]["id"] = self.id.as_str().into();
        }
        if let Some(signature) = self.signature {
            part["thoughtSignature"] = signature.into();
        }
        let raw = says_more.then(|| raw_text(&part.to_string(), origin));
        Block::ToolCall(ToolCall { id: self.id.into(), name: self.name.into(), arguments, raw })
    }
}

/// Puts `value` at a JSON path such as `$.a.b[0]`. A text goes on with the text that stands there.
fn put(args: &mut Value, path: &str, value: Value) {
    let mut at = args;
    let steps = path.trim_start_matches('$').split(['.', '[']);
    for step in steps.map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty()) {
        at = match step.parse::<usize>() {
            Ok(index) if !at.is_object() => {
                if !at.is_array() {
                    *at = json!([]);
                }
                item(at, index)
            }
            _ => {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[step.trim_matches(['\'', '"'])]
            }
        };
    }
    match (at, value) {
        (Value::String(known), Value::String(more)) => known.push_str(&more),
        (at, value) => *at = value,
    }
}

/// The item at `index`; a list grows by one at most.
fn item(list: &mut Value, index: usize) -> &mut Value {
    let items = list.as_array_mut().expect("a list");
    if index >= items.len() {
        items.push(Value::Null);
    }
    let at = index.min(items.len() - 1);
    &mut items[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_put_together_by_their_paths() {
        let mut args = json!({});
        for (path, value) in [
            ("$.city", json!("Bos")),
            ("$.city", json!("ton")),
            ("$.at[0].n", json!(1)),
            ("$.at[1].n", json!(2)),
            ("$['two words']", json!(true)),
            ("$.none", Value::Null),
            ("$.far[9]", json!("x")),
        ] {
            put(&mut args, path, value);
        }
        let expected =
            json!({"city": "Boston", "at": [{"n": 1}, {"n": 2}], "two words": true, "none": null, "far": ["x"]});
        assert_eq!(args, expected);
    }
}
