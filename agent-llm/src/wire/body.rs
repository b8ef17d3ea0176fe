//! Request bodies.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError},
};

use agent_core::{History, Message};
use bytes::Bytes;

/// Writes the request bodies of a codec into a reused buffer.
///
/// The next body of a conversation is usually the last one with more messages. If nobody holds the
/// last body any more, only the new messages are appended to its buffer; the body of another
/// conversation is written from scratch.
#[derive(Default)]
pub(crate) struct Bodies(Mutex<Option<Body>>);

impl Bodies {
    /// Maximum size of a kept body, in bytes.
    const MOST: usize = 1 << 20;

    /// Returns the body that `write` produces.
    pub(crate) fn body(&self, write: impl FnOnce(&mut Draft)) -> Bytes {
        let mut draft = Draft { bytes: Vec::with_capacity(512), last: self.last().take(), messages: None };
        write(&mut draft);
        let bytes = Bytes::from(draft.bytes);
        if let Some(messages) = draft.messages.filter(|_| bytes.len() <= Self::MOST) {
            *self.last() = Some(Body { bytes: bytes.clone(), messages });
        }
        bytes
    }

    fn last(&self) -> MutexGuard<'_, Option<Body>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Bodies {
    /// Omits the content, which is a conversation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bodies").finish_non_exhaustive()
    }
}

struct Body {
    bytes: Bytes,
    messages: Messages,
}

/// Range of a body's messages.
struct Messages {
    from: usize,
    to: usize,
    /// The last byte of the messages, which a later step may have removed.
    last: u8,
    history: History,
}

/// A body that is being written: appended bytes, and the [`messages`](Self::messages) among them.
pub(crate) struct Draft {
    bytes: Vec<u8>,
    last: Option<Body>,
    messages: Option<Messages>,
}

impl Draft {
    /// Appends the output of `write` for every message, in order; `write` receives the message's
    /// index in the history. The output for a message may depend on earlier messages, but not on
    /// later ones: more may follow.
    pub(crate) fn messages(&mut self, history: &History, mut write: impl FnMut(usize, &Message, &mut Vec<u8>)) {
        let from = self.bytes.len();
        let known = self.last.take().and_then(|last| self.go_on(last, history)).unwrap_or(0);
        for (at, message) in (known..).map_while(|at| Some((at, history.get(at)?))) {
            write(at, message, &mut self.bytes);
        }
        let to = self.bytes.len();
        let last = self.bytes[from..].last();
        self.messages = last.map(|last| Messages { from, to, last: *last, history: history.clone() });
    }

    /// Reuses the messages of the last body if this body begins like it and its history continues
    /// it; returns their number.
    fn go_on(&mut self, last: Body, history: &History) -> Option<usize> {
        let Body { bytes, messages } = last;
        let begins_like_it = messages.from == self.bytes.len() && bytes.starts_with(&self.bytes);
        if !(begins_like_it && bytes.is_unique() && history.continues(&messages.history)) {
            return None;
        }
        self.bytes = bytes.into();
        self.bytes.truncate(messages.to - 1);
        self.bytes.push(messages.last);
        Some(messages.history.len())
    }
}

impl Deref for Draft {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(message: &Message) -> String {
        format!("{:?},", message.text())
    }

    /// Writes a conversation's body as a list, with `head` before it and a tail after it.
    fn body(bodies: &Bodies, head: &str, history: &History, written: &mut usize) -> Bytes {
        bodies.body(|out| {
            out.extend_from_slice(head.as_bytes());
            out.messages(history, |_, message, out| {
                *written += 1;
                out.extend_from_slice(text_of(message).as_bytes());
            });
            out.pop_if(|last| *last == b',');
            out.extend_from_slice(b"] and more");
        })
    }

    fn anew(head: &str, history: &History) -> String {
        let messages: String = history.iter().map(text_of).collect();
        format!("{head}{}] and more", messages.trim_end_matches(','))
    }

    fn history(texts: &[&str]) -> History {
        History::from_messages(texts.iter().map(|text| Message::user(*text))).expect("a history")
    }

    #[test]
    fn a_body_says_the_same_whatever_the_one_before_it_was() {
        let (bodies, mut conversation) = (Bodies::default(), history(&["a"]));
        let mut kept = Vec::new();
        let mut check = |head: &str, history: &History, keep: bool| {
            let body = body(&bodies, head, history, &mut 0);
            assert_eq!(body, anew(head, history));
            kept.extend(keep.then_some((body, anew(head, history))));
        };
        for n in 0..70 {
            check("[", &conversation, n % 7 == 3);
            match n % 10 {
                2 => check("another head [", &conversation, false),
                4 => check("[", &history(&["another", "conversation"]), n == 44),
                5 => conversation = History::from_messages(conversation.iter().skip(1).cloned()).expect("a history"),
                6 => check("[", &History::default(), false),
                8 => check("", &conversation, false),
                _ => {}
            }
            conversation.push(Message::user(format!("message {n}"))).expect("a user may speak");
        }
        for (body, text) in kept {
            assert_eq!(body, text, "nobody wrote over it");
        }
    }

    #[test]
    fn of_a_conversation_that_goes_on_only_what_is_new_is_written() {
        let (bodies, mut history, mut written) = (Bodies::default(), history(&["a", "b"]), 0);
        let mut count = |history: &History| {
            drop(body(&bodies, "[", history, &mut written));
            std::mem::take(&mut written)
        };
        let all = count(&history);
        history.push(Message::user("c")).expect("a user may speak");
        assert_eq!((all, count(&history), count(&history)), (2, 1, 0));
    }

    #[test]
    fn a_very_long_body_is_not_kept() {
        let bodies = Bodies::default();
        drop(body(&bodies, &"x".repeat(Bodies::MOST + 1), &history(&["a"]), &mut 0));
        assert!(bodies.last().is_none());
        assert_eq!(format!("{bodies:?}"), "Bodies { .. }");
    }
}
