//! Programs in a conversation: one call with its result, followed by the steps of a running
//! program.

use agent_core::{AssistantMessage, Block, History, Message, Result, ToolCall, ToolMessage};
use serde_json::json;

use super::{interpreter::Ended, program::call_id};

/// Result of a program's call while the program is running.
pub(super) const UNDER_WAY: &str = "[The program is under way: its calls follow.]";

/// The messages of a conversation that belong to a program.
#[derive(Debug, Default)]
pub(super) struct Trace<'a> {
    /// The program's calls, in order, with their results.
    pub(super) calls: Vec<(&'a ToolCall, Option<&'a ToolMessage>)>,
    /// Result of the program's own call.
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

    /// True if the program's end is in the conversation.
    pub(super) fn is_closed(&self) -> bool {
        self.calls.is_empty() && self.result.as_ref().is_some_and(|text| !text.contains(UNDER_WAY))
    }
}

/// Returns the ids of the programs that are running according to the conversation.
pub(super) fn under_way<'a>(tool: &str, messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    let results = messages.into_iter().filter(|message| message.as_tool().is_some_and(|result| result.name() == tool));
    let waiting = results.filter(|message| message.text().contains(UNDER_WAY));
    waiting.filter_map(|message| Some(message.as_tool()?.call_id().to_owned())).collect()
}

/// End of a program.
pub(super) struct Close<'a> {
    pub(super) id: &'a str,
    /// The source, for a conversation that no longer contains it.
    pub(super) code: &'a str,
    pub(super) ended: Ended,
}

/// Removes the steps of programs from a conversation, and gives their calls the results in `ended`.
///
/// # Errors
/// The errors of [`History::edit`].
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

/// Returns the index of the response with the call of a program.
fn begin(id: &str, messages: &[Message]) -> Option<usize> {
    let calls = |message: &AssistantMessage| message.calls().any(|call| *call.id == *id);
    messages.iter().rposition(|message| message.as_assistant().is_some_and(calls))
}

/// True for a program's calls, and for their results.
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
