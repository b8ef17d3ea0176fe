//! Messages for a run that is under way.

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

/// Messages for a run that is under way: they are put before its next model call. Cheap to clone; all clones are one inbox.
///
/// What it accepted is not lost: a run that is about to finish goes on for it, one that must end all the same takes it into
/// its history, and one that stops for now has it in its checkpoint. While the run is under way its journal has it too, so
/// that a run that dies with its process can go on with it.
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
    /// The journal of the run, once it has begun.
    log: Option<RunLog>,
    closed: bool,
}

impl Inbox {
    /// Adds a message. It is handed to the run's journal here, and durable when the run takes its next step at the latest.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`] if the run is over; [`ErrorKind::History`] for a tool result or a message with calls.
    pub fn push(&self, message: Message) -> Result<()> {
        self.extend(vec![message])
    }

    /// Adds messages, all or none.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn extend(&self, messages: Vec<Message>) -> Result<()> {
        self.accept(messages, |message| EntryBody::Steered { message })
    }

    /// Adds the message that tells of the end of the child run `run`, and records that it was told.
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
        for message in messages {
            if let Some(log) = &state.log {
                log.record_apart(entry(message.clone()));
            }
            state.messages.push_back(message);
        }
        drop(state);
        self.0.arrived.notify_waiters();
        Ok(())
    }

    /// Waits until a message waits.
    pub async fn arrived(&self) {
        loop {
            let mut arrived = pin!(self.0.arrived.notified());
            arrived.as_mut().enable(); // what comes from now on is not missed
            if !self.is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Takes all messages.
    pub fn take(&self) -> Vec<Message> {
        self.lock().messages.drain(..).collect()
    }

    /// Puts messages back that were taken, before those that came since.
    pub fn put_back(&self, messages: Vec<Message>) {
        let mut state = self.lock();
        messages.into_iter().rev().for_each(|message| state.messages.push_front(message));
    }

    /// True if the journal of the run has what comes: the run has begun, and is not over.
    pub fn is_kept(&self) -> bool {
        self.lock().log.is_some()
    }

    /// True if no message waits.
    pub fn is_empty(&self) -> bool {
        self.lock().messages.is_empty()
    }

    /// True if nothing more is accepted.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Keeps what comes in the run's journal from now on, and what waits already.
    pub(super) fn keep_in(&self, log: RunLog) {
        let mut state = self.lock();
        if state.log.is_none() && !state.closed {
            state.messages.iter().for_each(|message| log.record(EntryBody::Steered { message: message.clone() }));
            state.log = Some(log);
        }
    }

    /// Takes all messages, and accepts no more.
    pub fn close(&self) -> Vec<Message> {
        let mut state = self.lock();
        (state.closed, state.log) = (true, None);
        state.messages.drain(..).collect()
    }

    /// Accepts messages again, for a run that goes on.
    pub fn reopen(&self) {
        self.lock().closed = false;
    }

    /// Accepts no more if no message waits; false if one does.
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

    /// All orders in which steps of several parties can follow each other; each party's own stay in order.
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
        // Two who steer, and a run that takes what there is, tries to end, and must end.
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
