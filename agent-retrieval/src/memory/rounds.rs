//! Rounds: the units in which a conversation is returned.

use crate::memory::{ChatMessage, ChatQuery};
use agent_core::{error::Result, message::Message};

/// Numbers the rounds of a conversation, message by message. For authors of a
/// [`ChatMessageStore`](crate::memory::ChatMessageStore): the number is stored with the message.
///
/// ```
/// use agent_core::Message;
/// use agent_retrieval::memory::RoundCounter;
///
/// let chat = [Message::user("Hi"), Message::assistant("Hello"), Message::user("Bye"), Message::assistant("Bye")];
/// let mut rounds = RoundCounter::default();
/// assert_eq!(chat.map(|message| rounds.number(&message)), [1, 1, 2, 2]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundCounter {
    round: u64,
    is_open: bool,
}

impl RoundCounter {
    /// Continues after a message with the number `round`, after which the round `is_open` or not.
    pub fn after(round: u64, is_open: bool) -> Self {
        Self { round, is_open }
    }

    /// True if the next message belongs to the same round as the last one.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the round number of the next message, from 1.
    pub fn number(&mut self, message: &Message) -> u64 {
        // A system message inside a round belongs to it; one between two rounds is a separate
        // round.
        let alone = matches!(message, Message::System(_)) && !self.is_open;
        if !self.is_open {
            self.round += 1;
        }
        self.is_open = match message {
            Message::Assistant(m) => m.has_calls(),
            Message::System(_) => !alone,
            Message::User(_) | Message::Tool(_) => true,
        };
        self.round
    }
}

/// Selects the messages of a chat that match `query`, from messages given newest first with their
/// round numbers. Reads no further than necessary. Returns the messages oldest first.
///
/// # Errors
/// The first error of `newest_first`.
pub fn select_rounds(
    newest_first: impl IntoIterator<Item = Result<(u64, ChatMessage)>>,
    query: &ChatQuery,
) -> Result<Vec<ChatMessage>> {
    let mut selected = Selection { query, picked: Vec::new(), rounds: 0, current: None };
    // All messages are skipped until the `before` message is found, if there is one.
    let mut skipping = query.before.is_some();
    let mut skipped_round = None;
    for item in newest_first {
        if selected.is_full() {
            break;
        }
        let (round, message) = item?;
        if skipping {
            skipping = message.id != query.before;
            skipped_round = Some(round);
        } else if skipped_round != Some(round) {
            selected.take(round, message);
        }
    }
    selected.end_round();
    selected.picked.reverse();
    Ok(selected.picked)
}

struct Selection<'a> {
    query: &'a ChatQuery,
    /// Selected messages, newest first.
    picked: Vec<ChatMessage>,
    rounds: usize,
    /// The current round: its number, its start in `picked`, and whether it matches.
    current: Option<(u64, usize, bool)>,
}

impl Selection<'_> {
    fn is_full(&self) -> bool {
        // The last round may not have been read completely.
        self.query.last_k.is_some_and(|k| self.rounds >= k)
    }

    fn take(&mut self, round: u64, message: ChatMessage) {
        if self.current.is_none_or(|(number, ..)| number != round) {
            self.end_round();
            if self.is_full() {
                return;
            }
            self.current = Some((round, self.picked.len(), self.query.containing.is_none()));
        }
        if let (Some((_, _, wanted)), Some(text)) = (&mut self.current, &self.query.containing) {
            *wanted |= message.message.text().contains(text.as_str());
        }
        self.picked.push(message);
    }

    fn end_round(&mut self) {
        match self.current.take() {
            Some((_, _, true)) => self.rounds += 1,
            Some((_, begins, false)) => self.picked.truncate(begins),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use agent_core::message::{AssistantMessage, Block, ToolMessage};

    fn messages() -> impl Strategy<Value = Vec<Message>> {
        let asks = || Message::Assistant(AssistantMessage::new(vec![Block::tool_call("c", "t", "{}")]));
        let message = prop_oneof![
            Just(vec![Message::user("u")]),
            Just(vec![Message::user("bee")]),
            Just(vec![Message::assistant("a")]),
            Just(vec![Message::system("s")]),
            Just(vec![asks(), Message::Tool(ToolMessage::text("c", "t", "bee", false))]),
        ];
        vec(message, 0..12).prop_map(|turns| turns.concat())
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_no_round_is_torn(
            messages in messages(),
            k in proptest::option::of(0_usize..5),
            before in proptest::option::of(0_usize..14),
            bees in any::<bool>(),
        ) {
            let mut counter = RoundCounter::default();
            let mut numbered = Vec::new();
            for (at, message) in messages.iter().enumerate() {
                let round = counter.number(message);
                counter = RoundCounter::after(round, counter.is_open()); // as a store makes it anew
                numbered.push((round, ChatMessage::new(at.to_string(), message.clone())));
            }
            let mut query = ChatQuery { last_k: k, ..ChatQuery::default() };
            query.before = before.map(|id| id.to_string());
            query.containing = bees.then(|| "bee".to_owned());

            // Naive reference: all rounds, then each filter, then the last k.
            let mut rounds: Vec<Vec<&ChatMessage>> = Vec::new();
            for (number, message) in &numbered {
                rounds.resize_with(usize::try_from(*number).expect("small"), Vec::new);
                rounds.last_mut().expect("numbers begin at 1").push(message);
            }
            if let Some(at) = before {
                let named = rounds.iter().position(|round| round.iter().any(|m| m.id == query.before));
                prop_assert_eq!(named.is_some(), at < messages.len());
                rounds.truncate(named.unwrap_or(0));
            }
            rounds.retain(|round| !bees || round.iter().any(|m| m.message.text().contains("bee")));
            let skip = rounds.len() - rounds.len().min(k.unwrap_or(usize::MAX));
            let wanted: Vec<_> = rounds[skip..].concat().into_iter().cloned().collect();

            let newest_first = numbered.iter().rev().cloned().map(Ok);
            prop_assert_eq!(select_rounds(newest_first, &query).expect("no error"), wanted);
        }
    }
}
