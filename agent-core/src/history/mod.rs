//! [`History`]: a conversation in which calls and results are always paired.
//!
//! Authors of middlewares read and edit it; external conversations are repaired on import
//! ([`Repair`]).
//!
//! ```
//! use agent_core::{AssistantMessage, Block, History, Message};
//!
//! let cut_off = AssistantMessage::new(vec![Block::tool_call("c1", "clock", "{}")]);
//! let (history, repairs) = History::import([Message::user("What time is it?"), Message::Assistant(cut_off)]);
//! assert_eq!((history.len(), repairs.len()), (3, 1), "the call was answered: nobody knows its result");
//! ```

mod list;
mod reason;
pub(crate) mod repair;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::list::List;
pub(crate) use self::repair::{NO_RESULT, RESULT_LOST, UNKNOWN_OUTCOME};
pub use self::{reason::ReplaceReason, repair::Repair};
use crate::{
    error::{Error, ErrorKind, Result},
    message::{AssistantMessage, Message, ToolMessage},
};

/// A conversation in which every tool call is answered exactly once, in call order, directly after
/// the message that made it.
///
/// Providers reject anything else, so every method keeps this invariant: a message with calls is
/// appended together with its results ([`push_turn`](Self::push_turn)). A history is a persistent
/// list: a clone costs one reference count, and an append costs hardly more in a long history than
/// in a short one.
///
/// ```
/// use agent_core::{AssistantMessage, Block, History, Message, ToolMessage};
///
/// let mut history = History::default();
/// history.push(Message::user("What time is it?"))?;
/// let asks = AssistantMessage::new(vec![Block::tool_call("c1", "clock", "{}")]);
/// assert!(history.push(Message::Assistant(asks.clone())).is_err(), "a call needs its result");
/// history.push_turn(asks, vec![ToolMessage::text("c1", "clock", "12:00", false)])?;
/// assert_eq!(history.len(), 3);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct History(List);

impl History {
    /// Creates a history from messages that are already paired.
    ///
    /// # Errors
    /// [`ErrorKind::History`] if a call or a result is unpaired, or an assistant message is empty.
    /// Use [`import`](Self::import) for external messages.
    pub fn from_messages(messages: impl IntoIterator<Item = Message>) -> Result<Self> {
        let mut history = Self::default();
        let mut open: Option<(AssistantMessage, Vec<ToolMessage>)> = None;
        for message in messages {
            match (message, &mut open) {
                (Message::Tool(result), Some((_, results))) => results.push(result),
                (message, _) => {
                    history.close(open.take())?;
                    match message {
                        Message::Assistant(m) if m.has_calls() => open = Some((m, Vec::new())),
                        other => history.push(other)?,
                    }
                }
            }
        }
        history.close(open)?;
        Ok(history)
    }

    /// Creates a history from external messages, and repairs unpaired calls and results. Returns
    /// all repairs.
    pub fn import(messages: impl IntoIterator<Item = Message>) -> (Self, Vec<Repair>) {
        let (messages, repairs) = repair::repair(messages);
        (Self(messages.into_iter().collect()), repairs)
    }

    fn close(&mut self, open: Option<(AssistantMessage, Vec<ToolMessage>)>) -> Result<()> {
        open.map_or(Ok(()), |(message, results)| self.push_turn(message, results))
    }

    /// Appends a message that neither calls a tool nor answers a call.
    ///
    /// # Errors
    /// [`ErrorKind::History`] for any other message, and for an empty assistant message.
    pub fn push(&mut self, message: Message) -> Result<()> {
        Self::check(&message)?;
        self.0.push(message);
        Ok(())
    }

    /// Checks whether [`push`](Self::push) accepts the message; this does not depend on the
    /// history's content.
    ///
    /// # Errors
    /// Those of [`push`](Self::push).
    pub fn check(message: &Message) -> Result<()> {
        match message {
            Message::Tool(result) => {
                Err(refused(format!("the result of call '{}' has no call before it", result.call_id())))
            }
            Message::Assistant(m) if m.has_calls() => {
                Err(refused("a message with tool calls enters together with its results: use push_turn"))
            }
            Message::Assistant(m) if m.is_empty() => Err(refused("an assistant message must say something")),
            _ => Ok(()),
        }
    }

    /// Appends a message with tool calls and the result of each, in call order.
    ///
    /// # Errors
    /// [`ErrorKind::History`] if the results do not match the calls in order, or if two calls share
    /// an id.
    pub fn push_turn(&mut self, message: AssistantMessage, results: Vec<ToolMessage>) -> Result<()> {
        Self::check_turn(&message, results.iter().map(ToolMessage::call_id))?;
        self.0.push(Message::Assistant(message));
        results.into_iter().for_each(|r| self.0.push(Message::Tool(r)));
        Ok(())
    }

    /// Checks whether [`push_turn`](Self::push_turn) accepts the message with results for the calls
    /// `answers`.
    ///
    /// # Errors
    /// Those of [`push_turn`](Self::push_turn).
    pub fn check_turn<'a>(message: &AssistantMessage, answers: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        if !message.calls().map(|c| &*c.id).eq(answers.clone()) {
            let (calls, answers): (Vec<_>, Vec<_>) = (message.calls().map(|c| &c.id).collect(), answers.collect());
            return Err(refused(format!("results {answers:?} do not answer calls {calls:?} in order")));
        }
        if let Some(id) = repair::first_duplicate(message) {
            return Err(refused(format!("two calls of one message share the id '{id}'")));
        }
        if message.is_empty() {
            return Err(refused("an assistant message must say something"));
        }
        Ok(())
    }

    /// Applies `edit` to a copy of all messages, and adopts the copy if it is still paired. Takes
    /// time linear in the length of the history.
    ///
    /// # Errors
    /// Those of [`from_messages`](Self::from_messages); the history is then unchanged.
    pub fn edit(&mut self, edit: impl FnOnce(&mut Vec<Message>)) -> Result<()> {
        let mut messages: Vec<_> = self.iter().cloned().collect();
        edit(&mut messages);
        *self = Self::from_messages(messages)?;
        Ok(())
    }

    /// Replaces the message at index `at`, counted from the oldest: for edits of single messages,
    /// such as cache marks on the newest. Costs as little as an append. The history then no longer
    /// [continues](Self::continues) an earlier one that has this message.
    ///
    /// ```
    /// use agent_core::{History, Message};
    ///
    /// let mut history = History::from_messages([Message::user("a"), Message::user("b")])?;
    /// history.replace(1, Message::user("c"))?;
    /// assert_eq!(history.last(), Some(&Message::user("c")));
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::History`] if there is no such message, or if `message` does not make the same
    /// calls or answer the same call, or is empty; the history is then unchanged.
    pub fn replace(&mut self, at: usize, message: Message) -> Result<()> {
        let Some(old) = self.get(at) else {
            return Err(refused(format!("there is no message {at}: there are {}", self.len())));
        };
        if Pairing::of(old) != Pairing::of(&message) {
            return Err(refused(format!("message {at} can only be replaced by one with the same calls and results")));
        }
        if message.as_assistant().is_some_and(AssistantMessage::is_empty) {
            return Err(refused("an assistant message must say something"));
        }
        self.0.replace(at, message);
        Ok(())
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the message at index `at`, counted from the oldest.
    pub fn get(&self, at: usize) -> Option<&Message> {
        self.0.get(at)
    }

    /// The newest message.
    pub fn last(&self) -> Option<&Message> {
        self.iter().next_back()
    }

    /// True if this history is `earlier`, or `earlier` with messages appended. Independent of the
    /// lengths, because it compares identity: a history built separately is a different one, even
    /// if it has equal messages.
    ///
    /// ```
    /// use agent_core::{History, Message};
    ///
    /// let earlier = History::from_messages([Message::user("a")])?;
    /// let mut later = earlier.clone();
    /// later.push(Message::assistant("b"))?;
    /// assert!(later.continues(&earlier) && !earlier.continues(&later));
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn continues(&self, earlier: &Self) -> bool {
        self.0.continues(&earlier.0)
    }

    /// Returns the messages appended since `earlier`; `None` if this history does not
    /// [continue](Self::continues) it. For incremental processing of a conversation: keep a clone
    /// of the history with the result so far.
    ///
    /// ```
    /// use agent_core::{History, Message};
    ///
    /// let mut history = History::from_messages([Message::user("a")])?;
    /// let known = history.clone();
    /// history.push(Message::assistant("b"))?;
    /// assert_eq!(history.since(&known).expect("nothing else was done").count(), 1);
    /// assert!(History::from_messages([Message::user("a")])?.since(&known).is_none(), "another history");
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn since(&self, earlier: &Self) -> Option<impl DoubleEndedIterator<Item = &Message> + Clone> {
        self.continues(earlier).then(|| self.0.iter_from(earlier.len()))
    }

    /// Returns the history when it had `len` messages, which this one [continues](Self::continues).
    pub(crate) fn first(&self, len: usize) -> Self {
        Self(self.0.first(len))
    }

    /// Returns this history followed by `more`.
    pub(crate) fn joined(mut self, more: &Self) -> Self {
        more.iter().for_each(|message| self.0.push(message.clone()));
        self
    }

    /// All messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        self.0.iter()
    }
}

/// The counterpart that a message requires.
#[derive(PartialEq)]
enum Pairing<'a> {
    Results(Vec<&'a str>),
    Call(&'a str),
}

impl<'a> Pairing<'a> {
    fn of(message: &'a Message) -> Self {
        match message {
            Message::Tool(result) => Self::Call(result.call_id()),
            Message::Assistant(message) => Self::Results(message.calls().map(|call| &*call.id).collect()),
            Message::System(_) | Message::User(_) => Self::Results(Vec::new()),
        }
    }
}

fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::History, message)
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let messages = Vec::<Message>::deserialize(deserializer)?;
        Self::from_messages(messages).map_err(serde::de::Error::custom)
    }
}
