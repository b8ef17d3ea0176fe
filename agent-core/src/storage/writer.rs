//! Writers of stored values: tool calls, whose changes are committed with their results, and runs,
//! whose changes are committed at once.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use serde_json::Value;

use super::{
    GlobalStorage, State,
    slots::{Ending, Ready},
};
use crate::error::{Error, ErrorKind, Result};

/// A tool call that may change values.
#[derive(Debug)]
pub(super) struct Writer(AtomicU8);

const UNDER_WAY: u8 = 0;
/// The call has a result. Its remaining tasks write as the run.
const ENDED: u8 = 1;
/// The call was aborted, and restarts from its beginning.
const CUT_OFF: u8 = 2;

impl Writer {
    /// Returns the writer of uncommitted changes; `None` if changes are committed at once.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if the call was aborted.
    pub(super) fn of(writer: Option<&Arc<Self>>) -> Result<Option<Arc<Self>>> {
        let Some(writer) = writer else { return Ok(None) };
        match writer.0.load(Ordering::Acquire) {
            UNDER_WAY => Ok(Some(writer.clone())),
            ENDED => Ok(None),
            _ => Err(Error::new(ErrorKind::Cancelled, "the call was cut off: what it changes now is not kept")),
        }
    }
}

/// A value by its name; `None` if it was removed.
pub(crate) type NewValue = (String, Option<Value>);

/// The shared storage and the state as one call sees them. The call's changes are committed with
/// its result.
#[derive(Debug)]
pub(crate) struct CallStorage {
    writer: Arc<Writer>,
    pub(crate) globals: GlobalStorage,
    pub(crate) state: State,
}

impl CallStorage {
    pub(crate) fn new(globals: &GlobalStorage, state: &State) -> Self {
        let writer = Arc::new(Writer(AtomicU8::new(UNDER_WAY)));
        let (globals, state) = (globals.written_by(Some(writer.clone())), state.written_by(writer.clone()));
        Self { writer, globals, state }
    }

    /// Returns the call's uncommitted changes. Runs user code, so the caller must hold no lock.
    pub(crate) fn changes(&self) -> CallChanges<'_> {
        CallChanges(self.globals.slots().end(&self.writer, true), self.state.slots().end(&self.writer, true))
    }

    /// Marks the call as answered: its remaining tasks write as the run.
    pub(crate) fn end(&self) {
        self.writer.0.store(ENDED, Ordering::Release);
    }

    /// Rolls back the call's uncommitted changes, because the call restarts from its beginning.
    pub(crate) fn cut_off(&self) {
        self.writer.0.store(CUT_OFF, Ordering::Release);
        for slots in [self.globals.slots(), self.state.slots()] {
            while slots.end(&self.writer, false).lock().map(Ready::apply).is_none() {}
        }
    }
}

/// The uncommitted changes of a call.
pub(crate) struct CallChanges<'a>(Ending<'a>, Ending<'a>);

impl CallChanges<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty() && self.1.is_empty()
    }

    /// The changed values of the shared storage and of the state; `None` where one was removed.
    pub(crate) fn values(&self) -> (Vec<NewValue>, Vec<NewValue>) {
        (self.0.values(), self.1.values())
    }

    /// Commits the changes. Returns `false` if one of the values was changed meanwhile: the caller
    /// must request the changes again.
    pub(crate) fn keep(self) -> bool {
        let ready = self.0.lock().and_then(|globals| Some((globals, self.1.lock()?)));
        ready.map(|(globals, state)| (globals.apply(), state.apply())).is_some()
    }
}
