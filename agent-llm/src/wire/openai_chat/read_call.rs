//! From the JSON of one call to the call.

use agent_core::{Origin, ToolCall};
use serde_json::value::RawValue;

use super::read_part::raw;
pub(super) use crate::wire::content::push_arguments;
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
