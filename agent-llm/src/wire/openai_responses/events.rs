//! Events of a stream.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fold::Field;
use crate::wire::lenient::{Count, Str};

/// One event, as far as it matters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) part: Option<&'a RawValue>,
    /// What is added; a text in the events that are understood.
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    item_id: Option<Str<'a>>,
    output_index: Option<Count>,
    content_index: Option<Count>,
    summary_index: Option<Count>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// Which item an event is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Its place in the output. It holds even where a server changes an item's id from event to event.
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
}

/// What an event says.
#[derive(Debug)]
pub(super) enum Meaning {
    /// Something of the response as a whole.
    Response,
    /// The response is complete, or will never be.
    End,
    Error,
    /// An item begins.
    Added,
    /// An item ends.
    Done,
    /// A part of an item ends.
    PartDone,
    /// More of an item.
    Delta(Field),
    /// All that the deltas of a part were.
    Whole(Field),
    /// Nothing that is not said elsewhere, too.
    Other,
}

impl<'a> Event<'a> {
    pub(super) fn meaning(&self) -> Meaning {
        match &*self.kind.0 {
            "response.output_text.delta" => Meaning::Delta(Field::Text),
            "response.function_call_arguments.delta" => Meaning::Delta(Field::Arguments),
            "response.reasoning_summary_text.delta" => Meaning::Delta(Field::Summary),
            "response.reasoning_text.delta" => Meaning::Delta(Field::Thought),
            "response.refusal.delta" => Meaning::Delta(Field::Refusal),
            "response.custom_tool_call_input.delta" => Meaning::Delta(Field::Input),
            "response.output_text.done" => Meaning::Whole(Field::Text),
            "response.function_call_arguments.done" => Meaning::Whole(Field::Arguments),
            "response.reasoning_summary_text.done" => Meaning::Whole(Field::Summary),
            "response.reasoning_text.done" => Meaning::Whole(Field::Thought),
            "response.refusal.done" => Meaning::Whole(Field::Refusal),
            "response.custom_tool_call_input.done" => Meaning::Whole(Field::Input),
            "response.output_item.added" => Meaning::Added,
            "response.output_item.done" => Meaning::Done,
            "response.content_part.done" => Meaning::PartDone,
            "response.completed" | "response.incomplete" | "response.cancelled" | "response.done" => Meaning::End,
            "error" | "response.failed" | "response.error" => Meaning::Error,
            "" if self.error.is_some() => Meaning::Error,
            _ if self.response.is_some() => Meaning::Response,
            _ => Meaning::Other,
        }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place {
            index: self.output_index.as_ref().map(|index| index.0),
            id: self.item_id.as_ref().map_or("", |id| &id.0),
        }
    }

    /// The part that the event is about: its place among those of its kind.
    pub(super) fn nth(&self, field: Field) -> u64 {
        let index = match field {
            Field::Text | Field::Refusal | Field::Thought => &self.content_index,
            Field::Summary => &self.summary_index,
            Field::Arguments | Field::Input => &None,
        };
        index.as_ref().map_or(0, |index| index.0)
    }

    /// The text that is added.
    pub(super) fn more(&self) -> Option<Str<'a>> {
        serde_json::from_str(self.delta?.get()).ok()
    }

    /// The whole text of a part.
    pub(super) fn whole(&self, field: Field) -> Option<Str<'a>> {
        let json = match field {
            Field::Text | Field::Summary | Field::Thought => self.text,
            Field::Refusal => self.refusal,
            Field::Arguments => self.arguments,
            Field::Input => self.input,
        };
        serde_json::from_str(json?.get()).ok()
    }
}
