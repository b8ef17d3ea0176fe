//! Who changes what is stored: one call, whose changes are kept with its result, or whoever else.

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

/// A call that may change values.
#[derive(Debug)]
pub(super) struct Writer(AtomicU8);

const UNDER_WAY: u8 = 0;
/// It has a result. What is left of it writes as the run.
const ENDED: u8 = 1;
/// It was cut off, and is entered again from its start.
const CUT_OFF: u8 = 2;

impl Writer {
    /// The writer of changes that are not kept yet; none if they are kept as soon as they are made.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if the call was cut off.
    pub(super) fn of(writer: Option<&Arc<Self>>) -> Result<Option<Arc<Self>>> {
        let Some(writer) = writer else { return Ok(None) };
        match writer.0.load(Ordering::Acquire) {
            UNDER_WAY => Ok(Some(writer.clone())),
            ENDED => Ok(None),
            _ => Err(Error::new(ErrorKind::Cancelled, "the call was cut off: what it changes now is not kept")),
        }
    }
}

/// A value by its name; none if it was removed.
pub(crate) type NewValue = (String, Option<Value>);

/// The shared storage and the state as one call has them. What it changes is kept when its result is.
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

    /// What the call changed and did not keep yet. Runs code of users, so hold no lock.
    pub(crate) fn changes(&self) -> CallChanges<'_> {
        CallChanges(self.globals.slots().end(&self.writer, true), self.state.slots().end(&self.writer, true))
    }

    /// The call has its answer: whatever of it is still at work writes as the run.
    pub(crate) fn end(&self) {
        self.writer.0.store(ENDED, Ordering::Release);
    }

    /// Takes back what the call changed and did not keep, since it is entered again from its start.
    pub(crate) fn cut_off(&self) {
        self.writer.0.store(CUT_OFF, Ordering::Release);
        for slots in [self.globals.slots(), self.state.slots()] {
            while slots.end(&self.writer, false).lock().map(Ready::apply).is_none() {}
        }
    }
}

/// What a call changed and did not keep yet.
pub(crate) struct CallChanges<'a>(Ending<'a>, Ending<'a>);

impl CallChanges<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty() && self.1.is_empty()
    }

    /// The values of the shared storage and of the state that are kept with it; none where one was removed.
    pub(crate) fn values(&self) -> (Vec<NewValue>, Vec<NewValue>) {
        (self.0.values(), self.1.values())
    }

    /// Keeps it; false if something of it was changed meanwhile, and it is to be asked for again.
    pub(crate) fn keep(self) -> bool {
        let ready = self.0.lock().and_then(|globals| Some((globals, self.1.lock()?)));
        ready.map(|(globals, state)| (globals.apply(), state.apply())).is_some()
    }
}
