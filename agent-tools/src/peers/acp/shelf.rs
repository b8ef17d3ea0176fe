//! Store of idle sessions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::session::Session;

/// Idle sessions, each with a time to live.
#[derive(Clone, Default)]
pub(super) struct Shelf(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    count: u64,
    sessions: HashMap<String, (u64, Box<Session>)>,
}

impl Shelf {
    /// Stores a session for the given time; then it is dropped.
    pub(super) fn put(&self, key: String, session: Box<Session>, time: Duration) {
        let mut kept = self.lock();
        kept.count += 1;
        let number = kept.count;
        let former = kept.sessions.insert(key.clone(), (number, session));
        drop(kept);
        drop(former);
        let shelf = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            let Some(shelf) = shelf.upgrade().map(Self) else { return };
            let mut kept = shelf.lock();
            let is_it = kept.sessions.get(&key).is_some_and(|(known, _)| *known == number);
            let late = if is_it { kept.sessions.remove(&key) } else { None };
            drop(kept);
            drop(late);
        });
    }

    pub(super) fn take(&self, key: &str) -> Option<Box<Session>> {
        self.lock().sessions.remove(key).map(|(_, session)| session)
    }

    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut self.lock().sessions);
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
