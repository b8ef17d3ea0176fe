//! From a run's notes to the journal: at once, or when somebody looks.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use super::{Open, RunLog, below::over, held::Left};
use crate::{Entry, EntryBody, JournalWriter, Result, journal::outbox::Sent};

/// How many entries a run that holds them back notes before it looks for changes of the state and the shared storage: those
/// of a few steps.
const BETWEEN_LOOKS: usize = 16;

impl RunLog {
    /// Hands everything noted to the journal, without waiting. What is noted when the run is over is lost.
    pub fn flush(&self) {
        if self.is_unseen() {
            self.keep();
        } else {
            let _ = self.hand_over(); // the run's next commit fails with it
        }
    }

    /// Hands everything noted to the journal and waits until it, and all that the tree wrote before it, is durable.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the journal failed, now or before, for whichever run of the tree:
    /// none of them must go on; and if the run is over.
    pub async fn commit(&self) -> Result<()> {
        if self.is_unseen() {
            self.keep();
            return Ok(());
        }
        self.hand_over()?;
        self.0.emitter.hub().outbox().settle().await
    }

    fn hand_over(&self) -> Result<()> {
        self.hand_over_with(|_| ())
    }

    /// Hands over after `first`. Nobody else of the tree hands over between that, reading what changed and writing it down.
    pub(super) fn hand_over_with<T>(&self, first: impl FnOnce(&mut Open) -> T) -> Result<T> {
        let mut done = None;
        self.0.emitter.hub().outbox().send(|| {
            let writer = self.own_writer()?;
            self.0.holding.store(false, Ordering::Release);
            let mut open = self.open();
            done = Some(first(&mut open));
            let mut entries = open.take_entries(&self.0.run, &self.0.attempt);
            entries.extend(self.changes().map(|changes| self.entry(changes)));
            drop(open);
            Ok(self.append(&*writer, entries))
        })?;
        Ok(done.expect("what is handed over comes after it"))
    }

    fn append(&self, writer: &dyn JournalWriter, entries: Vec<Entry>) -> Option<Sent> {
        if entries.is_empty() {
            return None;
        }
        let (count, watched) = (entries.len(), self.0.emitter.is_observed().then(|| entries.clone()));
        let ack = writer.append(entries);
        Some(Sent { ack, count, entries: watched, emitter: self.0.emitter.clone() })
    }

    /// Notes an entry that belongs to no step, and hands it over at once unless the run is about to hand over more: it must
    /// not tear apart what a step writes together.
    pub(crate) fn record_apart(&self, body: EntryBody) {
        let entry = self.entry(body);
        let is_unseen = self.is_unseen();
        // What cannot be handed over now fails at the run's next commit.
        let _ = self.0.emitter.hub().outbox().send(|| {
            let mut open = self.open();
            self.note_whole(&mut open, [entry]);
            if is_unseen || open.noted.len() > 1 {
                return Ok(None);
            }
            let entries = open.take_entries(&self.0.run, &self.0.attempt);
            drop(open);
            Ok(self.append(&*self.own_writer()?, entries))
        });
    }

    /// Hands over nothing until somebody looks, which is until there is a reader of its events, or somebody asks for the
    /// [journal](crate::EventHub::journal): for a journal in memory that is this run's own. Commits then keep nothing safe
    /// that a crash would spare, and cost next to nothing. For the root run of a tree, before its first entry.
    pub fn hold_back(&self) {
        self.open().noted.make_room();
        self.0.held_back.store(true, Ordering::Release);
        self.0.emitter.hub().outbox().held().by(self);
    }

    /// Ends [`hold_back`](Self::hold_back).
    pub(super) fn release(&self) {
        if self.0.held_back.swap(false, Ordering::AcqRel) {
            self.flush();
        }
    }

    /// True if what is noted may wait, since nobody looks.
    pub(super) fn is_unseen(&self) -> bool {
        self.0.held_back.load(Ordering::Acquire) && !self.0.emitter.is_observed()
    }

    /// Keeps what is noted until somebody looks.
    fn keep(&self) {
        self.0.holding.store(true, Ordering::Release);
        if self.0.fresh.load(Ordering::Relaxed) >= BETWEEN_LOOKS {
            self.note_changes();
        }
    }

    /// Hands over what is held back now. Before the run's first [`flush`](Self::flush) that is nothing.
    pub(super) fn catch_up(&self) {
        if self.0.holding.load(Ordering::Acquire) {
            let _ = self.hand_over(); // the run's own commits fail with it
        }
    }

    fn note_changes(&self) {
        self.0.fresh.store(0, Ordering::Relaxed);
        let mut open = self.open();
        if let Some(changes) = self.changes() {
            self.note(&mut open, changes);
        }
    }

    /// What changed in the state and the shared storage since this was last asked, if anything did. For whoever has what is
    /// open, so that what a call changed is not taken without its result.
    fn changes(&self) -> Option<EntryBody> {
        let (state, globals) = (self.0.state.take_changes(), self.0.globals.take_changes());
        (!state.is_empty() || !globals.is_empty()).then_some(EntryBody::StateChanged { state, globals })
    }

    /// Lets go of the journal, since the run is over: whoever kept the run's context does not hold the session, and cannot
    /// write to it any more. What is held back can still be had from the tree's [`EventHub`](crate::EventHub).
    pub fn close(&self) {
        self.cut_off_calls();
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer.filter(|_| self.0.held_back.swap(false, Ordering::AcqRel)) else { return };
        self.note_changes();
        let open = std::mem::take(&mut *self.open());
        if open.noted.is_empty() {
            return;
        }
        let (run, attempt, hub) = (self.0.run.clone(), self.0.attempt.clone(), self.0.emitter.hub());
        hub.outbox().held().leave(Left { open, run, attempt, writer });
        if hub.is_observed() {
            hub.catch_up(); // somebody came just now
        }
    }

    pub(super) fn own_writer(&self) -> Result<Arc<dyn JournalWriter>> {
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        writer.ok_or_else(over)
    }
}
