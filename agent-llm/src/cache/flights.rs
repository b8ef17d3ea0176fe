//! Single-flight: at most one concurrent call per key.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::CacheKey;

/// Calls in flight, by key. If one fails or is dropped, the next waiting caller makes the call.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<CacheKey, Arc<AsyncMutex<()>>>>);

/// The only call in flight of its key.
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    key: CacheKey,
    lock: Arc<AsyncMutex<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Flights {
    /// Waits until no other call of `key` is in flight. The second value is true if there was one.
    pub(super) async fn begin(&self, key: CacheKey) -> (Flight<'_>, bool) {
        let lock = self.map().entry(key).or_default().clone();
        let mut flight = Flight { flights: self, key, lock: lock.clone(), held: lock.clone().try_lock_owned().ok() };
        let others = flight.held.is_none();
        if others {
            flight.held = Some(lock.lock_owned().await);
        }
        (flight, others)
    }

    fn map(&self) -> MutexGuard<'_, HashMap<CacheKey, Arc<AsyncMutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut map = self.flights.map();
        // Two references, the map's and this one: no other caller waits.
        if Arc::strong_count(&self.lock) == 2 {
            map.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{History, ModelInfo, ModelRequest, testing::detached_run};
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn calls_of_one_key_go_one_by_one_and_leave_nothing_behind() {
        let key = CacheKey::of(&ModelInfo::new("m"), &ModelRequest::new(detached_run(History::default()).cx().clone()));
        let flights = Flights::default();
        let (first, others) = flights.begin(key).await;
        assert!(!others);
        let mut dropped = Box::pin(flights.begin(key));
        let mut second = Box::pin(flights.begin(key));
        assert!(dropped.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(dropped);
        drop(first);
        let (flight, others) = second.await;
        assert!(others);
        drop(flight);
        assert!(flights.map().is_empty());
    }
}
