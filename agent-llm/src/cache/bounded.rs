//! [`Bounded`].

use std::{hash::Hash, time::Duration};

use moka::{policy::EvictionPolicy, sync::Cache};

/// moka refuses what is longer.
const LONGEST: Duration = Duration::from_secs(1_000 * 365 * 24 * 3_600);

/// Values of bounded size together, for a bounded time: what was not used for longest goes first. What is too much is gone
/// when [`insert`](Self::insert) returns, unless others insert meanwhile.
pub(crate) struct Bounded<K, V> {
    values: Cache<K, (V, u32)>,
    most: u64,
}

impl<K, V> Bounded<K, V>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// `most` bytes in all, each for `ttl` if that is set.
    pub(crate) fn new(most: u64, ttl: Option<Duration>) -> Self {
        let values = Cache::builder().max_capacity(most).weigher(|_, (_, bytes): &(V, u32)| *bytes);
        let values = values.eviction_policy(EvictionPolicy::lru());
        let values = match ttl {
            Some(longest) => values.time_to_live(longest.min(LONGEST)),
            None => values,
        };
        Self { values: values.build(), most }
    }

    pub(crate) fn len(&self) -> u64 {
        self.values.run_pending_tasks();
        self.values.entry_count()
    }

    /// The bytes of all values together.
    pub(crate) fn bytes(&self) -> u64 {
        self.values.run_pending_tasks();
        self.values.weighted_size()
    }

    pub(crate) fn clear(&self) {
        self.values.invalidate_all();
        self.values.run_pending_tasks();
    }

    /// The value, which is used now.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        Some(self.values.get(key)?.0)
    }

    /// Keeps a value of so many bytes in the place of its predecessor; one that is too large removes that alone.
    pub(crate) fn insert(&self, key: K, value: V, bytes: usize) {
        match u32::try_from(bytes) {
            Ok(bytes) if u64::from(bytes) <= self.most => self.values.insert(key, (value, bytes)),
            _ => self.values.invalidate(&key),
        }
        self.values.run_pending_tasks();
    }
}
