//! Leases of a journal and the times of their renewals.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{BoxFuture, Result};

/// Leases that a journal holds and renews, by epoch. A lease that could not be released expires.
///
/// For each lease, the time of the last request that the store granted is known: no other process
/// can hold the lease within its duration from then. Writers check this from the tasks of their
/// runs; the writer thread updates it.
#[derive(Clone)]
pub(crate) struct Leases(Arc<Inner>);

struct Inner {
    /// Clock in milliseconds since a fixed time; it continues while the process is stopped.
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Duration of a lease in milliseconds.
    ttl: u64,
    asked: Mutex<BTreeMap<i64, u64>>,
}

impl Leases {
    pub(crate) fn new(ttl: Duration, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let (clock, ttl) = (Box::new(clock), u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        Self(Arc::new(Inner { clock, ttl, asked: Mutex::default() }))
    }

    pub(crate) fn now(&self) -> u64 {
        (self.0.clock)()
    }

    pub(crate) fn all(&self) -> Vec<i64> {
        self.lock().keys().copied().collect()
    }

    /// Adds a lease that the store granted to a request at the time `asked`.
    pub(crate) fn take(&self, epoch: i64, asked: u64) {
        self.lock().insert(epoch, asked);
    }

    pub(crate) fn give_back(&self, epoch: i64) {
        self.lock().remove(&epoch);
    }

    /// Records the result of a renewal request: still held, or lost to another process.
    pub(crate) fn renewed(&self, epoch: i64, asked: u64, is_held: bool) {
        let mut leases = self.lock();
        match leases.get_mut(&epoch) {
            Some(last) if is_held => *last = asked,
            // A lease that was released meanwhile is no longer present.
            _ => drop(leases.remove(&epoch)),
        }
    }

    /// Verifies that a lease is held now. Where the last renewal is too old, `renew` asks the
    /// store, repeatedly if the process was stopped meanwhile.
    pub(crate) fn verify_lease<R>(
        &self,
        epoch: i64,
        renew: impl Fn() -> R + Send + 'static,
    ) -> BoxFuture<'static, Result<()>>
    where
        R: Future<Output = Result<()>> + Send,
    {
        if self.is_held(epoch) {
            return Box::pin(ready(Ok(())));
        }
        let leases = self.clone();
        Box::pin(async move {
            while !leases.is_held(epoch) {
                renew().await?;
            }
            Ok(())
        })
    }

    fn is_held(&self, epoch: i64) -> bool {
        // A clock that was set back also counts as expired.
        self.lock().get(&epoch).is_some_and(|asked| self.now().abs_diff(*asked) < self.0.ttl)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, u64>> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
