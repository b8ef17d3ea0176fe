//! The leases of a journal, and what is known of them.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{BoxFuture, Result};

/// The leases that a journal holds, by their epochs: those that are renewed. One that could not be given back expires.
///
/// Of each it is known when the store was last asked for it, and gave it: for so long as a lease lasts nobody else can have it. Writers
/// look at it from the tasks of their runs, the thread that writes tells it.
#[derive(Clone)]
pub(crate) struct Leases(Arc<Inner>);

struct Inner {
    /// Milliseconds since a time that the clock knows; it goes on while the process is stopped.
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// How long a lease lasts, in milliseconds.
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

    /// The store gave this one, which was asked for at `asked`.
    pub(crate) fn take(&self, epoch: i64, asked: u64) {
        self.lock().insert(epoch, asked);
    }

    pub(crate) fn give_back(&self, epoch: i64) {
        self.lock().remove(&epoch);
    }

    /// The store was asked to renew a lease, and has it, or gave it to another process.
    pub(crate) fn renewed(&self, epoch: i64, asked: u64, is_held: bool) {
        let mut leases = self.lock();
        match leases.get_mut(&epoch) {
            Some(last) if is_held => *last = asked,
            // One that was given back meanwhile is not there any more.
            _ => drop(leases.remove(&epoch)),
        }
    }

    /// Sees to it that a lease is held now: where that is not known, `renew` asks the store, and again if the process was stopped meanwhile.
    pub(crate) fn prove<R>(&self, epoch: i64, renew: impl Fn() -> R + Send + 'static) -> BoxFuture<'static, Result<()>>
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
        // A clock that was set back counts as well.
        self.lock().get(&epoch).is_some_and(|asked| self.now().abs_diff(*asked) < self.0.ttl)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, u64>> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
