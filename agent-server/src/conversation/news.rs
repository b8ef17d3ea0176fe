//! Detection of new content in a client's messages.
//!
//! Front ends send all their messages with each request. The messages are not trusted: the
//! session's journal holds the authoritative history. New are only the user messages after the
//! agent's last message, and results of open calls. Some of those user messages may have been
//! stored with a run that failed before it answered: messages that the session already ends with
//! are skipped. The id of the last message is the run's idempotency key: sending it again yields
//! the same run.

use agent::{Message, Part, history::History};

/// User message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IncomingMessage {
    pub(crate) id: String,
    pub(crate) parts: Vec<Part>,
}

/// Returns the number of these messages that the session already ends with. A stored message may
/// have additional parts.
pub(super) fn known(said: &[IncomingMessage], history: &History) -> usize {
    let tail: Vec<_> = history
        .iter()
        .rev()
        .map_while(|message| match message {
            Message::User(user) => Some(user),
            _ => None,
        })
        .collect();
    let is_known = |count: &usize| {
        let kept = tail.iter().rev().skip(tail.len() - count);
        said[..*count].iter().zip(kept).all(|(saying, kept)| kept.parts().starts_with(&saying.parts))
    };
    // The last message is identified by its id, which may repeat with the same text.
    let most = tail.len().min(said.len().saturating_sub(1));
    (1..=most).rev().find(is_known).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_of(said: &[&str], history: &[&str]) -> usize {
        let saying = |text: &&str| IncomingMessage { id: (*text).to_owned(), parts: vec![Part::text(*text)] };
        let history = History::import(history.iter().map(|text| match text.strip_prefix("> ") {
            Some(said) => Message::Assistant(said.into()),
            None => Message::user(*text),
        }));
        known(&said.iter().map(saying).collect::<Vec<_>>(), &history.0)
    }

    #[test]
    fn what_came_with_a_run_that_failed_is_known() {
        assert_eq!(known_of(&["hi", "hi?"], &["hi"]), 1);
        assert_eq!(known_of(&["hi", "hi?"], &["hi", "> hello"]), 0, "that was answered: it is said again");
        assert_eq!(known_of(&["hi", "hi?"], &[]), 0);
        assert_eq!(known_of(&["a", "b", "c"], &["x", "a", "b"]), 2);
        assert_eq!(known_of(&["go"], &["go"]), 0, "its id says whether it is the same");
    }
}
