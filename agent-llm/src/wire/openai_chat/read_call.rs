//! From the JSON of calls to the calls.

use agent_core::{
    ToolCall,
    message::{Origin, Raw},
};
use serde_json::value::RawValue;

use super::read_part::raw;
pub(super) use crate::wire::content::push_arguments;
use crate::wire::{lenient::Str, open_struct::open_struct};

open_struct! {
    /// One call, as far as it is understood.
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

open_struct! {
    /// A message, as far as the JSON of its calls is wanted.
    CallsOf { tool_calls: Vec<&'a RawValue> = "tool_calls", }
}

/// One call, as it was sent; it keeps its JSON if that says more than the call.
pub(super) fn call(json: &RawValue, origin: &Origin) -> serde_json::Result<ToolCall> {
    let said: Call<'_> = serde_json::from_str(json.get())?;
    let own = said.says_more().then(|| raw(json, origin));
    said.into_call(own)
}

/// The calls `said` in a message, as [`call`] reads each. Few say more than a call: the `message` is searched for their
/// JSON only if one does.
pub(super) fn calls<'a>(
    said: Vec<Call<'a>>,
    message: &'a RawValue,
    origin: &'a Origin,
) -> serde_json::Result<impl ExactSizeIterator<Item = serde_json::Result<ToolCall>>> {
    let own: Vec<&RawValue> = match said.iter().any(Call::says_more) {
        true => serde_json::from_str::<CallsOf<'_>>(message.get())?.tool_calls.unwrap_or_default(),
        false => Vec::new(),
    };
    let read = move |(at, said): (usize, Call<'_>)| {
        let own = own.get(at).filter(|_| said.says_more()).map(|json| raw(json, origin));
        said.into_call(own)
    };
    Ok(said.into_iter().enumerate().map(read))
}

impl Call<'_> {
    /// What it calls, if that is no function. Some servers send both kinds, and leave one empty.
    fn custom(&self) -> Option<&Custom<'_>> {
        self.custom.as_ref().filter(|custom| custom.name.as_ref().is_some_and(|name| !name.is_empty()))
    }

    /// True if a [`ToolCall`] has no room for all of it.
    fn says_more(&self) -> bool {
        let function_says_more = self.function.as_ref().is_some_and(|function| !function.rest.is_empty());
        !self.rest.is_empty() || function_says_more || self.custom().is_some()
    }

    fn into_call(self, own: Option<Raw>) -> serde_json::Result<ToolCall> {
        let mut arguments = String::new();
        let name = if self.custom().is_some() {
            let Custom { name, input, .. } = self.custom.unwrap_or_default();
            arguments = input.map(|input| input.0.into_owned()).unwrap_or_default();
            name
        } else {
            let function = self.function.unwrap_or_default();
            if let Some(said) = function.arguments {
                push_arguments(said, &mut arguments)?;
            }
            function.name
        };
        Ok(ToolCall {
            id: self.id.map(|id| id.0.into()).unwrap_or_default(),
            name: name.map(|name| name.0.into()).unwrap_or_default(),
            arguments,
            raw: own,
        })
    }
}
