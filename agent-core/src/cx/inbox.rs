//! Messages that steer a running run.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::{
    error::{Error, ErrorKind, Result},
    history::History,
    journal::EntryBody,
    log::RunLog,
    message::Message,
};

/// Messages that steer a running run: they are inserted before its next model call. Cheap to clone;
/// all clones share the same data.
///
/// Accepted messages are not lost: a run that is about to finish continues, a run that must end
/// appends them to its history, and a suspended run has them in its checkpoint. While the run is
/// running its journal contains them too, so that recovery after a crash includes them.
///
/// ```
/// use agent_core::{Message, engine::Inbox};
///
/// let inbox = Inbox::default();
/// inbox.push(Message::user("and be brief"))?;
/// assert_eq!(inbox.close().len(), 1);
/// assert!(inbox.push(Message::user("too late")).is_err());
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Message>,
    /// The run's journal, once the run has begun.
    log: Option<RunLog>,
    closed: bool,
}

impl Inbox {
    /// Adds a message. It is appended to the run's journal at once, and is durable when the run
    /// takes its next step at the latest.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`] if the run has ended; [`ErrorKind::History`] for a tool result or a
    /// message with calls.
    pub fn push(&self, message: Message) -> Result<()> {
        self.extend(vec![message])
    }

    /// Adds messages atomically.
    ///
    /// # Errors
    /// Those of [`push`](Self::push).
    pub fn extend(&self, messages: Vec<Message>) -> Result<()> {
        self.accept(messages, |message| EntryBody::Steered { message })
    }

    /// Adds the message that reports the end of the child run `run`, and records the report.
    pub(crate) fn push_report(&self, run: &Arc<str>, message: Message) -> Result<()> {
        self.accept(vec![message], |message| EntryBody::SubAgentReported { run: run.clone(), message: Some(message) })
    }

    fn accept(&self, messages: Vec<Message>, entry: impl Fn(Message) -> EntryBody) -> Result<()> {
        let mut checked = History::default();
        messages.iter().try_for_each(|message| checked.push(message.clone()))?;
        if messages.is_empty() {
            return Ok(());
        }
        let mut state = self.lock();
        if state.closed {
            return Err(Error::new(ErrorKind::Stopped, "the run is over: start another one with the message"));
        }
        let log = state.log.clone();
        for message in messages {
            if let Some(log) = &log {
                log.record(entry(message.clone())); // before anybody can take the message
            }
            state.messages.push_back(message);
        }
        drop(state); // sinks run in the flush, and may steer
        if let Some(log) = log {
            log.flush_apart();
        }
        self.0.arrived.notify_waiters();
        Ok(())
    }

    /// Waits until a message is pending.
    pub async fn arrived(&self) {
        loop {
            let mut arrived = pin!(self.0.arrived.notified());
            arrived.as_mut().enable(); // messages from now on are noticed
            if !self.is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Takes all pending messages.
    pub fn take(&self) -> Vec<Message> {
        self.lock().messages.drain(..).collect()
    }

    /// Puts taken messages back, before those that arrived since.
    pub fn put_back(&self, messages: Vec<Message>) {
        let mut state = self.lock();
        messages.into_iter().rev().for_each(|message| state.messages.push_front(message));
    }

    /// True if incoming messages are recorded in the run's journal: the run has begun, and has not
    /// ended.
    pub fn is_kept(&self) -> bool {
        self.lock().log.is_some()
    }

    /// True if no message is pending.
    pub fn is_empty(&self) -> bool {
        self.lock().messages.is_empty()
    }

    /// True if no more messages are accepted.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Records incoming messages in the run's journal from now on, including those already pending.
    pub(super) fn keep_in(&self, log: RunLog) {
        let mut state = self.lock();
        if state.log.is_none() && !state.closed {
            state.messages.iter().for_each(|message| log.record(EntryBody::Steered { message: message.clone() }));
            state.log = Some(log);
        }
    }

    /// Takes all pending messages, and rejects further ones.
    pub fn close(&self) -> Vec<Message> {
        let mut state = self.lock();
        (state.closed, state.log) = (true, None);
        state.messages.drain(..).collect()
    }

    /// Accepts messages again, for a run that continues.
    pub fn reopen(&self) {
        self.lock().closed = false;
    }

    /// Rejects further messages if none is pending. Returns `false` if one is.
    pub fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        if state.messages.is_empty() {
            (state.closed, state.log) = (true, None);
        }
        state.closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All interleavings of the steps of several parties; the steps of each party stay in order.
    fn interleavings(parties: &[Vec<usize>]) -> Vec<Vec<usize>> {
        if parties.iter().all(Vec::is_empty) {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for (at, party) in parties.iter().enumerate().filter(|(_, party)| !party.is_empty()) {
            let mut rest = parties.to_vec();
            rest[at].remove(0);
            all.extend(interleavings(&rest).into_iter().map(|order| [vec![party[0]], order].concat()));
        }
        all
    }

    #[test]
    fn what_was_accepted_is_taken_once_and_in_order_and_what_was_not_is_refused_in_every_interleaving() {
        // Two senders, and a run that takes pending messages, tries to end, and must end.
        let parties = [vec![0, 1], vec![2, 3], vec![10, 11, 10, 12]];
        let orders = interleavings(&parties);
        assert_eq!(orders.len(), 420);
        for order in orders {
            let (inbox, mut accepted, mut taken) = (Inbox::default(), Vec::new(), Vec::new());
            for step in &order {
                match step {
                    10 => taken.extend(inbox.take()),
                    11 => assert_eq!(inbox.close_if_empty(), inbox.is_closed()),
                    12 => taken.extend(inbox.close()),
                    steers => {
                        let (message, was_closed) = (Message::user(steers.to_string()), inbox.is_closed());
                        let pushed = inbox.push(message.clone()).map_err(|e| e.kind());
                        assert_eq!(pushed, if was_closed { Err(ErrorKind::Stopped) } else { Ok(()) }, "{order:?}");
                        accepted.extend(pushed.is_ok().then_some(message));
                    }
                }
            }
            assert_eq!(taken, accepted, "{order:?}");
            assert!(inbox.is_empty(), "{order:?}");
        }
    }

    #[test]
    fn what_is_put_back_comes_before_what_came_since() {
        let inbox = Inbox::default();
        let said = |text: &str| Message::user(text);
        inbox.extend(vec![said("1"), said("2"), said("3")]).expect("accepted");
        let mut taken = inbox.take();
        inbox.push(said("4")).expect("accepted");
        inbox.put_back(taken.split_off(1));
        assert_eq!(inbox.take(), [said("2"), said("3"), said("4")]);
    }
}
