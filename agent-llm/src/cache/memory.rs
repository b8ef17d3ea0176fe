//! [`MemoryCache`]: in-memory store of responses.

use std::{fmt, io, sync::Arc, time::Duration};

use agent_core::{ModelResponse, Result, async_trait};

use super::{CacheKey, CacheStore, bounded::Bounded};

/// Least-recently-used store of answers in memory, bounded by total size and by age.
///
/// ```
/// use std::time::Duration;
///
/// use agent_llm::cache::MemoryCache;
///
/// let store = MemoryCache::builder().max_bytes(16 << 20).ttl(Duration::from_secs(3_600)).build();
/// assert_eq!((store.len(), store.bytes()), (0, 0));
/// ```
pub struct MemoryCache(Bounded<CacheKey, Arc<ModelResponse>>);

/// Builder of a [`MemoryCache`].
#[derive(Clone, Debug)]
pub struct MemoryCacheBuilder {
    max_bytes: u64,
    ttl: Option<Duration>,
}

impl MemoryCacheBuilder {
    /// Sets the maximum total size of all answers, in bytes of their JSON. A larger answer is not
    /// stored, nor is one of 4 GiB or more. Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, most: u64) -> Self {
        self.max_bytes = most;
        self
    }

    /// Sets the time to live of an answer, regardless of use, at most a thousand years. Default:
    /// unlimited.
    #[must_use]
    pub fn ttl(mut self, longest: Duration) -> Self {
        self.ttl = Some(longest);
        self
    }

    /// Builds the store.
    pub fn build(self) -> MemoryCache {
        MemoryCache(Bounded::new(self.max_bytes, self.ttl))
    }
}

impl MemoryCache {
    /// Creates a store of at most 64 MiB, without a time to live.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder of a store with custom limits.
    pub fn builder() -> MemoryCacheBuilder {
        MemoryCacheBuilder { max_bytes: 64 << 20, ttl: None }
    }

    /// Returns the number of answers.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns true if the store is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total size of all answers, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Removes all answers.
    pub fn clear(&self) {
        self.0.clear();
    }
}

/// Returns the size of a response as JSON, in bytes.
fn size(response: &ModelResponse) -> usize {
    struct Length(usize);

    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut length = Length(0);
    match serde_json::to_writer(&mut length, response) {
        Ok(()) => length.0,
        Err(_) => usize::MAX, // unmeasurable answers are not stored
    }
}

#[async_trait]
impl CacheStore for MemoryCache {
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<ModelResponse>>> {
        Ok(self.0.get(key))
    }

    async fn put(&self, key: CacheKey, response: Arc<ModelResponse>) -> Result<()> {
        let bytes = size(&response);
        self.0.insert(key, response, bytes);
        Ok(())
    }
}

impl Default for MemoryCache {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCache").field("entries", &self.len()).field("bytes", &self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{History, Message, ModelInfo, ModelRequest, testing::detached_run};
    use proptest::prelude::*;

    use super::*;

    fn key(n: u32) -> CacheKey {
        let run = detached_run(History::from_messages([Message::user(n.to_string())]).expect("paired"));
        CacheKey::of(&ModelInfo::new("m"), &ModelRequest::new(run.cx().clone()))
    }

    fn answer(text: &str) -> Arc<ModelResponse> {
        Arc::new(ModelResponse::new(text))
    }

    impl MemoryCache {
        fn find(&self, key: &CacheKey) -> Option<Arc<ModelResponse>> {
            self.0.get(key)
        }

        fn insert(&self, key: CacheKey, response: Arc<ModelResponse>) {
            let bytes = size(&response);
            self.0.insert(key, response, bytes);
        }
    }

    fn bytes(response: &ModelResponse) -> u64 {
        size(response) as u64
    }

    #[test]
    fn an_answer_does_not_grow_younger_by_being_used() {
        let store = MemoryCache::builder().ttl(Duration::from_millis(50)).build();
        let began = std::time::Instant::now();
        store.insert(key(1), answer("one"));
        while store.find(&key(1)).is_some() {
            assert!(began.elapsed() < Duration::from_secs(20), "it is used for ever");
        }
        assert!(began.elapsed() >= Duration::from_millis(40), "{:?}", began.elapsed());
    }

    #[test]
    fn an_answer_is_good_for_so_long() {
        for (ttl, is_good) in [(Duration::ZERO, false), (Duration::from_secs(60), true), (Duration::MAX, true)] {
            let store = MemoryCache::builder().ttl(ttl).build();
            store.insert(key(1), answer("one"));
            assert_eq!(store.find(&key(1)).is_some(), is_good, "{ttl:?}");
        }
    }

    #[test]
    fn an_answer_that_is_too_large_replaces_nothing_but_its_own_predecessor() {
        let small = bytes(&answer("small"));
        let store = MemoryCache::builder().max_bytes(2 * small).build();
        store.insert(key(1), answer("small"));
        store.insert(key(2), answer("small"));
        store.insert(key(1), answer(&"large".repeat(100)));
        assert!(store.find(&key(1)).is_none(), "the older answer would be wrong");
        assert_eq!((store.find(&key(2)).is_some(), store.bytes()), (true, small));
    }

    #[test]
    fn what_was_forgotten_is_not_found() {
        let store = MemoryCache::new();
        store.insert(key(1), answer("one"));
        store.clear();
        assert!(store.find(&key(1)).is_none() && store.is_empty());
    }

    proptest! {
        /// Compares the store with a list, newest last.
        #[test]
        fn the_least_recently_used_goes_first_and_the_bound_holds(
            steps in prop::collection::vec((any::<bool>(), 0_u32..8, 1_usize..6), 1..80), max_bytes in 0_u64..1_500,
        ) {
            let store = MemoryCache::builder().max_bytes(max_bytes).build();
            let keys: Vec<_> = (0..8).map(key).collect();
            let mut naive: Vec<(u32, Arc<ModelResponse>)> = Vec::new();
            for (put, n, length) in steps {
                let at = naive.iter().position(|(known, _)| *known == n);
                let known = at.map(|at| naive.remove(at));
                if put {
                    let response = answer(&"x".repeat(length * 40));
                    store.insert(keys[n as usize], response.clone());
                    naive.push((n, response));
                    let all = |naive: &[(u32, Arc<ModelResponse>)]| naive.iter().map(|(_, r)| bytes(r)).sum::<u64>();
                    if bytes(&naive[naive.len() - 1].1) > max_bytes {
                        naive.pop();
                    }
                    while all(&naive) > max_bytes {
                        naive.remove(0);
                    }
                } else {
                    prop_assert_eq!(store.find(&keys[n as usize]), known.clone().map(|(_, r)| r));
                    naive.extend(known);
                }
                prop_assert_eq!(store.len(), naive.len() as u64);
                prop_assert_eq!(store.bytes(), naive.iter().map(|(_, r)| bytes(r)).sum::<u64>());
                prop_assert!(store.bytes() <= max_bytes);
            }
        }
    }
}
