//! The journal as runs below others write to it.

use std::sync::{Arc, Weak};

use super::RunLog;
use crate::{Ack, Entry, Error, ErrorKind, JournalWriter, Result};

impl RunLog {
    /// The writer, for the runs below. It does not keep the session held: when this run is over nothing more is written.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the run is over.
    pub fn writer(&self) -> Result<Arc<dyn JournalWriter>> {
        self.release();
        Ok(Arc::new(Below(Arc::downgrade(&self.own_writer()?))))
    }
}

/// The writer of the run above, for as long as that has it: a task that outlives its run for a moment does not keep the
/// session from the next run, and writes nothing into it.
struct Below(Weak<dyn JournalWriter>);

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
