//! Flushing of a run's pending entries to the journal.

use std::{
    future::ready,
    sync::{Arc, MutexGuard, PoisonError, Weak},
    task::Context,
};

use futures::future::BoxFuture;

use super::{Open, RunLog, call::SHARED, outbox::Sent};
use crate::{
    error::{Error, ErrorKind, Result},
    journal::{Ack, Entry, EntryBody, JournalWriter},
};

impl RunLog {
    /// Appends all pending entries to the journal without waiting. Entries recorded after the run
    /// has ended are lost.
    pub fn flush(&self) {
        let _ = self.try_flush(); // the run's next commit returns the error
    }

    /// Appends all pending entries to the journal, waits until these and all earlier entries of the
    /// run tree are durable, and then verifies that the tree still owns the session.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the journal failed for any run of the tree,
    /// now or earlier, or if another process has taken over the session: no run of the tree may
    /// continue. Also if the run has ended.
    pub async fn commit(&self) -> Result<()> {
        self.try_flush()?;
        self.0.tree.outbox().settle().await?;
        // The process may have been paused for a long time between the acknowledgement and this
        // point.
        self.verify_lease().await
    }

    /// Fails if the journal is known to have rejected a batch: entries recorded since then may be
    /// missing.
    ///
    /// # Errors
    /// The errors of [`commit`](Self::commit) that are already known.
    pub fn check(&self) -> Result<()> {
        self.0.tree.outbox().check()
    }

    /// Verifies that the run tree still owns the session (a fencing check). If it does not, no run
    /// of the tree appends any more.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if another process owns the session, if the
    /// owner cannot be determined, or if the run has ended.
    pub(crate) async fn verify_lease(&self) -> Result<()> {
        self.own_writer()?.verify_lease().await.inspect_err(|e| {
            self.0.tree.outbox().refuse(e);
            self.0.emitter.let_go();
        })
    }

    /// Like [`flush`](Self::flush), but returns the error.
    ///
    /// # Errors
    /// The errors of [`commit`](Self::commit) that are already known.
    pub fn try_flush(&self) -> Result<()> {
        self.flush_after(|_| ())
    }

    /// Calls `first`, then flushes. No other run of the tree can flush between `first`, the read of
    /// the changes and the append.
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

    /// Called while the executor is idle: appends pending entries (a paid answer does not wait for
    /// the next commit), publishes the events of durable entries, and registers the waker of `cx`
    /// for the next acknowledgement.
    pub fn poll_idle(&self, cx: &mut Context<'_>) {
        self.hand_over();
        self.0.tree.outbox().poll_tell(cx);
    }

    /// Appends all pending entries to the journal, without the changes of the state and the shared
    /// storage since the last flush: these belong to the entry that the run is about to record. A
    /// failure is reported by the run's next commit.
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

    /// Flushes unless entries of a step are pending: a step's entries must stay in one batch.
    pub(crate) fn flush_apart(&self) {
        // A failure is reported by the run's next commit.
        let _ = self.0.tree.outbox().send(|| {
            let open = self.open();
            match open.pending.iter().all(|entry| entry.body.is_of_no_step()) {
                true => Ok(self.append(&*self.own_writer()?, open)),
                false => Ok(None),
            }
        });
        // The task that drives the tree polls the acknowledgement, and may be waiting for something
        // else.
        self.0.tree.outbox().wake();
    }

    /// Takes the changes of the state and the shared storage since the last call, if there are any.
    /// The caller holds the lock on `Open`, so that a call's changes are not taken without its
    /// result.
    pub(super) fn changes(&self) -> Option<EntryBody> {
        if !self.has_changes() {
            return None;
        }
        let (state, globals) = (self.0.state.take_changes(), self.0.globals.take_changes());
        self.steps().changed(&self.0.ids.run_id, state.keys());
        self.steps().changed(SHARED, globals.keys());
        (!state.is_empty() || !globals.is_empty()).then_some(EntryBody::StateChanged { state, globals })
    }

    /// True if [`changes`](Self::changes) would return a value.
    pub(super) fn has_changes(&self) -> bool {
        self.0.state.has_changes() || self.0.globals.has_changes()
    }

    /// Releases the journal because the run has ended: a retained run context neither holds the
    /// session nor can write to it.
    pub fn close(&self) {
        self.cut_off_calls();
        self.keep_last();
        drop(self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Returns a writer for child runs. It does not hold the session: once this run has ended, its
    /// appends fail.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the run has ended.
    pub fn writer(&self) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(ChildWriter(Arc::downgrade(&self.own_writer()?))))
    }

    fn own_writer(&self) -> Result<Arc<dyn JournalWriter>> {
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        writer.ok_or_else(over)
    }
}

/// Writer of the parent run, valid while the parent holds it: a task that outlives its run for a
/// moment neither blocks the session's next run nor writes into it.
struct ChildWriter(Weak<dyn JournalWriter>);

impl JournalWriter for ChildWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        match self.0.upgrade() {
            Some(above) => above.append(entries),
            None => Ack::Done(Some(Err(over()))),
        }
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        match self.0.upgrade() {
            Some(above) => above.verify_lease(),
            None => Box::pin(ready(Err(over()))),
        }
    }
}

fn over() -> Error {
    Error::new(ErrorKind::Store, "the run is over: nothing more of it can be kept")
}
