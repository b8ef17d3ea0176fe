//! [`CachedEmbedder`].

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use agent_core::{
    Result, Usage, async_trait,
    embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo},
};
use sha2::{Digest, Sha256};

use super::vectors::misplaced;
use crate::cache::Bounded;

/// What a vector depends on, as a digest.
type Key = [u8; 32];

/// An embedder that remembers vectors: of a request, only texts that it has not seen lately are asked for, each once. What was
/// not used for longest is forgotten first.
///
/// ```
/// use agent_core::embed::{EmbedRequest, Embedder};
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
    /// Remembers 64 MiB of vectors: ten thousand of 1,536 numbers.
    pub fn new(inner: E) -> Self {
        Self { inner, kept: Bounded::new(64 << 20, None) }
    }

    /// Sets the most bytes of all vectors together, and forgets those that it remembers. Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, most: u64) -> Self {
        self.kept = Bounded::new(most, None);
        self
    }

    /// The number of vectors that it remembers.
    pub fn len(&self) -> u64 {
        self.kept.len()
    }

    /// True if it remembers none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of texts with these keys, and the places of those that must be asked for, each once.
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
