//! What is new in what a client sends.
//!
//! Front ends send all messages that they have, each time. They are not believed: the history is the session's own, from its journal.
//! New is what the journal cannot have: the user's messages after the last one of the agent's, and results of calls that the run
//! waits for. Of the user's messages some may have come before, with a run that failed before it said anything: those that the
//! session ends with are passed over. And the last one's id is the run's idempotency key: sent again, it is the same run.

use agent::{Message, Part, history::History};

/// A message of the user's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saying {
    pub(crate) id: String,
    pub(crate) parts: Vec<Part>,
}

/// How many of these messages the session ends with. More may have been added to one than the client says.
pub(super) fn known(said: &[Saying], history: &History) -> usize {
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
    // The last one is known by its id, which may come with the same words again.
    let most = tail.len().min(said.len().saturating_sub(1));
    (1..=most).rev().find(is_known).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_of(said: &[&str], history: &[&str]) -> usize {
        let saying = |text: &&str| Saying { id: (*text).to_owned(), parts: vec![Part::text(*text)] };
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
