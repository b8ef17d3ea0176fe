//! Calls with streamed arguments, which the API sends only on request.

use agent_core::{Block, exact, message::Origin};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::read::{CallSaid, PartSaid};
use crate::wire::{
    json::raw,
    lenient::{Str, text},
    open_struct::open_struct,
};

open_struct! {
    /// A piece of one argument.
    ArgSaid {
        path: Str<'a> = "jsonPath" | "json_path",
        text: Str<'a> = "stringValue" | "string_value",
        number: &'a RawValue = "numberValue" | "number_value",
        truth: Value = "boolValue" | "bool_value",
    }
}

/// A call in progress.
#[derive(Debug)]
pub(super) struct Partial {
    /// Its id, which may be generated.
    pub(super) id: String,
    /// The part as in a non-streamed response, so far.
    part: Value,
}

impl Partial {
    /// Begins a call; `name` generates an id if it has none.
    pub(super) fn new(call: &CallSaid<'_>, name: impl FnOnce() -> String) -> Self {
        let mut part = json!({"functionCall": {"name": call.name(), "args": {}}});
        if let Some(id) = call.id() {
            part["functionCall"]["id"] = id.into();
        }
        Self { id: call.id().map_or_else(name, str::to_owned), part }
    }

    /// Adds a piece.
    pub(super) fn take(&mut self, said: &PartSaid<'_>, call: &CallSaid<'_>) {
        let args = &mut self.part["functionCall"]["args"];
        if let Some(all) = &call.args {
            *args = exact::from_str(all.get()).unwrap_or_default();
        }
        for arg in call.partial.iter().flatten() {
            let value = match arg {
                ArgSaid { text: Some(text), .. } => json!(text.0),
                ArgSaid { number: Some(number), .. } => exact::from_str(number.get()).unwrap_or_default(),
                ArgSaid { truth, .. } => truth.clone().unwrap_or_default(),
            };
            put(args, text(&arg.path), value);
        }
        if let Some(signature) = said.signed() {
            self.part["thoughtSignature"] = signature.into();
        }
    }

    /// Returns the complete call.
    pub(super) fn finish(self, origin: &Origin) -> Block {
        let json = to_raw_value(&self.part).expect("its keys are texts");
        let said = PartSaid::read(&json);
        said.map_or_else(|| Block::Other(raw(&json, origin)), |said| said.block(&json, origin, || self.id))
    }
}

/// Sets `value` at a JSON path such as `$.a.b[0]`. A text is appended to an existing text.
fn put(args: &mut Value, path: &str, value: Value) {
    let steps = path.trim_start_matches('$').split(['.', '[']);
    let steps = steps.map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty());
    match (steps.fold(args, go_to), value) {
        (Value::String(known), Value::String(more)) => known.push_str(&more),
        (at, value) => *at = value,
    }
}

/// Returns the field or the item of this name. A list grows by one at most.
fn go_to<'v>(at: &'v mut Value, step: &str) -> &'v mut Value {
    if let (Ok(index), false) = (step.parse::<usize>(), at.is_object()) {
        if !at.is_array() {
            *at = json!([]);
        }
        let items = at.as_array_mut().expect("a list");
        let place = index.min(items.len());
        if place == items.len() {
            items.push(Value::Null);
        }
        return &mut items[place];
    }
    if !at.is_object() {
        *at = json!({});
    }
    &mut at[step.trim_matches(['\'', '"'])]
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
