//! From the JSON of one call to the call.

use agent_core::{Origin, ToolCall};
use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};
use serde_json::value::RawValue;

use super::read_part::raw;
use crate::wire::{lenient::Str, open_struct::open_struct};

open_struct! {
    Call {
        id: Str<'a> = "id",
        _index: &'a RawValue = "index",
        _kind: Str<'a> = "type",
        function: Function<'a> = "function",
        custom: Custom<'a> = "custom",
    }
}

open_struct! {
    Function { name: Str<'a> = "name", arguments: &'a RawValue = "arguments", }
}

open_struct! {
    Custom { name: Str<'a> = "name", input: Str<'a> = "input", }
}

/// The tool of a call that names none. It is answered like any tool that is unknown, and providers refuse an empty name.
pub(super) const NAMELESS: &str = "unknown";

/// One call, as it was sent; it keeps its JSON if that says more than the call.
pub(super) fn call(json: &RawValue, origin: &Origin) -> serde_json::Result<ToolCall> {
    let call: Call<'_> = serde_json::from_str(json.get())?;
    let function = call.function.unwrap_or_default();
    // Some servers send both kinds, and leave one empty.
    let custom = call.custom.filter(|custom| custom.name.as_ref().is_some_and(|name| !name.is_empty()));
    let says_more = !call.rest.is_empty() || !function.rest.is_empty() || custom.is_some();
    let mut arguments = String::new();
    let name = match custom {
        Some(custom) => {
            arguments = custom.input.map(|input| input.0.into_owned()).unwrap_or_default();
            custom.name
        }
        None => {
            if let Some(said) = function.arguments {
                push_arguments(said, &mut arguments)?;
            }
            function.name
        }
    };
    Ok(ToolCall {
        id: call.id.map(|id| id.0.into()).unwrap_or_default(),
        name: name.map(|name| name.0.into()).unwrap_or_default(),
        arguments,
        raw: says_more.then(|| raw(json, origin)),
    })
}

/// The id of the call at `at`, if its server gave it none: the same each time that a recorded answer is read.
pub(super) fn call_id(response: &str, at: usize) -> String {
    if response.is_empty() { format!("call_{at}") } else { format!("call_{response}_{at}") }
}

/// Adds arguments to those that are `known`. They are JSON in a text; some servers send the JSON itself.
pub(super) fn push_arguments(json: &RawValue, known: &mut String) -> serde_json::Result<()> {
    match json.get() {
        "null" => Ok(()),
        text if text.starts_with('"') => Push(known).deserialize(&mut serde_json::Deserializer::from_str(text)),
        object => {
            known.push_str(object);
            Ok(())
        }
    }
}

/// Reads a text to the end of another, without one of its own between.
struct Push<'s>(&'s mut String);

impl<'de> DeserializeSeed<'de> for Push<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Push<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }
}
