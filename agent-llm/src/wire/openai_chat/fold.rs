//! Putting a message together from its deltas, in the shape in which it would have come whole.

use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{
    fold_call::{CallDelta, CallFold, WholeCall},
    read::{Field, ORDER},
    read_part::plain,
};
use crate::wire::{
    lenient::{Content, Str},
    merge::{merge, merge_field},
    open_struct::open_struct,
};

open_struct! {
    /// One delta of a message.
    Delta {
        role: Str<'a> = "role",
        content: Content<'a> = "content",
        reasoning_content: Content<'a> = "reasoning_content",
        reasoning: Content<'a> = "reasoning",
        refusal: Str<'a> = "refusal",
        tool_calls: Vec<CallDelta<'a>> = "tool_calls",
    }
}

/// A message under way.
#[derive(Debug, Default)]
pub(super) struct Fold {
    role: Option<String>,
    content: Option<String>,
    /// A content that comes as a list; it then holds the text before it, too.
    parts: Vec<Value>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    calls: Vec<CallFold>,
    /// Everything else, merged.
    rest: Map<String, Value>,
    /// Fields in the order in which they first said something.
    seen: Vec<Field>,
}

impl Fold {
    pub(super) fn push(&mut self, delta: &Delta<'_>) -> serde_json::Result<()> {
        if let (None, Some(role)) = (&self.role, &delta.role) {
            self.role = Some(role.0.to_string());
        }
        for (known, more) in
            [(&mut self.reasoning_content, &delta.reasoning_content), (&mut self.reasoning, &delta.reasoning)]
        {
            if let Some(more) = more {
                let more = plain(more)?;
                known.get_or_insert_default().push_str(&more);
                see(&mut self.seen, Field::Reasoning, !more.is_empty());
            }
        }
        if let Some(content) = &delta.content {
            self.push_content(content)?;
        }
        if let Some(more) = &delta.refusal {
            self.refusal.get_or_insert_default().push_str(&more.0);
            see(&mut self.seen, Field::Refusal, !more.is_empty());
        }
        for call in delta.tool_calls.iter().flatten() {
            let at = self.call_of(call);
            self.calls[at].push(call)?;
        }
        // In the order in which they are heard: of a call without a name nobody has.
        let is_heard = self.calls.first().is_some_and(|call| call.can_be_spoken(self.calls.len() > 1));
        see(&mut self.seen, Field::Calls, is_heard);
        for (name, json) in &delta.rest {
            match &*name.0 {
                "reasoning_details" => see(&mut self.seen, Field::Reasoning, json.get() != "[]"),
                "images" => see(&mut self.seen, Field::Images, true),
                _ => {}
            }
            merge_field(&mut self.rest, name.0.to_string(), serde_json::from_str(json.get())?);
        }
        Ok(())
    }

    fn push_content(&mut self, content: &Content<'_>) -> serde_json::Result<()> {
        match content {
            Content::Text(more) if self.parts.is_empty() => {
                self.content.get_or_insert_default().push_str(more);
                see(&mut self.seen, Field::Content, !more.is_empty());
            }
            Content::Text(more) => self.push_part(text_part(more)),
            Content::Parts(parts) => {
                if let Some(before) = self.content.take().filter(|text| !text.is_empty()) {
                    self.parts.push(text_part(&before));
                }
                for part in parts {
                    see(&mut self.seen, Field::Content, true);
                    self.push_part(serde_json::from_str(part.get())?);
                }
            }
        }
        Ok(())
    }

    /// Goes on with the last part if it is of the same kind, and of a kind that comes in pieces.
    fn push_part(&mut self, part: Value) {
        let in_pieces = matches!(part["type"].as_str(), Some("text" | "thinking"));
        match self.parts.last_mut() {
            Some(last) if in_pieces && last["type"] == part["type"] => merge(last, part),
            _ => self.parts.push(part),
        }
    }

    /// The place of the call that `delta` belongs to; a new one where it begins a call.
    fn call_of(&mut self, delta: &CallDelta<'_>) -> usize {
        let id = delta.id.as_ref().map_or("", |id| &*id.0);
        let names = delta.function.as_ref().and_then(|f| f.name.as_ref()).is_some_and(|name| !name.is_empty());
        let begins_another = |call: &CallFold| match (id, call.id.as_str()) {
            // A server without ids that sends whole calls.
            ("", "") => names && !call.name.is_empty() && !call.arguments.is_empty(),
            ("", _) | (_, "") => false,
            (id, known) => id != known, // a server that gives every call the same index
        };
        let known = match delta.index {
            Some(index) => self.calls.iter().rposition(|call| call.index() == Some(index)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        known.filter(|at| !begins_another(&self.calls[*at])).unwrap_or_else(|| {
            self.calls.push(CallFold::new(delta.index));
            self.calls.len() - 1
        })
    }

    pub(super) fn calls(&self) -> &[CallFold] {
        &self.calls
    }

    /// The fields in the order in which they came.
    pub(super) fn order(&self) -> [Field; 5] {
        let mut order = ORDER;
        order.sort_by_key(|field| self.seen.iter().position(|seen| seen == field).unwrap_or(usize::MAX));
        order
    }

    /// The message as it would have come whole in the response of this id.
    ///
    /// # Errors
    /// Never, but for a bug: its keys are texts and its numbers finite.
    pub(super) fn json(&self, response: &str) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(&Whole { fold: self, response })
    }
}

fn see(seen: &mut Vec<Field>, field: Field, said_something: bool) {
    if said_something && !seen.contains(&field) {
        seen.push(field);
    }
}

fn text_part(text: &str) -> Value {
    serde_json::json!({"type": "text", "text": text})
}

struct Whole<'a> {
    fold: &'a Fold,
    response: &'a str,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fold = self.fold;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", fold.role.as_deref().unwrap_or("assistant"))?;
        if fold.parts.is_empty() {
            map.serialize_entry("content", &fold.content)?;
        } else {
            map.serialize_entry("content", &fold.parts)?;
        }
        for (name, text) in
            [("reasoning_content", &fold.reasoning_content), ("reasoning", &fold.reasoning), ("refusal", &fold.refusal)]
        {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        if !fold.calls.is_empty() {
            let calls = fold.calls.iter().enumerate();
            let calls: Vec<_> = calls.map(|(at, call)| WholeCall { call, at, response: self.response }).collect();
            map.serialize_entry("tool_calls", &calls)?;
        }
        fold.rest.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}
