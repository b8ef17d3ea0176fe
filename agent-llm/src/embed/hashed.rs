//! [`HashedEmbedder`]: embedder by feature hashing, without a model.

use std::collections::HashMap;

use agent_core::{Error, ErrorKind, Result, Retry, Usage, async_trait};
use agent_retrieval::{
    embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo},
    search::words,
};

use crate::language::{is_stop, stem};

/// Weights of a word, of a pair of consecutive words, and of all pieces of a word together.
const WORD: f32 = 1.0;
const PAIR: f32 = 0.5;
const PIECES: f32 = 0.5;

/// Number of letters of a piece of a word.
const PIECE: usize = 4;

/// Number of texts between yields to other tasks.
const AT_ONCE: usize = 32;

/// Embedder without key, network or model: it hashes words and pieces of words, and knows nothing
/// of their meaning.
///
/// Each word (stemmed, without stop words such as *the*), each pair of consecutive words and each
/// piece of a word are hashed to an index of the vector and a sign. Repeated words count more, with
/// diminishing weight. Vectors have length 1. A text has the same vector in every release with this
/// [`EmbedderInfo::model`].
///
/// # Quality
///
/// It finds texts that share words, or forms of words, with the query; it finds neither paraphrases
/// nor translations. Use it for tests, for demonstrations, and alongside full-text search on a
/// machine without a model.
///
/// Measured on this project's book, 670 sections, with 40 questions phrased differently from its
/// headings: a section of the right page is among the first five for 24 questions, and for 27 with
/// 2,048 dimensions. BM25 over the words of the same sections finds 30. Embedding models find far
/// more; this is no replacement for one.
///
/// # Example
///
/// ```
/// use agent_retrieval::embed::{EmbedRequest, Embedder};
/// use agent_llm::embed::HashedEmbedder;
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let embedder = HashedEmbedder::new();
/// let notes = embedder.embed(EmbedRequest::documents(["Ada keeps bees.", "Retries back off."])).await?.vectors;
/// let question = &embedder.embed(EmbedRequest::query("Who is a keeper of bees?")).await?.vectors[0];
/// let near = |note: &[f32]| note.iter().zip(question).map(|(a, b)| a * b).sum::<f32>();
/// assert!(near(&notes[0]) > 0.3 && near(&notes[1]) < 0.2);
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("embeds");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedEmbedder {
    dimensions: usize,
}

impl HashedEmbedder {
    /// Creates an embedder with vectors of 512 dimensions.
    pub const fn new() -> Self {
        Self { dimensions: 512 }
    }

    /// Sets the default number of dimensions. With few dimensions, words collide: below 256 recall
    /// drops.
    #[must_use]
    pub const fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = dimensions;
        self
    }
}

impl Default for HashedEmbedder {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Embedder for HashedEmbedder {
    fn info(&self) -> EmbedderInfo {
        EmbedderInfo::new("offline", "hashed").with_dimensions(self.dimensions)
    }

    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for a text without a letter, a digit or a
    /// sign, and for vectors of zero dimensions.
    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        let dimensions = req.dimensions.unwrap_or(self.dimensions);
        let refused = |why: String| Error::new(ErrorKind::InvalidRequest, why).with_retry(Retry::Permanent);
        if dimensions == 0 {
            return Err(refused("vectors of no length were asked for".to_owned()));
        }
        let mut vectors = Vec::with_capacity(req.texts.len());
        for (at, text) in req.texts.iter().enumerate() {
            if text.trim().is_empty() {
                return Err(refused(format!("text {at} is empty: there is nothing to make a vector of")));
            }
            vectors.push(vector(text, dimensions));
            if at % AT_ONCE == AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
        Ok(EmbedResponse::new(vectors, Usage::default()))
    }
}

fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut features = Features::default();
    features.add_words(text);
    if features.0.is_empty() {
        features.add(text.trim(), 0, WORD); // only signs
    }
    let mut vector = vec![0.0; dimensions];
    for (hash, (times, weight)) in features.0 {
        let value = weight * (1.0 + times.ln());
        let at = (hash % dimensions as u64) as usize;
        vector[at] += if hash >> 63 == 0 { value } else { -value };
    }
    normalise(&mut vector);
    vector
}

/// Scales the vector to length 1. If all its features cancel out, it points along its first axis.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > f32::EPSILON {
        vector.iter_mut().for_each(|x| *x /= length);
    } else {
        vector.fill(0.0);
        vector[0] = 1.0;
    }
}

/// Features of a text by hash: count and weight.
#[derive(Default)]
struct Features(HashMap<u64, (f32, f32)>);

impl Features {
    fn add_words(&mut self, text: &str) {
        let words = words(text);
        let said: Vec<_> = words.iter().filter(|word| !is_stop(word)).collect();
        // A text of nothing but stop words is indexed by them.
        let said = if said.is_empty() { words.iter().collect() } else { said };
        let mut before: Option<String> = None;
        for word in said {
            let stem = stem(word);
            self.add(&stem, 1, WORD);
            self.add_pieces(&stem);
            if let Some(before) = before {
                self.add(&format!("{before} {stem}"), 2, PAIR);
            }
            before = Some(stem);
        }
    }

    fn add_pieces(&mut self, stem: &str) {
        let letters: Vec<char> = ['<'].into_iter().chain(stem.chars()).chain(['>']).collect();
        if letters.len() <= PIECE {
            return; // the word is its own single piece
        }
        let pieces = letters.windows(PIECE);
        let weight = PIECES / (pieces.len() as f32).sqrt();
        pieces.for_each(|piece| self.add(&String::from_iter(piece), 3, weight));
    }

    /// Adds a feature. `kind` separates features with the same spelling.
    fn add(&mut self, feature: &str, kind: u8, weight: f32) {
        let (times, known) = self.0.entry(hash(feature, kind)).or_insert((0.0, weight));
        *times += 1.0;
        *known = known.max(weight);
    }
}

/// FNV-1a with a final mixing step, since the lowest bits select the index and the highest the
/// sign. The standard library's hash may change between releases, whereas vectors are stored.
fn hash(feature: &str, kind: u8) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = [kind].into_iter().chain(feature.bytes()).fold(0xcbf2_9ce4_8422_2325, fold);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}
