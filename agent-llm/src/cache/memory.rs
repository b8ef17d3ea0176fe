//! [`MemoryCache`].

use std::{
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{ModelResponse, Result, async_trait};
use tokio::time::Instant;

use super::{CacheKey, CacheStore, lru::Lru};

/// Keeps answers in memory: a bounded number, of bounded size, for a bounded time. What was not used for longest goes first.
///
/// ```
/// use std::time::Duration;
///
/// use agent_llm::cache::MemoryCache;
///
/// let store = MemoryCache::new().max_entries(500).max_bytes(16 << 20).ttl(Duration::from_secs(3_600));
/// assert_eq!((store.len(), store.bytes()), (0, 0));
/// ```
pub struct MemoryCache {
    max_entries: usize,
    max_bytes: usize,
    ttl: Option<Duration>,
    kept: Mutex<Lru<CacheKey, Entry>>,
}

struct Entry {
    response: Arc<ModelResponse>,
    since: Instant,
}

impl MemoryCache {
    /// A store for 1,000 answers of 64 MiB together, without a limit of time.
    pub fn new() -> Self {
        Self { max_entries: 1_000, max_bytes: 64 << 20, ttl: None, kept: Mutex::default() }
    }

    /// Sets the most answers. Default: 1,000.
    #[must_use]
    pub fn max_entries(mut self, most: usize) -> Self {
        self.max_entries = most;
        self
    }

    /// Sets the most bytes of all answers together, each as it would be in JSON. One that is larger is not kept.
    /// Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.max_bytes = most;
        self
    }

    /// Sets how long an answer is good for. Default: for ever.
    #[must_use]
    pub fn ttl(mut self, longest: Duration) -> Self {
        self.ttl = Some(longest);
        self
    }

    /// The number of answers.
    pub fn len(&self) -> usize {
        self.kept().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all answers together.
    pub fn bytes(&self) -> usize {
        self.kept().bytes()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.kept() = Lru::default();
    }

    fn kept(&self) -> MutexGuard<'_, Lru<CacheKey, Entry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &CacheKey) -> Option<Arc<ModelResponse>> {
        let mut kept = self.kept();
        let since = kept.peek(key)?.since;
        if self.ttl.is_some_and(|longest| since.elapsed() >= longest) {
            kept.remove(key);
            return None;
        }
        kept.get(key).map(|entry| entry.response.clone())
    }

    fn insert(&self, key: CacheKey, response: Arc<ModelResponse>) {
        let bytes = size(&response);
        let mut kept = self.kept();
        kept.remove(&key);
        if bytes > self.max_bytes || self.max_entries == 0 {
            return;
        }
        while kept.len() >= self.max_entries {
            kept.remove_oldest();
        }
        kept.insert(key, Entry { response, since: Instant::now() }, bytes, self.max_bytes);
    }
}

/// The length of a response as JSON.
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
        Err(_) => usize::MAX, // what cannot be measured is not kept
    }
}

#[async_trait]
impl CacheStore for MemoryCache {
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<ModelResponse>>> {
        Ok(self.find(key))
    }

    async fn put(&self, key: CacheKey, response: Arc<ModelResponse>) -> Result<()> {
        self.insert(key, response);
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
        let kept = self.kept();
        f.debug_struct("MemoryCache").field("entries", &kept.len()).field("bytes", &kept.bytes()).finish()
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

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_good_for_so_long() {
        let store = MemoryCache::new().ttl(Duration::from_secs(60));
        store.insert(key(1), answer("one"));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(store.find(&key(1)).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(store.find(&key(1)).is_none() && store.is_empty(), "using it does not make it younger");
    }

    #[test]
    fn an_answer_that_is_too_large_replaces_nothing_but_its_own_predecessor() {
        let small = size(&answer("small"));
        let store = MemoryCache::new().max_bytes(2 * small);
        store.insert(key(1), answer("small"));
        store.insert(key(2), answer("small"));
        store.insert(key(1), answer(&"large".repeat(100)));
        assert!(store.find(&key(1)).is_none(), "the older answer would be wrong");
        assert_eq!((store.find(&key(2)).is_some(), store.bytes()), (true, small));
    }

    proptest! {
        /// Against a list, newest last.
        #[test]
        fn the_least_recently_used_goes_first_and_both_bounds_hold(
            steps in prop::collection::vec((any::<bool>(), 0_u32..8, 1_usize..6), 1..80),
            max_entries in 0_usize..6, max_bytes in 0_usize..1_500,
        ) {
            let store = MemoryCache::new().max_entries(max_entries).max_bytes(max_bytes);
            let keys: Vec<_> = (0..8).map(key).collect();
            let mut naive: Vec<(u32, Arc<ModelResponse>)> = Vec::new();
            for (put, n, length) in steps {
                let at = naive.iter().position(|(known, _)| *known == n);
                let known = at.map(|at| naive.remove(at));
                if put {
                    let response = answer(&"x".repeat(length * 40));
                    store.insert(keys[n as usize], response.clone());
                    naive.push((n, response));
                    let bytes = |naive: &[(u32, Arc<ModelResponse>)]| naive.iter().map(|(_, r)| size(r)).sum::<usize>();
                    if size(&naive[naive.len() - 1].1) > max_bytes {
                        naive.pop();
                    }
                    while naive.len() > max_entries || bytes(&naive) > max_bytes {
                        naive.remove(0);
                    }
                } else {
                    prop_assert_eq!(store.find(&keys[n as usize]), known.clone().map(|(_, r)| r));
                    naive.extend(known);
                }
                prop_assert_eq!(store.len(), naive.len());
                prop_assert_eq!(store.bytes(), naive.iter().map(|(_, r)| size(r)).sum::<usize>());
                prop_assert!(store.len() <= max_entries && store.bytes() <= max_bytes);
            }
        }
    }
}
