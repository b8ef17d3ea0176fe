//! Indivisible units of a conversation.

use agent_core::{Error, ErrorKind, History, Message, Part, Result, ToolMessage};

/// A unit of a conversation that is kept or removed as a whole: one message, or a message with
/// calls and all their results.
///
/// Units cannot be constructed otherwise, and results cannot be taken out, so a conversation
/// composed of units never contains a call without its result or a result without its call.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    first: Message,
    /// Tool messages, if the first message has calls.
    results: Vec<ToolMessage>,
}

impl Unit {
    /// Creates a unit of a message without calls.
    ///
    /// # Errors
    /// [`ErrorKind::History`] for a tool's result, and for an assistant message with calls.
    pub fn message(message: Message) -> Result<Self> {
        match &message {
            Message::Tool(_) => Err(Error::new(ErrorKind::History, "a result stands with its call")),
            Message::Assistant(m) if m.has_calls() => {
                Err(Error::new(ErrorKind::History, "a call stands with its result"))
            }
            _ => Ok(Self { first: message, results: Vec::new() }),
        }
    }

    /// Creates a unit of a user message with these parts.
    pub fn user(parts: Vec<Part>) -> Self {
        Self { first: Message::User(agent_core::UserMessage::new(parts)), results: Vec::new() }
    }

    /// Splits a conversation into units.
    pub fn split(history: &History) -> Vec<Self> {
        let mut units: Vec<Self> = Vec::new();
        for message in history.iter() {
            match (message, units.last_mut()) {
                (Message::Tool(result), Some(turn)) => turn.results.push(result.clone()),
                _ => units.push(Self { first: message.clone(), results: Vec::new() }),
            }
        }
        units
    }

    /// Joins units into a conversation.
    ///
    /// # Errors
    /// [`ErrorKind::History`] if one of the assistant messages is empty.
    pub fn join(units: impl IntoIterator<Item = Self>) -> Result<History> {
        History::from_messages(
            units
                .into_iter()
                .flat_map(|unit| std::iter::once(unit.first).chain(unit.results.into_iter().map(Message::Tool))),
        )
    }

    /// Returns the message, or the one with the calls.
    pub fn first(&self) -> &Message {
        &self.first
    }

    /// Returns the results of its calls.
    pub fn results(&self) -> &[ToolMessage] {
        &self.results
    }

    /// Returns all its messages.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        std::iter::once(self.first.clone()).chain(self.results.iter().cloned().map(Message::Tool))
    }

    /// Returns the number of its messages.
    pub fn size(&self) -> usize {
        1 + self.results.len()
    }

    /// True if it is a user message.
    pub fn is_user(&self) -> bool {
        matches!(self.first, Message::User(_))
    }

    /// True if it begins with a model response.
    pub fn is_assistant(&self) -> bool {
        matches!(self.first, Message::Assistant(_))
    }

    /// Returns the parts of a user message, for editing.
    pub fn user_parts_mut(&mut self) -> Option<&mut Vec<Part>> {
        match &mut self.first {
            Message::User(message) => Some(message.parts_mut()),
            _ => None,
        }
    }

    /// Replaces the content of results for which `edit` returns parts. Ids, tools and error flags
    /// do not change.
    pub fn edit_results(&mut self, mut edit: impl FnMut(&ToolMessage) -> Option<Vec<Part>>) {
        for result in &mut self.results {
            if let Some(parts) = edit(result) {
                *result.parts_mut() = parts;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{AssistantMessage, Block};

    use super::*;

    fn turn(ids: &[&str]) -> Vec<Message> {
        let calls = ids.iter().map(|id| Block::tool_call(*id, "f", "{}")).collect();
        let results = ids.iter().map(|id| Message::Tool(ToolMessage::text(*id, "f", "r", false)));
        std::iter::once(Message::Assistant(AssistantMessage::new(calls))).chain(results).collect()
    }

    fn sizes(messages: Vec<Message>) -> Vec<usize> {
        Unit::split(&History::from_messages(messages).expect("paired")).iter().map(Unit::size).collect()
    }

    #[test]
    fn a_call_and_its_results_are_one_piece() {
        let around = |ids: &[&str]| [vec![Message::user("a")], turn(ids), vec![Message::user("b")]].concat();
        assert_eq!(sizes(around(&["c"])), [1, 2, 1]);
        assert_eq!(sizes(around(&["c", "d"])), [1, 3, 1]);
    }

    #[test]
    fn neither_a_call_nor_a_result_is_a_piece_alone() {
        for message in turn(&["c"]) {
            assert_eq!(Unit::message(message).expect_err("refused").kind(), ErrorKind::History);
        }
    }
}
