//! What a run holds back while nobody sees its journal.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::{Inner, Open, RunLog};
use crate::{EventHub, JournalWriter};

/// Who has the entries that the root run of a tree did not hand over, so that whoever wants them can ask.
#[derive(Default)]
pub(crate) struct Held(Mutex<Holder>);

#[derive(Default)]
enum Holder {
    #[default]
    Nobody,
    Run(Weak<Inner>),
    /// Nobody looked before the run was over.
    Left(Box<Left>),
}

/// What a run that is over left behind.
pub(super) struct Left {
    pub(super) open: Open,
    pub(super) run: Arc<str>,
    pub(super) attempt: Arc<str>,
    pub(super) writer: Arc<dyn JournalWriter>,
}

impl Held {
    pub(super) fn by(&self, log: &RunLog) {
        *self.lock() = Holder::Run(Arc::downgrade(&log.0));
    }

    pub(super) fn leave(&self, left: Left) {
        *self.lock() = Holder::Left(Box::new(left));
    }

    /// Hands over what is held back now.
    pub(crate) fn catch_up(&self, hub: &EventHub) {
        if let Some(run) = self.run(hub) {
            run.catch_up();
        }
    }

    /// As [`catch_up`](Self::catch_up), and from now on nothing is held back.
    pub(crate) fn release(&self, hub: &EventHub) {
        if let Some(run) = self.run(hub) {
            run.release();
        }
    }

    /// The run that holds entries back; what a run left is handed over.
    fn run(&self, hub: &EventHub) -> Option<RunLog> {
        let mut holder = self.lock();
        match mem::take(&mut *holder) {
            Holder::Nobody => None,
            Holder::Run(run) => {
                let log = run.upgrade().map(RunLog);
                *holder = Holder::Run(run);
                log
            }
            Holder::Left(mut left) => {
                let entries = left.open.take_entries(&left.run, &left.attempt);
                let count = entries.len();
                if let Some(first) = left.writer.append(entries).take_first() {
                    hub.skip(first, count);
                }
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Holder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
