//! The bodies of requests.

use std::{
    fmt, mem,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{
    History, Message,
    history::{HistoryMark, WireKey},
};
use bytes::Bytes;

/// Writes the bodies of a codec, each where the last one was.
///
/// The next body of a conversation is mostly the last one with messages appended. Then only those are written, in a room
/// that is there already and whose memory is warm. A body's room comes back when nobody has the body any more; until then, and
/// after another conversation, bodies are written anew.
#[derive(Default)]
pub(crate) struct Bodies(Arc<Mutex<Body>>);

impl Bodies {
    /// The body that `write` writes.
    pub(crate) fn body(&self, write: impl FnOnce(&mut Draft)) -> Bytes {
        let mut last = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut bytes = mem::take(&mut last.spare);
        bytes.clear();
        bytes.reserve(Draft::ROOM);
        let mut draft = Draft { body: Body { bytes, ..Body::default() }, last };
        write(&mut draft);
        Bytes::from_owner(Lent { body: draft.body, to: self.0.clone() })
    }
}

impl fmt::Debug for Bodies {
    /// Without what is in them: a conversation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bodies").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    messages: Option<Messages>,
    /// Where the next body begins, until it comes to its messages.
    spare: Vec<u8>,
}

/// What the messages are of a body.
struct Messages {
    from: usize,
    to: usize,
    /// The last of their bytes, which what follows may have taken back.
    last: u8,
    mark: HistoryMark,
}

/// A body that is being written: bytes that are appended, and the [`messages`](Self::messages) among them.
pub(crate) struct Draft {
    body: Body,
    last: Body,
}

impl Draft {
    /// Room for what comes before the messages.
    const ROOM: usize = 512;

    /// As [`History::write`].
    pub(crate) fn messages(
        &mut self,
        history: &History,
        key: WireKey,
        mut write: impl FnMut(usize, &Message, &mut Vec<u8>),
    ) {
        let Body { mut bytes, messages, .. } = mem::take(&mut self.last);
        let from = self.len();
        let goes_on = messages.is_some_and(|written| {
            if written.from != from || !bytes.starts_with(self) {
                return false;
            }
            bytes.truncate(written.to - 1);
            bytes.push(written.last);
            history.write_since(&written.mark, key, &mut bytes, &mut write)
        });
        if !goes_on {
            bytes.clear();
            bytes.extend_from_slice(self);
            history.write(key, &mut bytes, write);
        }
        let last = bytes[from..].last();
        let messages = last.map(|last| Messages { from, to: bytes.len(), last: *last, mark: history.mark() });
        self.body = Body { bytes, messages, spare: mem::take(&mut self.body.bytes) };
    }
}

impl Deref for Draft {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.body.bytes
    }
}

impl DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.body.bytes
    }
}

/// A body that somebody has.
struct Lent {
    body: Body,
    to: Arc<Mutex<Body>>,
}

impl Lent {
    /// Bytes of the longest body whose room is kept.
    const MOST: usize = 1 << 20;
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.body.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.body.bytes.len() <= Self::MOST {
            let mut last = self.to.lock().unwrap_or_else(PoisonError::into_inner);
            mem::swap(&mut *last, &mut self.body);
            // What was there is dropped with `self`, when nobody waits for the lock any more.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(message: &Message) -> String {
        format!("{:?},", message.text())
    }

    /// The body of a conversation, as a list, with `head` before it and a tail behind it.
    fn body(bodies: &Bodies, head: &str, history: &History, written: &mut usize) -> Bytes {
        bodies.body(|out| {
            out.extend_from_slice(head.as_bytes());
            out.messages(history, WireKey::new(&"test"), |_, message, out| {
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
    fn of_a_conversation_that_goes_on_only_what_is_new_is_written_and_in_the_same_place() {
        let (bodies, mut history, mut written) = (Bodies::default(), history(&["a", "b"]), 0);
        let mut place = |history: &History| {
            let body = body(&bodies, "[", history, &mut written);
            (body.as_ptr(), std::mem::take(&mut written))
        };
        let (first, all) = place(&history);
        history.push(Message::user("c")).expect("a user may speak");
        assert_eq!((all, place(&history), place(&history)), (2, (first, 1), (first, 0)));
    }

    #[test]
    fn the_room_of_a_very_long_body_is_given_back() {
        let bodies = Bodies::default();
        drop(body(&bodies, &"x".repeat(Lent::MOST + 1), &history(&["a"]), &mut 0));
        assert_eq!(bodies.0.lock().expect("free").bytes.capacity(), 0);
        assert_eq!(format!("{bodies:?}"), "Bodies { .. }");
    }
}
