//! Programs in a conversation: their calls while they are under way, and one call and its result afterwards.

use std::collections::BTreeMap;

use agent_core::{AssistantMessage, History, Message, Result, ToolMessage};

use super::{interpreter::Ended, program::Answer};

/// The results that a conversation has of an answer's programs, by the ids of their calls.
pub(super) fn results<'a>(answer: &Answer, history: &'a [Message]) -> BTreeMap<&'a str, &'a ToolMessage> {
    let own = &history[begins(answer, history).unwrap_or(0)..];
    let results = own.iter().filter_map(Message::as_tool).filter(|result| answer.made(result.call_id()));
    results.map(|result| (result.call_id(), result)).collect()
}

/// True if the answer is in the conversation as it was, with its results.
pub(super) fn is_closed(answer: &Answer, history: &[Message]) -> bool {
    let newest = history.iter().rev().filter_map(Message::as_assistant).find(|message| message.has_calls());
    newest.is_some_and(|message| *message == answer.message)
}

/// True if a message of the answer's programs is there.
pub(super) fn is_there(answer: &Answer, history: &[Message]) -> bool {
    begins(answer, history).is_some() || history.iter().any(|message| is_step(answer, message))
}

/// Puts the answer, as the model gave it, and what its programs `ended` with into the place of the messages of their steps.
/// What others said meanwhile comes after it.
///
/// # Errors
/// Those of [`History::edit`].
pub(super) fn close(answer: &Answer, ended: &[Ended], tool: &str, history: &mut History) -> Result<()> {
    history.edit(|messages| {
        let begin = begins(answer, messages).or_else(|| messages.iter().position(|message| is_step(answer, message)));
        let rest = messages.split_off(begin.unwrap_or(messages.len()));
        let (mut own, mut others, mut is_own) = (Vec::new(), Vec::new(), false);
        for (at, message) in rest.into_iter().enumerate() {
            is_own = match &message {
                Message::Tool(_) => is_own,
                message => is_step(answer, message) || at == 0 && begin.is_some(),
            };
            match message {
                Message::Tool(result) if is_own => own.push(result),
                message if !is_own => others.push(message),
                _ => {}
            }
        }
        messages.push(Message::Assistant(answer.message.clone()));
        for call in answer.message.calls() {
            let program = answer.programs.iter().position(|program| program.id == call.id);
            let result = match program.and_then(|at| ended.get(at)) {
                Some(ended) => ToolMessage::text(call.id.clone(), tool, ended.text.as_str(), ended.is_error),
                None => own.iter().find(|result| result.call_id() == &*call.id).cloned().unwrap_or_else(|| {
                    let text = "The result is not in the conversation any more.";
                    ToolMessage::text(call.id.clone(), call.name.clone(), text, true)
                }),
            };
            messages.push(Message::Tool(result));
        }
        messages.extend(others);
    })
}

/// Where the message is that took the answer's place.
fn begins(answer: &Answer, history: &[Message]) -> Option<usize> {
    let is_first = |message: &AssistantMessage| message.calls().map(|call| &call.id).eq(&answer.first);
    history.iter().rposition(|message| message.as_assistant().is_some_and(is_first))
}

/// True for a message with calls that the answer's programs made.
fn is_step(answer: &Answer, message: &Message) -> bool {
    message.as_assistant().is_some_and(|message| message.calls().any(|call| answer.made(&call.id)))
}
