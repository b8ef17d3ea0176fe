//! The journal as runs below others write to it.

use std::sync::{Arc, Weak};

use crate::{Ack, Entry, Error, ErrorKind, JournalWriter};

/// The writer of the run above, for as long as that has it: a task that outlives its run for a moment does not keep the
/// session from the next run, and writes nothing into it.
pub(super) struct Below(Weak<dyn JournalWriter>);

impl Below {
    pub(super) fn of(above: &Arc<dyn JournalWriter>) -> Arc<dyn JournalWriter> {
        Arc::new(Self(Arc::downgrade(above)))
    }
}

impl JournalWriter for Below {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        match self.0.upgrade() {
            Some(above) => above.append(entries),
            None => Ack::Done(Some(Err(over()))),
        }
    }
}

pub(super) fn over() -> Error {
    Error::new(ErrorKind::Store, "the run is over: nothing more of it can be kept")
}
