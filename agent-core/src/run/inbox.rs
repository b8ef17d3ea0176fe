//! Messages for a run that is under way.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::Message;

/// Messages for a run that is under way: they are put before its next model call. Cheap to clone; all clones are one inbox.
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Mutex<VecDeque<Message>>>);

impl Inbox {
    /// Adds a message.
    pub fn push(&self, message: Message) {
        self.lock().push_back(message);
    }

    /// Takes all messages.
    pub fn take(&self) -> Vec<Message> {
        self.lock().drain(..).collect()
    }

    /// True if no message waits.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Message>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
