//! From a run's pending entries to the journal.

use std::{
    future::ready,
    sync::{Arc, MutexGuard, PoisonError, Weak},
    task::Context,
};

use futures::future::BoxFuture;

use super::{Open, RunLog, outbox::Sent, tool_step::SHARED};
use crate::{
    error::{Error, ErrorKind, Result},
    journal::{Ack, Entry, EntryBody, JournalWriter},
};

impl RunLog {
    /// Hands all pending entries to the journal, without waiting. What is recorded when the run is over is lost.
    pub fn flush(&self) {
        let _ = self.try_flush(); // the run's next commit fails with it
    }

    /// Hands all pending entries to the journal and waits until it, and all that the tree wrote before it, is durable. When this
    /// returns the session is still the tree's.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the journal failed, now or before, for whichever run of the tree, or the
    /// session is another process's by now: none of them must go on; and if the run is over.
    pub async fn commit(&self) -> Result<()> {
        self.try_flush()?;
        self.0.tree.outbox().settle().await?;
        // Between an acknowledgement and the run that waits for it the process may have been stopped for long.
        self.prove().await
    }

    /// Fails if the journal is known to have refused something: what was recorded since then may be missing.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit) that are known by now.
    pub fn check(&self) -> Result<()> {
        self.0.tree.outbox().check()
    }

    /// Makes sure that the session is still the tree's. If it is not, no run of the tree appends any more.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it is another process's, or nobody can say; and if the run is over.
    pub(crate) async fn prove(&self) -> Result<()> {
        self.own_writer()?.prove().await.inspect_err(|e| {
            self.0.tree.outbox().refuse(e);
            self.0.emitter.let_go();
        })
    }

    /// As [`flush`](Self::flush).
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit) that are known by now.
    pub fn try_flush(&self) -> Result<()> {
        self.flush_after(|_| ())
    }

    /// Flushes after `first`. Nobody else of the tree flushes between that, reading what changed and writing it down.
    pub(super) fn flush_after<T>(&self, first: impl FnOnce(&mut Open) -> T) -> Result<T> {
        let mut done = None;
        self.0.tree.outbox().send(|| {
            let writer = self.own_writer()?;
            let mut open = self.open();
            done = Some(first(&mut open));
            if let Some(changes) = self.changes() {
                self.record_in(&mut open, changes);
            }
            Ok(self.append(&*writer, open))
        })?;
        Ok(done.expect("what is flushed comes after it"))
    }

    /// For whoever drives the run, when it waits for something: hands over what is recorded, so that an answer that
    /// was paid for does not wait for the run's next commit; tells the readers of what is durable by now; and has the task of `cx`
    /// polled again when more is.
    pub fn poll_idle(&self, cx: &mut Context<'_>) {
        self.hand_over();
        self.0.tree.outbox().poll_tell(cx);
    }

    /// Hands all pending entries to the journal, without what the state and the shared storage changed since the last flush: that
    /// belongs to what the run is about to record. What cannot be handed over fails at the run's next commit.
    pub(crate) fn hand_over(&self) {
        if !self.open().pending.is_empty() {
            let _ = self.0.tree.outbox().send(|| Ok(self.append(&*self.own_writer()?, self.open())));
        }
    }

    fn append(&self, writer: &dyn JournalWriter, mut open: MutexGuard<'_, Open>) -> Option<Sent> {
        let entries = std::mem::take(&mut open.pending);
        drop(open);
        if entries.is_empty() {
            return None;
        }
        let (count, watched) = (entries.len(), self.0.emitter.is_observed().then(|| entries.clone()));
        let ack = writer.append(entries);
        Some(Sent { ack, count, entries: watched, emitter: self.0.emitter.clone() })
    }

    /// Records an entry that belongs to no step, and flushes it at once unless the run is about to flush more: it must
    /// not tear apart what a step writes together.
    pub(crate) fn record_apart(&self, body: EntryBody) {
        // What cannot be flushed now fails at the run's next commit.
        let _ = self.0.tree.outbox().send(|| {
            let mut open = self.open();
            self.record_in(&mut open, body);
            if open.pending.len() > 1 {
                return Ok(None);
            }
            Ok(self.append(&*self.own_writer()?, open))
        });
        // Whoever drives the tree may wait for something else, and is the one that takes the acknowledgement.
        self.0.tree.outbox().wake();
    }

    /// What changed in the state and the shared storage since this was last asked, if anything did. For whoever has what is
    /// open, so that what a call changed is not taken without its result.
    pub(super) fn changes(&self) -> Option<EntryBody> {
        if !self.has_changes() {
            return None;
        }
        let (state, globals) = (self.0.state.take_changes(), self.0.globals.take_changes());
        self.steps().changed(&self.0.ids.run_id, state.keys());
        self.steps().changed(SHARED, globals.keys());
        (!state.is_empty() || !globals.is_empty()).then_some(EntryBody::StateChanged { state, globals })
    }

    /// True if [`changes`](Self::changes) has something.
    pub(super) fn has_changes(&self) -> bool {
        self.0.state.has_changes() || self.0.globals.has_changes()
    }

    /// Lets go of the journal, since the run is over: whoever kept the run's context does not hold the session, and cannot
    /// write to it any more.
    pub fn close(&self) {
        self.cut_off_calls();
        self.keep_last();
        drop(self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The writer, for the child runs. It does not keep the session held: when this run is over nothing more is written.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the run is over.
    pub fn writer(&self) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(ChildWriter(Arc::downgrade(&self.own_writer()?))))
    }

    fn own_writer(&self) -> Result<Arc<dyn JournalWriter>> {
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        writer.ok_or_else(over)
    }
}

/// The writer of the run above, for as long as that has it: a task that outlives its run for a moment does not keep the
/// session from the next run, and writes nothing into it.
struct ChildWriter(Weak<dyn JournalWriter>);

impl JournalWriter for ChildWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        match self.0.upgrade() {
            Some(above) => above.append(entries),
            None => Ack::Done(Some(Err(over()))),
        }
    }

    fn prove(&self) -> BoxFuture<'static, Result<()>> {
        match self.0.upgrade() {
            Some(above) => above.prove(),
            None => Box::pin(ready(Err(over()))),
        }
    }
}

fn over() -> Error {
    Error::new(ErrorKind::Store, "the run is over: nothing more of it can be kept")
}
