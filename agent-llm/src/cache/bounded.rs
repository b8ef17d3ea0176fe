//! [`Bounded`]: least-recently-used map, bounded by size and age.

use std::{hash::Hash, time::Duration};

use moka::{policy::EvictionPolicy, sync::Cache};

/// Maximum time to live; moka rejects longer ones.
const LONGEST: Duration = Duration::from_secs(1_000 * 365 * 24 * 3_600);

/// Least-recently-used map, bounded by total size and by age. Excess entries are evicted when
/// [`insert`](Self::insert) returns, unless other threads insert at the same time.
pub(crate) struct Bounded<K, V> {
    values: Cache<K, (V, u32)>,
    most: u64,
}

impl<K, V> Bounded<K, V>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates a map of at most `most` bytes in total, whose entries expire after `ttl`, if set.
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

    /// Returns the total size of all values, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.values.run_pending_tasks();
        self.values.weighted_size()
    }

    pub(crate) fn clear(&self) {
        self.values.invalidate_all();
        self.values.run_pending_tasks();
    }

    /// Returns the value, and marks it as recently used.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        Some(self.values.get(key)?.0)
    }

    /// Inserts a value of `bytes` bytes, replacing its predecessor. A value that is too large only
    /// removes its predecessor.
    pub(crate) fn insert(&self, key: K, value: V, bytes: usize) {
        match u32::try_from(bytes) {
            Ok(bytes) if u64::from(bytes) <= self.most => self.values.insert(key, (value, bytes)),
            _ => self.values.invalidate(&key),
        }
        self.values.run_pending_tasks();
    }
}
