//! The pieces of a conversation that a compaction cannot break.

use agent_core::{Error, ErrorKind, History, Message, Part, Result, ToolMessage};

/// A piece of a conversation that is kept or removed whole: one message, or a message with calls and all their results.
///
/// There is no other way to make one, and none to take a result out of it, so a conversation that is put together of units
/// never holds a call without its result or a result without its call.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    first: Message,
    /// Tool messages, if the first has calls.
    results: Vec<ToolMessage>,
}

impl Unit {
    /// A message without calls.
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

    /// A user message of these parts.
    pub fn user(parts: Vec<Part>) -> Self {
        Self { first: Message::User(agent_core::UserMessage::new(parts)), results: Vec::new() }
    }

    /// The conversation in pieces.
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

    /// The pieces as a conversation.
    ///
    /// # Errors
    /// [`ErrorKind::History`] if an assistant message among them says nothing.
    pub fn join(units: impl IntoIterator<Item = Self>) -> Result<History> {
        History::from_messages(
            units
                .into_iter()
                .flat_map(|unit| std::iter::once(unit.first).chain(unit.results.into_iter().map(Message::Tool))),
        )
    }

    /// The message, or the one with the calls.
    pub fn first(&self) -> &Message {
        &self.first
    }

    /// The results of its calls.
    pub fn results(&self) -> &[ToolMessage] {
        &self.results
    }

    /// All its messages.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        std::iter::once(self.first.clone()).chain(self.results.iter().cloned().map(Message::Tool))
    }

    /// How many messages it has.
    pub fn size(&self) -> usize {
        1 + self.results.len()
    }

    /// True if a user speaks.
    pub fn is_user(&self) -> bool {
        matches!(self.first, Message::User(_))
    }

    /// True if the model speaks.
    pub fn is_assistant(&self) -> bool {
        matches!(self.first, Message::Assistant(_))
    }

    /// The parts of a user's message, to be edited.
    pub fn user_parts_mut(&mut self) -> Option<&mut Vec<Part>> {
        match &mut self.first {
            Message::User(message) => Some(message.parts_mut()),
            _ => None,
        }
    }

    /// Gives results other content, where `edit` has some. Ids, tools and whether a result is an error stay as they are.
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
