//! Programs in a conversation: one call with its result, and behind it the steps of a program that is under way.

use agent_core::{AssistantMessage, Block, History, Message, Result, ToolCall, ToolMessage};
use serde_json::json;

use super::{interpreter::Ended, program::call_id};

/// The result of a program's call while the program is under way.
pub(super) const UNDER_WAY: &str = "[The program is under way: its calls follow.]";

/// What a conversation has of a program.
#[derive(Debug, Default)]
pub(super) struct Trace<'a> {
    /// Its calls, in order, with their results.
    pub(super) calls: Vec<(&'a ToolCall, Option<&'a ToolMessage>)>,
    /// The result of the program's own call.
    result: Option<String>,
}

impl<'a> Trace<'a> {
    pub(super) fn of(id: &str, messages: &'a [Message]) -> Self {
        let messages = &messages[begin(id, messages).unwrap_or(0)..];
        let result = |of: &str| messages.iter().filter_map(Message::as_tool).find(|result| result.call_id() == of);
        let made = messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::calls);
        let mut calls = Vec::new();
        for call in made {
            if *call.id == *call_id(id, calls.len()) {
                calls.push((call, result(&call.id)));
            }
        }
        Self { calls, result: result(id).map(|result| Message::Tool(result.clone()).text()) }
    }

    /// True if its end is in the conversation.
    pub(super) fn is_closed(&self) -> bool {
        self.calls.is_empty() && self.result.as_ref().is_some_and(|text| !text.contains(UNDER_WAY))
    }
}

/// The ids of the programs that the conversation has as under way.
pub(super) fn under_way<'a>(tool: &str, messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    let results = messages.into_iter().filter(|message| message.as_tool().is_some_and(|result| result.name() == tool));
    let waiting = results.filter(|message| message.text().contains(UNDER_WAY));
    waiting.filter_map(|message| Some(message.as_tool()?.call_id().to_owned())).collect()
}

/// The end of a program.
pub(super) struct Close<'a> {
    pub(super) id: &'a str,
    /// The source, for a conversation that has it no more.
    pub(super) code: &'a str,
    pub(super) ended: Ended,
}

/// Takes the steps of programs out of a conversation, and gives their calls the results that they `ended` with.
///
/// # Errors
/// Those of [`History::edit`].
pub(super) fn close(ended: &[Close<'_>], tool: &str, history: &mut History) -> Result<()> {
    history.edit(|messages| {
        for Close { id, code, ended } in ended {
            let result = Message::Tool(ToolMessage::text(*id, tool, ended.text.as_str(), ended.is_error));
            let begun = begin(id, messages);
            let mut rest = messages.split_off(begun.unwrap_or(0));
            rest.retain(|message| !is_step(id, message));
            match rest.iter_mut().find(|message| message.as_tool().is_some_and(|result| result.call_id() == *id)) {
                Some(place) => *place = result,
                None => {
                    let call = Block::tool_call(*id, tool, json!({"code": code}).to_string());
                    rest.extend([Message::Assistant(AssistantMessage::new(vec![call])), result]);
                }
            }
            messages.append(&mut rest);
        }
    })
}

/// Where the answer is that has the call of a program.
fn begin(id: &str, messages: &[Message]) -> Option<usize> {
    let calls = |message: &AssistantMessage| message.calls().any(|call| *call.id == *id);
    messages.iter().rposition(|message| message.as_assistant().is_some_and(calls))
}

/// True for the calls that a program made, and for their results.
fn is_step(id: &str, message: &Message) -> bool {
    let made = |call: &str| {
        let number = call.strip_prefix(id).and_then(|rest| rest.strip_prefix('.'));
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    };
    match message {
        Message::Assistant(answer) => answer.calls().any(|call| made(&call.id)),
        Message::Tool(result) => made(result.call_id()),
        _ => false,
    }
}
