//! [`CachedEmbedder`]: embedder with a vector cache.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use agent_core::{Result, Usage, async_trait};
use agent_retrieval::embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo};
use sha2::{Digest, Sha256};

use super::vectors::misplaced;
use crate::cache::Bounded;

/// Digest of everything that a vector depends on.
type Key = [u8; 32];

/// Embedder with a vector cache: only texts that are not cached are sent, each once. The least
/// recently used vectors are evicted first.
///
/// ```
/// use agent_retrieval::embed::{EmbedRequest, Embedder};
/// use agent_llm::embed::{CachedEmbedder, HashedEmbedder};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let embedder = CachedEmbedder::new(HashedEmbedder::new()).max_bytes(8 << 20);
/// embedder.embed(EmbedRequest::documents(["one", "two"])).await?;
/// embedder.embed(EmbedRequest::documents(["two", "three"])).await?;
/// assert_eq!(embedder.len(), 3);
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("embeds");
/// ```
pub struct CachedEmbedder<E> {
    inner: E,
    kept: Bounded<Key, Vec<f32>>,
}

impl<E: Embedder> CachedEmbedder<E> {
    /// Creates a cache of 64 MiB of vectors: ten thousand of 1,536 numbers.
    pub fn new(inner: E) -> Self {
        Self { inner, kept: Bounded::new(64 << 20, None) }
    }

    /// Sets the maximum total size of all vectors, in bytes, and clears the cache. Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, most: u64) -> Self {
        self.kept = Bounded::new(most, None);
        self
    }

    /// Returns the number of cached vectors.
    pub fn len(&self) -> u64 {
        self.kept.len()
    }

    /// Returns true if the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the cached vectors of these keys, and the indices of texts to embed, each once.
    fn known(&self, keys: &[Key]) -> (HashMap<Key, Vec<f32>>, Vec<usize>) {
        let (mut known, mut asked, mut unknown) = (HashMap::new(), HashSet::new(), Vec::new());
        for (at, key) in keys.iter().enumerate() {
            match self.kept.get(key) {
                Some(vector) => drop(known.insert(*key, vector)),
                None if asked.insert(key) => unknown.push(at),
                None => {}
            }
        }
        (known, unknown)
    }
}

#[async_trait]
impl<E: Embedder> Embedder for CachedEmbedder<E> {
    fn info(&self) -> EmbedderInfo {
        self.inner.info()
    }

    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        let keys: Vec<Key> = req.texts.iter().map(|text| key(&req, text)).collect();
        let (mut known, unknown) = self.known(&keys);
        let mut usage = Usage::default();
        if !unknown.is_empty() {
            let mut asked = req.clone();
            asked.texts = unknown.iter().map(|at| req.texts[*at].clone()).collect();
            let answer = self.inner.embed(asked).await?;
            usage = answer.usage;
            for (at, vector) in unknown.into_iter().zip(answer.vectors) {
                let bytes = size_of_val(vector.as_slice()) + size_of::<Key>();
                self.kept.insert(keys[at], vector.clone(), bytes);
                known.insert(keys[at], vector);
            }
        }
        let missing = || misplaced(&self.info().provider, "one of a text is missing");
        let vectors = keys.iter().map(|key| known.get(key).cloned().ok_or_else(missing));
        Ok(EmbedResponse::new(vectors.collect::<Result<_>>()?, usage))
    }
}

fn key(req: &EmbedRequest, text: &str) -> Key {
    let mut digest = Sha256::new();
    digest.update(format!("{:?} {:?} ", req.purpose, req.dimensions));
    digest.update(text);
    digest.finalize().into()
}

impl<E: Embedder> fmt::Debug for CachedEmbedder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedEmbedder").field("inner", &self.info()).field("vectors", &self.len()).finish()
    }
}
